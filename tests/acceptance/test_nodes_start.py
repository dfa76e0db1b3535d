"""Nodes that start while PostgreSQL is away: they wait for it, and for nothing else (G10)."""

import asyncio
import struct
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import httpx2
import pytest
from cluster import SiteFleet, open_fleet

from longboat.testing.fleet import database_target

pytestmark = pytest.mark.acceptance

Refusal = tuple[str, str]
STARTING = ("57P03", "the database system is starting up")
STOPPING = ("57P03", "the database system is shutting down")
PASSWORD = ("28P01", "password authentication failed")
NAME = ("3D000", 'database "longboat" does not exist')


@dataclass
class Refusing:
    """A PostgreSQL that refuses whoever connects."""

    says: Refusal
    port: int = 0
    tries: asyncio.Queue[Refusal] = field(default_factory=asyncio.Queue)

    async def refuse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            (length,) = struct.unpack("!I", await reader.readexactly(4))
            await reader.readexactly(length - 4)
            said, (code, message) = self.says, self.says
            fields = f"SFATAL\0VFATAL\0C{code}\0M{message}\0\0".encode()
            writer.write(b"E" + struct.pack("!I", len(fields) + 4) + fields)
            await writer.drain()
            self.tries.put_nowait(said)
        writer.close()

    async def tried(self, times: int = 1) -> None:
        """This often since it says this."""
        while times:
            times -= await self.tries.get() == self.says


@asynccontextmanager
async def refusing(says: Refusal) -> AsyncIterator[Refusing]:
    made = Refusing(says)
    server = await asyncio.start_server(made.refuse, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


async def launched(fleet: SiteFleet, database: Refusing) -> Process:
    fleet.links["a"].database.target = ("127.0.0.1", database.port)
    return await fleet["a"].launch()


async def test_g10_a_node_that_starts_while_postgresql_does_waits_for_it_and_says_so_once() -> None:
    async with open_fleet("a", serve=False) as fleet, refusing(STARTING) as database:
        process = await launched(fleet, database)
        await database.tried(3)
        database.says = STOPPING
        await database.tried(2)
        fleet.links["a"].database.target = database_target(fleet.dsn)
        assert process.stdout is not None
        assert b"is ready" in await process.stdout.readline()
        said = [line for line in fleet["a"].log.read_text().splitlines() if "waiting for the database" in line]
        assert [STARTING[1] in said[0], STOPPING[1] in said[-1], len(said)] == [True, True, 2], said
        process.terminate()
        assert await process.wait() == 0


async def test_g10_a_node_that_waits_answers_so_that_nobody_waits_with_it() -> None:
    async with open_fleet("a", serve=False) as fleet, refusing(STARTING) as database:
        node = fleet["a"]
        await launched(fleet, database)
        await database.tried(2)
        pool = httpx2.AsyncHTTPTransport(uds=str(node.socket))
        async with httpx2.AsyncClient(transport=pool, base_url="http://localhost") as http:
            for path in ("/", "/" + "x" * 3_000_000):  # also where the answer comes before the whole body was sent
                refused = await http.post("/v1/workspaces", json={"path": path})
                assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
            alive = await http.get("/v1/health")
            assert (alive.status_code, alive.json()["status"]) == (200, "degraded")


async def test_g10_sigterm_ends_a_node_that_waits() -> None:
    async with open_fleet("a", serve=False) as fleet, refusing(STARTING) as database:
        process = await launched(fleet, database)
        await database.tried(2)
        process.terminate()
        assert await process.wait() == 0
        assert "is ready" not in fleet["a"].log.read_text()


@pytest.mark.parametrize("says", [PASSWORD, NAME], ids=["password", "name"])
async def test_a_node_does_not_wait_for_what_only_a_person_can_mend(says: Refusal) -> None:
    async with open_fleet("a", serve=False) as fleet, refusing(says) as database:
        process = await launched(fleet, database)
        assert await process.wait() == 1
        log = fleet["a"].log.read_text()
        assert says[1] in log
        assert "waiting" not in log
