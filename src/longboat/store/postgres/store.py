"""The shared store: PostgreSQL, one connection that writes with group commit, and a pool that reads.

Owns connections, transactions, event numbers and the order of publishing. Must not know what the queries mean.

The writer takes all waiting units and commits them together: one transaction, one fsync. It tries them without
savepoints; if one fails, it begins again with a savepoint for each. Deltas alone are committed without waiting for the
disk (`synchronous_commit = off`); the next durable commit brings them there.

If the writer's connection breaks, it comes back by itself. A commit whose answer was lost is looked up (`writers`): a
unit is never answered before its fate is known.

A server has the database to itself, and a lock says so; or it is a node, one of several. A node writes only to the
workspaces that it holds: every transaction first locks their leases, and fails if one has another epoch by now.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg

from longboat.backoff import Backoff
from longboat.errors import DataDirError, OwnerLost, StoreLost, StoreUnavailable
from longboat.store.postgres.connection import (
    COMMAND_S,
    CONNECT_S,
    FAILURES,
    SERVER_SETTINGS,
    PostgresReader,
    connect,
    is_lost,
    load_statements,
    migrate,
    prepare,
    translate_error,
    unavailable,
)
from longboat.store.postgres.search import PostgresSearch
from longboat.store.protocol import Entry, Listener, Report, Unit, Write, WriteMissed
from longboat.store.publishing import PendingUnit, Publisher, number_frames
from longboat.store.queries import Reader
from longboat.store.reading.reads import QueriedReads
from longboat.tasks import Tasks

logger = logging.getLogger(__name__)
T = TypeVar("T")

MAX_BATCH = 256
READERS = 8
REPLAYERS = 4
"""Connections of the pool that may read the log at the same time: other reads do not wait for them."""
SEQS = 1000
"""As many seqs are taken at a time; the sequence of the schema says so too."""
SERVER_LOCK = 0x626F6174
LOCK_S = 5.0
"""How long to wait for the lock of a server that is just ending, or of our own broken connection."""
RECONNECT = Backoff(base_s=0.1, ceiling_s=2.0)
CLOSE_S = 3.0
"""How long a closing store waits for a database that is away."""


_BACKEND = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
_END_BACKEND = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2"


LEASE_LOST = "LB001"
"""What `check_leases` of the schema raises."""
UNFENCED = ""
"""The workspace of units that belong to none."""


@dataclass(slots=True)
class Hold:
    """The right to write to a workspace, and the number of its newest event."""

    epoch: int
    number: int = 0


class _UnitFailed(Exception):
    """A unit failed by itself: the others of its batch have to be done again without it."""


@asynccontextmanager
async def open_postgres(dsn: str, *, node: str = "") -> AsyncIterator["PostgresStore"]:
    """Connect, migrate and begin a new epoch; closing waits for what was submitted. `node`: the name of one of several
    servers; without a name, the server has the database to itself."""
    async with Tasks() as tasks:
        try:
            store = PostgresStore(dsn, tasks, node=node)
            await store.open()
        except (*FAILURES, ValueError) as error:
            why = str(error) or type(error).__name__
            raise DataDirError(
                f"Cannot open the store {describe_dsn(dsn)}: {why}. Check that PostgreSQL runs and that the address, "
                "user and password are right.",
                code="store_unreachable",
            ) from error
        try:
            yield store
        finally:
            await store.aclose()


def describe_dsn(dsn: str) -> str:
    """An address without its password."""
    parts = urlsplit(dsn)
    _, _, host = parts.netloc.rpartition("@")
    user = f"{parts.username}@" if parts.username else ""
    return f"{parts.scheme}://{user}{host}{parts.path}"


class PostgresStore:
    """See `longboat.store.protocol.Store`."""

    def __init__(self, dsn: str, tasks: Tasks, *, node: str = "") -> None:
        self.epoch = 0
        self._dsn = dsn
        self._tasks = tasks
        self._node = node
        self._holds: dict[str, Hold] = {}
        self._tell_lost: Callable[[str], None] = lambda _: None
        self._statements = load_statements()
        self._publisher = Publisher()
        self._schema = 0
        self._seqs: deque[range] = deque()
        self._next_seq = 0
        self._taking_seqs: asyncio.Task[None] | None = None
        self._connection: Any = None
        self._backend: tuple[int, object] | None = None
        """What the database knows our last connection by: its process, and when that began."""
        self._commits = 0
        """How many transactions were committed, as the database counts them: tells the fate of the last one."""
        self._lost: StoreLost | None = None
        self._tell_gone: Callable[[], None] = lambda: None
        self._waiting: deque[PendingUnit] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._writer: asyncio.Task[None] | None = None
        self._pool: Any = None
        self._replays = asyncio.Semaphore(REPLAYERS)
        self._search = PostgresSearch(self._borrow, tasks)
        self.reads = QueriedReads(self.read, self._search)

    async def open(self) -> None:
        self._connection = await connect(self._dsn)
        try:
            await self._lock(self._connection)
            self._schema = await migrate(self._connection)
            self.epoch = await self._connection.fetchval(self._statements["epoch_raise"].sql)
            if not self._node:
                self._holds = await self._read_holds()
            await self._connection.execute("INSERT INTO writers VALUES ($1, 0) ON CONFLICT DO NOTHING", self._node)
            self._commits = await self._read_commits()
            await self._take_seqs()
            self._pool = await asyncpg.create_pool(
                self._dsn,
                min_size=1,
                max_size=READERS,
                timeout=CONNECT_S,
                command_timeout=COMMAND_S,
                init=prepare,
                server_settings=SERVER_SETTINGS,
            )
        except BaseException:
            self._connection.terminate()
            raise
        self._writer = self._tasks.spawn(self._write(), name="store writer", awaited=True)

    async def aclose(self) -> None:
        self._closing = True
        self._wake.set()
        if self._writer is not None:
            _, late = await asyncio.wait([self._writer], timeout=CLOSE_S)
            if late and self._connection is not None:  # the database stands still
                self._connection.terminate()
            await asyncio.wait([self._writer], timeout=CLOSE_S)
        self._pool.terminate()
        await self._search.aclose()
        if self._connection is not None:
            with suppress(Exception):
                await self._connection.close(timeout=CLOSE_S)

    def settle(self, batch: Sequence[PendingUnit]) -> None:
        """Publish what was committed and answer its submitters, in the order of the log."""
        self._search.committed()
        self._publisher.settle(batch)

    # For the runtime

    @property
    def problem(self) -> str | None:
        return self._lost.message if self._lost is not None else self._publisher.problem

    def next_seq(self) -> int:
        if len(self._seqs) < 2 and (self._taking_seqs is None or self._taking_seqs.done()):
            self._taking_seqs = self._tasks.spawn(self._refill_seqs(), name="seqs")
        if not self._seqs:
            raise StoreUnavailable("The database is slow: no number is left for this prompt. Resend it in a moment.")
        seq = self._next_seq
        self._next_seq += 1
        if self._next_seq == self._seqs[0].stop:
            self._seqs.popleft()
            self._next_seq = self._seqs[0].start if self._seqs else 0
        return seq

    def submit(self, unit: Unit) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(PendingUnit(unit, future))
        self._wake.set()
        return future

    def listen(self, workspace_id: str, listener: Listener | None) -> None:
        self._publisher.listen(workspace_id, listener)

    def watch(self, watcher: Callable[[Unit], None] | None) -> None:
        self._publisher.watch(watcher)

    def when_gone(self, told: Callable[[], None]) -> None:
        self._tell_gone = told

    async def check(self, *, limit_s: float) -> Report:
        """PostgreSQL checks its own pages; here only whether it answers, and what it holds."""
        async with asyncio.timeout(limit_s):
            (row,) = await self.read(lambda reader: reader.fetch("check_counts"))
            async with self._borrow() as connection:
                size: int = await connection.fetchval("SELECT pg_database_size(current_database())")
        return Report(file=describe_dsn(self._dsn), size=size, schema=self._schema, counts=dict(row), problems=())

    async def read(self, query: Callable[[Reader], Coroutine[Any, Any, T]], *, replay: bool = False) -> T:
        """Run `query` in one read transaction: what `reads` is made of."""
        if not replay:
            return await self._read(query)
        async with self._replays:
            return await self._read(query)

    async def _read(self, query: Callable[[Reader], Coroutine[Any, Any, T]]) -> T:
        """Once more if the connection broke: the pool may have kept one that is long gone."""
        try:
            return await self._read_once(query)
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, Exception) or not is_lost(error.__cause__):
                raise
        return await self._read_once(query)

    async def _read_once(self, query: Callable[[Reader], Coroutine[Any, Any, T]]) -> T:
        async with self._borrow() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
            return await query(PostgresReader(connection))

    @asynccontextmanager
    async def _borrow(self) -> AsyncIterator[Any]:
        try:
            async with self._pool.acquire(timeout=COMMAND_S) as connection:
                yield connection
        except FAILURES as error:
            why = str(error) or type(error).__name__
            raise StoreUnavailable(f"The database cannot be read: {why}.") from error

    # Numbers

    async def _refill_seqs(self) -> None:
        try:
            await self._take_seqs()
        except FAILURES as error:  # the next prompt tries again
            logger.warning("no seqs could be taken: %s", error)

    async def _take_seqs(self) -> None:
        source = self._connection if self._pool is None else self._pool
        first: int = await source.fetchval(self._statements["seqs_reserve"].sql)
        if first < self._next_seq:
            return  # taken before `hold` took newer ones
        if not self._seqs:
            self._next_seq = first
        self._seqs.append(range(first, first + SEQS))

    async def _read_holds(self) -> dict[str, Hold]:
        rows = await self._connection.fetch(self._statements["last_numbers"].sql)
        return {row["workspace_id"]: Hold(self.epoch, row["last"]) for row in rows}

    # For a node

    def hold(self, workspace_id: str, *, epoch: int, number: int, first_seq: int) -> None:
        """From now on, this node may write to this workspace. The seqs begin anew: those that the node had are older
        than those that the former owner has handed out."""
        self._holds[workspace_id] = Hold(epoch, number)
        self._seqs = deque([range(first_seq, first_seq + SEQS)])
        self._next_seq = first_seq

    def let_go(self, workspace_id: str) -> None:
        """From now on, units of this workspace are refused."""
        self._holds.pop(workspace_id, None)

    def when_lost(self, told: Callable[[str], None]) -> None:
        """Call this with each workspace that turns out to have another owner."""
        self._tell_lost = told

    def borrow(self) -> AbstractAsyncContextManager[Any]:
        """A connection of the readers, for a moment."""
        return self._borrow()

    # The writer

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(MAX_BATCH, len(self._waiting)))]
                await self._commit(batch)
                self.settle(batch)
            self._wake.clear()
            if self._closing and not self._waiting:
                return

    async def _commit(self, batch: Sequence[PendingUnit]) -> None:
        """A connection that broke while nobody used it costs nothing: the batch is done on a new one."""
        if self._lost is not None:
            return _refuse(batch, self._lost)
        is_new = self._connection is None
        try:
            if self._connection is None:
                await self._reconnect()
            await self._transact(batch)
        except Exception as error:
            self._drop_connection(error)
            if is_lost(error) and not isinstance(error, TimeoutError) and not is_new and not self._closing:
                return await self._commit(batch)
            _refuse(batch, self._lost or _unavailable(error))

    async def _transact(self, batch: Sequence[PendingUnit]) -> None:
        """Numbers are taken back if nothing comes of them, whatever the reason."""
        owned = self._refuse_foreign(batch)
        if not owned:
            return
        holds = {pending.unit.workspace_id: self._hold_of(pending.unit.workspace_id) for pending in owned}
        numbers = {workspace_id: hold.number for workspace_id, hold in holds.items()}
        committed = False
        try:
            await self._apply_all(owned, holds, numbers)
            committed = await self._end(owned)
        except asyncpg.PostgresError as error:
            if error.sqlstate != LEASE_LOST:
                raise
            await self._connection.execute("ROLLBACK")
            await self._drop_lost_leases(holds)
        finally:
            if not committed:
                _take_back(holds, numbers)
        if not committed and any(pending.error is None for pending in owned):
            await self._transact(owned)

    async def _apply_all(
        self, batch: Sequence[PendingUnit], holds: Mapping[str, Hold], numbers: Mapping[str, int]
    ) -> None:
        try:
            await self._begin(batch, holds)
            await self._apply_together(batch, holds)
        except _UnitFailed as failed:
            _take_back(holds, numbers)
            await self._connection.execute("ROLLBACK")
            if len(batch) == 1:
                batch[0].fail(translate_error(_cause(failed)))
                return
            await self._begin(batch, holds)
            for pending in batch:
                await self._apply_apart(pending, holds)

    async def _begin(self, batch: Sequence[PendingUnit], holds: Mapping[str, Hold]) -> None:
        for pending in batch:
            pending.published.clear()
            pending.error = None
        durable = any(pending.unit.durable for pending in batch)
        mode = "" if durable else "SET LOCAL synchronous_commit = off;"
        count = f"UPDATE writers SET commits = {self._commits + 1} WHERE node = {_literal(self._node)}"
        fence = f"SELECT check_leases({_leases(holds)});" if self._node else ""
        await self._connection.execute(f"BEGIN; {mode} {fence} {count}")

    async def _end(self, batch: Sequence[PendingUnit]) -> bool:
        """Whether it is committed. If the answer to the commit is lost, look whether it was done; until that is known,
        nothing is answered."""
        if len(batch) == 1 and batch[0].error is not None:
            return False  # rolled back
        try:
            await self._connection.execute("COMMIT")
        except Exception as error:
            if not is_lost(error):
                raise
            self._drop_connection(error)
            if not await self._was_committed():
                _refuse(batch, self._lost or _unavailable(error))
                return False
        self._commits += 1
        return True

    # What a node may write

    def _hold_of(self, workspace_id: str) -> Hold:
        if workspace_id not in self._holds and (workspace_id == UNFENCED or not self._node):
            self._holds[workspace_id] = Hold(self.epoch)
        return self._holds[workspace_id]

    def _refuse_foreign(self, batch: Sequence[PendingUnit]) -> Sequence[PendingUnit]:
        """The units that this server may write; the others fail."""
        if not self._node:
            return batch
        for pending in batch:
            if pending.unit.workspace_id != UNFENCED and pending.unit.workspace_id not in self._holds:
                pending.fail(OwnerLost())
        return [pending for pending in batch if not isinstance(pending.error, OwnerLost)]

    async def _drop_lost_leases(self, holds: Mapping[str, Hold]) -> None:
        rows = await self._connection.fetch(
            "SELECT workspace_id, epoch FROM leases WHERE workspace_id = ANY($1)", list(holds)
        )
        now = {row["workspace_id"]: row["epoch"] for row in rows}
        for workspace_id, hold in holds.items():
            if workspace_id != UNFENCED and now.get(workspace_id) != hold.epoch:
                if self._holds.get(workspace_id) is hold:
                    self.let_go(workspace_id)
                self._tell_lost(workspace_id)

    # One batch

    async def _apply_together(self, batch: Sequence[PendingUnit], holds: Mapping[str, Hold]) -> None:
        appended: list[tuple[Hold, Entry, PendingUnit]] = []
        for pending in batch:
            hold = holds[pending.unit.workspace_id]
            try:
                appended += [(hold, entry, pending) for entry in await self._apply(pending.unit, hold)]
            except Exception as error:
                if is_lost(error):
                    raise
                raise _UnitFailed from error
        await self._append(appended)

    async def _apply_apart(self, pending: PendingUnit, holds: Mapping[str, Hold]) -> None:
        """In a savepoint: its failure leaves the others of the batch alone."""
        hold = holds[pending.unit.workspace_id]
        number = hold.number
        await self._connection.execute("SAVEPOINT unit")
        try:
            entries = await self._apply(pending.unit, hold)
            await self._append([(hold, entry, pending) for entry in entries])
        except Exception as error:
            if is_lost(error):
                raise
            hold.number = number
            pending.fail(translate_error(_cause(error)))
            await self._connection.execute("ROLLBACK TO SAVEPOINT unit")
        await self._connection.execute("RELEASE SAVEPOINT unit")

    async def _apply(self, unit: Unit, hold: Hold) -> list[Entry]:
        """The writes of a unit; its entries, as far as they are to be appended."""
        # Before anything is numbered: an entry that is left out has no number.
        entries = [
            entry
            for entry in unit.entries
            if entry.only_with is None or await self._change(entry.only_with, hold.number)
        ]
        newest = hold.number + sum(len(entry.bodies) for entry in entries)
        for write in unit.writes:
            await self._change(write, newest)
        hold.number = newest
        return entries

    async def _change(self, write: Write, newest: int) -> int:
        """How many rows it changed."""
        statement = self._statements[write.query]
        params = {**write.params, "number": newest} if statement.numbered else write.params
        status: str = await self._connection.execute(statement.sql, *statement.arguments(params))
        changed = int(status.rpartition(" ")[2])
        if write.rows is not None and changed != write.rows:
            raise WriteMissed(f"{write.query} changed {changed} rows instead of {write.rows}")
        return changed

    async def _append(self, appended: Sequence[tuple[Hold, Entry, PendingUnit]]) -> None:
        """Entries of one or many units: one statement."""
        if not appended:
            return
        last: dict[str, int] = {}
        for hold, entry, pending in appended:
            workspace_id = pending.unit.workspace_id
            last[workspace_id] = last.get(workspace_id, hold.number) - len(entry.bodies)
        rows: list[tuple[Any, ...]] = []
        now_s = int(time.time())
        for hold, entry, pending in appended:
            workspace_id = pending.unit.workspace_id
            published = number_frames(workspace_id, hold.epoch, entry, last[workspace_id] + 1)
            last[workspace_id] = published.last
            pending.published.append(published)
            rows.append(
                (
                    *(workspace_id, published.first, published.last, hold.epoch, entry.session_id),
                    *(entry.parent_session_id, entry.message_id, entry.run_seq, now_s, published.data),
                )
            )
        columns = (list(column) for column in zip(*rows, strict=True))
        try:
            await self._connection.execute(self._statements["event_append"].sql, *columns)
        except Exception as error:
            if is_lost(error):
                raise
            raise _UnitFailed from error

    # A connection that breaks

    def _drop_connection(self, error: Exception) -> None:
        """Also one in an unknown state is of no use."""
        if self._connection is not None:
            logger.debug("the connection to the database is dropped: %r", error)
            self._connection.terminate()
            self._connection = None

    async def _was_committed(self) -> bool:
        """Whether the last transaction was: asks until the database answers. What is submitted meanwhile is refused."""
        failures, wanted = 0, self._commits + 1
        end: float | None = None
        while self._lost is None:
            try:
                await self._reconnect()
                return await self._read_commits() >= wanted
            except Exception as error:  # whatever it is, the fate is not known yet
                self._drop_connection(error)
                failures += 1
                waiting, self._waiting = list(self._waiting), deque()
                _refuse(waiting, _unavailable(error))
                self.settle(waiting)
            now = asyncio.get_running_loop().time()
            if self._closing:
                end = now + CLOSE_S if end is None else end
                if now >= end:
                    return False
            await asyncio.sleep(RECONNECT.delay(failures))
        return False

    async def _reconnect(self) -> None:
        connection = await connect(self._dsn)
        try:
            await self._lock(connection)
        except DataDirError as error:
            connection.terminate()
            raise self._lose("another server uses it now") from error
        except BaseException:
            connection.terminate()
            raise
        self._connection = connection
        if (commits := await self._read_commits()) < self._commits:
            if not self._node:
                raise self._lose("it lost what was written last, as after a crash")
            self._commits = commits
            self._lose_leases()

    async def _read_commits(self) -> int:
        commits: int = await self._connection.fetchval("SELECT commits FROM writers WHERE node = $1", self._node)
        return commits

    def _lose_leases(self) -> None:
        """The database lost what was written last, as after a crash. With new epochs, clients notice what they have
        seen too much."""
        logger.error("the database lost what was written last: every workspace is opened again")
        for workspace_id in [each for each in self._holds if each != UNFENCED]:
            self.let_go(workspace_id)
            self._tell_lost(workspace_id)

    def _lose(self, why: str) -> StoreLost:
        """From now on everything is refused."""
        self._lost = StoreLost(why)
        logger.error("%s", self._lost.message)
        self._tell_gone()
        return self._lost

    async def _lock(self, connection: Any) -> None:
        """One server, or only nodes. Our own broken connection may hold the lock until the database notices."""
        deadline = asyncio.get_running_loop().time() + LOCK_S
        how = "pg_try_advisory_lock_shared" if self._node else "pg_try_advisory_lock"
        while not await connection.fetchval(f"SELECT {how}($1)", SERVER_LOCK):
            if self._backend is not None:
                await connection.execute(_END_BACKEND, *self._backend)
            if asyncio.get_running_loop().time() >= deadline:
                raise DataDirError(
                    f"Another Longboat server uses the store {describe_dsn(self._dsn)}. Stop it first, or name "
                    "another database with --store. Servers that share a database need LONGBOAT_CLUSTER_SECRET, each "
                    "of them.",
                    code="store_in_use",
                )
            await asyncio.sleep(0.1)
        self._backend = tuple(await connection.fetchrow(_BACKEND))


def _take_back(holds: Mapping[str, Hold], numbers: Mapping[str, int]) -> None:
    for workspace_id, hold in holds.items():
        hold.number = numbers[workspace_id]


def _leases(holds: Mapping[str, Hold]) -> str:
    fenced = {workspace_id: hold.epoch for workspace_id, hold in holds.items() if workspace_id != UNFENCED}
    names = ",".join(map(_literal, fenced))
    return f"ARRAY[{names}]::text[], ARRAY[{','.join(map(str, fenced.values()))}]::bigint[]"


def _literal(text: str) -> str:
    """For statements that are sent together with others, and so without parameters."""
    return "'" + text.replace("'", "''") + "'"


def _refuse(batch: Sequence[PendingUnit], error: StoreUnavailable) -> None:
    for pending in batch:
        pending.fail(error)


def _cause(error: BaseException) -> Exception:
    cause = error.__cause__ if isinstance(error, _UnitFailed) else error
    assert isinstance(cause, Exception)
    return cause


def _unavailable(error: Exception) -> StoreUnavailable:
    return error if isinstance(error, StoreUnavailable) else unavailable(error)
