"""A store by itself: one workspace, one session, an ear on the log, and a gate before the writer's commits."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from longboat.store.changes import insert_run
from longboat.store.datadir import STORE_NAME
from longboat.store.protocol import Entry, Published, Store, Unit, Write
from longboat.store.records import RunRecord
from longboat.store.sqlite.store import SqliteStore, open_sqlite
from longboat.wire.events import Change, encode_body
from longboat.wire.models import ClientInfo, Delivery, Outcome, Run, RunComplete, RunState
from longboat.wire.requests import Approve

T = TypeVar("T")

AT = "2026-01-01T00:00:00.000000Z"


class ReadableStore(Store, Protocol):
    """A store whose rows can be looked at."""

    async def read(self, query: Callable[[Any], Coroutine[Any, Any, T]], *, replay: bool = False) -> T: ...


class Bench:
    """A store with one workspace and one session, and an ear on its log."""

    def __init__(self, store: ReadableStore) -> None:
        self.store = store
        self.published: list[Published] = []
        store.listen("w", self.published.extend)

    @property
    def numbers(self) -> list[int]:
        return [number for entry in self.published for number in range(entry.first, entry.last + 1)]

    async def rows(self, query: str, **params: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in await self.store.read(lambda reader: reader.fetch(query, **params))]

    async def titles(self) -> list[str]:
        rows = await self.rows("sessions_page", workspace_id="w", before=2**62, limit=500)
        return [row["title"] for row in rows][::-1]


class WriterGate:
    """Stops the writer before its next transaction, and notes every statement that it runs."""

    def __init__(self, store: Store) -> None:
        self.statements: list[str] = []
        self._open = threading.Event()
        self._reached = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if isinstance(store, SqliteStore):
            store._connection.set_trace_callback(self._trace)
        else:
            writer: Any = store._writer  # type: ignore[attr-defined]
            self._execute = writer._connection.execute
            writer._connection = _Watched(writer._connection, self._note)

    async def reached(self) -> None:
        await self._reached.wait()

    def open(self) -> None:
        self._open.set()

    async def _note(self, statement: str, *args: Any) -> str:
        """The same for a writer on the loop."""
        self.statements.append(statement)
        if begins_transaction(statement):
            self._reached.set()
            await asyncio.to_thread(self._open.wait)
        done = str(await self._execute(statement, *args))
        if begins_transaction(statement) and not statement.startswith("BEGIN"):
            self.statements.append("COMMIT")
        return done

    def _trace(self, statement: str) -> None:
        self.statements.append(statement)
        if statement == "BEGIN IMMEDIATE":
            self._loop.call_soon_threadsafe(self._reached.set)
            self._open.wait()


def begins_transaction(statement: str) -> bool:
    """Of a store in PostgreSQL: also a statement that is a whole transaction."""
    return statement.startswith("BEGIN") or (statement.startswith("SELECT") and "pg_temp.commit_count(" in statement)


class _Watched:
    """A connection whose statements go through `execute`."""

    def __init__(self, connection: Any, execute: Callable[..., Any]) -> None:
        self._connection = connection
        self.execute = execute

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def open_store(path: Path, kind: str) -> AbstractAsyncContextManager[ReadableStore]:
    """The store of a directory; the same directory again is a restart."""
    if kind == "sqlite":
        return open_sqlite(path / STORE_NAME)
    from postgres import database_of

    from longboat.store.postgres.store import open_postgres  # here: most tests need no server

    return open_postgres(database_of(path))


@asynccontextmanager
async def open_bench(path: Path, kind: str = "sqlite") -> AsyncIterator[Bench]:
    async with open_store(path, kind) as store:
        if not await store.read(lambda reader: reader.fetch("workspaces_all")):
            place = {"workspace_id": "w", "home": "", "path": "/w", "created_at": AT}
            await store.submit(Unit(workspace_id="w", writes=[Write("workspace_insert", place), new_session("s")]))
        yield Bench(store)


def new_session(session_id: str) -> Write:
    params = {
        "session_id": session_id,
        "workspace_id": "w",
        "parent_id": None,
        "parent_call_id": None,
        "title": session_id,
        "folded_title": session_id,
    }
    return Write("session_insert", params | {"created_at": AT, "updated_at": AT}, rows=1)


def entry(*names: str) -> Entry:
    bodies = tuple(encode_body(Change.CREATED, ClientInfo(client_id=name, attached_at=AT)) for name in names)
    return Entry(bodies=bodies, session_id="s")


def unit(*writes: Write, entries: Sequence[Entry] = (), durable: bool = True) -> Unit:
    return Unit(workspace_id="w", writes=writes, entries=entries, durable=durable)


def said(session_id: str) -> Unit:
    """A session and the event that tells of it."""
    return unit(new_session(session_id), entries=[entry(session_id)])


def record(run_id: str, seq: int, state: RunState, outcome: Outcome | None = None) -> RunRecord:
    run = Run(
        run_id=run_id,
        seq=seq,
        session_id="s",
        state=state,
        outcome=outcome,
        delivery=Delivery.QUEUE,
        prompt="go",
        accepted_at=AT,
    )
    return RunRecord(run=run, attachments=(), fingerprint="", model=None, approve=Approve.ASK)


def accepted(run_id: str, seq: int, state: RunState = RunState.ACCEPTED) -> Write:
    return insert_run(record(run_id, seq, state), "w")


def terminal(run_id: str, seq: int) -> Entry:
    complete = RunComplete(run_id=run_id, session_id="s", outcome=Outcome.END_TURN)
    return Entry(bodies=(encode_body(Change.CREATED, complete),), session_id="s", run_seq=seq)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Another process, as it were, holds the store's write lock."""
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def heard(store: Store, found: Callable[[Unit, Exception | None], bool]) -> asyncio.Event:
    """Set once the store has answered such a unit. Look only: nothing is changed."""
    event = asyncio.Event()
    settle = store.settle  # type: ignore[attr-defined]

    def look(batch: Sequence[Any]) -> None:
        settle(batch)
        if any(found(pending.unit, pending.error) for pending in batch):
            event.set()

    setattr(store, "settle", look)  # noqa: B010 - the store calls it by name
    return event
