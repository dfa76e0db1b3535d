"""The shared store: PostgreSQL, one connection that writes with group commit, and a pool that reads.

Owns connections, transactions, event numbers and the order of publishing. Must not know what the queries mean.

The writer takes all waiting units and commits them together: one message, one transaction, one fsync. If one of them
fails, it begins again with a savepoint for each. Deltas alone are committed without waiting for the disk
(`synchronous_commit = off`); the next durable commit brings them there.

If the writer's connection breaks, it comes back by itself. A commit whose answer was lost is looked up (`writers`): a
unit is never answered before its fate is known.

A server has the database to itself, and a lock says so; or it is a node, one of several. A node writes only to the
workspaces that it holds: every transaction first locks their leases, and fails if one has another epoch by now.
"""

import asyncio
import logging
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncpg

from longboat.backoff import Backoff
from longboat.errors import DataDirError, OwnerLost, StoreLost, StoreUnavailable
from longboat.store.address import describe_dsn
from longboat.store.changes import concerns_inbox
from longboat.store.postgres.calls import MAX_CALLS, Call, Functions, call_all
from longboat.store.postgres.connections import (
    COMMAND_S,
    PooledConnection,
    connect,
    hosts_of,
    is_by_socket,
    is_pooled,
)
from longboat.store.postgres.locking import ServerLock
from longboat.store.postgres.schema import migrate
from longboat.store.postgres.search import PostgresSearch
from longboat.store.postgres.statements import (
    FAILURES,
    LEASE_LOST,
    PostgresReader,
    is_lost,
    is_temporary,
    load_statements,
    may_read_again,
    translate_error,
    unavailable,
)
from longboat.store.postgres.wakeups import Topic, Wakeups
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
"""Connections of the pool that may read the log or search at the same time: other reads do not wait for them."""
SEARCHERS = 2
"""Those of them that may search, which can take as long as any statement may: replays do not wait for that."""
RESERVED = 2
"""Connections that all of these leave alone: one for finding and claiming workspaces, and one that nothing but renewals
of leases may use. They must wait for nobody (G3): claims may wait for locks on all others."""
RENEWING = 1
SEQS = 1000
"""How many seqs are taken at a time, the same number as in the schema."""
RECONNECT = Backoff(base_s=0.1, ceiling_s=2.0)
CLOSE_S = 3.0
"""How long a closing store waits for a database that is away."""


_COUNT_COMMITS = "INSERT INTO writers VALUES ($1, 0) ON CONFLICT DO NOTHING"
_COMMITS = "SELECT commits FROM writers WHERE node = $1"
_CONFIRM_COMMITS = "UPDATE writers SET commits = commits WHERE node = $1 RETURNING commits"

UNFENCED = ""
"""The workspace of units that belong to none."""


@dataclass(slots=True)
class WriteRight:
    """The right to write to a workspace, and the number of its newest event."""

    epoch: int
    number: int = 0


@asynccontextmanager
async def open_postgres(
    dsn: str, *, node: str = "", on_wait: Callable[[str], None] | None = None
) -> AsyncIterator["PostgresStore"]:
    """Connect, migrate and begin a new epoch; closing waits for what was submitted. `node`: the name of one of several
    servers; without a name, the server has the database to itself. With `on_wait`, waits for a database that is away:
    it is told the problem whenever that changes."""
    async with Tasks() as tasks:
        store = await _open(dsn, tasks, node=node, on_wait=on_wait)
        try:
            yield store
        finally:
            await store.aclose()


async def _open(dsn: str, tasks: Tasks, *, node: str, on_wait: Callable[[str], None] | None) -> "PostgresStore":
    failures, told = 0, ""
    while True:
        store = PostgresStore(dsn, tasks, node=node)
        try:
            await store.open()
        except (*FAILURES, ValueError, StoreUnavailable) as error:
            cause = error.__cause__ if isinstance(error, StoreUnavailable) and error.__cause__ else error
            refusal = _refusal(dsn, cause)
            if on_wait is None or not _may_come_back(dsn, cause):
                raise refusal from error
            if told != refusal.message:
                told = refusal.message
                on_wait(told)
        else:
            return store
        failures += 1
        await asyncio.sleep(RECONNECT.delay(failures))


def _may_come_back(dsn: str, error: BaseException) -> bool:
    if isinstance(error, FileNotFoundError) and not is_by_socket(dsn, os.environ):
        return False  # a certificate is missing
    is_standby = isinstance(error, asyncpg.TargetServerAttributeNotMatched)
    return is_temporary(error) or (is_standby and len(hosts_of(dsn, os.environ)) > 1)  # one of them will be promoted


def _refusal(dsn: str, error: BaseException) -> DataDirError:
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return DataDirError(
            f"The database {describe_dsn(dsn)} does not accept writes: it is a standby, or set to read only. Name "
            "its primary, or all its hosts with commas between them.",
            code="store_read_only",
        )
    if isinstance(error, asyncpg.LockNotAvailableError | asyncpg.DeadlockDetectedError):
        return DataDirError(
            f"The database {describe_dsn(dsn)} is locked: another server is migrating it, or another program, such as "
            "a backup, holds a lock on a table that this version changes.",
            code="store_locked",
        )
    why = str(error) or type(error).__name__
    return DataDirError(
        f"Cannot open the store {describe_dsn(dsn)}: {why}. Check that PostgreSQL runs and that the address, "
        "user and password are right.",
        code="store_unreachable",
    )


class PostgresStore:
    """See `longboat.store.protocol.Store`."""

    def __init__(self, dsn: str, tasks: Tasks, *, node: str = "") -> None:
        self.epoch = 0
        self.instance = secrets.token_hex(8) if node else ""
        """Tells this start of a node from all others: it counts its commits under this name."""
        self._dsn = dsn
        self._tasks = tasks
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._node = node
        self._rights: dict[str, WriteRight] = {}
        self._tell_lost: Callable[[str], None] = lambda _: None
        self._statements = load_statements()
        self._publisher = Publisher()
        self._schema = 0
        self._seqs: deque[range] = deque()
        self._next_seq = 0
        self._taking_seqs: asyncio.Task[None] | None = None
        self._pooled = False
        """Whether a pooler is between us and the database: then no session is ours."""
        self._connection: Any = None
        self._lock = ServerLock(dsn, node=node, pooled=False)
        self._functions = Functions(self._statements)
        self._commits = 0
        """How many transactions were committed, as the database counts them: tells the fate of the last one."""
        self._lost: StoreLost | None = None
        self._tell_gone: Callable[[], None] = lambda: None
        self._waiting: deque[PendingUnit] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._writer: asyncio.Task[None] | None = None
        self._pool: Any = None
        self._renewing: Any = None
        """The pool with the connection for renewals."""
        self._reading = asyncio.Semaphore(READERS - RESERVED)
        self._replays = asyncio.Semaphore(REPLAYERS)
        self._searches = asyncio.Semaphore(SEARCHERS)
        self._search = PostgresSearch(self._borrow_to_search, tasks)
        self.wakeups = Wakeups(node, self._connect, self._borrow, tasks)
        self.reads = QueriedReads(self.read, self._search, self._publisher.histories)

    async def open(self) -> None:
        self._pooled = await is_pooled(self._dsn)
        self._lock = ServerLock(self._dsn, node=self._node, pooled=self._pooled)
        self._connection = await self._connect()
        try:
            await self._lock.take(self._connection)
            self._schema = await migrate(self._connection, node=self._node)
            await self._lock.check_nodes(self._connection)
            self.epoch = await self._connection.fetchval(self._statements["epoch_raise"].sql)
            if not self._node:
                self._rights = await self._read_rights()
            await self._connection.execute(_COUNT_COMMITS, self.instance)
            self._commits = await self._read_commits() or 0
            self._pool = await self._create_pool(least=1, most=READERS - RENEWING)
            self._renewing = await self._create_pool(least=0, most=RENEWING)
            await self._take_seqs()
        except BaseException:
            self._connection.terminate()
            self._terminate_pools()
            raise
        self._writer = self._tasks.spawn(self._write(), name="store writer", awaited=True)
        if self._node and not self._pooled:  # through a pooler, nobody would be heard
            self._tasks.spawn(self.wakeups.listen(), name="hear other servers")

    async def _connect(self, *_: Any, **__: Any) -> Any:
        """Open a connection for the pool. The pool passes options of its own; `connect` knows them already."""
        return await connect(self._dsn, pooled=self._pooled)

    async def _create_pool(self, *, least: int, most: int) -> Any:
        kind = PooledConnection if self._pooled else asyncpg.Connection
        return await asyncpg.create_pool(
            connect=self._connect, connection_class=kind, reset=_keep_as_it_is, min_size=least, max_size=most
        )

    def _terminate_pools(self) -> None:
        for pool in (self._pool, self._renewing):
            if pool is not None:
                pool.terminate()

    async def aclose(self) -> None:
        self._closing = True
        self._wake.set()
        if self._writer is not None:
            _, late = await asyncio.wait([self._writer], timeout=CLOSE_S)
            if late and self._connection is not None:  # the database stands still
                self._connection.terminate()
            await asyncio.wait([self._writer], timeout=2 * CLOSE_S)
        self._terminate_pools()
        await self._search.aclose()
        if self._connection is not None:
            with suppress(Exception):
                async with asyncio.timeout(CLOSE_S):
                    await self._connection.execute("DELETE FROM writers WHERE node = $1 AND node != ''", self.instance)
                    await self._connection.close()

    def settle(self, batch: Sequence[PendingUnit]) -> None:
        """Publish what was committed and answer its submitters, in the order of the log."""
        self._search.committed()
        self._publisher.settle(batch)
        if self._node and any(pending.error is None and concerns_inbox(pending.unit) for pending in batch):
            self.wakeups.send(Topic.INBOX)

    # For the runtime

    @property
    def problem(self) -> str | None:
        return self._lost.message if self._lost is not None else self._publisher.problem

    def next_seq(self) -> int:
        if threading.get_ident() != self._thread:
            return asyncio.run_coroutine_threadsafe(self._await_seq(), self._loop).result()
        if len(self._seqs) < 2:
            self._refilling()
        if not self._seqs:
            raise StoreUnavailable(
                "The database did not respond in time, so the prompt was not accepted. Send it again in a moment."
            )
        seq = self._next_seq
        self._next_seq += 1
        if self._next_seq == self._seqs[0].stop:
            self._seqs.popleft()
            self._next_seq = self._seqs[0].start if self._seqs else 0
        return seq

    def submit(self, unit: Unit) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(PendingUnit(unit, future, self._rights.get(unit.workspace_id)))
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
            async with self._reading, self._borrow() as connection:
                size: int = await connection.fetchval("SELECT pg_database_size(current_database())")
        return Report(file=describe_dsn(self._dsn), size=size, schema=self._schema, counts=dict(row), problems=())

    async def read(
        self, query: Callable[[Reader], Coroutine[Any, Any, T]], *, replay: bool = False, alone: bool = False
    ) -> T:
        """Run `query` in one read transaction: what `reads` is made of. What fetches only once needs none."""
        transaction = {} if alone else {"isolation": "repeatable_read", "readonly": True}
        if not replay:
            return await self._read(query, transaction)
        async with self._replays:
            return await self._read(query, transaction)

    async def _read(self, query: Callable[[Reader], Coroutine[Any, Any, T]], transaction: Mapping[str, Any]) -> T:
        """Read, and once more if that may help."""
        try:
            return await self._read_once(query, transaction)
        except StoreUnavailable as error:
            if not may_read_again(error.__cause__):
                raise
        return await self._read_once(query, transaction)

    async def _read_once(self, query: Callable[[Reader], Coroutine[Any, Any, T]], transaction: Mapping[str, Any]) -> T:
        async with self._reading, self._borrow(**transaction) as connection:
            return await query(PostgresReader(connection))

    @asynccontextmanager
    async def _borrow_to_search(self) -> AsyncIterator[Any]:
        async with self._searches, self._replays, self._reading, self._borrow() as connection:
            yield connection

    @asynccontextmanager
    async def _borrow(self, *, renewing: bool = False, **transaction: Any) -> AsyncIterator[Any]:
        """Read on one connection. Through a pooler always in a transaction: only there our limits hold."""
        pool = self._renewing if renewing else self._pool
        try:
            async with pool.acquire(timeout=COMMAND_S) as connection:
                if not transaction and not self._pooled:
                    yield connection
                    return
                async with connection.transaction(**transaction):
                    yield connection
        except FAILURES as error:
            why = str(error) or type(error).__name__
            raise StoreUnavailable(f"The database cannot be read: {why}.") from error

    # Numbers

    async def _await_seq(self) -> int:
        """For a thread, which may wait: an import needs many, and leaves enough for prompts."""
        if len(self._seqs) < 2:
            await asyncio.wait([self._refilling()])
        return self.next_seq()

    def _refilling(self) -> "asyncio.Task[None]":
        if self._taking_seqs is None or self._taking_seqs.done():
            self._taking_seqs = self._tasks.spawn(self._refill_seqs(), name="seqs")
        return self._taking_seqs

    async def _refill_seqs(self) -> None:
        try:
            await self._take_seqs()
        except StoreUnavailable as error:  # the next prompt tries again
            logger.warning("no seqs could be taken: %s", error)

    async def _take_seqs(self) -> None:
        async with self._borrow() as connection:
            first: int = await connection.fetchval(self._statements["seqs_reserve"].sql)
        if first < self._next_seq:
            return  # taken before `hold` took newer ones
        if not self._seqs:
            self._next_seq = first
        self._seqs.append(range(first, first + SEQS))

    async def _read_rights(self) -> dict[str, WriteRight]:
        rows = await self._connection.fetch(self._statements["last_numbers"].sql)
        return {row["workspace_id"]: WriteRight(self.epoch, row["last"]) for row in rows}

    # For a node

    def hold(self, workspace_id: str, *, epoch: int, number: int, first_seq: int) -> None:
        """From now on, this node may write to this workspace. The seqs begin anew: those that the node had are older
        than those that the former owner has handed out."""
        self._rights[workspace_id] = WriteRight(epoch, number)
        self._publisher.histories.forget_all()  # another node may have written to it since
        if first_seq < self._next_seq:
            return  # ours were taken later still
        self._seqs = deque([range(first_seq, first_seq + SEQS)])
        self._next_seq = first_seq

    def let_go(self, workspace_id: str) -> None:
        """From now on, units of this workspace are refused."""
        self._rights.pop(workspace_id, None)

    def when_lost(self, told: Callable[[str], None]) -> None:
        """Call this with each workspace that turns out to have another owner."""
        self._tell_lost = told

    @asynccontextmanager
    async def borrow(self, *, renewing: bool = False) -> AsyncIterator[Any]:
        """A connection of the readers, for a moment; or the one for renewals, which waits for nobody else. Canceling
        takes effect at once, also if the database stands still: the connection is dropped, because the pool would wait
        for its statement."""
        async with self._borrow(renewing=renewing) as connection:
            try:
                yield connection
            except asyncio.CancelledError:
                connection.terminate()
                raise

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
        """Commit a batch. If the connection broke while nobody used it, the batch is done on a new one."""
        if self._lost is not None:
            return _refuse(batch, self._lost)
        if self._connection is not None and self._connection.is_closed():
            self._drop_connection(ConnectionError("closed"))  # before anything is sent: nothing is in doubt
        is_new = self._connection is None
        try:
            if self._connection is None:
                await self._reconnect()
            await self._transact(batch)
        except Exception as error:
            self._drop_connection(error)
            if is_lost(error) and not isinstance(error, TimeoutError) and not is_new and not self._closing:
                return await self._commit(batch)
            _refuse(batch, error if isinstance(error, OwnerLost) else self._lost or _unavailable(error))

    async def _transact(self, batch: Sequence[PendingUnit]) -> None:
        """Numbers are taken back if nothing comes of them, whatever the reason."""
        owned = self._refuse_foreign(batch)
        if not owned:
            return
        rights = {pending.unit.workspace_id: self._right_of(pending.unit.workspace_id) for pending in owned}
        numbers = {workspace_id: right.number for workspace_id, right in rights.items()}
        committed = False
        try:
            committed = await self._apply_together(owned, rights) or await self._apply_apart(owned, rights, numbers)
        except asyncpg.PostgresError as error:
            if error.sqlstate != LEASE_LOST:
                raise
            await self._roll_back()
            await self._drop_lost_leases(rights)
        finally:
            if not committed:
                _take_back(rights, numbers)
        if not committed and any(pending.error is None for pending in owned):
            await self._transact(owned)

    # All units at once

    async def _apply_together(self, batch: Sequence[PendingUnit], rights: Mapping[str, WriteRight]) -> bool:
        """Commit all units at once; returns whether they are committed. If one fails, none is."""
        _forget_results(batch)
        try:
            calls = self._plan(batch, rights)
            if calls is None:
                return False
            await self._functions.make(self._connection, [name for name, _, _ in calls])
            await self._call_all(batch, rights, calls)
        except Exception as error:
            if is_lost(error):
                await self._settle_doubt(error)
            elif getattr(error, "sqlstate", None) == LEASE_LOST:
                raise
            else:
                await self._roll_back()
                if len(batch) == 1:
                    batch[0].fail(translate_error(error))
                return False
        self._commits += 1
        return True

    async def _settle_doubt(self, error: Exception) -> None:
        """Returns if the transaction was committed. Otherwise it certainly was not, and can be done again."""
        self._drop_connection(error)
        if not await self._was_committed():
            raise error

    async def _call_all(
        self, batch: Sequence[PendingUnit], rights: Mapping[str, WriteRight], calls: Sequence[Call]
    ) -> None:
        """One statement is a transaction by itself. Only a unit with very many writes needs several."""
        first, leases = self._opening(batch, rights)
        if len(calls) <= MAX_CALLS:
            return await call_all(self._connection, calls, first=first, arguments=leases)
        await self._connection.execute("BEGIN")
        await call_all(self._connection, calls[:MAX_CALLS], first=first, arguments=leases)
        for start in range(MAX_CALLS, len(calls), MAX_CALLS):
            await call_all(self._connection, calls[start : start + MAX_CALLS])
        await self._connection.execute("COMMIT")
        return None

    def _opening(self, batch: Sequence[PendingUnit], rights: Mapping[str, WriteRight]) -> tuple[str, Sequence[Any]]:
        """What a transaction begins with: the fence, before anything is written."""
        columns = ["check_leases($1, $2)"] if self._node else []
        if not any(pending.unit.durable for pending in batch):
            columns.append("set_config('synchronous_commit', 'off', true)")
        fenced = _fenced_epochs(rights)
        return ", ".join(columns), [list(fenced), list(fenced.values())] if self._node else []

    def _plan(self, batch: Sequence[PendingUnit], rights: Mapping[str, WriteRight]) -> list[Call] | None:
        """Everything that is written. None if that depends on what is there, or if functions would not last."""
        if self._pooled or any(entry.only_with is not None for pending in batch for entry in pending.unit.entries):
            return None
        calls: list[Call] = [("commit_count", (self._commits + 1, self.instance), 1)]
        appended: list[tuple[WriteRight, Entry, PendingUnit]] = []
        for pending in batch:
            right = rights[pending.unit.workspace_id]
            right.number += sum(len(entry.bodies) for entry in pending.unit.entries)
            calls += [
                (write.query, self._arguments_of(write, right.number), write.rows) for write in pending.unit.writes
            ]
            appended += [(right, entry, pending) for entry in pending.unit.entries]
        if appended:
            name, values = self._append_of(appended)
            calls.append((name, values, len(appended)))
        return calls

    # Each unit for itself

    async def _apply_apart(
        self, batch: Sequence[PendingUnit], rights: Mapping[str, WriteRight], numbers: Mapping[str, int]
    ) -> bool:
        """Commit each unit for itself; returns whether the batch is committed, without the units that fail."""
        if len(batch) == 1 and batch[0].error is not None:
            return False
        _take_back(rights, numbers)
        _forget_results(batch)
        await self._begin(batch, rights)
        for pending in batch:
            await self._apply_in_savepoint(pending, rights)
        return await self._end(batch)

    async def _begin(self, batch: Sequence[PendingUnit], rights: Mapping[str, WriteRight]) -> None:
        durable = any(pending.unit.durable for pending in batch)
        mode = "" if durable else "SET LOCAL synchronous_commit = off;"
        count = f"UPDATE writers SET commits = {self._commits + 1} WHERE node = {_literal(self.instance)}"
        fence = f"SELECT check_leases({_leases(rights)});" if self._node else ""
        await self._connection.execute(f"BEGIN; {self._lock.in_transaction()} {mode} {fence} {count}")

    async def _roll_back(self) -> None:
        if self._connection.is_in_transaction():
            await self._connection.execute("ROLLBACK")

    async def _end(self, batch: Sequence[PendingUnit]) -> bool:
        """Whether it is committed. If the answer to the commit is lost, look whether it was done; until that is known,
        nothing is answered."""
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

    def _right_of(self, workspace_id: str) -> WriteRight:
        if workspace_id not in self._rights and (workspace_id == UNFENCED or not self._node):
            self._rights[workspace_id] = WriteRight(self.epoch)
        return self._rights[workspace_id]

    def _refuse_foreign(self, batch: Sequence[PendingUnit]) -> Sequence[PendingUnit]:
        """The units that this server may write; the others fail, also those of an earlier time as the owner."""
        if not self._node:
            return batch
        for pending in batch:
            right = self._rights.get(pending.unit.workspace_id)
            if pending.unit.workspace_id != UNFENCED and (right is None or pending.right is not right):
                pending.fail(OwnerLost())
        return [pending for pending in batch if not isinstance(pending.error, OwnerLost)]

    async def _drop_lost_leases(self, rights: Mapping[str, WriteRight]) -> None:
        rows = await self._connection.fetch(
            "SELECT workspace_id, epoch FROM leases WHERE workspace_id = ANY($1)", list(rights)
        )
        now = {row["workspace_id"]: row["epoch"] for row in rows}
        for workspace_id, right in rights.items():
            current = self._rights.get(workspace_id) is right  # otherwise the loss is known, and it may be ours again
            if workspace_id != UNFENCED and now.get(workspace_id) != right.epoch and current:
                self.let_go(workspace_id)
                self._tell_lost(workspace_id)

    # One unit

    async def _apply_in_savepoint(self, pending: PendingUnit, rights: Mapping[str, WriteRight]) -> None:
        """Write one unit. Its failure leaves the others of the batch alone."""
        right = rights[pending.unit.workspace_id]
        number = right.number
        await self._connection.execute("SAVEPOINT unit")
        try:
            entries = await self._apply(pending.unit, right)
            await self._append([(right, entry, pending) for entry in entries])
        except Exception as error:
            if is_lost(error):
                raise
            right.number = number
            pending.fail(translate_error(error))
            await self._connection.execute("ROLLBACK TO SAVEPOINT unit")
        await self._connection.execute("RELEASE SAVEPOINT unit")

    async def _apply(self, unit: Unit, right: WriteRight) -> list[Entry]:
        """The writes of a unit; its entries, as far as they are to be appended."""
        # Before anything is numbered: an entry that is left out has no number.
        entries = [
            entry
            for entry in unit.entries
            if entry.only_with is None or await self._change(entry.only_with, right.number)
        ]
        newest = right.number + sum(len(entry.bodies) for entry in entries)
        for write in unit.writes:
            await self._change(write, newest)
        right.number = newest
        return entries

    async def _change(self, write: Write, newest: int) -> int:
        """How many rows it changed."""
        sql = self._statements[write.query].sql
        status: str = await self._connection.execute(sql, *self._arguments_of(write, newest))
        changed = int(status.rpartition(" ")[2])
        if write.rows is not None and changed != write.rows:
            raise WriteMissed(f"{write.query} changed {changed} rows instead of {write.rows}")
        return changed

    def _arguments_of(self, write: Write, newest: int) -> list[Any]:
        statement = self._statements[write.query]
        return statement.arguments({**write.params, "number": newest} if statement.numbered else write.params)

    async def _append(self, appended: Sequence[tuple[WriteRight, Entry, PendingUnit]]) -> None:
        if appended:
            name, values = self._append_of(appended)
            await self._connection.execute(self._statements[name].sql, *values)

    def _append_of(self, appended: Sequence[tuple[WriteRight, Entry, PendingUnit]]) -> tuple[str, Sequence[Any]]:
        """The query that appends them, and its arguments."""
        rows = self._rows_of(appended)
        if len(rows) == 1:
            return "event_append_one", rows[0]
        return "event_append", [list(column) for column in zip(*rows, strict=True)]

    def _rows_of(self, appended: Sequence[tuple[WriteRight, Entry, PendingUnit]]) -> list[tuple[Any, ...]]:
        """Entries of one or many units, numbered, as rows of the log."""
        last: dict[str, int] = {}
        for right, entry, pending in appended:
            workspace_id = pending.unit.workspace_id
            last[workspace_id] = last.get(workspace_id, right.number) - len(entry.bodies)
        rows: list[tuple[Any, ...]] = []
        now_s = int(time.time())
        for right, entry, pending in appended:
            workspace_id = pending.unit.workspace_id
            published = number_frames(workspace_id, right.epoch, entry, last[workspace_id] + 1)
            last[workspace_id] = published.last
            pending.published.append(published)
            rows.append(
                (
                    *(workspace_id, published.first, published.last, right.epoch, entry.session_id),
                    *(entry.parent_session_id, entry.message_id, entry.run_seq, now_s, published.data),
                )
            )
        return rows

    # A connection that breaks

    def _drop_connection(self, error: Exception) -> None:
        """Drop the connection, also if its state is unknown."""
        if self._connection is not None:
            logger.debug("the connection to the database is dropped: %r", error)
            self._connection.terminate()
            self._connection = None

    async def _was_committed(self) -> bool:
        """Whether the last transaction was: asks until the database answers. What is submitted meanwhile is refused.
        Raises OwnerLost if no one will know: the store closes before, or the database has forgotten us."""
        failures, wanted = 0, self._commits + 1
        while self._lost is None:
            closing = self._closing
            try:
                async with asyncio.timeout(CLOSE_S if closing else None):
                    await self._reconnect()
                    final = await self._lock.end_broken(self._connection)
                    done = (await self._read_commits(confirm=True) or 0) >= wanted
                if done or final:
                    return done
                raise StoreUnavailable(
                    "The database is still finishing requests from a lost connection. Try again in a moment."
                )
            except OwnerLost:
                raise
            except Exception as error:  # whatever it is, the fate is not known yet
                self._drop_connection(error)
                failures += 1
                waiting, self._waiting = list(self._waiting), deque()
                _refuse(waiting, _unavailable(error))
                self.settle(waiting)
            if closing:
                raise OwnerLost
            await asyncio.sleep(RECONNECT.delay(failures))
        return False

    async def _reconnect(self) -> None:
        connection = await self._connect()
        try:
            await self._lock.take(connection)
            await self._lock.check_nodes(connection)
        except DataDirError as error:
            connection.terminate()
            raise self.lose("another server uses it now") from error
        except BaseException:
            connection.terminate()
            raise
        self._connection, self._functions = connection, Functions(self._statements)
        commits = await self._read_commits()
        if commits is None or commits < self._commits:
            if not self._node:
                raise self.lose("it lost what was written last, as after a crash")
            self._commits = commits or 0
            self._lose_leases()
        if commits is None:  # nobody knows what became of the last commit: another server may use our name now
            await self._connection.execute(_COUNT_COMMITS, self.instance)
            raise OwnerLost

    async def _read_commits(self, *, confirm: bool = False) -> int | None:
        """None: they are not counted there. `confirm`: after a transaction of ours that may still be under way, perhaps
        waiting for a standby. This commit waits for both, and proves all earlier ones."""
        query = _CONFIRM_COMMITS if confirm else _COMMITS
        async with self._connection.transaction():
            commits: int | None = await self._connection.fetchval(query, self.instance)
        return commits

    def _lose_leases(self) -> None:
        """The database lost what was written last, as after a crash. With new epochs, clients notice what they have
        seen too much."""
        logger.error("the database lost what was written last: every workspace is opened again")
        for workspace_id in [each for each in self._rights if each != UNFENCED]:
            self.let_go(workspace_id)
            self._tell_lost(workspace_id)

    def lose(self, why: str) -> StoreLost:
        """Refuse everything from now on."""
        if self._lost is not None:
            return self._lost
        self._lost = StoreLost(why)
        logger.error("%s", self._lost.message)
        self._tell_gone()
        return self._lost


async def _keep_as_it_is(connection: Any) -> None:
    """Readers set nothing and lock nothing that would outlive their transaction: that is one round trip less."""


def _take_back(rights: Mapping[str, WriteRight], numbers: Mapping[str, int]) -> None:
    for workspace_id, right in rights.items():
        right.number = numbers[workspace_id]


def _forget_results(batch: Sequence[PendingUnit]) -> None:
    for pending in batch:
        pending.published.clear()
        pending.error = None


def _fenced_epochs(rights: Mapping[str, WriteRight]) -> dict[str, int]:
    """The leases in the order in which every transaction locks them."""
    return {workspace_id: rights[workspace_id].epoch for workspace_id in sorted(rights) if workspace_id != UNFENCED}


def _leases(rights: Mapping[str, WriteRight]) -> str:
    fenced = _fenced_epochs(rights)
    names = ",".join(map(_literal, fenced))
    return f"ARRAY[{names}]::text[], ARRAY[{','.join(map(str, fenced.values()))}]::bigint[]"


def _literal(text: str) -> str:
    """For statements that are sent together with others, and so without parameters."""
    return "'" + text.replace("'", "''") + "'"


def _refuse(batch: Sequence[PendingUnit], error: StoreUnavailable) -> None:
    for pending in batch:
        pending.fail(error)


def _unavailable(error: Exception) -> StoreUnavailable:
    return error if isinstance(error, StoreUnavailable) else unavailable(error)
