"""The session that is shown: its pages, its runs, who said what, and the prompts that can be called up again.

Owns which session that is; must not know keys or dialogs.
"""

from collections.abc import Iterator

from longboat.client import Transcript
from longboat.tui.connection import Connection
from longboat.wire.ids import person
from longboat.wire.models import Message, Run, RunState, Session

PAGE = 60
"""Messages that are read at a time."""
LEDGER = 100
"""Runs that are read when a session is opened."""


class Desk:
    def __init__(self, connection: Connection) -> None:
        self.session_id: str | None = None
        self.draft = 0
        """Counts the sessions that did not exist yet when they were shown."""
        self.runs: dict[str, Run] = {}
        """Every run of the session that was read or heard of, finished ones too."""
        self._connection = connection
        self._before: str | None = None
        """Where the page before what is known begins; None when there is none."""

    @property
    def session(self) -> Session | None:
        return self._connection.mirror.sessions.get(self.session_id or "")

    @property
    def transcript(self) -> Transcript:
        return Transcript() if self.session_id is None else self._connection.mirror.transcript(self.session_id)

    def turn_to(self, session_id: str | None) -> None:
        """Show this session from now on; None is one that does not exist yet."""
        if self.session_id is not None and session_id != self.session_id:
            self._connection.mirror.forget(self.session_id)
        if session_id != self.session_id:
            self.runs, self._before = {}, None
        self.session_id = session_id
        if session_id is None:
            self.draft += 1
        else:
            self._connection.mirror.transcript(session_id)  # it is kept from now on

    # -- reading

    async def read_newest(self) -> None:
        """The newest page, until nothing was missed while it was read."""
        session_id, transcript = self.session_id, self.transcript
        while session_id is not None and session_id == self.session_id and transcript.stale:
            life = transcript.life
            page = await self._page("")
            transcript.take(page[0], newest=True, life=life)
            self._before = page[1]
        if session_id is None:
            self._before = None

    async def read_older(self) -> bool:
        """The page before what is known; False when there is none."""
        if self._before is None or self.session_id is None:
            return False
        transcript, life = self.transcript, self.transcript.life
        items, before = await self._page(self._before)
        if life != transcript.life or transcript is not self.transcript:
            return False  # all is read anew
        self._before = before
        transcript.take(items)
        return bool(items)

    async def _page(self, before: str) -> tuple[tuple[Message, ...], str | None]:
        session_id = self.session_id or ""
        page = await self._connection.insist(
            lambda: self._connection.client.messages(
                self._connection.workspace_id, session_id, limit=PAGE, before=before
            )
        )
        return page.items, page.next

    async def read_runs(self) -> None:
        session_id = self.session_id
        if session_id is None:
            return
        page = await self._connection.insist(
            lambda: self._connection.client.runs(self._connection.workspace_id, session_id=session_id, limit=LEDGER)
        )
        if session_id == self.session_id:
            for run in page.items:
                if not self._is_newer_known(run):
                    self.runs[run.run_id] = run

    async def read_side(self) -> None:
        """The plan, and the commands that run in the background: what was told before we came. What was told since is
        newer."""
        connection, session_id = self._connection, self.session_id
        jobs = await connection.insist(lambda: connection.client.jobs(connection.workspace_id))
        for job in jobs.items:
            connection.mirror.jobs.setdefault(job.id, job)
        if session_id is not None:
            todos = await connection.insist(lambda: connection.client.todos(connection.workspace_id, session_id))
            connection.mirror.todos.setdefault(session_id, todos.items)

    def _is_newer_known(self, read: Run) -> bool:
        known = self.runs.get(read.run_id)
        return known is not None and known.state is RunState.FINISHED

    # -- hearing

    def hear_run(self, run: Run) -> None:
        if run.session_id == self.session_id:
            self.runs[run.run_id] = run

    @property
    def unfinished(self) -> list[Run]:
        """The runs of the session that are not over, in order."""
        runs = self._connection.mirror.runs.values()
        return sorted((run for run in runs if run.session_id == self.session_id), key=lambda run: run.seq)

    @property
    def active(self) -> Run | None:
        return next((run for run in self.unfinished if run.state is RunState.ACTIVE), None)

    def is_ours(self, session_id: str, parent_session_id: str | None) -> bool:
        """Whether something belongs to the session, or to a sub-agent of it."""
        return self.session_id is not None and self.session_id in (session_id, parent_session_id)

    def other(self, client_id: str) -> str:
        """Whose client it is; nothing for those of the person at this one."""
        name = person(client_id)
        return "" if name == person(self._connection.client.client_id) else name

    def by(self, run_id: str) -> str:
        """What to say of who sent a run, and how it came in; nothing for what goes without saying."""
        run = self.runs.get(run_id)
        if run is None:
            return ""
        return " · ".join(self._said_of(run))

    def _said_of(self, run: Run) -> Iterator[str]:
        if run.client_id is not None and (name := self.other(run.client_id)):
            yield name
        if run.folded_into is not None:
            yield "steered the turn under way"

    def prompts(self) -> list[str]:
        """What was asked in the session, oldest first."""
        return [run.prompt for run in sorted(self.runs.values(), key=lambda run: run.seq)]
