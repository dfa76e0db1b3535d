"""What can be read from a store: one awaitable method for each question, each answered from one consistent view.

The runtime's only way to read. Must not show how an implementation keeps its rows.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from longboat.store.records import (
    AttachedClient,
    ExportRecord,
    FileChangeRecord,
    LogPage,
    PushSubscription,
    RequestRecord,
    RevertRecord,
    RunRecord,
    RunWithoutEnd,
    SessionHistory,
    SessionRecord,
    Transcript,
    TurnRecord,
    UnfinishedRuns,
    WorkspaceActivity,
    WorkspaceRecord,
)
from longboat.wire.asks import Permission, Question
from longboat.wire.inbox import InboxEvent, InboxItem, InboxPage
from longboat.wire.listings import Archived, SessionOrder
from longboat.wire.models import Canceled, ClientInfo, Message, Run, RunState, Session, Snapshot
from longboat.wire.search import SearchPage
from longboat.wire.statistics import SessionTimeline, SessionUsage, Stats
from longboat.wire.workspace_state import TodoItem

if TYPE_CHECKING:
    from longboat.permissions.rules import Rule, Traits

Ask = TypeVar("Ask", Permission, Question)

InboxMarks = Mapping[int, tuple[str, bool]]
"""By the place of each item: what can change about it, its session's title and whether the person has seen it."""


class Reads(Protocol):
    # Workspaces and clients

    async def workspace(self, workspace_id: str) -> WorkspaceRecord | None: ...

    async def workspace_at(self, path: str, home: str | None = None) -> WorkspaceRecord | None:
        """`home`: of that node alone."""
        ...

    async def workspaces(self) -> list[WorkspaceRecord]: ...

    async def workspace_activity(self) -> dict[str, WorkspaceActivity]:
        """Of every workspace, by its id."""
        ...

    async def unfinished_workspaces(self) -> list[str]:
        """The ids of those with unfinished runs."""
        ...

    async def clients(self, workspace_id: str) -> tuple[ClientInfo, ...]: ...

    async def all_clients(self) -> list[AttachedClient]: ...

    async def stats(self, workspace_id: str | None, since: str) -> Stats:
        """Of one workspace, or of all, from this day on."""
        ...

    # Sessions

    async def session(self, workspace_id: str, session_id: str) -> SessionRecord | None:
        """Raises SessionDamaged."""
        ...

    async def listed_session(self, workspace_id: str, session_id: str) -> SessionRecord | None:
        """The same as a list shows it: of a damaged session, what is legible."""
        ...

    async def sessions(
        self,
        workspace_id: str,
        *,
        before: int | None,
        limit: int,
        words: Sequence[str] = (),
        top: bool = False,
        archived: Archived = Archived.LEFT_OUT,
        order: SessionOrder = SessionOrder.PINNED,
    ) -> tuple[list[Session], int | None]:
        """A page, newest first, and where the next one begins. `words`: of the title, in this order. `top`: without
        those of sub-agents."""
        ...

    async def search(self, typed: str, *, workspace_id: str | None, before: int | None, limit: int) -> SearchPage:
        """Messages and titles of one workspace, or of all, that have the words that somebody typed; the last one found
        first. Undone messages, deleted sessions and sub-agents are not found. `longboat.store.search_text` says what
        is searched and what the typed words mean."""
        ...

    async def child_sessions(self, workspace_id: str, parent_id: str) -> list[str]: ...

    async def session_usage(self, workspace_id: str, session_id: str) -> SessionUsage: ...

    async def session_timeline(self, workspace_id: str, session_id: str) -> SessionTimeline: ...

    async def history(self, session_id: str, *, after: int) -> SessionHistory:
        """What a turn must know of its session, as it is at one moment; the messages from a place on."""
        ...

    async def todos(self, session_id: str) -> tuple[TodoItem, ...]: ...

    async def grants(self, session_id: str, tools: "Traits") -> "tuple[Rule, ...]":
        """`tools` are those that the rules may name."""
        ...

    # Messages

    async def messages(self, session_id: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        """In order; an open message comes as far as it has been streamed."""
        ...

    async def messages_before(self, session_id: str, *, before: int | None, limit: int) -> list[Message]:
        """The end of the transcript, or what comes before a message; oldest first."""
        ...

    async def open_messages(self, workspace_id: str) -> list[Message]:
        """The messages that are still being written; without the damaged."""
        ...

    # Runs

    async def run(self, workspace_id: str, run_id: str) -> RunRecord | None: ...

    async def runs(
        self, workspace_id: str, *, state: RunState | None, session_id: str | None, before: int | None, limit: int
    ) -> tuple[list[Run], int | None]:
        """A page, newest first, and where the next one begins. Without positions in the queue."""
        ...

    async def unfinished_runs(self, workspace_id: str) -> UnfinishedRuns: ...

    async def canceled_with(self, session_id: str, key: str) -> Canceled | None:
        """The answer to an earlier cancel with this key."""
        ...

    async def runs_without_end(self, workspace_id: str, session_id: str) -> list[RunWithoutEnd]: ...

    # What was sent to models

    async def requests(self, workspace_id: str, run_id: str) -> list[RequestRecord]:
        """The requests of a run, in order."""
        ...

    async def request_body(self, workspace_id: str, run_id: str, number: int) -> tuple[RequestRecord, bytes] | None:
        """One of them with its body, as it was sent. None if there is none, or no more."""
        ...

    # Asks

    async def ask(self, workspace_id: str, ask_id: str, shape: type[Ask]) -> Ask | None: ...

    async def pending_asks(self, workspace_id: str, shape: type[Ask]) -> tuple[Ask, ...]:
        """What waits for an answer, oldest first; without what is damaged."""
        ...

    async def last_answered(self, workspace_id: str, run_id: str) -> Question | None:
        """The question of a run that was answered last."""
        ...

    # The inbox

    async def inbox(self, person: str, *, before: int | None, limit: int) -> InboxPage:
        """A page of what waits or has ended in all workspaces, newest first; without what is damaged."""
        ...

    async def inbox_since(self, person: str, known: InboxMarks | None, *, limit: int) -> tuple[InboxMarks, InboxEvent]:
        """What changed since these marks, and the marks of now. The first page if there are none, or if more than
        `limit` items changed."""
        ...

    async def inbox_after(self, place: int | None, *, limit: int) -> tuple[int, list[InboxItem]]:
        """What came after this place, oldest first, and the place to go on after. None: nothing yet."""
        ...

    async def inbox_waiting(self, places: Collection[int]) -> set[int]:
        """Those of these places where something still waits for an answer."""
        ...

    async def push_subscriptions(self) -> list[PushSubscription]: ...

    # Files

    async def last_read(self, session_id: str, path: str) -> str | None:
        """The digest of a file when the session last read or wrote it."""
        ...

    async def changes(
        self, workspace_id: str, *, session_id: str | None, run_id: str | None, path: str | None = None
    ) -> tuple[str, list[FileChangeRecord]] | None:
        """The session and the changes that are not undone, of a session or of a run, in all files or in one; None
        if there is no such session or run."""
        ...

    async def run_clients(self, session_id: str) -> dict[str, str]:
        """Who submitted each run of a session; without those of nobody."""
        ...

    async def reverts(self, session_id: str) -> list[RevertRecord]:
        """What people undid and redid in the session's turns, without turns that are undone themselves, first to
        last."""
        ...

    async def unsettled_changes(self, session_id: str) -> list[FileChangeRecord]: ...

    async def newest_turn(self, session_id: str) -> TurnRecord | None: ...

    async def undone_turn(self, session_id: str) -> TurnRecord | None:
        """The one that was undone last."""
        ...

    async def undone_turns(self, session_id: str) -> int: ...

    # Whole sessions

    async def transcripts(self, workspace_id: str, session_id: str, message_id: str | None) -> tuple[Transcript, ...]:
        """What is finished of a session, up to this message, and of the sub-agents that it sent, each after the one
        that sent it. Raises SessionDamaged, SessionNotFound and NotFound."""
        ...

    async def export(self, workspace_id: str, session_id: str) -> ExportRecord: ...

    # The log

    async def newest_event(self, workspace_id: str) -> int:
        """Its number; 0 if there is none."""
        ...

    async def has_event(self, workspace_id: str, *, number: int, epoch: int) -> bool: ...

    async def log_page(
        self, workspace_id: str, *, after: int, session_id: str | None, entries: int, size: int
    ) -> LogPage | None:
        """What follows an event, for a reader of the workspace or of one session: at most this many entries, and about
        this many bytes. None if it was pruned. Raises StoreDamaged."""
        ...

    async def snapshot(self, workspace_id: str, session_id: str | None, *, sessions: int) -> tuple[int, Snapshot]:
        """The committed state and the number of the newest event in it. At most this many sessions, newest first."""
        ...

    # What is forgotten

    async def old_events(self, workspace_id: str, *, before_s: int, now_s: int) -> int | None:
        """The number up to which the log may be forgotten: all of it that was written before this time, but neither the
        newest event nor what a message that is being written needs. None: nothing of it."""
        ...

    async def oldest_events(self, workspace_id: str, *, up_to: int, most: int) -> tuple[int, int] | None:
        """Where the oldest entries of the log begin and end: at most `most` entries, and none above this number. None:
        there are none."""
        ...

    async def old_requests(self, *, after: int, before_s: int, now_s: int, most: int) -> int | None:
        """The place of a request up to which some may be from before this time: at most `most` behind `after`. None:
        there are no more."""
        ...

    async def old_request_pieces(self, *, after: int, before_s: int, most: int) -> list[int]:
        """The places of pieces of requests that none had since this time: at most `most` behind `after`."""
        ...
