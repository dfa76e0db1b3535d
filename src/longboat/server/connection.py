"""One HTTP connection: uvicorn's, with limits on size and time for which uvicorn has no settings.

Owns how large the head of a request may be, how many requests may wait, and how slowly heads and bodies may arrive.
The caller is checked as soon as the head is complete, before any of the body is kept: the body of an unauthorized
request is discarded as it arrives. Also limits the number of TCP connections and the memory used by those without a
token: the unix socket belongs to the owner, and no one is refused there; a TCP connection is unauthenticated until a
request on it has sent the token. Unauthenticated connections may use at most half of the places, and the oldest is
closed when none is left; when they use too much memory, the largest is closed. Must not know routes, nor what a token
is.
"""

import asyncio
import logging
import resource
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
from uvicorn._types import ASGI3Application, HTTPScope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from longboat.errors import LongboatError

MAX_DESCRIPTORS = 65_536
MAX_CONNECTIONS = 4_096
"""Over TCP."""
MAX_STRANGERS = 1_024
"""Connections without a token; an idle one takes 7 KB."""
MAX_STRANGER_BYTES = 4 << 20
"""Memory for all connections without a token together: unfinished heads, login forms, and responses they do not
read."""
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


def open_connection_limits() -> "ConnectionLimits":
    """The door of this process. The store, model calls and tools keep at least half of the descriptors."""
    return ConnectionLimits(limit=min(MAX_CONNECTIONS, raise_descriptor_limit() // 2))


class Connected(Protocol):
    """What the limits need to know about a connection."""

    def make_room(self) -> None:
        """Close at once."""


@dataclass(slots=True, kw_only=True)
class ConnectionLimits:
    """Tracks the TCP connections."""

    limit: int
    known: set[Connected] = field(default_factory=set)
    strangers: dict[Connected, int] = field(default_factory=dict)
    """How many bytes each of them holds; oldest first."""
    held: int = 0
    """How many bytes all strangers hold."""
    told_at: float = float("-inf")

    def let_in(self, connection: Connected, now: float) -> bool:
        """Whether there is room. Where a stranger can make it, one does."""
        most_strangers = min(MAX_STRANGERS, max(1, self.limit // 2))
        if len(self.strangers) >= most_strangers or len(self.strangers) + len(self.known) >= self.limit:
            self._tell(now)
            oldest = next(iter(self.strangers), None)
            if oldest is None:
                return False
            self._turn_out(oldest)
        self.strangers[connection] = 0
        return True

    def hold(self, connection: Connected, size: int) -> None:
        """Record how many bytes a connection holds. If those without a token hold too much, close the largest."""
        if connection not in self.strangers:
            return
        self.held += size - self.strangers[connection]
        self.strangers[connection] = size
        while self.held > MAX_STRANGER_BYTES:
            self._turn_out(max(self.strangers, key=self.strangers.__getitem__))

    def welcome(self, connection: Connected) -> None:
        if connection in self.strangers:
            self._forget(connection)
            self.known.add(connection)

    def let_out(self, connection: Connected) -> None:
        self._forget(connection)
        self.known.discard(connection)

    def _turn_out(self, stranger: Connected) -> None:
        self._forget(stranger)
        stranger.make_room()

    def _forget(self, stranger: Connected) -> None:
        self.held -= self.strangers.pop(stranger, 0)

    def _tell(self, now: float) -> None:
        if now - self.told_at > _TELL_AGAIN_S:
            self.told_at = now
            strangers, all_ = len(self.strangers), len(self.strangers) + len(self.known)
            log.warning("%d TCP connections are open, %d without a token: some are refused or closed", all_, strangers)


HEAD_S = 15.0
"""How long the head of a request may take, from the connection or from its first byte; a stranger's whole request."""
BODY_S = 30.0
BODY_RATE = 1_000
"""The minimum rate of a body in bytes per second, measured over each BODY_S seconds."""
STRANGER_REST_S = 5.0
"""How long a stranger's connection may rest between requests."""
LINGER_S = 5.0
"""How long we read on, and throw away, after an answer to a request whose body we did not take. A connection that is
closed with unread data is reset, and the client may lose the answer."""
MAX_HEAD = 64 * 1024
MAX_HEADERS = 256
"""In the head and after a chunked body."""
MAX_PIPELINED = 16
"""Requests that wait for the answer to an earlier one on the same connection."""
ADMISSION = "longboat_admission"
"""Under this name in the state of an ASGI scope: the Admission."""

_HEADER_COST = 200
"""Bytes of memory that a header takes besides its text."""
_REQUEST_COST = 4_096
"""The same of a request that waits in line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The decision about a request when its head is complete."""

    known: bool
    """The caller has shown the token, or came over the unix socket."""
    takes_body: bool
    """Otherwise the body is thrown away, and the connection is closed after the answer."""
    refusal: LongboatError | None = None


Judge = Callable[[HTTPScope], Admission]


class _Stopped(Exception):
    """Stops the parser, which reports it as an invalid request."""


class Connection(HttpToolsProtocol):
    def __init__(self, door: ConnectionLimits, judge: Judge, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._door = door
        self._judge = judge
        self._unparsed = 0
        """Bytes since the parser had anything whole to tell: of a head, or of what surrounds a body."""
        self._head_size = 0
        self._body_size = 0
        """Of the newest request, since its clock was last looked at."""
        self._takes_body = True
        self._is_whole = True
        """The newest request has come to its end."""
        self._refusal: tuple[int, str, str] | None = None
        """Why the parser was stopped: status, code, message. None: because enough requests wait."""
        self._is_deaf = False
        """What still comes is thrown away."""
        self._answering: RequestResponseCycle | None = None
        self._timer: asyncio.TimerHandle | None = None

    # From the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if transport.get_extra_info("socket").family != socket.AF_UNIX:
            if not self._door.let_in(self, self.loop.time()):
                self._refuse_connection()
                return
            self.timeout_keep_alive = STRANGER_REST_S  # type: ignore[assignment]  # uvicorn hands it to call_later
        self._start_timer(HEAD_S, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._door.let_out(self)
        self.pipeline.clear()
        if self._answering is not None:  # uvicorn tells the newest request, which may be waiting behind this one
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        self._unparsed += len(data)
        super().data_received(data)
        if self.transport.is_closing() or self._is_deaf:
            return
        if self._unparsed > MAX_HEAD:
            self._refuse_head()
        elif self._timer is None:
            self._start_clock()
        self._report_size()

    def make_room(self) -> None:
        """Close now, with an error if possible: not during an answer, nor to a client that does not read."""
        if self._is_between_answers() and not self.transport.get_write_buffer_size():
            self._refuse_connection()
        else:
            self.transport.abort()

    # From the parser

    def on_message_begin(self) -> None:
        self._head_size = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            self._stop_parsing(431, "head_too_large", f"A request may have at most {MAX_HEADERS} headers.")

    def on_headers_complete(self) -> None:
        self._head_size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if self._head_size > MAX_HEAD:
            self._stop_parsing(431, "head_too_large", f"The head of a request may have at most {MAX_HEAD >> 10} KB.")
        if len(self.pipeline) >= MAX_PIPELINED:
            self._stop_after_pipeline()
        self._unparsed = self._body_size = 0
        self._is_whole = False
        super().on_headers_complete()
        self._apply(self._judge(self.scope))  # its task has been made and has not begun

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        self._body_size += len(body)
        if self._takes_body:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed = 0
        self._is_whole = True
        self._stop_timer()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if self._refusal is not None:
            self._refuse(*self._refusal)
        elif not self._is_deaf:
            self._refuse(400, "bad_http", "This is not valid HTTP/1.1.")

    def on_response_complete(self) -> None:
        if not self._is_deaf or self.pipeline:
            super().on_response_complete()
        self._report_size()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    # Decisions

    def _apply(self, admission: Admission) -> None:
        self.scope["state"][ADMISSION] = admission
        self._takes_body = admission.takes_body
        if not admission.takes_body and _announces_body(self.headers):
            self.cycle.keep_alive = False
            self.cycle.transport = _LastAnswer(self)  # type: ignore[assignment]  # has what a cycle calls
        if admission.known:
            self.timeout_keep_alive = self.config.timeout_keep_alive
            self._door.welcome(self)
            self._stop_timer()  # the body has a clock of its own

    def _start_clock(self) -> None:
        """For what is still to come of a request. uvicorn stops its own clock, for idle connections, at the first byte
        of one."""
        if not self._is_whole:
            self._start_timer(BODY_S, self._check_body)
        elif self.cycle.response_complete:
            self._start_timer(HEAD_S, self.transport.abort)

    def _check_body(self) -> None:
        """Give the body more time if it came fast enough, or if we were the ones who did not read."""
        if self.flow.read_paused or self._body_size >= BODY_S * BODY_RATE:
            self._body_size = 0
            self._start_timer(BODY_S, self._check_body)
        else:
            self._refuse(408, "body_too_slow", f"The body must arrive at {BODY_RATE / 1000:g} KB per second or faster.")

    def _report_size(self) -> None:
        waiting = len(self.pipeline) * _REQUEST_COST
        headers = self._head_size + len(self.headers or ()) * _HEADER_COST
        body = len(self.cycle.body) if self.cycle is not None else 0
        answers = self.transport.get_write_buffer_size()
        self._door.hold(self, self._unparsed + headers + body + waiting + answers)

    def _stop_parsing(self, status: int, code: str, message: str) -> None:
        self._refusal = (status, code, message)
        raise _Stopped

    def _stop_after_pipeline(self) -> None:
        """Answer what waits, say with the last answer that the connection closes, and take no more."""
        last, _ = self.pipeline[0]
        last.keep_alive = False
        last.transport = _LastAnswer(self)  # type: ignore[assignment]  # has what a cycle calls
        self._is_deaf = True
        raise _Stopped

    def _is_between_answers(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    # Last words

    def _refuse_connection(self) -> None:
        self._write_refusal(503, "too_many_connections", "Too many connections are open. Try again later.")
        self.transport.close()

    def _refuse_head(self) -> None:
        self._refuse(431, "head_too_large", f"The head of a request may have at most {MAX_HEAD >> 10} KB.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Answer what cannot be handled, and close; without an answer where another one is under way."""
        if not self._is_between_answers() and (self.cycle.response_started or self.pipeline):
            self.transport.abort()
            return
        self._write_refusal(status, code, message)
        if not self._is_between_answers():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.close_gently()

    def _write_refusal(self, status: int, code: str, message: str) -> None:
        body = msgspec.json.encode({"code": code, "message": message})
        head = (
            b"content-type: application/json\r\nx-content-type-options: nosniff\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        )
        self.transport.write(STATUS_LINE[status] + head + body)

    def close_gently(self) -> None:
        """Send what is written and say that no more comes; then read on for a moment so that it arrives."""
        self._is_deaf = True
        if self.transport.is_closing():
            return
        self.transport.write_eof()
        self.flow.resume_reading()
        self._start_timer(LINGER_S, self.transport.abort)

    def _start_timer(self, delay_s: float, callback: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(delay_s, callback)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _LastAnswer:
    """The transport of the last answer on a connection, which is closed gracefully."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def write(self, data: bytes) -> None:
        self._connection.transport.write(data)

    def is_closing(self) -> bool:
        return self._connection.transport.is_closing()

    def close(self) -> None:
        self._connection.close_gently()


def _announces_body(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in headers)
