"""A language server that the test controls: a real process that does only what the test tells it to do.

    async with open_lsp_harness(workspace) as harness:
        asking = asyncio.create_task(harness.context.use(DefinitionTool(harness.servers), path="a.demo", symbol="x"))
        controlled = await harness.next_server()
        await controlled.initialize(definitionProvider=True)
        request = await controlled.expect("textDocument/definition")
        controlled.answer(request, None)

The process only relays bytes between its pipes and a socket of the test. So a test sees everything that it is sent, and
can have it say anything, say nothing, stop listening, or die.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from open_programs import open_programs

from longboat.backoff import Backoff
from longboat.testing.tool_context import CallableTool, OpenToolContext
from longboat.tools.lsp.client.server import Timeouts
from longboat.tools.lsp.client.servers import LanguageServers
from longboat.tools.lsp.client.slot import ServerState, ServerStatus
from longboat.tools.lsp.definition import DefinitionTool
from longboat.tools.protocol import ToolResult

RELAY = """
import os, socket, sys, threading
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.sendall(b"%d\\n" % os.getpid())
def hear():
    while data := os.read(0, 65536):
        link.sendall(data)
    link.shutdown(socket.SHUT_WR)
threading.Thread(target=hear, daemon=True).start()
while data := link.recv(65536):
    while data:
        data = data[os.write(1, data):]
"""


class ControlledServer:
    def __init__(self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pid = pid
        self._reader = reader
        self._writer = writer

    async def hear(self) -> dict[str, Any]:
        """The next message."""
        length = 0
        while line := (await self._reader.readuntil(b"\r\n")).strip():
            length = int(line.partition(b":")[2])
        message: dict[str, Any] = json.loads(await self._reader.readexactly(length))
        return message

    async def expect(self, method: str) -> dict[str, Any]:
        """The next message of this method; others are passed over."""
        while (message := await self.hear()).get("method") != method:
            pass
        return message

    def say(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def answer(self, request: dict[str, Any], result: Any) -> None:
        self.say({"id": request["id"], "result": result})

    def refuse(self, request: dict[str, Any], code: int, message: str) -> None:
        self.say({"id": request["id"], "error": {"code": code, "message": message}})

    def publish(self, path: Path, *errors: str, version: int | None = None) -> None:
        place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
        items = [{"range": place, "message": error, "severity": 1} for error in errors]
        params = {"uri": path.as_uri(), "diagnostics": items} | ({} if version is None else {"version": version})
        self.say({"method": "textDocument/publishDiagnostics", "params": params})

    async def initialize(self, **capabilities: Any) -> dict[str, Any]:
        """Answer the greeting. Returns it."""
        initialization = await self.expect("initialize")
        self.answer(initialization, {"capabilities": capabilities})
        await self.expect("initialized")
        return initialization

    async def leave(self) -> None:
        """Leave as a server should when it is asked to."""
        self.answer(await self.expect("shutdown"), None)
        await self.expect("exit")
        self._writer.close()

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def close(self) -> None:
        """Exit with code 0."""
        self._writer.close()

    def die(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    @property
    def is_alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True


class LspHarness:
    """A workspace with a controlled server for its `.demo` files. `changes` has every status of the servers."""

    def __init__(self, directory: Path, context: OpenToolContext) -> None:
        self.directory = directory
        self.context = context
        self.changes: list[ServerStatus] = []
        self.servers: LanguageServers
        self._waiting: asyncio.Queue[ControlledServer] = asyncio.Queue()
        self._changed = asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []

    async def next_server(self) -> ControlledServer:
        """The next server that was started."""
        return await self._waiting.get()

    @property
    def has_next_server(self) -> bool:
        return not self._waiting.empty()

    @property
    def states(self) -> list[ServerState]:
        return [status.state for status in self.changes]

    async def wait_state(self, *states: ServerState) -> ServerStatus:
        """Wait until the last change is one of these."""
        while not self.changes or self.changes[-1].state not in states:
            self._changed.clear()
            await self._changed.wait()
        return self.changes[-1]

    def note(self, status: ServerStatus) -> None:
        self.changes.append(status)
        self._changed.set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self._waiting.put_nowait(ControlledServer(int(await reader.readline()), reader, writer))

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
        for writer in self._writers:
            with suppress(ConnectionError):
                await writer.wait_closed()


QUICK = Timeouts(
    answer_s=30.0,
    diagnostics_s=30.0,
    settle_s=0.01,
    second_look_s=0.01,
    doubt_s=0.01,
    shutdown_s=0.2,
    restart=Backoff(base_s=0.0, attempts=4),
    ask_again=Backoff(base_s=0.01, factor=1.0, attempts=3),
)
"""Long where something is to come, short where nothing is."""


@asynccontextmanager
async def open_lsp_harness(
    directory: Path, timeouts: Timeouts = QUICK, *, context: OpenToolContext | None = None, **more: Any
) -> AsyncIterator[LspHarness]:
    """`more` goes into the settings of the server."""
    harness = LspHarness(directory, context or OpenToolContext(directory))
    endpoint = await asyncio.start_server(harness.connected, "127.0.0.1", 0)
    port = endpoint.sockets[0].getsockname()[1]
    args = ["-S", "-E", "-c", RELAY, str(port)]
    section = {"controlled": {"command": sys.executable, "args": args, "file_types": ["demo"], **more}}
    async with open_programs(directory) as programs:
        harness.servers = LanguageServers(
            directory, section, environ=dict(os.environ), programs=programs, on_change=harness.note, timeouts=timeouts
        )
        try:
            yield harness
        finally:
            await harness.servers.aclose()
            await harness.close()
            endpoint.close()


CAPABLE = {"definitionProvider": True, "renameProvider": True, "textDocumentSync": {"change": 1, "save": True}}


def ask(harness: LspHarness, tool: CallableTool | None = None, **arguments: Any) -> asyncio.Task[ToolResult]:
    tool = tool or DefinitionTool(harness.servers)
    arguments = arguments or {"path": "b.demo", "symbol": "knot"}
    return asyncio.create_task(harness.context.use(tool, **arguments))


def place(path: Path, line: int, start: int, end: int) -> dict[str, Any]:
    places = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"uri": path.as_uri(), "range": places}
