"""A host for one dialog or panel, what it drew as text, and things to show in it."""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widget import Widget

from longboat.tui.theming import LIGHT
from longboat.wire.asks import CommandPart, CommandPartKind, Permission, Question
from longboat.wire.events import Change
from longboat.wire.listings import ModelInfo, ModelPage, ModelPrice
from longboat.wire.models import Delivery, Run, RunState, Session, Usage
from longboat.wire.review import ChangedFile, ChangesPage, UndoneChange

PICTURES = Path(__file__).parents[1] / "tui" / "pictures"
GIVE_UP_S = 20.0
SIZES = ((60, 20), (80, 24), (120, 40))
WHEN = "2026-11-15T12:00:00.000000Z"

Result = TypeVar("Result")


class Stage(App[None]):
    """Shows a panel, or a dialog in front of nothing, and keeps what it ended with."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, *panels: Widget) -> None:
        super().__init__()
        self.register_theme(LIGHT)
        self._panels = panels
        self.results: list[object] = []
        self.heard: list[object] = []
        self.quitted = False

    def compose(self) -> ComposeResult:
        yield from self._panels

    def on_queue_panel_edited(self, message: object) -> None:
        self.heard.append(message)

    on_queue_panel_deleted = on_queue_panel_edited
    on_queue_panel_delivered = on_queue_panel_edited

    async def action_quit(self) -> None:
        self.quitted = True

    async def open(self, pilot: Pilot[None], dialog: ModalScreen[Result]) -> None:
        await self.push_screen(dialog, self.results.append)
        await self.settled(pilot)

    async def settled(self, pilot: Pilot[None]) -> None:
        await pilot.pause()
        await self.workers.wait_for_complete()
        await pilot.pause()


def drawn(app: App[None]) -> list[list[Segment]]:
    """The pieces of each line of the screen that is in front."""
    return [list(strip) for strip in app.screen._compositor.render_strips()]


def picture(app: App[None]) -> str:
    lines = ("".join(piece.text for piece in line).rstrip() for line in drawn(app))
    return "\n".join(lines) + "\n"


async def until(pilot: Pilot[None], true: Callable[[], object]) -> None:
    """Wait until something is so; what never comes is told with the screen as it is then."""
    try:
        async with asyncio.timeout(GIVE_UP_S):
            while not true():
                await pilot.pause()
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"It never was so:\n{picture(pilot.app)}") from None


async def holds(pilot: Pilot[None], name: str) -> None:
    """The screen looks as the picture of this name. `PICTURES=write` takes it anew: look at it before you keep it."""
    app = pilot.app
    width, height = app.size
    path = PICTURES / f"{name}-{width}x{height}.txt"
    if os.environ.get("PICTURES") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(picture(app))
    wanted = path.read_text()
    with suppress(AssertionError):
        await until(pilot, lambda: picture(app) == wanted)
    assert picture(app) == wanted, f"{path.name} looks different: PICTURES=write takes it anew"


DIFF = "".join(
    f"{line}\n"
    for line in (
        "--- a/src/boat.py",
        "+++ b/src/boat.py",
        "@@ -1,5 +1,6 @@",
        " def sail(wind: int) -> str:",
        '-    return "slow"',
        "+    # with the wind",
        '+    return "fast" if wind > 3 else "slow"',
        " ",
        " ",
        " class Boat:",
        "@@ -40,2 +41,2 @@ class Boat:",
        "-    crew = 5",
        "+    crew = 6",
        "     keel = True",
    )
)


def some_parts(text: str = "curl -s x.org") -> tuple[CommandPart, ...]:
    return (
        CommandPart(kind=CommandPartKind.COMMAND, text="npm test", rule="bash(npm test *)"),
        CommandPart(kind=CommandPartKind.COMMAND, text=text, why="no rule allows it"),
        CommandPart(kind=CommandPartKind.REDIRECTION, text="> /tmp/log", why="outside the workspace"),
        CommandPart(kind=CommandPartKind.COMMAND, text="ls"),
    )


def a_permission(
    *,
    tool: str = "bash",
    title: str = "Run git push --force origin main",
    detail: str = "git push --force origin main",
    argument: str = "git push --force origin main",
    why: str = "No rule allows git push.",
    grant: tuple[str, ...] = ("bash(git push --force origin main)",),
    wide: tuple[str, ...] = ("bash(git push *)",),
    parts: tuple[CommandPart, ...] = (),
    more_parts: int = 0,
    danger: str = "",
    rules_file: str = "",
) -> Permission:
    return Permission(
        id="per_1",
        session_id="ses_1",
        run_id="run_1",
        tool_call_id="call_1",
        tool=tool,
        action="run",
        argument=argument,
        title=title,
        detail=detail,
        why=why,
        grant=grant,
        wide=wide,
        asked_at=WHEN,
        parts=parts,
        more_parts=more_parts,
        danger=danger,
        rules_file=rules_file,
    )


def an_edit() -> Permission:
    return a_permission(
        tool="edit",
        title="Edit src/boat.py",
        detail=DIFF,
        argument="src/boat.py",
        why="Files are asked for before they are changed.",
        grant=("edit(src/boat.py)",),
        wide=("edit(src/**)",),
    )


def a_question(
    *,
    text: str = "Which database should the tests use?",
    choices: tuple[str, ...] = ("SQLite in memory", "SQLite in a file", "PostgreSQL"),
    descriptions: tuple[str, ...] = (),
    multiple: bool = False,
) -> Question:
    return Question(
        id="que_1",
        session_id="ses_1",
        run_id="run_1",
        tool_call_id="call_1",
        text=text,
        choices=choices,
        descriptions=descriptions,
        multiple=multiple,
        asked_at=WHEN,
    )


def a_session(number: int, *, title: str = "", busy: bool = False, cost: float = 0.0) -> Session:
    """The higher the number, the older."""
    return Session(
        id=f"ses_{number:04}",
        workspace_id="wsp_1",
        title=title or f"Session number {number}",
        created_at=WHEN,
        updated_at=f"2026-11-{14 - number // 1440:02}T{23 - number // 60 % 24:02}:{59 - number % 60:02}:00.000000Z",
        busy=busy,
        usage=Usage(cost=cost),
    )


def a_run(
    number: int,
    *,
    prompt: str = "",
    state: RunState = RunState.QUEUED,
    delivery: Delivery = Delivery.QUEUE,
    client_id: str = "ada",
) -> Run:
    return Run(
        run_id=f"run_{number}",
        seq=number,
        session_id="ses_1",
        state=state,
        delivery=delivery,
        prompt=prompt or f"Prompt number {number}",
        position=number,
        accepted_at=WHEN,
        client_id=client_id,
    )


def some_models(*, problem: str = "Set ANTHROPIC_API_KEY.", name: str = "anthropic/claude") -> ModelPage:
    return ModelPage(
        items=(
            ModelInfo(name=name, ready=False, problem=problem, context_window=200_000),
            ModelInfo(
                name="openai/gpt-large",
                ready=True,
                context_window=400_000,
                price=ModelPrice(input=3, output=15),
                default_effort="medium",
            ),
            ModelInfo(name="openai/gpt-small", ready=True, context_window=1_000_000, images=False, effort=False),
            ModelInfo(name="local/little", ready=True, price=ModelPrice(input=0, output=0)),
        ),
        large="openai/gpt-large",
        small="openai/gpt-small",
    )


def a_changed_file(path: str = "src/boat.py", diff: str = "", **more: Any) -> ChangedFile:
    fields = {"change": Change.UPDATED, "additions": 0, "deletions": 0, "runs": ("r1",), "digest": f"digest of {path}"}
    return ChangedFile(path=path, diff=diff, **{**fields, **more})


def some_changes() -> ChangesPage:
    return ChangesPage(
        items=(
            a_changed_file(diff=DIFF, additions=3, deletions=2, hunks=DIFF.count("@@ -"), by=("anna",)),
            a_changed_file("logo.png", change=Change.CREATED),
        ),
        complete=True,
    )


async def undo_nothing(file: ChangedFile, hunks: Sequence[int] | None) -> ChangesPage:
    return some_changes()


async def redo_nothing(undone: UndoneChange) -> ChangesPage:
    return some_changes()


async def edit_nothing(file: ChangedFile, line: int) -> ChangesPage:
    return some_changes()


async def nothing(*what: object) -> None:
    return None
