"""The connections that read, and how many of them each kind of work may have.

Must not know what the queries mean.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import asyncpg

from longboat.errors import StoreUnavailable
from longboat.store.postgres.connections import COMMAND_S, PooledConnection
from longboat.store.postgres.statements import FAILURES, PostgresReader, may_read_again
from longboat.store.queries import Reader

T = TypeVar("T")

READERS = 8
REPLAYERS = 4
"""How many may read the log or search at the same time: other reads do not wait for them."""
SEARCHERS = 2
"""Those of them that may search, which can take as long as any statement may: replays do not wait for that."""
RESERVED = 2
"""Connections that all of these leave alone: one for finding and claiming workspaces, and one that nothing but renewals
of leases may use. They must wait for nobody (G3): claims may wait for locks on all others."""
RENEWING = 1


class Readers:
    def __init__(self, connect: Callable[[], Awaitable[Any]], *, pooled: bool) -> None:
        """`pooled`: a pooler is between us and the database, so no session is ours."""
        self._connect = connect
        self._pooled = pooled
        self._pool: Any = None
        self._renewing: Any = None
        """The pool with the connection for renewals."""
        self._reading = asyncio.Semaphore(READERS - RESERVED)
        self._replays = asyncio.Semaphore(REPLAYERS)
        self._searches = asyncio.Semaphore(SEARCHERS)

    async def open(self) -> None:
        self._pool = await self._create_pool(least=1, most=READERS - RENEWING)
        self._renewing = await self._create_pool(least=0, most=RENEWING)

    async def _create_pool(self, *, least: int, most: int) -> Any:
        async def connect(*_: Any, **__: Any) -> Any:  # the pool passes options of its own; ours are known already
            return await self._connect()

        kind = PooledConnection if self._pooled else asyncpg.Connection
        return await asyncpg.create_pool(
            connect=connect, connection_class=kind, reset=_keep_as_it_is, min_size=least, max_size=most
        )

    def terminate(self) -> None:
        for pool in (self._pool, self._renewing):
            if pool is not None:
                pool.terminate()

    async def read(
        self, query: Callable[[Reader], Coroutine[Any, Any, T]], *, replay: bool = False, alone: bool = False
    ) -> T:
        """Run `query` in one read transaction. What fetches only once (`alone`) needs none."""
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
        async with self.borrow_to_read(**transaction) as connection:
            return await query(PostgresReader(connection))

    @asynccontextmanager
    async def borrow_to_read(self, **transaction: Any) -> AsyncIterator[Any]:
        async with self._reading, self.borrow(**transaction) as connection:
            yield connection

    @asynccontextmanager
    async def borrow_to_search(self) -> AsyncIterator[Any]:
        async with self._searches, self._replays, self._reading, self.borrow() as connection:
            yield connection

    @asynccontextmanager
    async def borrow_cancelable(self, *, renewing: bool = False) -> AsyncIterator[Any]:
        """As `borrow`, or the connection for renewals, which waits for nobody else. Canceling takes effect at once,
        also if the database stands still: the connection is dropped, because the pool would wait for its statement."""
        async with self.borrow(renewing=renewing) as connection:
            try:
                yield connection
            except asyncio.CancelledError:
                connection.terminate()
                raise

    @asynccontextmanager
    async def borrow(self, *, renewing: bool = False, **transaction: Any) -> AsyncIterator[Any]:
        """One connection for a moment. Through a pooler always in a transaction: only there our limits hold."""
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


async def _keep_as_it_is(connection: Any) -> None:
    """Readers set nothing and lock nothing that would outlive their transaction: that is one round trip less."""
