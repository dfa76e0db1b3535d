"""A busy workspace, and streams that are read at the test's pace."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mirror import frames_in
from running_app import RunningApp, Watcher, launch

from longboat.models.protocol import ModelRequest
from longboat.store.protocol import Store, Unit
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel, ScriptedTool, Step, Think, Use
from longboat.testing.scripted import last_prompt
from longboat.wire.models import Role
from longboat.wire.requests import CreateSession, UpdateSession


class Pace(Gate):
    """Lets the model go on when all that it has said is published: so every piece is an event of its own."""

    store: Store

    async def arrive(self) -> None:
        await self.store.submit(Unit(workspace_id="nobody"))


def busy_answer(request: ModelRequest, pace: Pace) -> Step:
    """Thinking, a tool, then a long answer, with room for others after every piece."""
    if request.messages[-1].role is not Role.TOOL:
        said: Step = [Think("hm"), Think(" yes"), Say("Look"), Say(": "), CallTool("look", {"at": "the sea"})]
    else:
        said = [Say(f"{word} ") for word in last_prompt(request).split() * 20]
    return [item for piece in said for item in (piece, Pause(pace))] + [Use(input_tokens=3, output_tokens=5)]


@asynccontextmanager
async def launch_busy(directory: Path) -> AsyncIterator[RunningApp]:
    pace = Pace()
    model = ScriptedModel(lambda request: busy_answer(request, pace))
    async with launch(directory, model, tools=[ScriptedTool("look", "waves")]) as running:
        pace.store = running.workspace.store
        yield running


async def work_in_two_sessions(running: RunningApp) -> None:
    """Two sessions at once, prompts queued and steered, one canceled, a session renamed and one deleted."""
    other = (await running.workspace.create_session(CreateSession(title="other"))).id
    for index in range(3):
        await running.submit(f"north {index}", f"n{index}")
        await running.submit(f"south {index}", f"s{index}", session_id=other)
    steered = await running.submit("east")
    await running.workspace.update_session(other, UpdateSession(title="renamed"))
    await running.completed("n0")
    await running.workspace.cancel_session(other)
    await running.completed("n2")
    await running.completed(steered.run_id)
    for index in range(3):
        await running.completed(f"s{index}")
    await running.workspace.delete_session(other)
    await running.watcher.until(lambda event: event.type == "session" and event.change == "deleted")


class PacedFrames:
    """Whole frames drawn from a stream at the test's pace."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._ready: list[bytes] = []
        self._half = b""
        """The beginning of a frame that is larger than a chunk."""
        self.chunks: list[int] = []
        """How large they were."""

    async def take(self, count: int) -> list[bytes]:
        while len(self._ready) < count:
            self._hear(await anext(self._chunks))
        taken, self._ready = self._ready[:count], self._ready[count:]
        return taken

    async def rest(self) -> list[bytes]:
        """Everything up to the end of the stream."""
        async for chunk in self._chunks:
            self._hear(chunk)
        return self._ready

    def _hear(self, chunk: bytes) -> None:
        self.chunks.append(len(chunk))
        whole, end, self._half = (self._half + chunk).rpartition(b"\n\n")
        self._ready += frames_in(whole + end)


@asynccontextmanager
async def read_at_own_pace(
    running: RunningApp, after: str | None = None, session_id: str | None = None
) -> AsyncIterator[PacedFrames]:
    """A stream of a client that is attached already, so that opening it says nothing on the log."""
    async with running.workspace.stream(client_id="watcher", after=after, session_id=session_id) as chunks:
        yield PacedFrames(chunks)


def logged(watcher: Watcher) -> list[bytes]:
    return [frame for frame in watcher.frames if frame.startswith(b"id: ")]
