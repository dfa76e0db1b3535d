"""The connection that writes: group commit, fences, event numbers, and what became of a commit whose answer was lost.

The writer takes all waiting units and commits them together: one message, one transaction, one fsync. If one of them
fails, it begins again with a savepoint for each. Deltas alone are committed without waiting for the disk
(`synchronous_commit = off`); the next durable commit brings them there.

If the connection breaks, it comes back by itself. A commit whose answer was lost is looked up (`writers`): a unit is
never answered before its fate is known.

A node writes only to the workspaces that it holds: every transaction first locks their leases, and fails if one has
another epoch by now. Must not know what the queries mean, nor who reads.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import asyncpg

from longboat.backoff import Backoff
from longboat.errors import DataDirError, OwnerLost, StoreLost, StoreUnavailable
from longboat.store.postgres.batch import (
    UNFENCED,
    Appended,
    WriteRight,
    append_call,
    arguments_of,
    as_arrays,
    fenced_epochs,
    forget_results,
    has_conditions,
    literal,
    plan_calls,
    take_back,
)
from longboat.store.postgres.calls import MAX_CALLS, Call, Functions, call_all
from longboat.store.postgres.locking import ServerLock
from longboat.store.postgres.schema import migrate
from longboat.store.postgres.statements import LEASE_LOST, is_lost, load_statements, translate_error, unavailable
from longboat.store.protocol import Entry, Unit, Write, WriteMissed
from longboat.store.publishing import PendingUnit
from longboat.tasks import Tasks

logger = logging.getLogger(__name__)

MAX_BATCH = 256
RECONNECT = Backoff(base_s=0.1, ceiling_s=2.0)
CLOSE_S = 3.0
"""How long a closing store waits for a database that is away."""

_COUNT_COMMITS = "INSERT INTO writers VALUES ($1, 0) ON CONFLICT DO NOTHING"
_COMMITS = "SELECT commits FROM writers WHERE node = $1"
_CONFIRM_COMMITS = "UPDATE writers SET commits = commits WHERE node = $1 RETURNING commits"


class Writer:
    def __init__(
        self,
        connect: Callable[[], Awaitable[Any]],
        lock: ServerLock,
        *,
        node: str,
        instance: str,
        pooled: bool,
        settle: Callable[[Sequence[PendingUnit]], None],
    ) -> None:
        """`instance`: the name under which this server counts its commits. `pooled`: a pooler is between us and the
        database, so no session is ours. `settle` is called with each batch once its fate is known."""
        self.epoch = 0
        self.schema = 0
        self._connect = connect
        self._lock = lock
        self._node = node
        self._instance = instance
        self._pooled = pooled
        self._settle = settle
        self._statements = load_statements()
        self._rights: dict[str, WriteRight] = {}
        self._tell_lost: Callable[[str], None] = lambda _: None
        self._tell_gone: Callable[[], None] = lambda: None
        self._connection: Any = None
        self._functions = Functions(self._statements)
        self._commits = 0
        """How many transactions were committed, as the database counts them: tells the fate of the last one."""
        self._lost: StoreLost | None = None
        self._waiting: deque[PendingUnit] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._connection = await self._connect()
        try:
            await self._lock.take(self._connection)
            self.schema = await migrate(self._connection, node=self._node)
            await self._lock.check_nodes(self._connection)
            self.epoch = await self._connection.fetchval(self._statements["epoch_raise"].sql)
            if not self._node:
                self._rights = await self._read_rights()
            await self._connection.execute(_COUNT_COMMITS, self._instance)
            self._commits = await self._read_commits() or 0
        except BaseException:
            self.terminate()
            raise

    def start(self, tasks: Tasks) -> None:
        self._task = tasks.spawn(self._write(), name="store writer", awaited=True)

    def terminate(self) -> None:
        self._connection.terminate()

    async def drain(self) -> None:
        """Commit what was submitted, unless the database is away."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            _, late = await asyncio.wait([self._task], timeout=CLOSE_S)
            if late and self._connection is not None:  # the database stands still
                self._connection.terminate()
            await asyncio.wait([self._task], timeout=2 * CLOSE_S)

    async def aclose(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                async with asyncio.timeout(CLOSE_S):
                    await self._connection.execute("DELETE FROM writers WHERE node = $1 AND node != ''", self._instance)
                    await self._connection.close()

    @property
    def problem(self) -> str | None:
        """Why nothing can be written any more."""
        return None if self._lost is None else self._lost.message

    def submit(self, unit: Unit) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(PendingUnit(unit, future, self._rights.get(unit.workspace_id)))
        self._wake.set()
        return future

    def when_gone(self, told: Callable[[], None]) -> None:
        """Call this once nothing can be written any more."""
        self._tell_gone = told

    # For a node

    def hold(self, workspace_id: str, *, epoch: int, number: int) -> None:
        """From now on, this node may write to this workspace."""
        self._rights[workspace_id] = WriteRight(epoch, number)

    def let_go(self, workspace_id: str) -> None:
        """From now on, units of this workspace are refused."""
        self._rights.pop(workspace_id, None)

    def when_lost(self, told: Callable[[str], None]) -> None:
        """Call this with each workspace that turns out to have another owner."""
        self._tell_lost = told

    # The loop

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(MAX_BATCH, len(self._waiting)))]
                await self._commit(batch)
                self._settle(batch)
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
                take_back(rights, numbers)
        if not committed and any(pending.error is None for pending in owned):
            await self._transact(owned)

    # All units at once

    async def _apply_together(self, batch: Sequence[PendingUnit], rights: Mapping[str, WriteRight]) -> bool:
        """Commit all units at once; returns whether they are committed. If one fails, none is."""
        forget_results(batch)
        try:
            if self._pooled or has_conditions(batch):
                return False  # that depends on what is there, and the functions would not last
            count: Call = ("commit_count", (self._commits + 1, self._instance), 1)
            calls = [count, *plan_calls(batch, rights)]
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
        fenced = fenced_epochs(rights)
        return ", ".join(columns), [list(fenced), list(fenced.values())] if self._node else []

    # Each unit for itself

    async def _apply_apart(
        self, batch: Sequence[PendingUnit], rights: Mapping[str, WriteRight], numbers: Mapping[str, int]
    ) -> bool:
        """Commit each unit for itself; returns whether the batch is committed, without the units that fail."""
        if len(batch) == 1 and batch[0].error is not None:
            return False
        take_back(rights, numbers)
        forget_results(batch)
        await self._begin(batch, rights)
        for pending in batch:
            await self._apply_in_savepoint(pending, rights)
        return await self._end(batch)

    async def _begin(self, batch: Sequence[PendingUnit], rights: Mapping[str, WriteRight]) -> None:
        durable = any(pending.unit.durable for pending in batch)
        mode = "" if durable else "SET LOCAL synchronous_commit = off;"
        count = f"UPDATE writers SET commits = {self._commits + 1} WHERE node = {literal(self._instance)}"
        fence = f"SELECT check_leases({as_arrays(rights)});" if self._node else ""
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
        status: str = await self._connection.execute(sql, *arguments_of(write, newest))
        changed = int(status.rpartition(" ")[2])
        if write.rows is not None and changed != write.rows:
            raise WriteMissed(f"{write.query} changed {changed} rows instead of {write.rows}")
        return changed

    async def _append(self, appended: Sequence[Appended]) -> None:
        if appended:
            name, values = append_call(appended)
            await self._connection.execute(self._statements[name].sql, *values)

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
                self._settle(waiting)
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
            await self._connection.execute(_COUNT_COMMITS, self._instance)
            raise OwnerLost

    async def _read_rights(self) -> dict[str, WriteRight]:
        rows = await self._connection.fetch(self._statements["last_numbers"].sql)
        return {row["workspace_id"]: WriteRight(self.epoch, row["last"]) for row in rows}

    async def _read_commits(self, *, confirm: bool = False) -> int | None:
        """None: they are not counted there. `confirm`: after a transaction of ours that may still be under way, perhaps
        waiting for a standby. This commit waits for both, and proves all earlier ones."""
        query = _CONFIRM_COMMITS if confirm else _COMMITS
        async with self._connection.transaction():
            commits: int | None = await self._connection.fetchval(query, self._instance)
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


def _refuse(batch: Sequence[PendingUnit], error: StoreUnavailable) -> None:
    for pending in batch:
        pending.fail(error)


def _unavailable(error: Exception) -> StoreUnavailable:
    return error if isinstance(error, StoreUnavailable) else unavailable(error)
