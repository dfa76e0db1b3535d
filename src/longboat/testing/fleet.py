"""Several real nodes on one PostgreSQL, with a network that can be cut: for tests of programs that use a cluster.

    async with open_fleet("a", "b", "c", dsn="postgresql://…", directory=tmp, config=config) as fleet:
        for name in fleet.nodes:
            await fleet[name].serve()
        … a client of fleet.url("a"), with fleet.token …
        await fleet["a"].kill()                  # as a power cut would
        await fleet.expire("a")                  # its lease is over now: another node takes over
        fleet.links["b"].database.black_hole()   # node b does not reach PostgreSQL

Needs an empty database, and the extra `[postgres]`. Must not know what clients ask of the nodes.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qs, urlsplit

from longboat.testing.cutoff import Cutoff, Target
from longboat.testing.server import ServerProcess, open_server

LEASE_S = 60.0
"""Longer than any test: a lease ends when a test says so (`expire`), and not because the machine is busy."""
POSTGRES_PORT = 5432

S = TypeVar("S", bound=ServerProcess)


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """What a node's network consists of. Each can be cut and healed by itself."""

    database: Cutoff
    """From this node to PostgreSQL."""
    peers: Cutoff
    """From the other nodes to this one."""
    clients: Cutoff
    """From clients to this node: `Fleet.url`."""

    def all(self) -> tuple[Cutoff, Cutoff, Cutoff]:
        return self.database, self.peers, self.clients


@dataclass(kw_only=True)
class Fleet(Generic[S]):
    nodes: dict[str, S]
    links: dict[str, Links]
    dsn: str
    """Of the database itself, without a link."""
    shared: Path
    """A directory that is the same disk for all nodes."""
    token: str

    def __getitem__(self, name: str) -> S:
        return self.nodes[name]

    def url(self, name: str) -> str:
        """Where clients reach a node, through its link."""
        return f"http://127.0.0.1:{self.links[name].clients.port}"

    async def expire(self, name: str) -> None:
        """End the leases of a node, as if nothing had been heard of it for that long."""
        import asyncpg

        client = await asyncpg.connect(self.dsn)
        past = "clock_timestamp() - interval '1 second'"
        await client.execute(f"UPDATE leases SET until = {past} WHERE owner = $1", name)
        await client.execute(f"UPDATE nodes SET until = {past} WHERE name = $1", name)
        await client.close()


@asynccontextmanager
async def open_fleet(
    *names: str, dsn: str, directory: Path, config: Mapping[str, Any], token: str | None = None
) -> AsyncIterator[Fleet[ServerProcess]]:
    """Nodes with these names, each with a home below `directory`. None runs yet: start them with `serve`. `config`:
    the configuration of every node, for example with `ScriptedEndpoint` as its provider."""
    token = token or token_hex(16)
    async with AsyncExitStack() as stack:
        nodes = {name: await stack.enter_async_context(open_server(directory / name)) for name in names}
        for node in nodes.values():
            node.environ["LONGBOAT_TOKEN"] = token
        shared = _shared(directory)
        links = await stack.enter_async_context(
            connect_nodes(nodes, dsn=dsn, shared=shared, secret=token_hex(16), config=config)
        )
        yield Fleet(nodes=nodes, links=links, dsn=dsn, shared=shared, token=token)


@asynccontextmanager
async def connect_nodes(
    nodes: Mapping[str, ServerProcess], *, dsn: str, shared: Path, secret: str, config: Mapping[str, Any]
) -> AsyncIterator[dict[str, Links]]:
    """Make these servers, which do not run yet, the nodes of one store, each behind links of its own."""
    settings = {"drain_s": 1, "lease_s": LEASE_S, "shared_trees": [str(shared)], **config.get("server", {})}
    async with AsyncExitStack() as stack:
        links: dict[str, Links] = {}
        for name, node in nodes.items():
            database = await stack.enter_async_context(Cutoff(database_target(dsn)))
            peers, clients = [await stack.enter_async_context(Cutoff()) for _ in range(2)]
            links[name] = Links(database=database, peers=peers, clients=clients)
            node.write_config({**config, "server": settings})
            node.arguments += ["--advertise", f"http://127.0.0.1:{peers.port}"]
            node.links += [peers, clients]
            node.environ |= {
                "LONGBOAT_STORE": dsn_via_link(dsn, database),
                "LONGBOAT_NODE": name,
                "LONGBOAT_CLUSTER_SECRET": secret,
            }
        yield links


def database_target(dsn: str) -> Target:
    """Where the PostgreSQL of an address listens."""
    parts = urlsplit(dsn)
    directory = parse_qs(parts.query).get("host", [""])[0]
    if directory.startswith("/"):
        return f"{directory}/.s.PGSQL.{parts.port or POSTGRES_PORT}"
    return parts.hostname or "127.0.0.1", parts.port or POSTGRES_PORT


def dsn_via_link(dsn: str, link: Cutoff) -> str:
    """The same database, by a link to its server."""
    parts = urlsplit(dsn)
    user = parts.netloc.rpartition("@")[0]
    return f"postgresql://{user + '@' if user else ''}127.0.0.1:{link.port}{parts.path}?sslmode=disable"


def _shared(directory: Path) -> Path:
    made = directory / "shared"
    made.mkdir()
    return made
