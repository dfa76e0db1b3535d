"""uvicorn inside our process: we handle signals, start and stop; it handles connections and HTTP."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import uvicorn

from longboat.server.auth import Gate
from longboat.server.connection import Connection, open_connection_limits
from longboat.tasks import Tasks

_FINISH_S = 0.5
"""How long connections may finish after all streams have ended."""
_UNWIND_S = 0.25
"""How long requests may unwind after their connection was cut."""


class _Server(uvicorn.Server):
    """uvicorn's own stop waits for open connections without limit; this one closes those of stuck readers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def listen(self, sock: socket.socket) -> None:
        """Answer on one more socket, which is closed with the others."""
        loop = asyncio.get_running_loop()
        state = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        protocol = partial(self.config.http_protocol_class, **state)
        self.servers.append(await loop.create_server(protocol, sock=sock, backlog=self.config.backlog))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        await self._settle(_FINISH_S)
        for connection in list(state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await self._settle(_UNWIND_S)
        for task in list(state.tasks):
            task.cancel()
        await self._settle(_UNWIND_S)

    async def _settle(self, timeout_s: float) -> None:
        """Wait until no connection and no request is left, or the time is over."""
        state = self.server_state
        try:
            async with asyncio.timeout(timeout_s):
                while state.connections or state.tasks:  # noqa: ASYNC110 - uvicorn keeps sets and tells no one
                    await asyncio.sleep(0.01)
        except TimeoutError:
            pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """HTTP that is being answered."""

    task: asyncio.Task[None]
    """Ends early only if it fails."""
    listen: Callable[[socket.socket], Awaitable[None]]


@asynccontextmanager
async def open_http(gate: Gate, sockets: tuple[socket.socket, ...]) -> AsyncIterator[Http]:
    """Answer HTTP on these sockets."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        try:
            await gate(scope, receive, send)
        except asyncio.CancelledError:
            # Only our own stop cancels a request, after its connection was cut: no one is left to tell.
            if not server.should_exit:
                raise

    config = uvicorn.Config(
        answer,
        http=partial(Connection, open_connection_limits(), gate.judge),  # type: ignore[arg-type]  # uvicorn only calls it
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=75,
    )
    server = _Server(config)
    async with Tasks() as tasks:
        serving = tasks.spawn(server.serve(list(sockets)), name="http", awaited=True)
        listening = tasks.spawn(server.listening.wait(), name="http listens")
        await asyncio.wait((serving, listening), return_when=asyncio.FIRST_COMPLETED)
        listening.cancel()
        try:
            yield Http(task=serving, listen=server.listen)
        finally:
            server.should_exit = True
            await serving
