"""Who uses a database: one server that has it to itself, or nodes of a cluster. Never both.

Owns the lock and the checks that keep them apart. Must not know what the servers write.

A session of the database holds the lock, if there is one. Through a pooler there is none: a node then takes the lock
in every transaction, and a server that wants the database to itself is refused unless the pooler keeps sessions.
"""

import asyncio
from typing import Any

from longboat.errors import DataDirError
from longboat.store.address import describe_dsn
from longboat.store.postgres.connections import CONNECT_S, connect, limits

SERVER_LOCK = 0x626F6174
LOCK_S = 5.0
"""How long to wait for the lock of a server that is just ending, or of our own broken connection."""
PROBES = 3

_BACKEND = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
_END_BACKEND = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2"
_END_IDLE = """
SELECT state = 'idle' AND pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2"""
"""Whether it is gone now, if it was there. One at work is left alone: its commit may be waiting for a standby."""
_ALIVE = "SELECT name FROM nodes WHERE until > clock_timestamp() ORDER BY name"


class ServerLock:
    def __init__(self, dsn: str, *, node: str, pooled: bool) -> None:
        self._dsn = dsn
        self._node = node
        self._pooled = pooled
        self._backend: tuple[int, object] | None = None
        """What the database knows our last connection by: its process, and when that began."""
        self._broken: list[tuple[int, object]] = []
        """The same for earlier connections that may not be gone."""

    def in_transaction(self) -> str:
        """The first statements of every transaction that writes."""
        if not self._pooled:
            return ""
        lock = f" SELECT pg_advisory_xact_lock_shared({SERVER_LOCK});" if self._node else ""
        return limits() + lock

    async def take(self, connection: Any) -> None:
        """Take the lock, alone or shared by nodes. Our own broken connection may hold it until the database notices."""
        if self._pooled and not self._node:
            await self._check_session(connection)
        kind = "xact_lock_shared" if self._pooled and self._node else "lock_shared" if self._node else "lock"
        deadline = asyncio.get_running_loop().time() + LOCK_S
        while not await connection.fetchval(f"SELECT pg_try_advisory_{kind}($1)", SERVER_LOCK):
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
        if not (self._pooled and self._node):
            if self._backend is not None:
                self._broken.append(self._backend)
            self._backend = tuple(await connection.fetchrow(_BACKEND))

    async def end_broken(self, connection: Any) -> bool:
        """Whether our broken connections are gone, so that nothing they have sent can still be carried out."""
        left = [each for each in self._broken if await connection.fetchval(_END_IDLE, *each) is False]
        self._broken = left
        return not left

    async def check_nodes(self, connection: Any) -> None:
        """Refuse to have the database to itself while nodes use it: through a pooler, they hold no lock in between."""
        if self._node:
            return
        if names := [row["name"] for row in await connection.fetch(_ALIVE)]:
            raise DataDirError(
                f"Nodes of a cluster use the store {describe_dsn(self._dsn)}: {', '.join(names)}. Stop them first; a "
                "node that crashed counts until its lease is over. Or make this server a node, with "
                "LONGBOAT_CLUSTER_SECRET.",
                code="store_in_use",
            )

    async def _check_session(self, connection: Any) -> None:
        """Refuse a pooler that shares sessions. If it does, a second client gets the one that a first has just used."""
        other = await connect(self._dsn, pooled=True)
        try:
            for _ in range(PROBES):
                own = await connection.fetchval("SELECT pg_backend_pid()")
                async with other.transaction():
                    taken = await other.fetchval("SELECT pg_backend_pid()")
                    if taken == own or await connection.fetchval("SELECT pg_backend_pid()") != own:
                        raise _shared_sessions(self._dsn)
        finally:
            await other.close(timeout=CONNECT_S)


def _shared_sessions(dsn: str) -> DataDirError:
    return DataDirError(
        f"The pooler at {describe_dsn(dsn)} shares sessions between transactions, and a server that has the database "
        "to itself needs a session of its own. Set pool_mode = session in the pooler, or connect to PostgreSQL "
        "directly. Or make this server a node with LONGBOAT_CLUSTER_SECRET: nodes do not.",
        code="store_pooled",
    )
