"""The shared store: PostgreSQL, one connection that writes with group commit, and a pool that reads.

Owns how the store opens and closes, and the order of publishing. `writer` owns transactions and event numbers,
`readers` the connections that read. Must not know what the queries mean.

A server has the database to itself, and a lock says so; or it is a node, one of several.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import asyncpg

from longboat.errors import DataDirError, StoreLost, StoreUnavailable
from longboat.store.address import describe_dsn
from longboat.store.changes import concerns_inbox
from longboat.store.postgres.connections import connect, hosts_of, is_by_socket, is_pooled
from longboat.store.postgres.locking import ServerLock
from longboat.store.postgres.readers import Readers
from longboat.store.postgres.search import PostgresSearch
from longboat.store.postgres.seqs import Seqs
from longboat.store.postgres.statements import FAILURES, is_temporary
from longboat.store.postgres.wakeups import Topic, Wakeups
from longboat.store.postgres.writer import RECONNECT, Writer
from longboat.store.protocol import Listener, Report, Unit
from longboat.store.publishing import PendingUnit, Publisher
from longboat.store.queries import Reader
from longboat.store.reading.reads import QueriedReads
from longboat.tasks import Tasks

T = TypeVar("T")


@asynccontextmanager
async def open_postgres(
    dsn: str, *, node: str = "", on_wait: Callable[[str], None] | None = None
) -> AsyncIterator["PostgresStore"]:
    """Connect, migrate and begin a new epoch; closing waits for what was submitted. `node`: the name of one of several
    servers; without a name, the server has the database to itself. With `on_wait`, waits for a database that is away:
    `on_wait` gets the problem whenever it changes."""
    async with Tasks() as tasks:
        store = await _open(dsn, tasks, node=node, on_wait=on_wait)
        try:
            yield store
        finally:
            await store.aclose()


async def _open(dsn: str, tasks: Tasks, *, node: str, on_wait: Callable[[str], None] | None) -> "PostgresStore":
    failures, told = 0, ""
    while True:
        try:
            store = PostgresStore(dsn, tasks, node=node, pooled=await is_pooled(dsn))
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

    def __init__(self, dsn: str, tasks: Tasks, *, node: str, pooled: bool) -> None:
        """`pooled`: a pooler is between us and the database, so no session is ours."""
        self.epoch = 0
        self.instance = secrets.token_hex(8) if node else ""
        """Tells this start of a node from all others: it counts its commits under this name."""
        self._dsn = dsn
        self._tasks = tasks
        self._node = node
        self._pooled = pooled
        self._publisher = Publisher()
        self._readers = Readers(self._connect, pooled=pooled)
        self._seqs = Seqs(self._readers.borrow, tasks)
        self._search = PostgresSearch(self._readers.borrow_to_search, tasks)
        self._writer = Writer(
            self._connect,
            ServerLock(dsn, node=node, pooled=pooled),
            node=node,
            instance=self.instance,
            pooled=pooled,
            settle=lambda batch: self.settle(batch),  # noqa: PLW0108 - by name: tests look at what comes
        )
        self.wakeups = Wakeups(node, self._connect, self._readers.borrow, tasks)
        self.reads = QueriedReads(self.read, self._search, self._publisher.histories)

    async def open(self) -> None:
        await self._writer.open()
        self.epoch = self._writer.epoch
        try:
            await self._readers.open()
            await self._seqs.take()
        except BaseException:
            self._writer.terminate()
            self._readers.terminate()
            raise
        self._writer.start(self._tasks)
        if self._node and not self._pooled:  # through a pooler, nobody would be heard
            self._tasks.spawn(self.wakeups.listen(), name="hear other servers")

    async def _connect(self) -> Any:
        return await connect(self._dsn, pooled=self._pooled)

    async def aclose(self) -> None:
        await self._writer.drain()
        self._readers.terminate()
        await self._search.aclose()
        await self._writer.aclose()

    def settle(self, batch: Sequence[PendingUnit]) -> None:
        """Publish what was committed and answer its submitters, in the order of the log."""
        self._search.committed()
        self._publisher.settle(batch)
        if self._node and any(pending.error is None and concerns_inbox(pending.unit) for pending in batch):
            self.wakeups.send(Topic.INBOX)

    # For the runtime

    @property
    def problem(self) -> str | None:
        return self._writer.problem or self._publisher.problem

    def next_seq(self) -> int:
        return self._seqs.next()

    def submit(self, unit: Unit) -> "asyncio.Future[None]":
        return self._writer.submit(unit)

    def listen(self, workspace_id: str, listener: Listener | None) -> None:
        self._publisher.listen(workspace_id, listener)

    def watch(self, watcher: Callable[[Unit], None] | None) -> None:
        self._publisher.watch(watcher)

    def when_gone(self, told: Callable[[], None]) -> None:
        self._writer.when_gone(told)

    async def check(self, *, limit_s: float) -> Report:
        """PostgreSQL checks its own pages; here only whether it answers, and what it holds."""
        async with asyncio.timeout(limit_s):
            (row,) = await self.read(lambda reader: reader.fetch("check_counts"))
            async with self._readers.borrow_to_read() as connection:
                size: int = await connection.fetchval("SELECT pg_database_size(current_database())")
        counts = dict(row)
        return Report(file=describe_dsn(self._dsn), size=size, schema=self._writer.schema, counts=counts, problems=())

    async def read(
        self, query: Callable[[Reader], Coroutine[Any, Any, T]], *, replay: bool = False, alone: bool = False
    ) -> T:
        """What `reads` is made of."""
        return await self._readers.read(query, replay=replay, alone=alone)

    # For a node

    def hold(self, workspace_id: str, *, epoch: int, number: int, first_seq: int) -> None:
        """From now on, this node may write to this workspace; its next seqs begin here."""
        self._writer.hold(workspace_id, epoch=epoch, number=number)
        self._publisher.histories.forget_all()  # another node may have written to it since
        self._seqs.begin_at(first_seq)

    def let_go(self, workspace_id: str) -> None:
        """From now on, units of this workspace are refused."""
        self._writer.let_go(workspace_id)

    def when_lost(self, told: Callable[[str], None]) -> None:
        """Call this with each workspace that turns out to have another owner."""
        self._writer.when_lost(told)

    def lose(self, why: str) -> StoreLost:
        """Refuse everything from now on."""
        return self._writer.lose(why)

    def borrow(self, *, renewing: bool = False) -> AbstractAsyncContextManager[Any]:
        """A connection for a moment: see `Readers.borrow_cancelable`."""
        return self._readers.borrow_cancelable(renewing=renewing)
