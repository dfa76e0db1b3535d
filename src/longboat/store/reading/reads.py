"""All reads of a store, made of its named queries: each one query, or several of one transaction.

Implements longboat.store.reads.Reads for every dialect that has the queries. Must not know a database.
"""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from longboat.errors import SessionDamaged
from longboat.store.protocol import Row
from longboat.store.queries import Reader
from longboat.store.reading.inbox import read_inbox, read_inbox_after, read_inbox_since
from longboat.store.reading.log import PENDING, read_log_page, read_pending, read_snapshot
from longboat.store.reading.model_requests import read_request_body, read_requests
from longboat.store.reading.pruning import read_old_events, read_old_requests
from longboat.store.reading.statistics import read_session_timeline, read_session_usage, read_stats
from longboat.store.reading.transcripts import (
    ALL,
    newest_turn,
    open_messages,
    read_export,
    read_history,
    read_messages,
    read_messages_before,
    read_transcripts,
    undone_turn,
)
from longboat.store.reads import Ask, InboxMarks
from longboat.store.recent_histories import RecentHistories
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
from longboat.store.rows import (
    activity_from_row,
    ask_from_row,
    change_from_row,
    client_from_row,
    decode_readable,
    legible_text,
    listed_session,
    record_from_row,
    revert_from_row,
    rule_from_row,
    run_from_row,
    session_from_row,
    todo_items,
    unfinished_from_row,
    workspace_from_row,
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

T = TypeVar("T")

NEWEST = 2**62
"""Above every number that is handed out."""
PINNED = 10**17
"""Above every place of a session, and of no more digits than a page's cursor may have."""
Which = Mapping[str, str | bool | None]
BY_ID: dict[type, str] = {Permission: "permission_by_id", Question: "question_by_id"}


class RunRead(Protocol):
    """Runs a query on a reader, in one read transaction. `replay`: for somebody who reads the log. However many they
    are, no other read waits for them. `alone`: it fetches only once, so it sees one state in any case."""

    def __call__(
        self, query: Callable[[Reader], Coroutine[Any, Any, T]], *, replay: bool = False, alone: bool = False
    ) -> Awaitable[T]: ...


class Search(Protocol):
    async def find(self, typed: str, *, workspace_id: str | None, before: int | None, limit: int) -> SearchPage:
        """See `longboat.store.reads.Reads.search`."""
        ...


class QueriedReads:
    def __init__(self, read: RunRead, search: Search, histories: RecentHistories) -> None:
        self._read = read
        self._search = search
        self._histories = histories

    async def _fetch(self, query: str, **params: Any) -> Sequence[Row]:
        return await self._read(lambda reader: reader.fetch(query, **params), alone=True)

    # Workspaces and clients

    async def workspace(self, workspace_id: str) -> WorkspaceRecord | None:
        rows = await self._fetch("workspace_by_id", workspace_id=workspace_id)
        return workspace_from_row(rows[0]) if rows else None

    async def workspace_at(self, path: str, home: str | None = None) -> WorkspaceRecord | None:
        rows = await self._fetch("workspace_by_path", path=path, home=home)
        return workspace_from_row(rows[0]) if rows else None

    async def workspaces(self) -> list[WorkspaceRecord]:
        return [workspace_from_row(row) for row in await self._fetch("workspaces_all")]

    async def workspace_activity(self) -> dict[str, WorkspaceActivity]:
        rows = await self._fetch("workspaces_activity")
        return {row["workspace_id"]: activity_from_row(row) for row in rows}

    async def unfinished_workspaces(self) -> list[str]:
        rows = await self._fetch("workspaces_unfinished")
        return [row["workspace_id"] for row in rows]

    async def clients(self, workspace_id: str) -> tuple[ClientInfo, ...]:
        rows = await self._fetch("clients_of", workspace_id=workspace_id)
        return tuple(map(client_from_row, rows))

    async def all_clients(self) -> list[AttachedClient]:
        rows = await self._fetch("clients_all")
        return [AttachedClient(workspace_id=row["workspace_id"], client=client_from_row(row)) for row in rows]

    async def stats(self, workspace_id: str | None, since: str) -> Stats:
        return await self._read(lambda reader: read_stats(reader, workspace_id, since))

    # Sessions

    async def session(self, workspace_id: str, session_id: str) -> SessionRecord | None:
        where = {"session_id": session_id, "workspace_id": workspace_id}
        rows = await self._fetch("session_by_id", **where)
        if not rows:
            return None
        row = rows[0]
        session = session_from_row(row)
        return SessionRecord(session=session, last_message=row["last_message"], summary_seq=row["summary_seq"])

    async def listed_session(self, workspace_id: str, session_id: str) -> SessionRecord | None:
        where = {"session_id": session_id, "workspace_id": workspace_id}
        rows = await self._fetch("session_whole", **where)
        if not rows:
            return None
        row = rows[0]
        return SessionRecord(session=listed_session(row), last_message=0, summary_seq=row["summary_seq"])

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
        which = {"workspace_id": workspace_id, "like": _like(words), "top": top, "archived": archived.value}
        read = _newest_sessions if order is SessionOrder.NEWEST else _pinned_first
        rows, place = await self._read(lambda reader: read(reader, which, before, limit))
        return [listed_session(row) for row in rows], place

    async def search(self, typed: str, *, workspace_id: str | None, before: int | None, limit: int) -> SearchPage:
        return await self._search.find(typed, workspace_id=workspace_id, before=before, limit=limit)

    async def child_sessions(self, workspace_id: str, parent_id: str) -> list[str]:
        where = {"parent_id": parent_id, "workspace_id": workspace_id}
        rows = await self._fetch("sessions_of_parent", **where)
        return [row["session_id"] for row in rows]

    async def session_usage(self, workspace_id: str, session_id: str) -> SessionUsage:
        return await self._read(lambda reader: read_session_usage(reader, workspace_id, session_id))

    async def session_timeline(self, workspace_id: str, session_id: str) -> SessionTimeline:
        return await self._read(lambda reader: read_session_timeline(reader, workspace_id, session_id))

    async def history(self, session_id: str, *, after: int) -> SessionHistory:
        read = partial(self._read, lambda reader: read_history(reader, session_id, after=after))
        return await self._histories.get(session_id, after=after, read=read)

    async def todos(self, session_id: str) -> tuple[TodoItem, ...]:
        rows = await self._fetch("todos_of", session_id=session_id)
        return todo_items(rows[0]) if rows else ()

    async def grants(self, session_id: str, tools: "Traits") -> "tuple[Rule, ...]":
        rows = await self._fetch("grants_of", session_id=session_id)
        return tuple(rule_from_row(row, tools) for row in rows)

    # Messages

    async def messages(self, session_id: str, *, after: int = 0, limit: int | None = None) -> list[Message]:
        most = ALL if limit is None else limit
        return await self._read(lambda reader: read_messages(reader, session_id, after=after, limit=most))

    async def messages_before(self, session_id: str, *, before: int | None, limit: int) -> list[Message]:
        end = NEWEST if before is None else before
        return await self._read(lambda reader: read_messages_before(reader, session_id, before=end, limit=limit))

    async def open_messages(self, workspace_id: str) -> list[Message]:
        return await self._read(lambda reader: open_messages(reader, workspace_id))

    # Runs

    async def run(self, workspace_id: str, run_id: str) -> RunRecord | None:
        where = {"workspace_id": workspace_id, "run_id": run_id}
        rows = await self._fetch("run_by_id", **where)
        return record_from_row(rows[0]) if rows else None

    async def runs(
        self, workspace_id: str, *, state: RunState | None, session_id: str | None, before: int | None, limit: int
    ) -> tuple[list[Run], int | None]:
        query = "runs_page" if session_id is None else "runs_page_session"
        page = {"before": NEWEST if before is None else before, "state": state, "limit": limit}
        where = {"workspace_id": workspace_id} | ({} if session_id is None else {"session_id": session_id})
        rows = await self._fetch(query, **where, **page)
        # Of one session all can be read, or the session is damaged; of many, what can be read.
        runs = decode_readable(run_from_row, rows) if session_id is None else [run_from_row(row) for row in rows]
        return runs, rows[-1]["seq"] if len(rows) == limit else None

    async def unfinished_runs(self, workspace_id: str) -> UnfinishedRuns:
        return await self._read(lambda reader: _unfinished(reader, workspace_id))

    async def canceled_with(self, session_id: str, key: str) -> Canceled | None:
        rows = await self._fetch("cancel_by_key", session_id=session_id, key=key)
        return msgspec.json.decode(rows[0]["canceled"], type=Canceled) if rows else None

    async def runs_without_end(self, workspace_id: str, session_id: str) -> list[RunWithoutEnd]:
        rows = await self._fetch("runs_without_end", workspace_id=workspace_id)
        return [
            RunWithoutEnd(
                seq=row["seq"],
                run_id=legible_text(row["run_id"]),
                session_id=session_id,
                parent_session_id=parent if isinstance(parent := row["parent_session_id"], str) else None,
                run=next(iter(decode_readable(run_from_row, [row])), None),
                was_ended=row["outcome"] is not None or bool(row["terminals"]),
            )
            for row in rows
            if legible_text(row["session_id"]) == session_id
        ]

    # What was sent to models

    async def requests(self, workspace_id: str, run_id: str) -> list[RequestRecord]:
        return await self._read(lambda reader: read_requests(reader, workspace_id, run_id))

    async def request_body(self, workspace_id: str, run_id: str, number: int) -> tuple[RequestRecord, bytes] | None:
        return await self._read(lambda reader: read_request_body(reader, workspace_id, run_id, number))

    # Asks

    async def ask(self, workspace_id: str, ask_id: str, shape: type[Ask]) -> Ask | None:
        where = {"id": ask_id, "workspace_id": workspace_id}
        rows = await self._fetch(BY_ID[shape], **where)
        return ask_from_row(rows[0], shape) if rows else None

    async def pending_asks(self, workspace_id: str, shape: type[Ask]) -> tuple[Ask, ...]:
        return tuple(await self._read(lambda reader: read_pending(reader, workspace_id, shape)))

    async def last_answered(self, workspace_id: str, run_id: str) -> Question | None:
        where = {"workspace_id": workspace_id, "run_id": run_id}
        rows = await self._fetch("question_answered_last", **where)
        return ask_from_row(rows[0], Question) if rows else None

    # The inbox

    async def inbox(self, person: str, *, before: int | None, limit: int) -> InboxPage:
        end = NEWEST if before is None else before
        return await self._read(lambda reader: read_inbox(reader, person, before=end, limit=limit))

    async def inbox_since(self, person: str, known: InboxMarks | None, *, limit: int) -> tuple[InboxMarks, InboxEvent]:
        return await self._read(lambda reader: read_inbox_since(reader, person, known, limit=limit), replay=True)

    async def inbox_after(self, place: int | None, *, limit: int) -> tuple[int, list[InboxItem]]:
        return await self._read(lambda reader: read_inbox_after(reader, place, limit=limit), replay=True)

    async def inbox_waiting(self, places: Collection[int]) -> set[int]:
        wanted = msgspec.json.encode(sorted(places)).decode()
        rows = await self._read(lambda reader: reader.fetch("inbox_waiting", places=wanted), replay=True)
        return {row["place"] for row in rows}

    async def push_subscriptions(self) -> list[PushSubscription]:
        return [PushSubscription(**row) for row in await self._fetch("push_all")]

    # Files

    async def last_read(self, session_id: str, path: str) -> str | None:
        rows = await self._fetch("read_of", session_id=session_id, path=path)
        return rows[0]["digest"] if rows else None

    async def changes(
        self, workspace_id: str, *, session_id: str | None, run_id: str | None, path: str | None = None
    ) -> tuple[str, list[FileChangeRecord]] | None:
        return await self._read(lambda reader: _changes(reader, workspace_id, session_id, run_id, path))

    async def run_clients(self, session_id: str) -> dict[str, str]:
        rows = await self._fetch("run_clients", session_id=session_id)
        return {legible_text(row["run_id"]): legible_text(row["client_id"]) for row in rows}

    async def reverts(self, session_id: str) -> list[RevertRecord]:
        rows = await self._fetch("reverts_of", session_id=session_id)
        return [revert_from_row(row) for row in rows]

    async def unsettled_changes(self, session_id: str) -> list[FileChangeRecord]:
        rows = await self._fetch("changes_unsettled", session_id=session_id)
        return [change_from_row(row) for row in rows]

    async def newest_turn(self, session_id: str) -> TurnRecord | None:
        return await self._read(lambda reader: newest_turn(reader, session_id))

    async def undone_turn(self, session_id: str) -> TurnRecord | None:
        return await self._read(lambda reader: undone_turn(reader, session_id))

    async def undone_turns(self, session_id: str) -> int:
        rows = await self._fetch("turns_undone", session_id=session_id)
        return int(rows[0]["turns"])

    # Whole sessions

    async def transcripts(self, workspace_id: str, session_id: str, message_id: str | None) -> tuple[Transcript, ...]:
        return await self._read(lambda reader: read_transcripts(reader, workspace_id, session_id, message_id))

    async def export(self, workspace_id: str, session_id: str) -> ExportRecord:
        return await self._read(lambda reader: read_export(reader, workspace_id, session_id))

    # The log

    async def newest_event(self, workspace_id: str) -> int:
        rows = await self._fetch("event_newest", workspace_id=workspace_id)
        return rows[0]["last"] if rows else 0

    async def has_event(self, workspace_id: str, *, number: int, epoch: int) -> bool:
        where = {"workspace_id": workspace_id, "number": number}
        rows = await self._read(lambda reader: reader.fetch("event_at", **where), replay=True)
        return any(row["first"] <= number and row["epoch"] == epoch for row in rows)

    async def log_page(
        self, workspace_id: str, *, after: int, session_id: str | None, entries: int, size: int
    ) -> LogPage | None:
        read = partial(
            read_log_page, workspace_id=workspace_id, after=after, session_id=session_id, entries=entries, size=size
        )
        return await self._read(read, replay=True)

    async def snapshot(self, workspace_id: str, session_id: str | None, *, sessions: int) -> tuple[int, Snapshot]:
        return await self._read(lambda reader: read_snapshot(reader, workspace_id, session_id, sessions), replay=True)

    # What is forgotten

    async def old_events(self, workspace_id: str, *, before_s: int, now_s: int) -> int | None:
        return await self._read(lambda reader: read_old_events(reader, workspace_id, before_s=before_s, now_s=now_s))

    async def oldest_events(self, workspace_id: str, *, up_to: int, most: int) -> tuple[int, int] | None:
        (row,) = await self._fetch("events_oldest", workspace_id=workspace_id, up_to=up_to, most=most)
        return None if row["first"] is None else (row["first"], row["last"])

    async def old_requests(self, *, after: int, before_s: int, now_s: int, most: int) -> int | None:
        limits = {"after": after, "before_s": before_s, "now_s": now_s, "most": most}
        return await self._read(lambda reader: read_old_requests(reader, **limits), alone=True)

    async def old_request_pieces(self, *, after: int, before_s: int, most: int) -> list[int]:
        rows = await self._fetch("request_pieces_old", after=after, before_s=before_s, most=most)
        return [row["place"] for row in rows]


SessionRows = tuple[list[Row], int | None]
"""A page, and the place of its last session if there may be more."""


async def _newest_sessions(reader: Reader, which: Which, before: int | None, limit: int) -> SessionRows:
    end = NEWEST if before is None else before
    rows = await reader.fetch("sessions_found", **which, before=end, limit=limit, pinned=True)
    return rows, rows[-1]["place"] if len(rows) == limit else None


async def _pinned_first(reader: Reader, which: Which, before: int | None, limit: int) -> SessionRows:
    """`PINNED` distinguishes the places of pinned sessions from the others."""
    found: list[Row] = []
    if before is None or before > PINNED:
        end = NEWEST if before is None else before - PINNED
        found = await reader.fetch("sessions_pinned", **which, before=end, limit=limit)
        if len(found) == limit:
            return found, found[-1]["place"] + PINNED
        before = NEWEST
    rest = limit - len(found)
    rows = await reader.fetch("sessions_found", **which, before=before, limit=rest, pinned=False)
    return found + rows, rows[-1]["place"] if len(rows) == rest else None


async def _changes(
    reader: Reader, workspace_id: str, session_id: str | None, run_id: str | None, path: str | None
) -> tuple[str, list[FileChangeRecord]] | None:
    if run_id is not None:
        found = await reader.fetch("run_by_id", workspace_id=workspace_id, run_id=run_id)
    else:
        found = await reader.fetch("session_whole", workspace_id=workspace_id, session_id=session_id)
    if not found:
        return None
    of: str = found[0]["session_id"]
    rows = await reader.fetch("changes_standing", session_id=of, run_id=run_id, path=path)
    return of, [change_from_row(row) for row in rows]


async def _unfinished(reader: Reader, workspace_id: str) -> UnfinishedRuns:
    runs: dict[str, list[RunRecord]] = {}
    damaged: dict[str, SessionDamaged] = {}
    for row in await reader.fetch("runs_unfinished", workspace_id=workspace_id):
        try:
            runs.setdefault(legible_text(row["session_id"]), []).append(unfinished_from_row(row))
        except SessionDamaged as error:
            damaged[error.session_id] = error
    for shape, query in PENDING.items():
        for row in await reader.fetch(query, workspace_id=workspace_id):
            try:
                ask_from_row(row, shape)
            except SessionDamaged as error:
                damaged[error.session_id] = error
    return UnfinishedRuns(runs=runs, damaged=damaged)


def _like(words: Sequence[str]) -> str | None:
    """The pattern that finds the words in order."""
    quoted = [word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") for word in words]
    return f"%{'%'.join(quoted)}%" if quoted else None
