"""A workspace's sessions, messages and runs, read page by page."""

from dataclasses import dataclass

from longboat.errors import BadInput, RunNotFound, SessionDamaged
from longboat.runtime.figures import read_session_usage
from longboat.store.protocol import Reader, Store
from longboat.store.rows import (
    ASK_QUERIES,
    RunRecord,
    ask_from_row,
    legible,
    listed_session,
    read_messages,
    read_messages_before,
    readable,
    record_from_row,
    run_from_row,
    todo_items,
    unfinished_from_row,
)
from longboat.wire.figures import SessionUsage
from longboat.wire.models import MessagePage, RunPage, RunState, SessionPage
from longboat.wire.plain import folded
from longboat.wire.workshop import Todos

NEWEST = 2**62


class Ledger:
    def __init__(self, store: Store, workspace_id: str) -> None:
        self._store = store
        self._workspace_id = workspace_id

    async def sessions(self, *, limit: int, after: str | None, search: str = "", top: bool = False) -> SessionPage:
        """`search`: those whose title has these words in it. `top`: without those of sub-agents."""
        page = {"before": _cursor(after, NEWEST), "limit": limit, "like": _like(search), "top": top}
        rows = await self._store.read(
            lambda reader: reader.fetch("sessions_found", workspace_id=self._workspace_id, **page)
        )
        following = str(rows[-1]["place"]) if len(rows) == limit else None
        return SessionPage(items=tuple(map(listed_session, rows)), next=following)

    async def messages(self, session_id: str, *, limit: int, after: str | None) -> MessagePage:
        start = _cursor(after, 0)
        items = await self._store.read(lambda reader: read_messages(reader, session_id, after=start, limit=limit))
        return MessagePage(items=tuple(items), next=str(items[-1].seq) if len(items) == limit else None)

    async def messages_before(self, session_id: str, *, limit: int, before: str) -> MessagePage:
        """The end of the transcript, or what comes before a page of it; oldest first all the same."""
        end = _cursor(before or None, NEWEST)
        found = await self._store.read(
            lambda reader: read_messages_before(reader, session_id, before=end, limit=limit + 1)
        )
        items = found[-limit:]  # one more was read to know whether there is one
        return MessagePage(items=tuple(items), next=str(items[0].seq) if len(found) > limit else None)

    async def todos(self, session_id: str) -> Todos:
        rows = await self._store.read(lambda reader: reader.fetch("todos_of", session_id=session_id))
        return Todos(session_id=session_id, items=todo_items(rows[0]) if rows else ())

    async def usage(self, session_id: str) -> SessionUsage:
        return await self._store.read(lambda reader: read_session_usage(reader, self._workspace_id, session_id))

    async def runs(self, *, state: RunState | None, session_id: str | None, limit: int, after: str | None) -> RunPage:
        """Without their places in the queue, which only memory knows."""
        before = _cursor(after, NEWEST)
        query = "runs_page" if session_id is None else "runs_page_session"
        params = {"workspace_id": self._workspace_id, "before": before, "state": state, "limit": limit}
        if session_id is not None:
            params["session_id"] = session_id
        rows = await self._store.read(lambda reader: reader.fetch(query, **params))
        # Of one session all can be read, or the session is damaged; of many, what can be read.
        runs = readable(run_from_row, rows) if session_id is None else [run_from_row(row) for row in rows]
        return RunPage(items=tuple(runs), next=str(rows[-1]["seq"]) if len(rows) == limit else None)

    async def record(self, run_id: str) -> RunRecord:
        rows = await self._store.read(
            lambda reader: reader.fetch("run_by_id", workspace_id=self._workspace_id, run_id=run_id)
        )
        if not rows:
            raise RunNotFound(run_id)
        return record_from_row(rows[0])

    async def unfinished(self) -> "Unfinished":
        """What a crash or a restart left."""
        return await self._store.read(lambda reader: _unfinished(reader, self._workspace_id))


@dataclass(frozen=True, slots=True)
class Unfinished:
    runs: dict[str, list[RunRecord]]
    """By session."""
    damaged: dict[str, SessionDamaged]
    """Sessions that cannot be taken up, because a run or what it asks cannot be read."""


def _unfinished(reader: Reader, workspace_id: str) -> Unfinished:
    found = Unfinished({}, {})
    for row in reader.fetch("runs_unfinished", workspace_id=workspace_id):
        try:
            found.runs.setdefault(legible(row["session_id"]), []).append(unfinished_from_row(row))
        except SessionDamaged as error:
            found.damaged[error.session_id] = error
    for shape, queries in ASK_QUERIES.items():
        for row in reader.fetch(queries.pending, workspace_id=workspace_id):
            try:
                ask_from_row(row, shape)
            except SessionDamaged as error:
                found.damaged[error.session_id] = error
    return found


def _like(search: str) -> str | None:
    """The pattern that finds the words in order."""
    quoted = [
        word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        for word in folded(search).replace("\0", "\ufffd").split()
    ]  # LIKE reads up to a NUL
    return f"%{'%'.join(quoted)}%" if quoted else None


def _cursor(after: str | None, default: int) -> int:
    if after is None:
        return default
    if not (after.isascii() and after.isdigit() and len(after) <= 18):
        raise BadInput("This is not a position in the list. Pass the `next` of the previous page.", code="bad_page")
    return int(after)
