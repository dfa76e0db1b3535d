"""Real server processes at real doors, and clients that await what happens instead of sleeping.

The model is the scripted endpoint in the test's own loop, so a test can hold an answer at a gate while it kills,
cancels or looks. `cli_home` is its twin for tests of the command line, which block and need an endpoint of their own.
"""

import asyncio
import hashlib
import json
import shutil
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import httpx2
from cli_home import GIVE_UP_S, LONGBOAT, Done, environ_of
from postgres import database_of
from sessions import SessionClient

from longboat.config.trust import record
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.testing.fleet import connect_nodes
from longboat.testing.server import ServerProcess
from secrecy import SECRETS, CheckedTransport, check_files, check_for_secrets, check_reader, mcp, provider

TEST_LIMIT_S = 100
BOTH_DOORS = ["unix", "tcp"]
EVERY_STORE = [*BOTH_DOORS, "postgres"]
"""And a server at its unix socket whose sessions are in PostgreSQL."""
AROUND = ["unix", "door"]
"""A server with SQLite at its unix socket; and a node on PostgreSQL whose clients are all at another node, by TCP. Most
rules need no more: "door" has what "tcp" and "postgres" have."""
OWNER = "owner"
"""The name of the node that owns what a site with a door has."""


class Door(Enum):
    """How clients come in. A server with TCP has its unix socket besides."""

    UNIX = "unix"
    TCP = "tcp"


@dataclass(kw_only=True)
class Site(ServerProcess):
    """Where one server lives: its home, its data, the model it asks, and the process itself, which may be replaced."""

    model: ScriptedEndpoint
    clients: AsyncExitStack
    other: "Site | None" = None
    """The node that clients use instead of this one, which is the home and the owner of all directories here. It starts
    with the first server, and is not killed with it: see `outlives`."""
    _projects: int = 0

    @property
    def front(self) -> "Site":
        """Where clients come in."""
        return self.other or self

    @property
    def outlives(self) -> bool:
        """Whether requests and streams of clients outlive the death of the server: the door waits for the next start,
        and asks again (G4, G5). Otherwise they break."""
        return self.other is not None

    async def serve(self, *failpoint: str, under: Sequence[str] = (), **options: Any) -> None:
        first = [self.other.serve()] if self.other is not None and not self.other.processes else []
        await asyncio.gather(super().serve(*failpoint, under=under, **options), *first)

    @property
    def door(self) -> Door:
        return Door.TCP if self.tcp else Door.UNIX

    def project(self, name: str = "project", **changes: Any) -> Path:
        """A directory whose longboat.json names the scripted endpoint, and is trusted.

        Each has a parent of its own: tests that share a site may use the same name.
        """
        self._projects += 1
        directory = self.path / "projects" / str(self._projects) / name
        directory.mkdir(parents=True)
        self.configure(directory, **changes)
        return directory

    def configure(self, directory: Path, **changes: Any) -> None:
        """Write its longboat.json, and trust it first: a server that reads it in between sees all of it."""
        config = json.dumps(project_config(self.model, **changes)).encode()
        self._trust(directory, config)
        (directory / "longboat.json").write_bytes(config)

    def trust(self, directory: Path) -> None:
        self._trust(directory, (directory / "longboat.json").read_bytes())

    def _trust(self, directory: Path, config: bytes) -> None:
        record(self.path / "config" / "longboat" / "trusted.json", directory, hashlib.sha256(config).hexdigest())

    # Commands

    async def longboat(self, *arguments: str, cwd: Path, environ: Mapping[str, str] | None = None) -> Process:
        """A command beside the server, its outputs on pipes. It runs at the other node if there is one. `environ`: more
        variables."""
        environ = self.environ | dict(environ or {})
        if self.other is not None:
            command, *rest = arguments
            arguments = (command, "--cwd", f"{OWNER}:{cwd}", *rest)
            environ, cwd = self.other.environ | {"LONGBOAT_URL": self.other.discovery().url or ""}, self.other.path
        process = await asyncio.create_subprocess_exec(
            *(*LONGBOAT, *arguments),
            cwd=cwd,
            env=environ,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        self.processes.append(process)
        return process

    # Clients

    async def client(self, door: Door | None = None) -> httpx2.AsyncClient:
        """A client at a door, by default the site's own; it is closed with the site."""
        if door is None and self.other is not None:
            return await self.other.client()
        if (door or self.door) is Door.TCP:
            pool, url, headers = httpx2.AsyncHTTPTransport(), self.discovery().url or "", self.headers
        else:
            limits = httpx2.Limits(max_connections=None)
            pool, url, headers = httpx2.AsyncHTTPTransport(uds=str(self.socket), limits=limits), "http://localhost", {}
        http = httpx2.AsyncClient(transport=CheckedTransport(pool), base_url=url, headers=headers, timeout=GIVE_UP_S)
        return await self.clients.enter_async_context(http)

    @property
    def headers(self) -> dict[str, str]:
        """What this door asks of a request."""
        return {"authorization": f"Bearer {self.front.discovery().token}"} if self.door is Door.TCP else {}

    async def session(self, directory: Path, door: Door | None = None) -> SessionClient:
        """A new session in a directory, seen by a client of its own."""
        http = await self.client(door)
        where = {"path": str(directory)} | ({"node": OWNER} if self.other is not None else {})
        joined = await http.post("/v1/workspaces", json=where)
        assert joined.status_code in (200, 201), joined.text
        return await SessionClient.create(http, f"/v1/workspaces/{joined.json()['id']}")

    async def back_at(self, session: SessionClient) -> SessionClient:
        """The same session after a restart."""
        return SessionClient(await self.client(), session.workspace, session.session_id, start=session.start)

    async def raw(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A bare connection, for what no well-behaved client does."""
        if self.door is Door.TCP:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.front.port)
        else:
            reader, writer = await asyncio.open_unix_connection(str(self.socket))
        check_reader(reader, "the answer to raw bytes")
        return reader, writer


def project_config(model: ScriptedEndpoint, **changes: Any) -> dict[str, Any]:
    models = [{"id": "m", "context_window": changes.pop("context_window", 128_000), **changes.pop("entry", {})}]
    config = {
        "providers": {"mine": provider(model.base_url, models=models)},
        "mcp": mcp(),
        "models": {"large": "mine/m", "small": "mine/m"},
        "titles": False,
        "retry": {"base_s": 0.01},
    }
    return config | changes


@asynccontextmanager
async def open_site(door: str = "unix", *, drain_s: float = 1) -> AsyncIterator[Site]:
    """A fresh site without a server; whatever is started there is ended with it."""
    if door == "door":
        async with _open_nodes(drain_s) as site:
            yield site
        return
    path = Path(tempfile.mkdtemp(prefix="lb-", dir="/tmp"))  # pytest's own paths are too long for a socket
    # Below pytest's own timeout, which would leave the processes behind.
    async with ScriptedEndpoint() as model, AsyncExitStack() as clients, asyncio.timeout(TEST_LIMIT_S):
        site = Site(
            path=path,
            tcp=door == Door.TCP.value,
            model=model,
            environ=environ_of(path) | {"LONGBOAT_TOKEN": SECRETS["server token"]},
            clients=clients,
        )
        site.write_config({"server": {"drain_s": drain_s}})
        if door == "postgres":
            site.environ["LONGBOAT_STORE"] = await asyncio.to_thread(database_of, site.data)
        try:
            yield site
        finally:
            for process in site.processes:
                if process.returncode is None:
                    process.kill()
                for said in await process.communicate():
                    check_for_secrets(said or b"", "the output of a process")
            check_files(site.log, site.data / "server.log")
            shutil.rmtree(path)


@asynccontextmanager
async def _open_nodes(drain_s: float) -> AsyncIterator[Site]:
    """An owner, and the node that its clients use. A lease is longer than a test: nobody else takes it over."""
    async with AsyncExitStack() as network, open_site("tcp") as owner, open_site("tcp") as other:
        (shared := owner.path / "shared").mkdir()
        connected = connect_nodes(
            {OWNER: owner, "other": other},
            dsn=await asyncio.to_thread(database_of, owner.data),
            shared=shared,
            secret=SECRETS["cluster secret"],
            config={"server": {"drain_s": drain_s}},
        )
        await network.enter_async_context(connected)
        owner.other = other
        yield owner


async def ended(process: Process) -> Done:
    """The end of a command, for which it has a minute."""
    async with asyncio.timeout(GIVE_UP_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    check_for_secrets(out, "a command's output")
    check_for_secrets(err, "a command's errors")
    return Done(process.returncode, out.decode(), err.decode())
