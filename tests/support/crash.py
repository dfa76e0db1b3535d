"""kill -9 without a process: the data directory as it is at this instant, and a new start on the copy of it."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp

from boat import TITLES_OFF, Boat, Watcher, launch
from checks import check_ends
from mirror import log_of

from longboat.models.protocol import Model
from longboat.store.protocol import Unit
from longboat.testing import Gate
from longboat.tools.protocol import Tool
from longboat.wire.models import Accepted

RESUME = TITLES_OFF.replace("{", '{"on_restart": "resume", ', 1)


@asynccontextmanager
async def restarted(
    boat: Boat,
    model: Model,
    *,
    config: str = TITLES_OFF,
    tools: Iterable[Tool] = (),
) -> AsyncIterator[Boat]:
    """A server that starts after a crash of `boat`. The boat itself goes on and never hears of it."""
    async with launch(await crashed(boat), model, config=config, tools=tools, session_id=boat.session_id) as again:
        yield again


async def crashed(boat: Boat) -> Path:
    """What a kill -9 would leave now: the store with its write-ahead log, without the shared memory of the dead."""
    await boat.workspace.store.submit(Unit(workspace_id="nobody"))  # whatever is on its way is on disk
    place = Path(mkdtemp(dir=boat.app.settings.data_dir.parent, prefix="crash-"))
    shutil.copytree(boat.app.settings.data_dir, place / "data", ignore=shutil.ignore_patterns("*-shm", "lock"))
    (place / "project").symlink_to(boat.workspace.directory)
    return place


async def accept_only(boat: Boat, *prompts: tuple[str, str], cancel: bool = False) -> Gate:
    """Accept these (prompt, run_id); the gate holds the session before the first of them enters."""
    first = await boat.held_actor()
    answers: list[asyncio.Task[Accepted]] = []
    for prompt, run_id in prompts:
        answers.append(asyncio.create_task(boat.submit(prompt, run_id)))
        await boat.posted(len(answers))
    canceling = asyncio.create_task(boat.workspace.cancel_session(boat.session_id)) if cancel else None
    if canceling is not None:
        await boat.posted(len(answers) + 1)
    second = boat.hold_actor()
    first.open()
    await asyncio.gather(*answers, *([canceling] if canceling else []))
    await second.reached()
    return second


async def check_log(boat: Boat) -> Watcher:
    """What must hold when all is done, judged by the whole log, across all starts. Returns one who read it all."""
    reader = Watcher()
    for row in await log_of(boat.workspace):
        reader.take(row["frames"])
    await check_ends(Boat(boat.app, boat.workspace, boat.session_id, reader))
    return reader


async def streamed(boat: Boat, text: str) -> None:
    """Wait until the log has a delta that ends so."""
    await boat.watcher.until(lambda event: event.type == "message_delta" and event.payload.text.endswith(text))
