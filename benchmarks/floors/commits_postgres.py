"""The same store in PostgreSQL: one table, one connection, group commit, one message and one fsync for each batch."""

import asyncio

import asyncpg

_CREATE = "CREATE TABLE rows (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data BYTEA)"
_INSERT = "INSERT INTO rows (data) SELECT unnest($1::bytea[])"


class PostgresCommits:
    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._wake = asyncio.Event()
        self._writer = asyncio.create_task(self._write())

    def commit(self, data: bytes) -> "asyncio.Future[None]":
        """Resolves when the data is on disk."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((data, future))
        self._wake.set()
        return future

    async def _write(self) -> None:
        connection = await asyncpg.connect(self._dsn)
        await connection.execute(_CREATE)
        while True:
            await self._wake.wait()
            self._wake.clear()
            batch, self._waiting = self._waiting, []
            if batch:
                await connection.execute(_INSERT, [data for data, _ in batch])
                for _, future in batch:
                    if not future.cancelled():
                        future.set_result(None)
