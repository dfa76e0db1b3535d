"""How the servers on one database reach people together: one key, one sender for each notification, and who can answer.

Owns the statements. Implements longboat.runtime.ownership.SharedNotifications. Must not know how a
notification is sent.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from longboat.errors import StoreUnavailable
from longboat.store.postgres.nodes import Borrow
from longboat.store.postgres.statements import PostgresReader
from longboat.store.reading.inbox import read_inbox_items
from longboat.wire.inbox import InboxItem

NOTE_S = 1.0
"""How often to look whether the other servers have to be told that nobody can answer here any more."""


class PostgresNotifications:
    def __init__(self, borrow: Borrow, node: str) -> None:
        self._borrow = borrow
        self._node = node
        self._count: Callable[[], int] = lambda: 0
        self._noted = False
        """What the database has of this node."""
        self._noting = asyncio.Lock()

    async def push_key(self, proposed: bytes) -> bytes:
        async with self._borrow() as connection:
            await connection.execute(_KEEP_KEY, proposed)
            kept: bytes = await connection.fetchval("SELECT pem FROM push_key")
        return kept

    async def take_items(self, *, limit: int) -> list[InboxItem]:
        async with self._borrow() as connection, connection.transaction():
            places = [row["place"] for row in await connection.fetch(_TAKE, limit)]
            return await read_inbox_items(PostgresReader(connection), places) if places else []

    def set_answering_counter(self, count: Callable[[], int]) -> None:
        self._count = count

    async def publish_answering(self) -> None:
        async with self._noting:  # the newest note is the last one that is written
            answering = self._count() > 0
            if answering != self._noted:
                async with self._borrow() as connection:
                    await connection.execute("UPDATE nodes SET answering = $2 WHERE name = $1", self._node, answering)
                self._noted = answering

    def forget_published(self) -> None:
        """The database has a new row for this node, in which nobody can answer."""
        self._noted = False

    async def keep_answering_current(self) -> None:
        """Correct the note as long as the server runs."""
        while True:
            await asyncio.sleep(NOTE_S)
            with suppress(StoreUnavailable):
                await self.publish_answering()

    async def is_someone_reachable(self) -> bool:
        async with self._borrow() as connection:
            found: bool = await connection.fetchval(_REACHABLE)
        return found


_KEEP_KEY = "INSERT INTO push_key (pem) VALUES ($1) ON CONFLICT DO NOTHING"
_TAKE = """
DELETE FROM push_queue
WHERE place = ANY(ARRAY(SELECT place FROM push_queue ORDER BY place LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING place
"""
_REACHABLE = """
SELECT EXISTS (SELECT 1 FROM push_subscriptions)
    OR EXISTS (SELECT 1 FROM nodes WHERE answering AND until > clock_timestamp())
"""
