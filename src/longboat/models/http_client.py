"""HTTP/1.1 for streamed answers: send a POST, read the pieces as they come, keep the connection for the next.

Owns connections, their pool and their timeouts. Must not know what is sent. Written on httptools because each chunk of
each answer passes through it: a general client spends a quarter of a busy server's time (docs/dependencies.md). Proxies
are left to a general client, see `proxied_http.py`.
"""

import asyncio
import base64
import math
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol, cast
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httptools

MAX_IDLE = 64
"""Connections kept for the next requests: as many as runs may be at work at once."""
IDLE_S = 30.0
"""How long one is kept: firewalls forget quiet connections without telling anyone."""
MAX_BUFFERED = 256 * 1024
MAX_HEAD = 64 * 1024

_BAD_HEADER = re.compile(r"[^\t\x20-\x7e\x80-\xff]")
_BAD_NAME = re.compile(r"[^!#$%&'*+.^_`|~0-9A-Za-z-]")


class ServerSilent(OSError):
    """Nothing came for as long as we were ready to wait."""

    def __init__(self, seconds: float, *, began: bool) -> None:
        """`began`: the answer's body had begun."""
        super().__init__(f"received nothing for {seconds:g} s")
        self.seconds = seconds
        self.began = began


class UnsendableRequest(ValueError):
    """The address or a header cannot be written as HTTP. Does not quote it: it may be a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    connect_s: float
    first_s: float
    """For the first piece of the answer's body. `math.inf`: the head may take as long as it likes, and the first piece
    as long as any other."""
    idle_s: float
    """Between two pieces."""


class Answer(Protocol):
    """An answer that is being read. `aclose` it in any case."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """With names in lower case."""
        ...

    async def read(self) -> bytes:
        """The next pieces; empty at the end. Raises OSError if the answer breaks off."""
        ...

    async def aclose(self) -> None:
        """Keep the connection if the answer was read to its end; otherwise close it at once."""
        ...


class HttpClient(Protocol):
    async def post(self, headers: Mapping[str, str], body: bytes) -> Answer:
        """Raises OSError if there is no answer, UnsendableRequest if there cannot be one."""
        ...

    async def aclose(self) -> None: ...


class DirectHttp:
    """Requests to one URL, without a proxy."""

    def __init__(self, url: str, timeouts: Timeouts) -> None:
        self._url = url
        self._timeouts = timeouts
        self._idle: list[_Connection] = []

    async def post(self, headers: Mapping[str, str], body: bytes) -> Answer:
        target = _target(self._url)
        path = (target.path or "/") + (f"?{target.query}" if target.query else "")
        return await self.send("POST", path.replace(" ", "%20"), headers, body)

    async def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, *, again: bool = True
    ) -> Answer:
        """`again`: the request may be sent a second time if a kept connection turns out to be closed."""
        target = _target(self._url)
        message = _encode(target, method, path, headers, body)
        while self._idle and again:
            connection = self._idle.pop()
            if connection.usable:
                try:
                    return await connection.exchange(message)
                except ConnectionError:
                    if connection.answered:
                        raise
                    break  # closed while it was idle, just now: another try is safe
            connection.close()
        return await (await self.connect(target)).exchange(message)

    async def aclose(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    async def connect(self, target: SplitResult) -> "_Connection":
        loop = asyncio.get_running_loop()
        secure = target.scheme == "https"
        context = await asyncio.to_thread(tls_context) if secure else None
        try:
            async with asyncio.timeout(self._timeouts.connect_s):
                _, connection = await loop.create_connection(
                    lambda: _Connection(loop, self._timeouts, self._keep),
                    target.hostname or "",
                    target.port or (443 if secure else 80),
                    ssl=context,
                    server_hostname=target.hostname if secure else None,
                )
        except TimeoutError:
            raise OSError(f"no connection within {self._timeouts.connect_s:g} s") from None
        return connection

    def _keep(self, connection: "_Connection") -> bool:
        self._idle = [each for each in self._idle if each.usable]
        if len(self._idle) >= MAX_IDLE:
            return False
        self._idle.append(connection)
        return True


def needs_proxy(url: str) -> bool:
    """Whether the environment names a proxy for this URL."""
    try:
        target = urlsplit(url)
        host = target.hostname or ""
    except ValueError:
        return False
    proxies = getproxies()
    return bool(proxies.get(target.scheme) or proxies.get("all")) and not proxy_bypass(host)


@cache
def tls_context() -> ssl.SSLContext:
    import httpx2

    context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _target(url: str) -> SplitResult:
    try:
        target = urlsplit(url)
        _ = target.port
    except ValueError:
        raise UnsendableRequest from None
    if target.scheme not in ("http", "https") or not target.hostname or not url.isascii() or _BAD_HEADER.search(url):
        raise UnsendableRequest
    return target


def _encode(target: SplitResult, method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    sent = {"Host": target.netloc.rpartition("@")[2], "Content-Length": str(len(body)), **headers}
    if target.username is not None and "authorization" not in {name.lower() for name in headers}:
        user = f"{unquote(target.username)}:{unquote(target.password or '')}"
        sent["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
    if any(_BAD_NAME.search(name) or not name or _BAD_HEADER.search(value) for name, value in sent.items()):
        raise UnsendableRequest
    lines = (f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()))
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


@dataclass(slots=True)
class _Head:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    size: int = 0


class _Keep(Protocol):
    def __call__(self, connection: "_Connection") -> bool:
        """Whether the pool takes it."""
        ...


class _Connection(asyncio.Protocol):
    """One connection, which serves one request at a time. It is the answer of that request, too."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timeouts: Timeouts, keep: _Keep) -> None:
        self._loop = loop
        self._timeouts = timeouts
        self._keep = keep
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0
        self._begin()

    def _begin(self) -> None:
        self._head = _Head()
        self._has_head = self._has_body = self._complete = self._reusable = self._open = False
        self._before_head = 0
        """Bytes that came before the head was complete: of a header without an end, of any number of "100 Continue"."""
        self._pieces: list[bytes] = []
        self._size = 0
        self._paused = False
        self._error: OSError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._waits_since = 0.0

    # For the pool

    @property
    def usable(self) -> bool:
        return (
            self._transport is not None
            and not self._transport.is_closing()
            and self._loop.time() - self._idle_since < IDLE_S
        )

    @property
    def answered(self) -> bool:
        """Something has come for the current request."""
        return self._head.status != 0

    async def exchange(self, message: bytes) -> Answer:
        self._begin()
        self._open = True
        assert self._transport is not None
        self._transport.write(message)
        self._watch(self._timeouts.first_s)
        sent_at = self._loop.time()
        try:
            while not self._has_head:
                if self._error is not None:
                    raise self._error
                await self._wait(sent_at)  # a head that trickles in has no more time than one that does not come
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        self._open = False
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()

    def expect_signs(self, within_s: int) -> None:
        """From now on, the connection breaks if the other end acknowledges nothing for that long: it is gone without a
        word. One that is only slow to answer does acknowledge."""
        assert self._transport is not None
        options = self._transport.get_extra_info("socket")
        options.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # Some systems have only some of these, and their own names for them.
        for name, value in (
            ("TCP_KEEPIDLE", within_s // 2),
            ("TCP_KEEPALIVE", within_s // 2),
            ("TCP_KEEPINTVL", within_s // 6),
            ("TCP_KEEPCNT", 3),
            ("TCP_USER_TIMEOUT", within_s * 1000),
        ):
            if (option := getattr(socket, name, None)) is not None:
                options.setsockopt(socket.IPPROTO_TCP, option, value)

    def break_off(self, why: str) -> None:
        """The answer will not come: who waits for it gets a ConnectionError."""
        self._fail(ConnectionError(why))

    # The answer

    @property
    def status(self) -> int:
        return self._head.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._head.headers

    async def read(self) -> bytes:
        while not self._pieces:
            if self._complete:
                return b""
            if self._error is not None:
                raise self._error
            await self._wait(self._loop.time())
        pieces = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return pieces

    async def aclose(self) -> None:
        if not self._open:
            return
        self._open = False
        self._stop_timer()
        self._idle_since = self._loop.time()
        whole = self._complete and not self._pieces and self._error is None
        if not (whole and self._reusable and self.usable and self._keep(self)):
            self.close()

    async def _wait(self, since: float) -> None:
        self._waits_since = since
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: OSError) -> None:
        self._error = self._error or error
        self._wake()

    # Time

    def _watch(self, limit_s: float) -> None:
        self._stop_timer()
        if limit_s == math.inf:
            return
        self._timer = self._loop.call_later(limit_s, self._check_silence, limit_s)

    def _check_silence(self, limit_s: float) -> None:
        """One timer for many pieces: it looks how long someone has waited for the next."""
        silent_s = self._loop.time() - self._waits_since if self._waiter is not None else 0.0
        if silent_s >= limit_s:
            self._fail(ServerSilent(limit_s, began=self._has_body))
        else:
            self._timer = self._loop.call_later(limit_s - silent_s, self._check_silence, limit_s)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # From the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one without saying so

    def data_received(self, data: bytes) -> None:
        if not self._open:
            self.close()  # no one asked for this
            return
        if not self._has_head:
            self._before_head += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(ConnectionError(f"the answer is not HTTP ({error})"))
            return
        if self._head.size > MAX_HEAD or (not self._has_head and self._before_head > MAX_HEAD):
            self._fail(ConnectionError("the answer's headers are too long"))
        if self._size > MAX_BUFFERED and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._transport = None
        if not self._open or self._complete:
            return
        if self._has_head and exc is None and not self._head.headers.keys() & {"content-length", "transfer-encoding"}:
            self._complete = True  # such a body ends with its connection
            self._wake()
            return
        reason = str(exc) if exc is not None else "the server closed the connection"
        self._fail(ConnectionError(reason))

    # From the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head.size += len(name) + len(value)
        self._head.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._head.status = self._parser.get_status_code()
        self._has_head = self._head.status >= 200
        if self._has_head and self._timeouts.first_s == math.inf:
            self._watch(self._timeouts.idle_s)

    def on_body(self, body: bytes) -> None:
        if not self._has_body:
            self._has_body = True
            self._watch(self._timeouts.idle_s)
        self._pieces.append(body)
        self._size += len(body)

    def on_message_complete(self) -> None:
        if not self._has_head:
            self._head = _Head()  # "100 Continue" and the like: the answer follows
            return
        self._complete = True
        self._reusable = self._parser.should_keep_alive()
