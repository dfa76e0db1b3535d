"""A workspace: one directory with its sessions, its log and the clients that hold it open.

Owns the session actors, the hub and the claims. Runs belong to it, not to connections (B2). Must not know HTTP; what it
returns are the wire's shapes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from longboat.config.settings import Config, OnRestart, Settings
from longboat.errors import (
    BadInput,
    ConfigInvalid,
    LongboatError,
    ModelError,
    RunIdTaken,
    RunNotEditable,
    RunNotFound,
    ServerLeaving,
    SessionNotFound,
    WorkspaceClosing,
)
from longboat.models.seam import Model
from longboat.runtime.claims import Claims
from longboat.runtime.clock import now
from longboat.runtime.guests import GuestBook
from longboat.runtime.home import ModelRole
from longboat.runtime.hub import Hub
from longboat.runtime.insistence import insist
from longboat.runtime.intake import take_in
from longboat.runtime.models import ModelDesk
from longboat.runtime.session import SessionActor
from longboat.runtime.tasks import Tasks
from longboat.store.protocol import Entry, Store, UniqueViolated, Unit, Write
from longboat.store.rows import (
    RunRecord,
    client_from_row,
    read_messages,
    record_from_row,
    run_from_row,
    session_from_row,
)
from longboat.tools.seam import Tool
from longboat.wire import models as wire
from longboat.wire.events import Change, encode_body
from longboat.wire.ids import new_id
from longboat.wire.models import (
    Accepted,
    AgentInfo,
    Canceled,
    MessagePage,
    Run,
    RunPage,
    RunState,
    Session,
    SessionPage,
    SessionStatus,
)
from longboat.wire.requests import CreateSession, EditRun, Submit, UpdateSession

NEWEST = 2**62

RESTORE_S = 20.0
"""How long a start waits for a store that cannot be written before it gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A workspace as the store knows it."""

    workspace_id: str
    path: Path
    created_at: str


class Workspace:
    def __init__(
        self,
        place: Place,
        *,
        settings: Settings,
        store: Store,
        models: ModelDesk,
        tools: Mapping[str, Tool],
        on_free: Callable[["Workspace"], None],
    ) -> None:
        self.id = place.workspace_id
        self.directory = place.path
        self.store = store
        self.tasks = Tasks()
        self.tools = tools
        self.closing = False
        self._place = place
        self._models = models
        self._on_free = on_free
        self._hub = Hub(store, self.id, heartbeat_s=settings.heartbeat_s)
        self._guests = GuestBook(store, self.id)
        self._claims = Claims(
            hold_s=settings.create_hold_s,
            grace_s=settings.detach_grace_s,
            on_detach=self._guests.left,
            on_free=self.settled,
        )
        self._actors: dict[str, SessionActor] = {}
        self._sessions_of: dict[str, str] = {}
        """The sessions of unfinished runs."""
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._leaving = False
        self._entering = 0
        self._deletions = 0

    # Home, for the sessions

    def config(self) -> Config:
        return self._models.config(self.directory)

    async def model(self, name: str | None, role: ModelRole) -> Model:
        if not self.directory.is_dir():
            raise ModelError(
                f"{self.directory} does not exist any more.", title="The directory is gone", code="directory_gone"
            )
        return await self._models.model(self.directory, name, role)

    def run_accepted(self, run_id: str, session_id: str) -> None:
        self._sessions_of[run_id] = session_id

    def run_finished(self, run: Run) -> None:
        self._sessions_of.pop(run.run_id, None)
        self._wake(run.run_id)

    def _forget(self, run_id: str, future: "asyncio.Future[None]") -> None:
        waiting = self._waiting.get(run_id, [])
        if future in waiting:
            waiting.remove(future)
            if not waiting:
                del self._waiting[run_id]

    def _wake(self, run_id: str) -> None:
        for future in self._waiting.pop(run_id, ()):
            if not future.done():
                future.set_result(None)

    def session_deleted(self, session_id: str) -> None:
        self._actors.pop(session_id, None)
        self._deletions += 1

    def settled(self) -> None:
        if not self._claims.held and not self.engaged and not self.closing:
            self._on_free(self)

    # What the app looks at

    @property
    def engaged(self) -> bool:
        return self._entering > 0 or any(actor.engaged for actor in self._actors.values())

    @property
    def runs_unfinished(self) -> int:
        return sum(len(actor.state.runs) for actor in self._actors.values())

    @property
    def runs_active(self) -> int:
        return sum(actor.state.busy for actor in self._actors.values())

    @property
    def streams_open(self) -> int:
        return self._claims.streams

    def hold(self) -> None:
        self._claims.hold()

    async def release(self, client_id: str) -> None:
        """Give a client's claim back. Returns when that is on record: who asks next must not find the client there."""
        self._claims.release(client_id)
        await self._guests.wait_told()

    async def describe(self) -> wire.Workspace:
        rows = await self.store.read(lambda reader: reader.fetch("clients_of", workspace_id=self.id))
        return wire.Workspace(
            id=self.id,
            path=str(self.directory),
            created_at=self._place.created_at,
            ready=self._ready(),
            busy=self.runs_active > 0,
            clients=tuple(client_from_row(row) for row in rows),
        )

    async def agent(self) -> AgentInfo:
        busy = self.runs_active > 0
        try:
            model = await self.model(None, "large")
        except LongboatError as error:
            return AgentInfo(model=None, provider=None, ready=False, busy=busy, problem=error.message)
        return AgentInfo(model=model.name, provider=model.provider, ready=True, busy=busy)

    def _ready(self) -> bool:
        try:
            self.config()
        except ConfigInvalid:
            return False
        return self.directory.is_dir()

    # Sessions

    async def create_session(self, request: CreateSession) -> Session:
        self._check_open()
        at = now()
        session = Session(id=new_id(), workspace_id=self.id, title=request.title, created_at=at, updated_at=at)
        params = {
            "session_id": session.id,
            "workspace_id": self.id,
            "parent_id": session.parent_id,
            "title": session.title,
            "created_at": at,
            "updated_at": at,
        }
        entry = Entry(bodies=(encode_body(Change.CREATED, session),), session_id=session.id)
        await self.store.submit(
            Unit(workspace_id=self.id, writes=[Write("session_insert", params, rows=1)], entries=[entry])
        )
        return session

    async def sessions(self, *, limit: int, after: str | None) -> SessionPage:
        before = _page_cursor(after, NEWEST)
        rows = await self.store.read(
            lambda reader: reader.fetch("sessions_page", workspace_id=self.id, before=before, limit=limit)
        )
        following = str(rows[-1]["place"]) if len(rows) == limit else None
        return SessionPage(items=tuple(session_from_row(row) for row in rows), next=following)

    async def session(self, session_id: str) -> Session:
        return (await self._actor(session_id)).session

    async def update_session(self, session_id: str, request: UpdateSession) -> Session:
        with self._staying():
            return await (await self._actor(session_id)).rename(request.title)

    async def delete_session(self, session_id: str) -> None:
        with self._staying():
            await (await self._actor(session_id)).delete()

    async def messages(self, session_id: str, *, limit: int, after: str | None) -> MessagePage:
        await self._actor(session_id)
        start = _page_cursor(after, 0)
        items = await self.store.read(lambda reader: read_messages(reader, session_id, after=start, limit=limit))
        return MessagePage(items=tuple(items), next=str(items[-1].seq) if len(items) == limit else None)

    async def session_status(self, session_id: str) -> SessionStatus:
        state = (await self._actor(session_id)).state
        return SessionStatus(
            session_id=session_id,
            busy=state.busy,
            active_run_id=state.active.run_id if state.active is not None else None,
            queued=len(state.in_state(RunState.QUEUED)),
        )

    async def _actor(self, session_id: str) -> SessionActor:
        actor = self._actors.get(session_id)
        if actor is not None:
            return actor
        deletions = self._deletions
        rows = await self.store.read(
            lambda reader: reader.fetch("session_by_id", session_id=session_id, workspace_id=self.id)
        )
        if deletions != self._deletions:
            return await self._actor(session_id)  # what was read may be gone since
        if not rows:
            raise SessionNotFound(session_id)
        if session_id not in self._actors:  # somebody else may have been faster
            self._actors[session_id] = SessionActor(
                self,
                session_from_row(rows[0]),
                last_message=rows[0]["last_message"],
                summary_seq=rows[0]["summary_seq"],
                leaving=self._leaving,
            )
        return self._actors[session_id]

    # Runs

    async def submit(self, request: Submit) -> Accepted:
        if self._leaving:
            raise ServerLeaving
        record = take_in(request)
        with self._staying():
            try:
                return await (await self._actor(request.session_id)).accept(record)
            except UniqueViolated:
                return await self._repeated(record)

    async def _repeated(self, record: RunRecord) -> Accepted:
        """The run_id is known: the same prompt again is answered with the same run, another one is refused."""
        known = await self._record(record.run.run_id)
        if known.run.session_id != record.run.session_id or known.fingerprint != record.fingerprint:
            raise RunIdTaken(record.run.run_id)
        run = self._placed(known.run)
        return Accepted(run_id=run.run_id, seq=run.seq, state=run.state, position=run.position)

    async def runs(self, *, state: RunState | None, session_id: str | None, limit: int, after: str | None) -> RunPage:
        before = _page_cursor(after, NEWEST)
        query = "runs_page" if session_id is None else "runs_page_session"
        params = {"workspace_id": self.id, "before": before, "state": state, "limit": limit}
        if session_id is not None:
            params["session_id"] = session_id
        rows = await self.store.read(lambda reader: reader.fetch(query, **params))
        runs = tuple(self._placed(run_from_row(row)) for row in rows)
        return RunPage(items=runs, next=str(runs[-1].seq) if len(runs) == limit else None)

    async def run(self, run_id: str, *, wait_s: float = 0) -> Run:
        if wait_s > 0 and run_id in self._sessions_of:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(run_id, []).append(future)
            await asyncio.wait([future], timeout=wait_s)
            self._forget(run_id, future)
        return self._placed((await self._record(run_id)).run)

    async def cancel_run(self, run_id: str) -> Run:
        with self._staying():
            session_id = self._sessions_of.get(run_id)
            if session_id is not None:
                run = await (await self._actor(session_id)).cancel_run(run_id)
                if run is not None:
                    return run
            return self._placed((await self._record(run_id)).run)

    async def edit_run(self, run_id: str, request: EditRun) -> Run:
        with self._staying():
            session_id = self._sessions_of.get(run_id)
            if session_id is not None:
                run = await (await self._actor(session_id)).edit_run(run_id, request)
                if run is not None:
                    return run
            raise RunNotEditable(run_id, (await self._record(run_id)).run.state)

    async def cancel_session(self, session_id: str) -> Canceled:
        with self._staying():
            return await (await self._actor(session_id)).cancel()

    async def clear_queue(self, session_id: str) -> Canceled:
        with self._staying():
            return await (await self._actor(session_id)).clear_queue()

    async def queued(self, session_id: str) -> RunPage:
        return RunPage(items=tuple((await self._actor(session_id)).queued()))

    async def _record(self, run_id: str) -> RunRecord:
        rows = await self.store.read(lambda reader: reader.fetch("run_by_id", workspace_id=self.id, run_id=run_id))
        if not rows:
            raise RunNotFound(run_id)
        return record_from_row(rows[0])

    def _placed(self, run: Run) -> Run:
        """The run with its present place in the queue, which only memory knows."""
        actor = self._actors.get(run.session_id)
        position = actor.state.position(run.run_id) if actor is not None else None
        return msgspec.structs.replace(run, position=position)

    # Streams

    @asynccontextmanager
    async def stream(
        self, *, client_id: str, after: str | None, session_id: str | None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        if session_id is not None:
            await self._actor(session_id)
        self._check_open()
        stream = object()
        new = self._claims.attach(client_id, stream)
        try:
            if new:
                await self._guests.came(client_id)
            async with aclosing(self._hub.stream(after, session_id)) as chunks:
                yield chunks
        finally:
            self._claims.detach(client_id, stream)

    # Life and end

    async def open(self) -> None:
        """Find out where the log stands. What is committed from now on, the hub hears of."""
        await self._hub.open()

    async def restore(self) -> None:
        """Take up the unfinished runs that the store has (B6)."""
        rows = await self.store.read(lambda reader: reader.fetch("runs_unfinished", workspace_id=self.id))
        by_session: dict[str, list[RunRecord]] = {}
        for row in rows:
            by_session.setdefault(row["session_id"], []).append(record_from_row(row))
        try:
            resume = self.config().on_restart is OnRestart.RESUME
        except ConfigInvalid:
            resume = False
        for session_id, records in by_session.items():
            actor = await self._actor(session_id)
            await insist(partial(actor.restore, records, resume=resume), for_s=RESTORE_S)

    def refuse(self) -> None:
        """Take no new prompts: the server is leaving."""
        self._leaving = True

    async def wind_down(self) -> None:
        """Start nothing more, what is queued stays queued; then wait until no turn runs."""
        for actor in list(self._actors.values()):
            await actor.leave()
        for actor in list(self._actors.values()):
            await actor.wait_until(lambda state: not state.busy)

    def interrupt(self) -> None:
        for actor in self._actors.values():
            actor.interrupt()

    def close(self) -> None:
        """End the streams and the clocks. From here on this object refuses; the app opens a new one when asked."""
        self.closing = True
        self._claims.close()
        for run_id in list(self._waiting):
            self._wake(run_id)
        self._hub.close()

    async def aclose(self) -> None:
        await self.tasks.aclose()

    @contextmanager
    def _staying(self) -> Iterator[None]:
        """Keep the workspace open while something is being done in it: two of one directory must never act at once."""
        self._check_open()
        self._entering += 1
        try:
            yield
        finally:
            self._entering -= 1
            self.settled()

    def _check_open(self) -> None:
        if self.closing:
            raise WorkspaceClosing


def _page_cursor(after: str | None, default: int) -> int:
    if after is None:
        return default
    if not (after.isascii() and after.isdigit() and len(after) <= 18):
        raise BadInput("after must be the `next` of the page before.", code="bad_page")
    return int(after)
