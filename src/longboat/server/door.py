"""The door: what a connection may cost before it is known who comes.

Owns how many there may be, and how long and how large the head of a request is. uvicorn has no settings for these. The
unix socket is the owner's: nobody is turned away there. Over TCP a connection is a stranger's until a request on it has
shown the token: strangers have half of the room, and the oldest of them goes when there is none left. Must not know
what is asked, nor what a token is.
"""

import asyncio
import logging
import resource
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

MAX_DESCRIPTORS = 65_536
MAX_CONNECTIONS = 4_096
"""Over TCP. With heads of full size these are 256 MB."""
HEAD_S = 15.0
"""How long the head of a request may take, from the connection or from its first byte."""
STRANGER_REST_S = 5.0
"""How long a stranger's connection may rest between requests."""
MAX_HEAD = 64 * 1024
WELCOME = "longboat_welcome"
"""Under this name in the state of an ASGI scope: what to call once the request has shown the token."""
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
    """Knows the connections over TCP."""

    limit: int
    known: set["Connection"] = field(default_factory=set)
    strangers: dict["Connection", None] = field(default_factory=dict)
    """Oldest first."""
    told_at: float = float("-inf")

    @property
    def protocol(self) -> Callable[..., asyncio.Protocol]:
        """What uvicorn is to make for each connection."""
        return partial(Connection, self)

    def let_in(self, connection: "Connection", now: float) -> bool:
        """Whether there is room. Where a stranger can make it, one does."""
        if len(self.strangers) >= max(1, self.limit // 2) or len(self.strangers) + len(self.known) >= self.limit:
            self._tell(now)
            oldest = next(iter(self.strangers), None)
            if oldest is None:
                return False
            del self.strangers[oldest]
            oldest.make_room()
        self.strangers[connection] = None
        return True

    def welcome(self, connection: "Connection") -> None:
        if connection in self.strangers:
            del self.strangers[connection]
            self.known.add(connection)

    def let_out(self, connection: "Connection") -> None:
        self.strangers.pop(connection, None)
        self.known.discard(connection)

    def _tell(self, now: float) -> None:
        if now - self.told_at > _TELL_AGAIN_S:
            self.told_at = now
            strangers, all_ = len(self.strangers), len(self.strangers) + len(self.known)
            log.warning("%d TCP connections are open, %d without a token: some are refused or closed", all_, strangers)


class Connection(HttpToolsProtocol):
    """uvicorn's, with limits."""

    def __init__(self, door: Door, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._door = door
        self._unread = 0
        """Bytes since the parser had anything whole to tell: of a head, or of what surrounds a body."""
        self._too_large = False
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if transport.get_extra_info("socket").family != socket.AF_UNIX:
            if not self._door.let_in(self, self.loop.time()):
                self._refuse_connection()
                return
            self.timeout_keep_alive = STRANGER_REST_S  # type: ignore[assignment]  # uvicorn hands it to call_later
        self._head_timer = self.loop.call_later(HEAD_S, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._door.let_out(self)
        super().connection_lost(exc)

    def make_room(self) -> None:
        """Close, with a word where one can be said: not into an answer, nor to somebody who does not read."""
        if (self.cycle is None or self.cycle.response_complete) and not self.transport.get_write_buffer_size():
            self._refuse_connection()
        else:
            self.transport.abort()

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
        self.scope["state"][WELCOME] = self._welcome
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

    def _welcome(self) -> None:
        self.timeout_keep_alive = self.config.timeout_keep_alive
        self._door.welcome(self)

    def _refuse_connection(self) -> None:
        self._refuse(503, "too_many_connections", "Too many connections are open: try again later.")

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
