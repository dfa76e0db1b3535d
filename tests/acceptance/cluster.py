"""Several nodes on one PostgreSQL: each a site of its own, with its own disk, its own model and a network to be cut."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
from postgres import database_of
from processes import Site, open_site
from sessions import SessionClient

from longboat.config.trust import record
from longboat.testing.fleet import Fleet, connect_nodes
from secrecy import SECRETS

_numbers = count(1)


class SiteFleet(Fleet[Site]):
    def project(self, **changes: Any) -> Path:
        """A directory that all nodes have. All of them ask the model of the first one."""
        first = next(iter(self.nodes.values()))
        directory = first.project(**changes)
        moved = directory.rename(self.shared / f"project-{next(_numbers)}")
        config = (moved / "longboat.json").read_bytes()
        for site in self.nodes.values():
            record(site.path / "config" / "longboat" / "trusted.json", moved, hashlib.sha256(config).hexdigest())
        return moved

    async def evict(self, name: str) -> None:
        """As if another node had owned its workspaces for a moment."""
        await self.execute("UPDATE leases SET owner = NULL, epoch = nextval('epochs') WHERE owner = $1", name)

    async def renew(self, name: str) -> None:
        """As if a third of a lease had passed."""
        await self.execute("UPDATE leases SET until = until + interval '1 second' WHERE owner = $1", name)

    async def execute(self, statement: str, *arguments: Any) -> None:
        client = await asyncpg.connect(self.dsn)
        await client.execute(statement, *arguments)
        await client.close()

    async def through(self, name: str, session: SessionClient) -> SessionClient:
        """The same session, by another node."""
        http = await self.nodes[name].client()
        return SessionClient(http, session.workspace, session.session_id, start=session.start)


@asynccontextmanager
async def open_fleet(
    *names: str, serve: bool = True, dsn: str | None = None, **server: Any
) -> AsyncIterator[SiteFleet]:
    """Nodes with these names, all running. `server`: more settings for each."""
    async with AsyncExitStack() as network, AsyncExitStack() as stack:
        nodes = {name: await stack.enter_async_context(open_site("tcp")) for name in names}
        first = nodes[names[0]]
        dsn = dsn or await asyncio.to_thread(database_of, first.data)
        shared = first.path / "shared"
        shared.mkdir()
        secret, token = SECRETS["cluster secret"], SECRETS["server token"]
        connected = connect_nodes(nodes, dsn=dsn, shared=shared, secret=secret, config={"server": server})
        links = await network.enter_async_context(connected)
        if serve:
            await asyncio.gather(*(site.serve() for site in nodes.values()))
        yield SiteFleet(nodes=nodes, links=links, dsn=dsn, shared=shared, token=token)


def locked(name: str) -> str:
    """A command that holds a lock for as long as it lives, or any process that it started."""
    return f"flock -n {name} sh -c 'touch {name}.held; sleep 4321'"


def try_locks(*names: str) -> str:
    return "; ".join(f"flock -n {name} echo {name} is free" for name in names)


async def until_there(*paths: Path) -> None:
    """Two commands and no event that would tell: they say so in the directory."""
    while not all(path.exists() for path in paths):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
