"""kill -9 without a process: the data directory as it is at this instant, and a new start on the copy of it."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp

from checks import check_ends
from mirror import log_of
from running_app import TITLES_OFF, RunningApp, Watcher, launch

from longboat.models.protocol import Model
from longboat.store.protocol import Unit
from longboat.testing import Gate
from longboat.tools.protocol import Tool
from longboat.wire.models import Accepted

RESUME = TITLES_OFF.replace("{", '{"on_restart": "resume", ', 1)


@asynccontextmanager
async def restarted(
    running: RunningApp,
    model: Model,
    *,
    config: str = TITLES_OFF,
    tools: Iterable[Tool] = (),
) -> AsyncIterator[RunningApp]:
    """A server that starts after a crash of `running`, which itself goes on and is not told."""
    async with launch(
        await crashed(running), model, config=config, tools=tools, session_id=running.session_id
    ) as again:
        yield again


async def crashed(running: RunningApp) -> Path:
    """What a kill -9 would leave now: the store with its write-ahead log, without the shared memory of the dead."""
    await running.workspace.store.submit(Unit(workspace_id="nobody"))  # whatever is on its way is on disk
    place = Path(mkdtemp(dir=running.app.settings.data_dir.parent, prefix="crash-"))
    shutil.copytree(running.app.settings.data_dir, place / "data", ignore=shutil.ignore_patterns("*-shm", "lock"))
    if running.app.settings.store is not None:
        from postgres import copy_database  # here: most tests need no server

        await asyncio.to_thread(copy_database, running.app.settings.data_dir, place / "data")
    (place / "project").symlink_to(running.workspace.directory)
    return place


async def accept_only(running: RunningApp, *prompts: tuple[str, str], cancel: bool = False) -> Gate:
    """Accept these (prompt, run_id); the gate holds the session before the first of them enters."""
    first = await running.held_actor()
    answers: list[asyncio.Task[Accepted]] = []
    for prompt, run_id in prompts:
        answers.append(asyncio.create_task(running.submit(prompt, run_id)))
        await running.posted(len(answers))
    canceling = asyncio.create_task(running.workspace.cancel_session(running.session_id)) if cancel else None
    if canceling is not None:
        await running.posted(len(answers) + 1)
    second = running.hold_actor()
    first.open()
    await asyncio.gather(*answers, *([canceling] if canceling else []))
    await second.reached()
    return second


async def check_log(running: RunningApp) -> Watcher:
    """What must hold when all is done, judged by the whole log, across all starts. Returns one who read it all."""
    reader = Watcher()
    for row in await log_of(running.workspace):
        reader.take(row["frames"])
    await check_ends(RunningApp(running.app, running.workspace, running.session_id, reader))
    return reader


async def streamed(running: RunningApp, text: str) -> None:
    """Wait until the log has a delta that ends so."""
    await running.watcher.until(lambda event: event.type == "message_delta" and event.payload.text.endswith(text))
