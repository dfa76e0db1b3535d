"""The sessions of one workspace that are in memory: an actor for each session that was requested.

Guarantees that a session never has a second actor, and that a deleted one has none.
"""

import msgspec

from longboat.errors import SessionNotFound
from longboat.runtime.home import Home
from longboat.runtime.session import SessionActor
from longboat.store.rows import session_from_row
from longboat.wire.models import Run


class Sessions:
    def __init__(self, home: Home) -> None:
        self._home = home
        self._actors: dict[str, SessionActor] = {}
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
    def leaving(self) -> bool:
        return self._leaving

    async def get(self, session_id: str) -> SessionActor:
        actor = self._actors.get(session_id)
        if actor is not None:
            return actor
        deletions = self._deletions
        home = self._home
        rows = await home.store.read(
            lambda reader: reader.fetch("session_by_id", session_id=session_id, workspace_id=home.id)
        )
        if deletions != self._deletions:
            return await self.get(session_id)  # what was read may be gone since
        if not rows:
            raise SessionNotFound(session_id)
        if session_id not in self._actors:  # somebody else may have been faster
            self._actors[session_id] = SessionActor(
                home,
                session_from_row(rows[0]),
                last_message=rows[0]["last_message"],
                summary_seq=rows[0]["summary_seq"],
                leaving=self._leaving,
            )
        return self._actors[session_id]

    def deleted(self, session_id: str) -> None:
        self._actors.pop(session_id, None)
        self._deletions += 1

    def placed(self, run: Run) -> Run:
        """The run with its present place in the queue, which only memory knows."""
        actor = self._actors.get(run.session_id)
        return actor.placed(run) if actor is not None else msgspec.structs.replace(run, position=None)

    def refuse(self) -> None:
        """The server is leaving: take no new prompts and start nothing more; what is queued stays queued."""
        self._leaving = True
        for actor in self._actors.values():
            actor.leave()

    async def wind_down(self) -> None:
        """After `refuse`: until no turn runs and all cancels are done."""
        for actor in list(self._actors.values()):
            await actor.wait_until(lambda state: state.leaving and not state.busy and not state.covered)

    def interrupt(self) -> None:
        for actor in self._actors.values():
            actor.interrupt()
