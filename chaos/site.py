"""Where servers live: their homes, workspaces, model and store. One with SQLite, or one or several on PostgreSQL."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psutil

from chaos.database import Database
from chaos.evidence import Takeover
from chaos.plan import command_file
from chaos.server import MARK, Server
from longboat.testing.fleet import Links, connect_nodes
from longboat.testing.server import home_environ

ROOT = Path(__file__).parents[1]
POLICIES = ("interrupt", "resume")
"""What a workspace does with a run that was active in a crash."""
DRAIN_S = 1
LEASE_S = 3.0
"""The shortest there is: another server takes over as often as possible."""
HEARTBEAT_S = 1
TOKEN = "the token of chaos"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A workspace to be, named by its policy, and by its server if only one has the directory."""

    name: str
    directory: Path
    server: Server
    """One that has the directory."""
    is_shared: bool
    """All have it."""


@dataclass(kw_only=True)
class Site:
    home: Path
    servers: list[Server] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    database: Database | None = None
    links: dict[str, Links] = field(default_factory=dict)
    """Of each node, by its name."""

    @property
    def is_cluster(self) -> bool:
        return len(self.servers) > 1

    @property
    def shared(self) -> Path:
        """A directory that is the same disk for all servers."""
        return self.home / "work" / "shared"

    @property
    def store(self) -> Path:
        """The file, if there is no database."""
        return self.servers[0].data / "longboat.db"

    async def takeovers(self, workspace_id: str) -> list[Takeover]:
        """When the workspace got a new owner: where there are no leases, with each start."""
        if self.database is None or not self.is_cluster:
            server = self.servers[0]
            return [Takeover(at, server.mark_at(at)) for at in server.starts]
        named = {server.name: server for server in self.servers}
        owners = await self.database.owners()
        return [Takeover(at, named[name].mark_at(at)) for at, name in owners.get(workspace_id, ())]

    def clients(self, *, timeout_s: float) -> list[httpx2.AsyncClient]:
        """One of each server: at its socket or, in a cluster, through its link to clients."""
        if not self.is_cluster:
            return [server.client(timeout_s=timeout_s) for server in self.servers]
        limits, headers = httpx2.Limits(max_connections=None), {"authorization": f"Bearer {TOKEN}"}
        urls = [f"http://127.0.0.1:{self.links[server.name].clients.port}" for server in self.servers]
        return [httpx2.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=timeout_s) for url in urls]

    # Processes of commands

    def commands_of(self, mark: str) -> list[str]:
        """Those that the process with this mark has started."""
        return [told for told, its_mark in self._commands() if its_mark == mark]

    def stale_commands(self) -> list[str]:
        """Those whose server has ended."""
        marks = {server.mark for server in self.servers if server.is_running}
        return [told for told, its_mark in self._commands() if its_mark not in marks]

    def living_commands(self) -> list[str]:
        return [told for told, _ in self._commands()]

    def _commands(self) -> list[tuple[str, str]]:
        """Each with its mark. They are known by their working directory, which no other process has."""
        work = str(self.home / "work")
        found = []
        for process in psutil.process_iter(["pid", "cwd", "status", "cmdline"]):
            if process.info["status"] in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                continue
            if (process.info["cwd"] or "").startswith(work):
                with suppress(psutil.NoSuchProcess):
                    found.append((str(process.info), process.environ().get(MARK, "")))
        return found


@asynccontextmanager
async def open_site(home: Path, *, nodes: int = 1, postgresql: bool = False) -> AsyncIterator[Site]:
    """A home with workspaces and a model, no server yet. All processes end with the block; the files stay."""
    async with AsyncExitStack() as stack:
        site = Site(home=home)
        base_url = await stack.enter_async_context(_open_model(home / "complaints.jsonl"))
        if nodes > 1 or postgresql:
            site.database = Database(home / "pg")
            await site.database.start()
            stack.push_async_callback(site.database.close)
        names = "abcdefgh"[:nodes]
        site.servers = [_make_server(home / name, name, stack) for name in names]
        await _configure(site, _config(base_url), stack)
        site.places = _make_places(site)
        yield site


def _make_server(home: Path, name: str, stack: AsyncExitStack) -> Server:
    home.mkdir()
    server = Server(name=name, path=home, environ=home_environ(home), tcp=False)
    stack.push_async_callback(server.kill)
    return server


async def _configure(site: Site, config: dict[str, Any], stack: AsyncExitStack) -> None:
    """As a single server, or as nodes with links between them."""
    if site.is_cluster:
        assert site.database is not None
        for server in site.servers:
            server.tcp = True
            server.environ["LONGBOAT_TOKEN"] = TOKEN
        more = {"lease_s": LEASE_S, "heartbeat_s": HEARTBEAT_S}
        nodes = {server.name: server for server in site.servers}
        config = {**config, "server": {**config["server"], **more}}
        site.links = await stack.enter_async_context(
            connect_nodes(nodes, dsn=site.database.dsn, shared=site.shared, secret="the secret of chaos", config=config)
        )
        return
    (server,) = site.servers
    server.write_config(config)
    if site.database is not None:
        server.environ["LONGBOAT_STORE"] = site.database.dsn


def _config(base_url: str) -> dict[str, Any]:
    provider = {"type": "openai-compatible", "base_url": base_url, "api_key": "x", "models": [{"id": "m"}]}
    return {
        "providers": {"mine": provider},
        "models": {"large": "mine/m", "small": "mine/m"},
        "titles": False,
        "retry": {"base_s": 0.01},
        "server": {"drain_s": DRAIN_S},
    }


@asynccontextmanager
async def _open_model(complaints: Path) -> AsyncIterator[str]:
    """Its address."""
    model = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "chaos.model", str(complaints)), cwd=ROOT, stdin=DEVNULL, stdout=PIPE
    )
    assert model.stdout is not None
    try:
        yield (await model.stdout.readline()).decode().strip()
    finally:
        model.send_signal(signal.SIGKILL)
        await model.wait()


def _make_places(site: Site) -> list[Place]:
    """A workspace for each policy; in a cluster one on all servers' disk and one on a single server's."""
    first, *others = site.servers
    homes = [(first, POLICIES[0]), ((others or [first])[0], POLICIES[1])]
    places = [Place(name=each, directory=site.shared / each, server=server, is_shared=True) for server, each in homes]
    if site.is_cluster:
        places += [
            Place(
                name=f"{each}-{server.name}",
                directory=site.home / "work" / server.name / each,
                server=server,
                is_shared=False,
            )
            for server, each in homes
        ]
    command, text = command_file()
    for place in places:
        place.directory.mkdir(parents=True)
        (place.directory / "longboat.json").write_text(json.dumps({"on_restart": place.directory.name}))
        (place.directory / command).parent.mkdir(parents=True)
        (place.directory / command).write_text(text)
    return places
