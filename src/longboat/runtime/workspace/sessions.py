"""The sessions of one workspace that are in memory: an actor for each session that was requested.

Guarantees that a session never has a second actor, and that a deleted one has none.
"""

import asyncio

import msgspec

from longboat.core.state import SessionState
from longboat.errors import SessionNotFound
from longboat.runtime.protocols import WorkspaceServices
from longboat.runtime.session.actor import SessionActor
from longboat.runtime.session.command_loop import UnsavedCancel
from longboat.store.records import SessionRecord
from longboat.wire.models import Run, Session


class Sessions:
    def __init__(self, services: WorkspaceServices, *, held: bool = False) -> None:
        """`held`: no run starts (L16)."""
        self._services = services
        self._held = held
        self._actors: dict[str, SessionActor] = {}
        self._new: dict[str, Session] = {}
        """Sessions that were created here and not asked for yet: the first to do so need not read them."""
        self._deletions = 0
        self._leaving = False

    @property
    def engaged(self) -> bool:
        return any(actor.engaged for actor in self._actors.values())

    @property
    def runs_unfinished(self) -> int:
        return sum(len(actor.state.seqs) for actor in self._actors.values())

    @property
    def run_ids(self) -> list[str]:
        """The unfinished runs."""
        return [run.run_id for actor in self._actors.values() for run in actor.state.runs]

    @property
    def runs_active(self) -> int:
        return sum(actor.state.busy for actor in self._actors.values())

    @property
    def unsaved_cancels(self) -> dict[str, tuple[UnsavedCancel, ...]]:
        """By session: cancels that the store could not take."""
        found = {session_id: actor.unsaved_cancels for session_id, actor in self._actors.items()}
        return {session_id: cancels for session_id, cancels in found.items() if cancels}

    @property
    def leaving(self) -> bool:
        return self._leaving

    async def get(self, session_id: str) -> SessionActor:
        actor = self._actors.get(session_id)
        if actor is not None:
            return actor
        if (new := self._new.pop(session_id, None)) is not None:
            return self._add(SessionRecord(session=new, last_message=0, summary_seq=0))
        deletions = self._deletions
        services = self._services
        found = await services.store.reads.session(services.id, session_id)
        if deletions != self._deletions:
            return await self.get(session_id)  # what was read may be gone since
        if found is None:
            raise SessionNotFound(session_id)
        return self._actors.get(session_id) or self._add(found)  # someone else may have been faster

    def _add(self, known: SessionRecord) -> SessionActor:
        actor = SessionActor(self._services, known, leaving=self._leaving, held=self._held)
        self._actors[known.session.id] = actor
        return actor

    def created(self, session: Session) -> None:
        if session.id not in self._actors:
            self._new[session.id] = session

    def deleted(self, session_id: str) -> None:
        self._actors.pop(session_id, None)
        self._new.pop(session_id, None)
        self._deletions += 1

    def with_position(self, run: Run) -> Run:
        """Return the run with its current position in the queue, which only memory knows."""
        actor = self._actors.get(run.session_id)
        return actor.live.with_position(run) if actor is not None else msgspec.structs.replace(run, position=None)

    def refuse(self) -> None:
        """The server is leaving: accept no new prompts and start nothing more; queued prompts stay queued."""
        self._leaving = True
        for actor in self._actors.values():
            actor.leave()

    async def wind_down(self) -> None:
        """After `refuse`: wait until no turn runs and all cancels are done."""
        for actor in list(self._actors.values()):
            await actor.live.wait_until(_is_quiet)

    def interrupt(self) -> None:
        for actor in self._actors.values():
            actor.interrupt()


class RunWaiters:
    def __init__(self) -> None:
        self._sessions: dict[str, str] = {}
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}

    def session_of(self, run_id: str) -> str | None:
        """The session of an unfinished run."""
        return self._sessions.get(run_id)

    def accepted(self, run_id: str, session_id: str) -> None:
        self._sessions[run_id] = session_id

    def finished(self, run_id: str) -> None:
        self._sessions.pop(run_id, None)
        self._wake(run_id)

    async def wait(self, run_id: str, timeout_s: float) -> None:
        """Wait until the run is finished, `close` is called, or the time is over."""
        if timeout_s <= 0 or run_id not in self._sessions:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(run_id, []).append(future)
        try:
            await asyncio.wait([future], timeout=timeout_s)
        finally:
            self._forget(run_id, future)

    def close(self) -> None:
        """Release all waiting callers: this workspace will not announce what they wait for."""
        for run_id in list(self._waiting):
            self._wake(run_id)

    def _wake(self, run_id: str) -> None:
        for future in self._waiting.pop(run_id, ()):
            if not future.done():
                future.set_result(None)

    def _forget(self, run_id: str, future: "asyncio.Future[None]") -> None:
        waiting = self._waiting.get(run_id, [])
        if future in waiting:
            waiting.remove(future)
            if not waiting:
                del self._waiting[run_id]


def _is_quiet(state: SessionState) -> bool:
    """An active run that waits for its directory has no turn (L16)."""
    return state.leaving and (not state.busy or state.held) and not state.covered
