"""Where the server lives: its home, its two workspaces, the processes, and every start and end of a server."""

import asyncio
import json
import os
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psutil

ROOT = Path(__file__).parents[1]
WORKSPACES = ("interrupt", "resume")
"""Named by what they do with a run that was active in a crash."""
DRAIN_S = 1
START_LIMIT_S = 60


class StartFailed(Exception):
    """The server ended before it was ready, or was not ready in time."""


@dataclass(kw_only=True)
class Site:
    home: Path
    environ: dict[str, str]
    starts: list[float] = field(default_factory=list)
    """When each server was launched, by the clock."""
    ready_at: float = 0
    """When the present server was ready, by the monotonic clock."""
    _server: Process | None = None

    @property
    def socket(self) -> Path:
        return self.home / "run" / "longboat.sock"

    @property
    def store(self) -> Path:
        return self.home / "data" / "longboat.db"

    @property
    def log(self) -> Path:
        """The standard error of all servers."""
        return self.home / "stderr.log"

    @property
    def server(self) -> Process:
        assert self._server is not None
        return self._server

    def directory(self, workspace: str) -> Path:
        return self.home / "work" / workspace

    def client(self, *, timeout_s: float) -> httpx2.AsyncClient:
        transport = httpx2.AsyncHTTPTransport(uds=str(self.socket))
        return httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=timeout_s)

    async def launch(self) -> Process:
        """Start a server and do not wait until it is ready."""
        self.starts.append(time.time())
        with self.log.open("ab") as log:
            self._server = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "longboat", "serve"),
                cwd=self.home,
                env=self.environ,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=log,
            )
        return self._server

    async def start(self) -> None:
        """Start a server that answers."""
        server = await self.launch()
        assert server.stdout is not None
        try:
            async with asyncio.timeout(START_LIMIT_S):
                line = await server.stdout.readline()
        except TimeoutError:
            raise StartFailed(f"not ready after {START_LIMIT_S} s") from None
        if b"is ready" not in line:
            raise StartFailed(f"exit code {await server.wait()}; see {self.log.name}")
        self.ready_at = time.monotonic()

    async def kill(self) -> None:
        if self.server.returncode is None:
            self.server.kill()
        await self.server.wait()

    def older_commands(self) -> list[str]:
        """Processes of commands that are older than the present server."""
        try:
            born = psutil.Process(self.server.pid).create_time()
        except psutil.NoSuchProcess:
            return []
        return [str(process.info) for process in self._commands() if process.info["create_time"] < born]

    def living_commands(self) -> list[str]:
        """All processes of commands."""
        return [str(process.info) for process in self._commands()]

    def _commands(self) -> list[psutil.Process]:
        """They are known by their working directory, which no other process has."""
        work = str(self.home / "work")
        named = psutil.process_iter(["pid", "cwd", "create_time", "status", "cmdline"])
        alive = (
            process for process in named if process.info["status"] not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        )
        return [process for process in alive if (process.info["cwd"] or "").startswith(work)]


@asynccontextmanager
async def open_site(home: Path) -> AsyncIterator[Site]:
    """A home with two workspaces and a model, no server yet. All processes end with the block; the files stay."""
    for name in WORKSPACES:
        directory = home / "work" / name
        directory.mkdir(parents=True)
        (directory / "longboat.json").write_text(json.dumps({"on_restart": name}))
    complaints = home / "complaints.jsonl"
    model = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "chaos.model", str(complaints)), cwd=ROOT, stdin=DEVNULL, stdout=PIPE
    )
    assert model.stdout is not None
    base_url = (await model.stdout.readline()).decode().strip()
    site = Site(home=home, environ=_environ(home, base_url))
    try:
        yield site
    finally:
        if site._server is not None:
            await site.kill()
        model.send_signal(signal.SIGKILL)
        await model.wait()


def _environ(home: Path, base_url: str) -> dict[str, str]:
    provider = {"type": "openai-compatible", "base_url": base_url, "api_key": "x", "models": [{"id": "m"}]}
    config = {
        "providers": {"mine": provider},
        "models": {"large": "mine/m", "small": "mine/m"},
        "titles": False,
        "retry": {"base_s": 0.01},
        "server": {"drain_s": DRAIN_S},
    }
    file = home / "config" / "longboat" / "longboat.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(config))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LONGBOAT_", "XDG_"))}
    return kept | {
        "HOME": str(home),
        "LONGBOAT_RUNTIME_DIR": str(home / "run"),
        "LONGBOAT_DATA_DIR": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
    }
