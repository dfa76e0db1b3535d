"""A workspace's MCP servers for tests: every state they go through is kept and can be waited for."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from open_programs import open_programs
from other_processes import wait_until

from longboat.backoff import Backoff
from longboat.testing.tool_context import OpenToolContext
from longboat.tools.mcp import McpServers, Phase, ServerState

HERE = Path(__file__).parent
QUICK = Backoff(base_s=0.05, ceiling_s=30.0, attempts=4)


class McpHarness:
    def __init__(self, directory: Path, section: dict[str, Any], **options: Any) -> None:
        self.directory = directory
        self.states: list[ServerState] = []
        self._told = asyncio.Event()
        settings: dict[str, Any] = {"environ": os.environ, "child_environ": os.environ, "wait_s": 60, "backoff": QUICK}
        self.servers = McpServers(section, directory=directory, on_change=self._tell, **(settings | options))
        self.context = OpenToolContext(directory)

    def _tell(self, state: ServerState) -> None:
        self.states.append(state)
        self._told.set()

    async def until(self, wanted: Callable[[ServerState], object], *, since: int = 0) -> ServerState:
        """The first state after the first `since` of which `wanted` is true."""
        async with asyncio.timeout(60):
            while True:
                self._told.clear()
                for state in self.states[since:]:
                    if wanted(state):
                        return state
                await self._told.wait()

    def names(self) -> list[str]:
        return [tool.spec.name for tool in self.servers.tools()]

    async def use(self, name: str, /, **arguments: Any) -> str:
        tool = next(tool for tool in self.servers.tools() if tool.spec.name == name)
        return (await self.context.use(tool, **arguments)).content

    def phases(self, name: str) -> list[Phase]:
        return [state.phase for state in self.states if state.name == name]


@asynccontextmanager
async def opened(directory: Path, section: dict[str, Any], **options: Any) -> AsyncIterator[McpHarness]:
    async with open_programs(directory) as programs:
        harness = McpHarness(directory, section, **{"programs": programs, **options})
        try:
            await harness.servers.wait_connected()
            yield harness
        finally:
            await harness.servers.aclose()


def stdio(directory: Path, **settings: Any) -> dict[str, Any]:
    """The entry of a server that we start, which writes to `directory`."""
    script = str(HERE / "mcp_server.py")
    return {"type": "stdio", "command": sys.executable, "args": [script, "stdio", str(directory)], **settings}


def old(directory: Path, *more: str, **settings: Any) -> dict[str, Any]:
    script = str(HERE / "mcp_old_server.py")
    return {"command": sys.executable, "args": [script, str(directory), *more], **settings}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def running(port: int, script: str, *arguments: str) -> AsyncIterator["subprocess.Popen[bytes]"]:
    """A server that somebody else started, listening on `port`."""
    process = _start(script, *arguments)
    try:
        await wait_until(lambda: _listens(port))
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _start(script: str, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, str(HERE / script), *arguments], stdin=subprocess.DEVNULL)


def pid_in(directory: Path) -> int:
    return int((directory / "pid").read_text())


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
    except OSError:
        return False
    return True
