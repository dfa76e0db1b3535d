"""The current session: its messages, its runs, their senders and the earlier prompts.

Owns which session is current; must not know keys or dialogs.
"""

from collections.abc import Iterator

from longboat.client import Transcript
from longboat.tui.connection import Connection
from longboat.wire.ids import person
from longboat.wire.models import Message, Run, RunState, Session

PAGE = 60
"""Messages per page."""
LEDGER = 100
"""Runs to read when a session is opened."""


class CurrentSession:
    def __init__(self, connection: Connection) -> None:
        self.session_id: str | None = None
        self.draft = 0
        """The number of the current draft: a new session that the server has not created yet."""
        self.runs: dict[str, Run] = {}
        """The known runs of the session, including finished ones."""
        self._connection = connection
        self._before: str | None = None
        """The cursor of the next older page; None if there is none."""

    @property
    def session(self) -> Session | None:
        return self._connection.mirror.sessions.get(self.session_id or "")

    @property
    def transcript(self) -> Transcript:
        return Transcript() if self.session_id is None else self._connection.mirror.transcript(self.session_id)

    def turn_to(self, session_id: str | None) -> None:
        """Make this session the current one; None is a new draft."""
        if self.session_id is not None and session_id != self.session_id:
            self._connection.mirror.forget(self.session_id)
        if session_id != self.session_id:
            self.runs, self._before = {}, None
        self.session_id = session_id
        if session_id is None:
            self.draft += 1
        else:
            self._connection.mirror.transcript(session_id)  # the mirror keeps it from now on

    # -- reading

    async def read_newest(self) -> None:
        """Read the newest page, again if something was missed while reading it."""
        session_id, transcript = self.session_id, self.transcript
        while session_id is not None and session_id == self.session_id and transcript.stale:
            life = transcript.life
            page = await self._page("")
            transcript.take(page[0], newest=True, life=life)
            self._before = page[1]
        if session_id is None:
            self._before = None

    async def read_older(self, limit: int = PAGE) -> bool:
        """Read the next older page; False if there is none."""
        if self._before is None or self.session_id is None:
            return False
        transcript, life = self.transcript, self.transcript.life
        items, before = await self._page(self._before, limit)
        if life != transcript.life or transcript is not self.transcript:
            return False  # everything is being read again
        self._before = before
        transcript.take(items)
        return bool(items)

    async def _page(self, before: str, limit: int = PAGE) -> tuple[tuple[Message, ...], str | None]:
        session_id = self.session_id or ""
        page = await self._connection.send_with_retry(
            lambda: self._connection.client.messages(
                self._connection.workspace_id, session_id, limit=limit, before=before
            )
        )
        return page.items, page.next

    async def read_runs(self) -> None:
        session_id = self.session_id
        if session_id is None:
            return
        page = await self._connection.send_with_retry(
            lambda: self._connection.client.runs(self._connection.workspace_id, session_id=session_id, limit=LEDGER)
        )
        if session_id == self.session_id:
            for run in page.items:
                if not self._is_newer_known(run):
                    self.runs[run.run_id] = run

    async def read_side(self) -> None:
        """Read the plan and the background jobs. Events that arrived meanwhile are newer and win."""
        connection, session_id = self._connection, self.session_id
        jobs = await connection.send_with_retry(lambda: connection.client.jobs(connection.workspace_id))
        for job in jobs.items:
            connection.mirror.jobs.setdefault(job.id, job)
        if session_id is not None:
            todos = await connection.send_with_retry(
                lambda: connection.client.todos(connection.workspace_id, session_id)
            )
            connection.mirror.todos.setdefault(session_id, todos.items)

    def _is_newer_known(self, read: Run) -> bool:
        known = self.runs.get(read.run_id)
        return known is not None and known.state is RunState.FINISHED

    # -- events

    def hear_run(self, run: Run) -> None:
        if run.session_id == self.session_id:
            self.runs[run.run_id] = run

    @property
    def unfinished(self) -> list[Run]:
        """The unfinished runs of the session, in order."""
        runs = self._connection.mirror.runs.values()
        return sorted((run for run in runs if run.session_id == self.session_id), key=lambda run: run.seq)

    @property
    def active(self) -> Run | None:
        return next((run for run in self.unfinished if run.state is RunState.ACTIVE), None)

    def is_ours(self, session_id: str, parent_session_id: str | None) -> bool:
        """Whether something belongs to the session or to one of its sub-agents."""
        return self.session_id is not None and self.session_id in (session_id, parent_session_id)

    def other(self, client_id: str) -> str:
        """The person behind a client; empty for the person at this terminal."""
        name = person(client_id)
        return "" if name == person(self._connection.client.client_id) else name

    def by(self, run_id: str) -> str:
        """Who sent a run and whether it steered a turn; empty for an ordinary prompt of our own."""
        run = self.runs.get(run_id)
        if run is None:
            return ""
        return " · ".join(self._said_of(run))

    def _said_of(self, run: Run) -> Iterator[str]:
        if run.client_id is not None and (name := self.other(run.client_id)):
            yield name
        if run.folded_into is not None:
            yield "steered the running turn"

    def prompts(self) -> list[str]:
        """The prompts of the session, oldest first."""
        return [run.prompt for run in sorted(self.runs.values(), key=lambda run: run.seq)]
