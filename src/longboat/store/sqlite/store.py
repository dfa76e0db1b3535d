"""The embedded store: SQLite in WAL mode, one writer thread with group commit, and reader threads.

Owns connections, transactions, event numbers and the order of publishing. Must not know what the queries mean.

The writer takes all waiting units, runs each in a savepoint and commits them together, so they share one full fsync. A
batch of deltas only is committed without fsync; the next durable commit syncs it too.
"""

import asyncio
import logging
import shlex
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from longboat.backoff import Backoff
from longboat.errors import DataDirError, DataDirGone, StoreDamaged, StoreUnavailable
from longboat.store.datadir import OpenFiles
from longboat.store.protocol import Entry, Listener, Published, Report, UniqueViolated, Unit, Write, WriteMissed
from longboat.store.publishing import PendingUnit, Publisher, number_frames
from longboat.store.reading.reads import QueriedReads
from longboat.store.sqlite.check import check_quickly, is_damage
from longboat.store.sqlite.migrations import migrate
from longboat.store.sqlite.queries import SqliteReader, load_queries, text_or_bytes
from longboat.store.sqlite.search import Search
from longboat.wire.plain import fold_case

logger = logging.getLogger(__name__)
T = TypeVar("T")

MAX_BATCH = 256
BUSY_TIMEOUT_S = 2.0
"""How long to wait for another program's lock; a closing store does not wait."""
BUSY = Backoff(base_s=0.01, factor=1.0)
START_TIMEOUT_S = 10.0
READERS = 2
REPLAYERS = 2


@asynccontextmanager
async def open_sqlite(path: Path) -> AsyncIterator["SqliteStore"]:
    """Open, migrate and begin a new epoch; closing waits for what was submitted."""
    given_up = threading.Event()
    loop = asyncio.get_running_loop()
    try:
        store = await asyncio.to_thread(_open, path, loop, given_up)
    except (sqlite3.Error, OSError) as error:
        raise DataDirError(_why_closed(path, error)) from error
    finally:
        given_up.set()
    store.start()
    try:
        yield store
    finally:
        await store.aclose()


def _why_closed(path: Path, error: sqlite3.Error | OSError) -> str:
    if not (isinstance(error, sqlite3.Error) and is_damage(error)):
        return f"Cannot open the store {path}: {error}. Check the disk, or choose another --data-dir."
    directory = shlex.quote(str(path.parent))
    return (
        f"The database {path} is damaged: {error}. `longboat store check --data-dir {directory}` shows what is "
        f"affected; `longboat store restore FILE --data-dir {directory}` puts a backup in its place."
    )


def _open(path: Path, loop: asyncio.AbstractEventLoop, given_up: threading.Event) -> "SqliteStore":
    """Waits for another program's lock, but not forever, and not once the store is closing."""
    return _once_free(lambda: SqliteStore(path, loop), given_up, for_s=START_TIMEOUT_S)


def _once_free(work: Callable[[], T], given_up: threading.Event, *, for_s: float) -> T:
    """Do `work` as soon as no other program holds SQLite's lock; raise its error after `for_s` seconds."""
    start, failures = time.monotonic(), 0
    while True:
        try:
            return work()
        except sqlite3.OperationalError as error:
            failures, backoff = failures + 1, replace(BUSY, deadline_s=for_s)
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or backoff.gives_up(failures, time.monotonic() - start):
                raise
            if given_up.wait(backoff.delay(failures)):
                raise


class SqliteStore:
    """See `longboat.store.protocol.Store`."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        self._path = path
        self._loop = loop
        self._queries = load_queries()
        self._sql = {name: query.sql for name, query in self._queries.items()}
        path.touch(mode=0o600)  # private even where the directory is not; SQLite gives its other files the same mode
        self._connection = _connect(path, timeout_s=0)
        self._connection.text_factory = text_or_bytes
        try:
            migrate(self._connection, str(path))
            self._connection.execute("PRAGMA foreign_keys = ON")
            ((self.epoch,),) = self._connection.execute(self._queries["epoch_raise"].sql).fetchall()
            last_seq = self._connection.execute(self._queries["last_seq"].sql).fetchone()
            self._numbers: dict[str, int] = dict(self._connection.execute(self._queries["last_numbers"].sql).fetchall())
            self._files = OpenFiles(path)  # after a write: now all of them are there
        except BaseException:
            self._connection.close()
            raise
        self._gone = False
        self._noticing = threading.Lock()
        self._tell_gone: Callable[[], None] = lambda: None
        self._seqs = count((last_seq[0] if last_seq else 0) + 1)
        self._synchronous = "FULL"
        self._publisher = Publisher()
        self._closing = threading.Event()
        self._inbox: SimpleQueue[PendingUnit | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_loop, name="store-writer", daemon=True)
        # Opened now: later another file might be in the place of this one (D8).
        self._readers = _Readers(path, READERS, "store-reader")
        self._replayers = _Readers(path, REPLAYERS, "store-replayer")
        self._checker = ThreadPoolExecutor(1, thread_name_prefix="store-check")
        self._search = Search(path, loop)
        self.reads = QueriedReads(self.read, self._search, self._publisher.histories)

    # On the loop

    def start(self) -> None:
        """Start the thread that writes; `aclose` ends it."""
        self._thread.start()

    @property
    def problem(self) -> str | None:
        return self._gone_error().message if self._is_gone() else self._publisher.problem

    def next_seq(self) -> int:
        return next(self._seqs)

    def submit(self, unit: Unit) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = self._loop.create_future()
        self._inbox.put(PendingUnit(unit, future))
        return future

    async def read(
        self, query: Callable[[SqliteReader], Coroutine[Any, Any, T]], *, replay: bool = False, alone: bool = False
    ) -> T:
        """Run `query` on a reader, in one read transaction, off the loop: what `reads` is made of."""
        readers = self._replayers if replay else self._readers
        try:
            return await self._loop.run_in_executor(readers.threads, self._read, query, readers)
        except sqlite3.Error as error:
            if _is_damage(error):
                raise StoreDamaged(str(error)) from error
            raise StoreUnavailable(f"The store cannot be read: {error}.") from error

    async def check(self, *, limit_s: float) -> Report:
        check = partial(check_quickly, self._path, limit_s=limit_s, give_up=self._closing)
        try:
            return await self._loop.run_in_executor(self._checker, check)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"The store cannot be checked: {error}.") from error

    def when_gone(self, told: Callable[[], None]) -> None:
        self._tell_gone = told

    def listen(self, workspace_id: str, listener: Listener | None) -> None:
        self._publisher.listen(workspace_id, listener)

    def watch(self, watcher: Callable[[Unit], None] | None) -> None:
        self._publisher.watch(watcher)

    async def aclose(self) -> None:
        self._closing.set()
        self._inbox.put(None)
        await asyncio.to_thread(self._thread.join)
        await self._search.aclose()
        self._readers.close()
        self._replayers.close()
        self._checker.shutdown()
        self._connection.close()

    def settle(self, batch: Sequence[PendingUnit]) -> None:
        """Publish what was committed and answer its submitters, in the order of the log."""
        self._search.committed()
        self._publisher.settle(batch)

    # On a reader thread

    def _read(self, query: Callable[[SqliteReader], Coroutine[Any, Any, T]], readers: "_Readers") -> T:
        connection = readers.idle.get()
        connection.execute("BEGIN")
        try:
            return _run_to_end(query(SqliteReader(connection, self._sql)))
        finally:
            connection.execute("COMMIT")
            readers.idle.put(connection)

    # On any thread

    def _is_gone(self) -> bool:
        """Whether the database was taken away under us. It stays so: what was committed last may be lost."""
        if not self._gone and not self._files.are_in_place():
            with self._noticing:
                if not self._gone:
                    self._gone = True
                    logger.error("%s", self._gone_error().message)
                    with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
                        self._loop.call_soon_threadsafe(self._tell_gone)
        return self._gone

    def _gone_error(self) -> DataDirGone:
        return DataDirGone(str(self._path.parent))

    # On the writer thread

    def _write_loop(self) -> None:
        while True:
            batch, last = self._take_batch()
            if batch:
                self._commit(batch)
                with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
                    self._loop.call_soon_threadsafe(self.settle, batch)
            if last:
                return

    def _take_batch(self) -> tuple[list[PendingUnit], bool]:
        batch: list[PendingUnit] = []
        item = self._inbox.get()
        while item is not None:
            batch.append(item)
            if len(batch) == MAX_BATCH:
                return batch, False
            try:
                item = self._inbox.get_nowait()
            except Empty:
                return batch, False
        return batch, True

    def _commit(self, batch: Sequence[PendingUnit]) -> None:
        """Looks for the files before it, so that nothing refused is in a directory that was moved, and after it, so
        that nothing is accepted into one that was deleted meanwhile (D8). Deltas alone promise nothing."""
        durable = any(pending.unit.durable for pending in batch)
        if durable and self._is_gone():
            self._refuse(batch, self._gone_error())
            return
        numbers = dict(self._numbers)
        try:
            self._synchronize("FULL" if durable else "NORMAL")
            self._begin()
            for pending in batch:
                self._attempt(pending)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._abandon(batch, error)
            self._numbers = numbers
        else:
            if durable and self._is_gone():
                self._refuse(batch, self._gone_error())

    def _begin(self) -> None:
        _once_free(partial(self._connection.execute, "BEGIN IMMEDIATE"), self._closing, for_s=BUSY_TIMEOUT_S)

    def _synchronize(self, mode: str) -> None:
        if mode != self._synchronous:
            self._connection.execute(f"PRAGMA synchronous = {mode}")
            self._synchronous = mode

    def _abandon(self, batch: Sequence[PendingUnit], error: sqlite3.Error) -> None:
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
        # Also where a unit had failed by itself: it may have clashed with one that is now undone.
        self._refuse(batch, _unavailable(error))

    def _refuse(self, batch: Sequence[PendingUnit], error: StoreUnavailable) -> None:
        for pending in batch:
            pending.fail(error)

    def _attempt(self, pending: PendingUnit) -> None:
        """Run one unit in a savepoint: its failure leaves the others of the batch alone."""
        workspace_id = pending.unit.workspace_id
        number = self._numbers.get(workspace_id, 0)
        self._connection.execute("SAVEPOINT unit")
        try:
            self._apply(pending)
        except Exception as error:  # whatever it is, it fails this unit and not the writer
            pending.fail(_translate(error))
            self._numbers[workspace_id] = number
            if not self._connection.in_transaction:
                # A full disk makes SQLite roll back the whole transaction: there is nothing left to go on with.
                raise sqlite3.OperationalError(str(error)) from error
            self._connection.execute("ROLLBACK TO unit")
        self._connection.execute("RELEASE unit")

    def _apply(self, pending: PendingUnit) -> None:
        unit = pending.unit
        number = self._numbers.get(unit.workspace_id, 0)
        # Before anything is numbered: an entry that is left out has no number.
        entries = [entry for entry in unit.entries if entry.only_with is None or self._write(entry.only_with, number)]
        newest = number + sum(len(entry.bodies) for entry in entries)
        for write in unit.writes:
            self._write(write, newest)
        for entry in entries:
            published = self._append(unit.workspace_id, entry, number + 1)
            pending.published.append(published)
            number = published.last
        if entries:
            self._numbers[unit.workspace_id] = number

    def _write(self, write: Write, newest: int) -> int:
        """How many rows it changed."""
        query = self._queries[write.query]
        params = {**write.params, "number": newest} if query.numbered else write.params
        changed = self._connection.execute(query.sql, params).rowcount
        if write.rows is not None and changed != write.rows:
            raise WriteMissed(f"{write.query} changed {changed} rows instead of {write.rows}")
        return changed

    def _append(self, workspace_id: str, entry: Entry, first: int) -> Published:
        published = number_frames(workspace_id, self.epoch, entry, first)
        self._connection.execute(
            self._queries["event_append"].sql,
            {
                "workspace_id": workspace_id,
                "first": first,
                "last": published.last,
                "epoch": self.epoch,
                "session_id": entry.session_id,
                "parent_session_id": entry.parent_session_id,
                "message_id": entry.message_id,
                "run_seq": entry.run_seq,
                "written_s": int(time.time()),
                "frames": published.data,
            },
        )
        return published


def _run_to_end(reading: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits, as those do that read by a `SqliteReader`."""
    try:
        reading.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    reading.close()
    raise RuntimeError("a read of SQLite waits for something else")


class _Readers:
    """Reader threads, each with its own connection."""

    def __init__(self, path: Path, number: int, name: str) -> None:
        self.threads = ThreadPoolExecutor(number, thread_name_prefix=name)
        self.idle: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._connections = [_connect(path) for _ in range(number)]
        for connection in self._connections:
            connection.execute("PRAGMA query_only = ON")
            connection.row_factory = sqlite3.Row
            self.idle.put(connection)

    def close(self) -> None:
        self.threads.shutdown()
        for connection in self._connections:
            connection.close()


def _connect(path: Path, *, timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
    connection.create_function(
        "folded", 1, fold_case, deterministic=True
    )  # SQLite's own LIKE knows the case of ASCII alone
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    return connection


def _translate(error: Exception) -> Exception:
    match error:
        case sqlite3.IntegrityError() if "UNIQUE" in str(error):
            return UniqueViolated(str(error))
        case sqlite3.IntegrityError():
            return WriteMissed(str(error))
        case sqlite3.Error():
            return _unavailable(error)
    return error


def _is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _unavailable(error: sqlite3.Error) -> StoreUnavailable:
    if _is_damage(error):
        return StoreDamaged(str(error))
    return StoreUnavailable(
        f"The store cannot be written: {error}. Nothing was accepted. Fix the disk or its permissions, then resend."
    )
