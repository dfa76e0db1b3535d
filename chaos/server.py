"""One server process after another in the same home: each start and each end. Must not know why it ends."""

import asyncio
import time
from asyncio.subprocess import Process
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
import msgspec

from longboat.testing.server import ServerProcess

START_LIMIT_S = 60
MARK = "CHAOS_SERVER"
"""In the environment of a server and of its commands: which one of all servers it is."""
EXPECTED = ("longboat.errors.StoreUnavailable", "longboat.errors.OwnerLost", "longboat.errors.StoreLost")


class StartFailed(Exception):
    """The server ended before it was ready, or was not ready in time."""


@dataclass(kw_only=True)
class Server(ServerProcess):
    name: str
    starts: list[float] = field(default_factory=list)
    """When each process was launched, by the clock."""
    ready_at: float = 0
    """When the present process was ready, by the monotonic clock."""
    start_s: float = 1.0
    """How long the last start took."""

    @property
    def mark(self) -> str:
        """The value of MARK in the present process."""
        return f"{self.name}.{len(self.starts)}"

    def mark_at(self, instant: float) -> str:
        """The same for the process of that time."""
        return f"{self.name}.{sum(start <= instant for start in self.starts)}"

    @property
    def is_running(self) -> bool:
        return self._server is not None and self._server.returncode is None

    def client(self, *, timeout_s: float) -> httpx2.AsyncClient:
        limits = httpx2.Limits(max_connections=None)
        transport = httpx2.AsyncHTTPTransport(uds=str(self.socket), limits=limits)
        return httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=timeout_s)

    async def launch(self, *failpoint: str, under: Sequence[str] = (), **options: Any) -> Process:
        """Start a process and do not wait until it is ready."""
        self.starts.append(time.time())
        self.forget_port()
        self._server = await super().launch(*failpoint, under=under, environ={MARK: self.mark}, **options)
        return self._server

    async def start(self) -> None:
        """Start a process that answers."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(START_LIMIT_S):
                await self.serve()
        except TimeoutError:
            raise StartFailed(f"{self.name}: not ready after {START_LIMIT_S} s") from None
        except RuntimeError:
            raise StartFailed(f"{self.name}: exit code {await self.server.wait()}; see {self.log}") from None
        self.ready_at = time.monotonic()
        self.start_s = self.ready_at - began

    async def kill(self) -> None:
        """Also one that is stopped, or has ended."""
        if self._server is not None:
            if self._server.returncode is None:
                self._server.kill()
            await self._server.wait()
        self.forget_port()

    def forget_port(self) -> None:
        """While no process has it, another program may take it."""
        self.port = 0
        for link in self.links:
            link.target = None

    def errors(self) -> list[str]:
        """The tracebacks in its log, except those of a database or an owner that was away."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            try:
                entry = msgspec.json.decode(line)
            except msgspec.DecodeError:
                entry = {"level": "error", "traceback": line if "Traceback" in line else ""}
            last = entry.get("traceback", "").rstrip().rpartition("\n")[2]
            if entry["level"] == "error" and last and not last.startswith(EXPECTED):
                found.append(line)
        return found
