"""A whole Longboat in the test's process: real store, real log, scripted model."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from longboat.config.load import user_config_file
from longboat.config.settings import Settings
from longboat.errors import StoreUnavailable
from longboat.models.protocol import Model
from longboat.runtime.app import App, open_app
from longboat.runtime.session.actor import SessionActor
from longboat.runtime.turn.traces import Traces
from longboat.runtime.workspace.workspace import Workspace
from longboat.store.records import SessionHistory
from longboat.testing import Gate, ScriptedTool
from longboat.tools.context import ToolContext
from longboat.tools.protocol import Tool, ToolCall, ToolResult
from longboat.wire.events import Event, decode_event
from longboat.wire.models import Accepted, Message, Run, RunComplete
from longboat.wire.requests import CreateSession, Submit
from longboat.wire.sse import Decoder
from secrecy import SECRETS, StreamCheck, add_secrets, check_for_secrets

TITLES_OFF = '{"titles": false, "retry": {"base_s": 0, "attempts": 3}}'


@dataclass(frozen=True)
class OneModel:
    """A source that always gives the same model."""

    model: Model

    def resolve(self, name: str | None, role: str) -> Model:
        return self.model


class Watcher:
    """A client's eye on the stream: every event so far, and a way to wait for one."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.events: list[Event] = []
        self.ended = asyncio.Event()
        """The server ended the stream in good order."""
        self._news = asyncio.Event()
        self._rest = b""
        self._check = StreamCheck("an event")
        self._decoder = Decoder()

    def take(self, chunk: bytes) -> None:
        self._check.check_for_secrets(chunk)
        *whole, self._rest = (self._rest + chunk).split(b"\n\n")  # a large frame comes in several chunks
        self.frames += [frame + b"\n\n" for frame in whole]
        for frame in self._decoder.decode(chunk):
            event = decode_event(frame.data, frame.id)
            assert event is not None
            self.events.append(event)
        self._news.set()

    async def until(self, found: Callable[[Event], bool]) -> Event:
        """The first event, past or future, that is so."""
        while True:
            for event in self.events:
                if found(event):
                    return event
            self._news.clear()
            await self._news.wait()

    async def completed(self, run_id: str) -> RunComplete:
        event = await self.until(lambda e: e.type == "run_complete" and e.payload.run_id == run_id)
        complete: RunComplete = event.payload
        return complete

    async def in_state(self, run_id: str, state: str) -> Run:
        event = await self.until(lambda e: e.type == "run" and e.payload.run_id == run_id and e.payload.state == state)
        run: Run = event.payload
        return run

    def of(self, kind: str) -> list[Any]:
        return [event.payload for event in self.events if event.type == kind]

    def terminals(self, run_id: str) -> list[RunComplete]:
        return [payload for payload in self.of("run_complete") if payload.run_id == run_id]


@dataclass
class RunningApp:
    """One workspace of one app, one session, one watcher that saw everything."""

    app: App
    workspace: Workspace
    session_id: str
    watcher: Watcher
    held: list[Gate] = field(default_factory=list)
    """Gates before the session's mailbox: opened at the end, so that a test that fails does not hang."""

    @property
    def actor(self) -> SessionActor:
        return self.workspace.sessions._actors[self.session_id]

    async def submit(self, prompt: str, run_id: str | None = None, **more: Any) -> Accepted:
        return await self.workspace.submit(
            Submit(session_id=more.pop("session_id", self.session_id), prompt=prompt, run_id=run_id, **more)
        )

    async def completed(self, run_id: str) -> RunComplete:
        return await self.watcher.completed(run_id)

    async def messages(self, session_id: str | None = None) -> Sequence[Message]:
        page = await self.workspace.messages(session_id or self.session_id, limit=500, after=None)
        check_for_secrets(msgspec.json.encode(page), "the messages")
        return page.items

    async def ledger(self) -> Sequence[Run]:
        """Every run of the workspace, oldest first."""
        page = await self.workspace.runs(state=None, session_id=None, limit=500, after=None)
        check_for_secrets(msgspec.json.encode(page), "the runs")
        return page.items[::-1]

    async def posted(self, count: int) -> None:
        """Wait until so many commands wait in the session's mailbox, behind the one that is being worked off."""
        while len(self.actor._mailbox) < count:  # noqa: ASYNC110 — it only lets the others go first
            await asyncio.sleep(0)

    async def behind_all(self, work: Callable[[], Awaitable[object]] = lambda: asyncio.sleep(0)) -> None:
        """Let the session's actor do this after everything that it was asked before."""
        await self.actor._mailbox.do(work)

    def post(self, work: Callable[[], Awaitable[object]]) -> None:
        """The same without waiting for it."""
        self.actor._mailbox.post(work)

    def hold_actor(self) -> Gate:
        """Keep the session's mailbox shut: what is asked now is decided, in order, once the gate opens."""
        gate = Gate("actor")
        self.held.append(gate)
        self.post(gate.arrive)
        return gate

    async def held_actor(self) -> Gate:
        """The same once the mailbox is shut: all that `posted` counts is waiting behind the gate."""
        gate = self.hold_actor()
        await gate.reached()
        return gate


@asynccontextmanager
async def launch(
    directory: Path,
    model: Model | None,
    *,
    tools: Iterable[Tool] = (),
    config: str = TITLES_OFF,
    session_id: str | None = None,
    answers: bool = True,
    traces: Traces | None = None,
    **settings: Any,
) -> AsyncIterator[RunningApp]:
    """Start a server on `directory`; the same directory again is a restart. Without a model: those of `configure`."""
    project = directory / "project"
    project.mkdir(exist_ok=True)
    (project / "longboat.json").write_text(config)
    add_secrets(user_config_file(os.environ, Path.home()))
    models = None if model is None else OneModel(model)
    async with open_app(settings_in(directory, **settings), models=models, tools=tools, traces=traces) as app:
        check_histories(app)
        workspace, _ = await app.join(str(project), None)
        if session_id is None:
            session_id = (await workspace.create_session(CreateSession())).id
        await workspace.session(session_id)
        async with watch(workspace, answers=answers) as watcher:
            running = RunningApp(app, workspace, session_id, watcher)
            try:
                yield running
            finally:
                for gate in running.held:
                    gate.open()


def check_histories(app: App) -> None:
    """Every turn of every test: what it gets from memory is what it would read from the store."""
    histories = app._store._publisher.histories  # type: ignore[attr-defined]
    get = histories.get

    async def checked(session_id: str, *, after: int, read: Callable[[], Awaitable[SessionHistory]]) -> SessionHistory:
        history: SessionHistory = await get(session_id, after=after, read=read)
        with suppress(StoreUnavailable):
            assert _listed(history) == _listed(await read())
        return history

    histories.get = checked


def _listed(history: SessionHistory) -> SessionHistory:
    return replace(history, messages=[*history.messages], reverts=[*history.reverts])


def configure(**config: Any) -> None:
    """The user's own configuration, which needs no trust. Before `launch`."""
    file = user_config_file(os.environ, Path.home())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(config))


TEST_STORE = "TEST_STORE"
"""Set to `postgres`, servers of the tests keep what they know there."""


def settings_in(directory: Path, **changes: Any) -> Settings:
    token = SECRETS["server token"]
    base = Settings(data_dir=directory / "data", runtime_dir=directory / "run", socket=None, token=token)
    if os.environ.get(TEST_STORE) == "postgres":
        from postgres import database_of  # here: most tests need no server

        base = replace(base, store=database_of(directory / "data"))
    return replace(base, **changes)


@asynccontextmanager
async def watch(
    workspace: Workspace,
    *,
    client_id: str = "watcher",
    after: str | None = None,
    session_id: str | None = None,
    answers: bool = True,
) -> AsyncIterator[Watcher]:
    """`answers`: a person who can answer is there, as at the terminal app and the page."""
    watcher = Watcher()
    attached = asyncio.Event()

    async def follow() -> None:
        stream = workspace.stream(client_id=client_id, after=after, session_id=session_id, answers=answers)
        async with stream as chunks:
            if after is not None:
                attached.set()
            async for chunk in chunks:
                watcher.take(chunk)
                attached.set()  # a new client is there once it has its snapshot: what happens from now on it hears
        watcher.ended.set()

    async with following(follow(), attached):
        yield watcher


@asynccontextmanager
async def following(follow: Coroutine[Any, Any, None], attached: asyncio.Event) -> AsyncIterator[None]:
    """Read a stream in the background, from when it is attached to the end of the block."""
    task = asyncio.create_task(follow)
    try:
        await attached.wait()
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Deaf(ScriptedTool):
    """A tool that does not hear a cancellation: it ends when its gate opens."""

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        self.calls.note(call)
        assert self._gate is not None
        waiting = asyncio.ensure_future(self._gate.arrive())
        while not waiting.done():
            try:
                await asyncio.shield(waiting)
            except asyncio.CancelledError:
                self.canceled += 1
        return ToolResult(content="done")


@contextmanager
def unprivileged() -> Iterator[None]:
    """Be somebody whom file permissions bind, for a while: tests may run as root, whom they do not."""
    if os.geteuid() != 0:
        yield
        return
    nobody = 65534
    os.setresuid(nobody, nobody, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
