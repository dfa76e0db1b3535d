"""Several nodes on one PostgreSQL: each a site of its own, with its own disk and its own model."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
from postgres import database_of
from processes import Site, open_site
from sessions import SessionClient

from longboat.config.trust import record
from secrecy import SECRETS

LEASE_S = 60.0
"""Longer than any test: a lease ends when a test says so, and not because the machine is busy."""
_numbers = count(1)


@dataclass(kw_only=True)
class Fleet:
    nodes: dict[str, Site]
    dsn: str
    shared: Path
    """A directory that is the same disk for all."""

    def __getitem__(self, name: str) -> Site:
        return self.nodes[name]

    def project(self) -> Path:
        """A directory that all nodes have. Each asks its own model."""
        first = next(iter(self.nodes.values()))
        directory = first.project()
        moved = directory.rename(self.shared / f"project-{next(_numbers)}")
        config = (moved / "longboat.json").read_bytes()
        for site in self.nodes.values():
            record(site.path / "config" / "longboat" / "trusted.json", moved, hashlib.sha256(config).hexdigest())
        return moved

    async def expire(self, name: str) -> None:
        """As if a node had not been heard of for a lease."""
        client = await asyncpg.connect(self.dsn)
        past = "clock_timestamp() - interval '1 second'"
        await client.execute(f"UPDATE leases SET until = {past} WHERE owner = $1", name)
        await client.execute(f"UPDATE nodes SET until = {past} WHERE name = $1", name)
        await client.close()

    async def through(self, name: str, session: SessionClient) -> SessionClient:
        """The same session, by another node."""
        http = await self.nodes[name].client()
        return SessionClient(http, session.workspace, session.session_id, start=session.start)


@asynccontextmanager
async def open_fleet(*names: str, serve: bool = True, dsn: str | None = None, **server: Any) -> AsyncIterator[Fleet]:
    """Nodes with these names, all running. `server`: more settings for each."""
    async with AsyncExitStack() as stack:
        nodes = {name: await stack.enter_async_context(open_site("tcp")) for name in names}
        first = nodes[names[0]]
        dsn = dsn or await asyncio.to_thread(database_of, first.data)
        shared = first.path / "shared"
        shared.mkdir()
        settings = {"drain_s": 1, "lease_s": LEASE_S, "shared_trees": [str(shared)], **server}
        for name, site in nodes.items():
            (site.path / "config" / "longboat" / "longboat.json").write_text(json.dumps({"server": settings}))
            site.environ |= {
                "LONGBOAT_STORE": dsn,
                "LONGBOAT_NODE": name,
                "LONGBOAT_CLUSTER_SECRET": SECRETS["cluster secret"],
            }
            if serve:
                await site.serve()
        yield Fleet(nodes=nodes, dsn=dsn, shared=shared)
