"""A workspace that another server works on, as the store shows it: for a node that cannot reach the owner (G5).

Answers what needs no owner: sessions, transcripts, runs, asks, and the event stream, which follows the log. Changes
nothing and keeps nothing between two requests.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from longboat.core.state import SessionState
from longboat.errors import SessionNotFound
from longboat.runtime.ownership import NOWHERE, Ownership
from longboat.runtime.session.crash_repair import view_of
from longboat.runtime.session.live_session import LiveSession
from longboat.runtime.workspace.hub import Hub
from longboat.runtime.workspace.ledger import Ledger
from longboat.store.protocol import Store
from longboat.store.records import WorkspaceRecord
from longboat.tasks import Tasks
from longboat.wire import models as wire
from longboat.wire.asks import Permission, Question
from longboat.wire.models import MessagePage, Run, RunPage, RunState, Session, SessionStatus
from longboat.wire.workspace_state import Todos

POLL_S = 0.5
"""How often to look for what the owner has written."""


class ObservedWorkspace:
    def __init__(self, record: WorkspaceRecord, store: Store, ownership: Ownership, *, heartbeat_s: float) -> None:
        self.ledger = Ledger(store, record.workspace_id)
        self.asks = PendingAsks(store, record.workspace_id)
        self._id = record.workspace_id
        self._record = record
        self._store = store
        self._ownership = ownership
        self._heartbeat_s = heartbeat_s

    async def describe(self) -> wire.Workspace:
        activity = (await self._store.reads.workspace_activity()).get(self._id)
        place = (await self._ownership.places()).get(self._id, NOWHERE)
        return wire.Workspace(
            id=self._id,
            path=self._record.path,
            created_at=self._record.created_at,
            ready=place.ready,
            busy=activity is not None and activity.busy,
            clients=await self._store.reads.clients(self._id),
            home=place.home,
            owner=place.owner,
            away=place.away,
            away_since=place.away_since,
            home_stopping=place.home_stopping,
        )

    async def session(self, session_id: str) -> Session:
        return (await self._live(session_id)).session

    async def session_status(self, session_id: str) -> SessionStatus:
        state = (await self._live(session_id)).state
        return state_of_session(session_id, state, undone=await self._store.reads.undone_turns(session_id))

    async def messages(
        self, session_id: str, *, limit: int, after: str | None = None, before: str | None = None
    ) -> MessagePage:
        await self._check_session(session_id)
        return await self.ledger.messages(session_id, limit=limit, after=after, before=before)

    async def todos(self, session_id: str) -> Todos:
        await self._check_session(session_id)
        return await self.ledger.todos(session_id)

    async def queued(self, session_id: str) -> RunPage:
        return RunPage(items=tuple((await self._live(session_id)).queued()))

    async def runs(self, *, state: RunState | None, session_id: str | None, limit: int, after: str | None) -> RunPage:
        return await self.ledger.runs(state=state, session_id=session_id, limit=limit, after=after)

    async def run(self, run_id: str, *, wait_s: float = 0) -> Run:
        clock = asyncio.get_running_loop().time
        until = clock() + wait_s
        while True:
            run = (await self.ledger.record(run_id)).run
            if run.state is RunState.FINISHED or clock() >= until:
                return run
            await asyncio.sleep(POLL_S)

    @asynccontextmanager
    async def stream(
        self, *, client_id: str, after: str | None, session_id: str | None, answers: bool = False
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The client does not count as attached: only the owner could announce it."""
        del client_id, answers
        if session_id is not None:
            await self._check_session(session_id)
        hub = Hub(self._store, self._id, heartbeat_s=self._heartbeat_s)
        async with Tasks() as tasks:
            try:
                await hub.look()
                tasks.spawn(hub.follow(POLL_S), name=f"follow {self._id}")
                async with aclosing(hub.stream(after, session_id)) as chunks:
                    yield chunks
            finally:
                hub.close()

    async def _check_session(self, session_id: str) -> None:
        if await self._store.reads.session(self._id, session_id) is None:
            raise SessionNotFound(session_id)

    async def _live(self, session_id: str) -> LiveSession:
        known = await self._store.reads.session(self._id, session_id)
        if known is None:
            raise SessionNotFound(session_id)
        records = (await self.ledger.unfinished()).runs.get(session_id, ())
        live = LiveSession(known, leaving=False, held=True)
        live.advance(
            SessionState.of(*map(view_of, records), held=True), {record.run.run_id: record for record in records}
        )
        return live


class PendingAsks:
    """What waits for an answer, for reading alone."""

    def __init__(self, store: Store, workspace_id: str) -> None:
        self._store = store
        self._workspace_id = workspace_id

    async def permissions(self) -> tuple[Permission, ...]:
        return await self._store.reads.pending_asks(self._workspace_id, Permission)

    async def questions(self) -> tuple[Question, ...]:
        return await self._store.reads.pending_asks(self._workspace_id, Question)


def state_of_session(session_id: str, state: SessionState, *, undone: int) -> SessionStatus:
    return SessionStatus(
        session_id=session_id,
        busy=state.busy,
        active_run_id=state.active.run_id if state.active is not None else None,
        queued=len(state.waiting),
        undone=undone,
    )
