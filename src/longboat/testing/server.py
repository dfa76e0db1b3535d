"""A real `longboat serve` in a process of its own, with its own home: started, paused, killed and started again.

    async with open_server(directory) as server:
        await server.serve()
        … a client of server.discovery().url, with server.discovery().token …
        await server.kill()
        await server.serve()

Must not know what clients ask of it.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from longboat.testing.cutoff import Cutoff
from longboat.wire.discovery import DISCOVERY_NAME, SOCKET_NAME, Discovery

GIVE_UP_S = 60


@dataclass(kw_only=True)
class ServerProcess:
    """Where one server lives, and the process itself, which may be replaced."""

    path: Path
    """Its home: data, configuration, socket and log are below. Keep it short: a socket's path has a limit."""
    environ: dict[str, str]
    tcp: bool = True
    """Listen on a TCP port of 127.0.0.1 besides the unix socket."""
    port: int = 0
    """The TCP port, the same again after a restart."""
    arguments: list[str] = field(default_factory=list)
    """More options for `longboat serve`."""
    links: list[Cutoff] = field(default_factory=list)
    """Links that lead to its TCP port."""
    processes: list[Process] = field(default_factory=list)
    _server: Process | None = None

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def socket(self) -> Path:
        return self.path / "run" / SOCKET_NAME

    @property
    def config(self) -> Path:
        """The user's configuration file."""
        return self.path / "config" / "longboat" / "longboat.json"

    @property
    def log(self) -> Path:
        """What all servers here said on stderr."""
        return self.path / "server.log"

    @property
    def server(self) -> Process:
        assert self._server is not None, "not started"
        return self._server

    def discovery(self) -> Discovery:
        return msgspec.json.decode((self.path / "run" / DISCOVERY_NAME).read_bytes(), type=Discovery)

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write the user's configuration. The server reads it when it starts."""
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(json.dumps(config))

    async def serve(self, *failpoint: str, under: Sequence[str] = (), **options: Any) -> None:
        """Start a server, once it answers. `failpoint`: how it is to die (`longboat.testing.failpoints`); `under`: a
        command that starts it; `module`: what is run instead of `longboat`; `environ`: more variables."""
        self._server = process = await self.launch(*failpoint, under=under, **options)
        assert process.stdout is not None
        first = await process.stdout.readline()
        if b"is ready" not in first:
            raise RuntimeError(f"The server did not start: {self.log.read_text()}")
        self.port = int((self.discovery().url or ":0").rpartition(":")[2])
        for link in self.links:
            link.target = ("127.0.0.1", self.port)

    async def launch(self, *failpoint: str, under: Sequence[str] = (), **options: Any) -> Process:
        """Start a server and do not wait for it."""
        environ = self.environ | options.pop("environ", {})
        module = options.pop("module", ["longboat"])
        module = ["longboat.testing.failpoints", *failpoint, "--"] if failpoint else module
        tcp = ["--port", str(self.port)] if self.tcp else []
        serve = ["serve", "--data-dir", str(self.data), *tcp, *self.arguments]
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(*under, sys.executable, "-m", *module, *serve),
                cwd=self.path,
                env=environ,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=log,
                **options,
            )
        self.processes.append(process)
        return process

    async def died(self) -> None:
        """Wait until SIGKILL has ended the server: a failpoint's, or another."""
        async with asyncio.timeout(GIVE_UP_S):
            code = await self.server.wait()
        if code != -signal.SIGKILL:
            raise RuntimeError(f"The server ended with {code}: {self.log.read_text()}")

    async def kill(self) -> None:
        """Kill the server as a power cut would."""
        self.server.kill()
        await self.died()

    def pause(self) -> None:
        """Stop the process where it is (SIGSTOP)."""
        self.server.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on (SIGCONT)."""
        self.server.send_signal(signal.SIGCONT)

    async def end(self) -> None:
        """Kill every process that is left."""
        for process in self.processes:
            if process.returncode is None:
                process.kill()
            await process.communicate()


def home_environ(path: Path) -> dict[str, str]:
    """This process's environment, for a user whose home is there."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LONGBOAT_", "XDG_"))}
    return kept | {
        "HOME": str(path),
        "LONGBOAT_RUNTIME_DIR": str(path / "run"),
        "LONGBOAT_DATA_DIR": str(path / "data"),
        "XDG_CONFIG_HOME": str(path / "config"),
    }


@asynccontextmanager
async def open_server(path: Path) -> AsyncIterator[ServerProcess]:
    """A home for a server, in a new directory. Nothing runs yet; whatever is started ends with it."""
    server = _at(path)
    try:
        yield server
    finally:
        await server.end()


def _at(path: Path) -> ServerProcess:
    path.mkdir(parents=True)
    return ServerProcess(path=path, environ=home_environ(path))
