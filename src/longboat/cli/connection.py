"""Short requests over the standard library, so that a command that asks one thing starts at once.

Sends the same `Call`s as the SDK. Must not stream: `longboat run` uses the SDK for that.
"""

import http.client
import socket
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from longboat.client import calls
from longboat.client.address import Address, find
from longboat.client.calls import Call
from longboat.errors import ServerUnreachable, Unauthorized
from longboat.wire.models import Workspace

T = TypeVar("T")


class _Page(Protocol):
    @property
    def next(self) -> str | None: ...


Page = TypeVar("Page", bound=_Page)

CONNECT_S = 5.0


class Connection:
    """The server at `address`; each call is a connection of its own."""

    def __init__(self, address: Address | None = None) -> None:
        self.address = address or find()

    def send(self, call: Call[T]) -> T:
        try:
            status, content = self._exchange(call)
        except (OSError, http.client.HTTPException) as lost:
            reason = getattr(lost, "strerror", None) or str(lost) or type(lost).__name__
            raise ServerUnreachable(f"No answer from the Longboat server at {self.address}: {reason}") from lost
        try:
            return call.read(status, content)
        except Unauthorized:  # what the server says of it is for those who write requests by hand
            what = "refuses the token that it was sent" if self.address.token else "wants a token"
            raise Unauthorized(f"The Longboat server at {self.address} {what}.") from None

    def join(self, path: str) -> Workspace:
        """The workspace of a directory."""
        return self.send(calls.join(path, None))

    def pages(self, page_after: Callable[[str | None], Call[Page]]) -> Iterator[Page]:
        """All pages of a list; `page_after` asks for the one after a cursor."""
        after = None
        while True:
            page = self.send(page_after(after))
            yield page
            after = page.next
            if after is None:
                return

    def _exchange(self, call: Call[T]) -> tuple[int, bytes]:
        wire = self._open(call.timeout_s)
        try:
            target = urlsplit(self.address.base_url).path + call.target
            wire.request(call.method, target, body=call.body, headers=self.address.headers | call.headers)
            response = wire.getresponse()
            return response.status, response.read()
        finally:
            wire.close()

    def _open(self, timeout_s: float) -> http.client.HTTPConnection:
        if self.address.url is None:
            return _UnixConnection(self.address.socket or "", timeout_s)
        parts = urlsplit(self.address.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname or "localhost", parts.port, timeout=timeout_s)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path
        self._timeout_s = timeout_s

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(CONNECT_S)
        self.sock.connect(self._path)
        self.sock.settimeout(self._timeout_s)
