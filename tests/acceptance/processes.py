"""Real server processes at real doors, and clients that await what happens instead of sleeping.

The model is the scripted endpoint in the test's own loop, so a test can hold an answer at a gate while it kills,
cancels or looks. `cli_home` is its twin for tests of the command line, which block and need an endpoint of their own.
"""

import asyncio
import hashlib
import json
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import httpx2
import msgspec
from cli_home import LONGBOAT, PATIENCE_S, Done, environ_of
from postgres import database_of
from sessions import SessionClient

from longboat.config.trust import record
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.wire.discovery import DISCOVERY_NAME, SOCKET_NAME, Discovery
from secrecy import SECRETS, CheckedTransport, check_files, check_for_secrets, check_reader, mcp, provider

GIVE_UP_S = 100
BOTH_DOORS = ["unix", "tcp"]
EVERY_STORE = [*BOTH_DOORS, "postgres"]
"""And a server at its unix socket whose sessions are in PostgreSQL."""


class Door(Enum):
    """How clients come in. A server with TCP has its unix socket besides."""

    UNIX = "unix"
    TCP = "tcp"


@dataclass(kw_only=True)
class Site:
    """Where one server lives: its home, its data, the model it asks, and the process itself, which may be replaced."""

    path: Path
    door: Door
    model: ScriptedEndpoint
    environ: dict[str, str]
    clients: AsyncExitStack
    processes: list[Process] = field(default_factory=list)
    port: int = 0
    _server: Process | None = None
    _projects: int = 0

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def socket(self) -> Path:
        return self.path / "run" / SOCKET_NAME

    @property
    def log(self) -> Path:
        """What all servers of this site said on stderr."""
        return self.path / "server.log"

    @property
    def server(self) -> Process:
        assert self._server is not None
        return self._server

    def discovery(self) -> Discovery:
        return msgspec.json.decode((self.path / "run" / DISCOVERY_NAME).read_bytes(), type=Discovery)

    def project(self, name: str = "project", **changes: Any) -> Path:
        """A directory whose longboat.json names the scripted endpoint, and is trusted.

        Each has a parent of its own: tests that share a site may use the same name.
        """
        self._projects += 1
        directory = self.path / "projects" / str(self._projects) / name
        directory.mkdir(parents=True)
        config = json.dumps(project_config(self.model, **changes)).encode()
        (directory / "longboat.json").write_bytes(config)
        record(self.path / "config" / "longboat" / "trusted.json", directory, hashlib.sha256(config).hexdigest())
        return directory

    # The server

    async def serve(self, *failpoint: str, under: Sequence[str] = (), **options: Any) -> None:
        """Start a server, once it answers. `failpoint`: how it is to die; `under`: a command that starts it; `module`:
        what is run instead of `longboat`."""
        self._server = process = await self.launch(*failpoint, under=under, **options)
        assert process.stdout is not None
        first = await process.stdout.readline()
        assert b"is ready" in first, self.log.read_text()
        found = self.discovery()
        self.port = int((found.url or ":0").rpartition(":")[2])

    async def launch(self, *failpoint: str, under: Sequence[str] = (), **options: Any) -> Process:
        """Start a server and do not wait for it."""
        environ = self.environ | options.pop("environ", {})
        module = options.pop("module", LONGBOAT[2:])
        module = ["longboat.testing.failpoints", *failpoint, "--"] if failpoint else module
        tcp = ["--port", str(self.port)] if self.door is Door.TCP else []
        command = [*under, sys.executable, "-m", *module, "serve", "--data-dir", str(self.data), *tcp]
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command, cwd=self.path, env=environ, stdin=DEVNULL, stdout=PIPE, stderr=log, **options
            )
        self.processes.append(process)
        return process

    async def died(self) -> None:
        """Wait until the failpoint has killed the server."""
        async with asyncio.timeout(PATIENCE_S):
            assert await self.server.wait() == -signal.SIGKILL

    async def kill(self) -> None:
        """As a power cut would."""
        self.server.kill()
        await self.died()

    async def longboat(self, *arguments: str, cwd: Path) -> Process:
        """A command beside the server, its outputs on pipes."""
        process = await asyncio.create_subprocess_exec(
            *(*LONGBOAT, *arguments),
            cwd=cwd,
            env=self.environ,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        self.processes.append(process)
        return process

    # Clients

    async def client(self, door: Door | None = None) -> httpx2.AsyncClient:
        """A client at a door, by default the site's own; it is closed with the site."""
        if (door or self.door) is Door.TCP:
            pool, url, headers = httpx2.AsyncHTTPTransport(), self.discovery().url or "", self.headers
        else:
            limits = httpx2.Limits(max_connections=None)
            pool, url, headers = httpx2.AsyncHTTPTransport(uds=str(self.socket), limits=limits), "http://localhost", {}
        http = httpx2.AsyncClient(transport=CheckedTransport(pool), base_url=url, headers=headers, timeout=PATIENCE_S)
        return await self.clients.enter_async_context(http)

    @property
    def headers(self) -> dict[str, str]:
        """What this door asks of a request."""
        return {"authorization": f"Bearer {self.discovery().token}"} if self.door is Door.TCP else {}

    async def session(self, directory: Path, door: Door | None = None) -> SessionClient:
        """A new session in a directory, seen by a client of its own."""
        http = await self.client(door)
        joined = await http.post("/v1/workspaces", json={"path": str(directory)})
        assert joined.status_code in (200, 201), joined.text
        return await SessionClient.create(http, f"/v1/workspaces/{joined.json()['id']}")

    async def back_at(self, session: SessionClient) -> SessionClient:
        """The same session after a restart."""
        return SessionClient(await self.client(), session.workspace, session.session_id, start=session.start)

    async def raw(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A bare connection, for what no well-behaved client does."""
        if self.door is Door.TCP:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
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
    path = Path(tempfile.mkdtemp(prefix="lb-", dir="/tmp"))  # pytest's own paths are too long for a socket
    config = path / "config" / "longboat"
    config.mkdir(parents=True)
    (config / "longboat.json").write_text(json.dumps({"server": {"drain_s": drain_s}}))
    # Below pytest's own timeout, which would leave the processes behind.
    async with ScriptedEndpoint() as model, AsyncExitStack() as clients, asyncio.timeout(GIVE_UP_S):
        site = Site(
            path=path,
            door=Door.UNIX if door == "postgres" else Door(door),
            model=model,
            environ=environ_of(path) | {"LONGBOAT_TOKEN": SECRETS["server token"]},
            clients=clients,
        )
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


async def ended(process: Process) -> Done:
    """The end of a command, for which it has a minute."""
    async with asyncio.timeout(PATIENCE_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    check_for_secrets(out, "a command's output")
    check_for_secrets(err, "a command's errors")
    return Done(process.returncode, out.decode(), err.decode())
