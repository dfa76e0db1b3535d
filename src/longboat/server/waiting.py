"""Answers while the server waits for its database: 503, so that clients and load balancers go elsewhere or come back.

Must not know the routes, and needs none of what they import. Without it, requests would wait in the backlog of the
sockets, and a load balancer would send more.
"""

import asyncio
import logging
import socket
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from longboat.errors import StoreUnavailable
from longboat.tasks import Tasks
from longboat.wire.models import ErrorBody, Health

log = logging.getLogger(__name__)

HEAD_S = 5.0
"""How long a client has for the head of its request."""
PROBLEM = "The server is waiting for its database. Its log says why."


def _response(status: str, body: bytes) -> bytes:
    head = ("content-type: application/json", f"content-length: {len(body)}", "connection: close")
    return "\r\n".join([f"HTTP/1.1 {status}", *head, "", ""]).encode() + body


_REFUSED = _response(
    "503 Service Unavailable", msgspec.json.encode(ErrorBody(code=StoreUnavailable.code, message=PROBLEM))
)
_ALIVE = _response("200 OK", msgspec.json.encode(Health(status="degraded", detail=PROBLEM)))


class Waiting:
    def __init__(self, sockets: tuple[socket.socket, ...]) -> None:
        self._sockets = sockets
        self._tasks = Tasks()
        self._answers = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Leave the sockets to the server."""
        await self._tasks.aclose()

    def tell(self, problem: str) -> None:
        """The server waits, because of this."""
        log.warning("waiting for the database: %s", problem)
        if not self._answers:
            self._answers = True
            for each in self._sockets:
                # A copy: it is closed at the end, while the server keeps using the socket itself.
                self._tasks.spawn(_serve(each.dup()), name="answer while waiting")


async def _serve(sock: socket.socket) -> None:
    with sock:
        sock.setblocking(False)
        server = await asyncio.start_server(_answer, sock=sock)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            server.close()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):  # a TimeoutError, too
            async with asyncio.timeout(HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_ALIVE if head.startswith(b"GET /v1/health ") else _REFUSED)
                await writer.drain()
                writer.write_eof()
                while await reader.read(1 << 16):  # with its body unread, the client would see a reset and no answer
                    pass
    finally:
        writer.close()
