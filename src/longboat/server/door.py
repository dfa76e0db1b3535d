"""The door: what a connection may cost before it is known who comes.

Owns how many there may be, and how long and how large the head of a request is. uvicorn has no settings for these. The
unix socket is the owner's: nobody is turned away there. Must not know what is asked.
"""

import asyncio
import logging
import resource
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

MAX_DESCRIPTORS = 65_536
MAX_CONNECTIONS = 4_096
"""Over TCP. With heads of full size these are 256 MB."""
HEAD_S = 15.0
"""How long the head of a request may take, from the connection or from its first byte."""
MAX_HEAD = 64 * 1024
_TELL_AGAIN_S = 60.0

log = logging.getLogger(__name__)


def raise_descriptor_limit() -> int:
    """Take as many file descriptors as the system lets us, within reason. Returns how many there are."""
    soft, hard = (_number(limit) for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
    wanted = min(hard, MAX_DESCRIPTORS)
    if soft < wanted:
        with suppress(ValueError, OSError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            return wanted
    return soft


def _number(limit: int) -> int:
    return 1 << 30 if limit == resource.RLIM_INFINITY else limit


def open_door() -> "Door":
    """A door for this process. The store, model calls and tools keep at least half of the descriptors."""
    return Door(limit=min(MAX_CONNECTIONS, raise_descriptor_limit() // 2))


@dataclass(slots=True, kw_only=True)
class Door:
    """Counts the connections over TCP."""

    limit: int
    inside: int = 0
    told_at: float = float("-inf")

    @property
    def protocol(self) -> Callable[..., asyncio.Protocol]:
        """What uvicorn is to make for each connection."""
        return partial(Connection, self)

    def full(self, now: float) -> bool:
        if self.inside < self.limit:
            return False
        if now - self.told_at > _TELL_AGAIN_S:
            self.told_at = now
            log.warning("%d TCP connections are open: more are refused", self.inside)
        return True


class Connection(HttpToolsProtocol):
    """uvicorn's, with limits."""

    def __init__(self, door: Door, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._door = door
        self._inside = False
        self._unread = 0
        """Bytes since the parser had anything whole to tell: of a head, or of what surrounds a body."""
        self._too_large = False
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if transport.get_extra_info("socket").family != socket.AF_UNIX:
            if self._door.full(self.loop.time()):
                self._refuse(503, "too_many_connections", "Too many connections are open: try again later.")
                return
            self._inside = True
            self._door.inside += 1
        self._head_timer = self.loop.call_later(HEAD_S, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._inside:
            self._inside = False
            self._door.inside -= 1
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unread += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._unread > MAX_HEAD:
            self._refuse_head()
        elif self._head_timer is None and self.cycle.response_complete:
            # uvicorn stops its own clock for idle connections at the first byte.
            self._head_timer = self.loop.call_later(HEAD_S, self.transport.abort)

    def on_headers_complete(self) -> None:
        self._unread = 0
        self._stop_timer()
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD:
            self._too_large = True
            raise ValueError("the parser hands this on as an invalid request")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unread = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if self._too_large:
            self._refuse_head()
        else:
            super().send_400_response(msg)

    def _refuse_head(self) -> None:
        self._refuse(431, "head_too_large", f"The head of a request may have {MAX_HEAD >> 10} KB.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        body = msgspec.json.encode({"code": code, "message": message})
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
