"""Sessions that changed files, for tests of what people undo and redo of that."""

from typing import Any

from scenario import Scene, call

from longboat.wire.models import Role, TextPart
from longboat.wire.requests import Revert
from longboat.wire.review import ChangedFile, ChangesPage, Reverted

LINES = "".join(f"{number}\n" for number in range(30))
FILES = {"a.txt": LINES, "b.txt": "one\n"}


def edit(name: str, *changes: tuple[str, str]) -> list[Any]:
    edits = [{"old_text": f"{old}\n", "new_text": f"{new}\n"} for old, new in changes]
    return [call("view", path=name), call("multiedit", path=name, edits=edits)]


TWO = edit("a.txt", ("\n3", "\nthree"), ("\n20", "\ntwenty"))
WITH_TWO = LINES.replace("\n3\n", "\nthree\n").replace("\n20\n", "\ntwenty\n")
WITH_TWENTY = LINES.replace("\n20\n", "\ntwenty\n")


async def changes(scene: Scene, **more: Any) -> ChangesPage:
    return await scene.workspace.review.changes(session_id=scene.running.session_id, run_id=None, **more)


async def changed(scene: Scene, **more: Any) -> tuple[ChangedFile, ...]:
    return (await changes(scene, **more)).items


async def revert(scene: Scene, path: str, hunks: tuple[int, ...] | None = None, by: str | None = "vera") -> Reverted:
    (file,) = await changed(scene, path=path)
    wanted = Revert(path=path, digest=file.digest, hunks=hunks, client_id=by)
    return await scene.workspace.revert(scene.running.session_id, wanted)


def told(scene: Scene) -> list[list[str]]:
    """The texts of each user message in the newest request."""
    messages = [message for message in scene.model.requests[-1].messages if message.role is Role.USER]
    return [[part.text for part in message.parts if isinstance(part, TextPart)] for message in messages]
