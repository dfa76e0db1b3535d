"""Short requests over the standard library, so that simple commands start fast.

Sends the same `Call`s as the SDK. Must not stream: `longboat run` uses the SDK for that.
"""

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar, cast
from urllib.parse import urlsplit

from longboat.cli.bounded_reading import GREETING, LARGEST, BoundedReading, limit_reading
from longboat.client import calls
from longboat.client.address import Address, find
from longboat.client.answers import untrusted
from longboat.client.call import Call
from longboat.client.following import Asking
from longboat.errors import LongboatError, ServerUnreachable, Unauthorized, Unavailable, WorkspaceClosing
from longboat.wire.listings import SessionOrder
from longboat.wire.models import Health, Version, Workspace

if TYPE_CHECKING:
    from longboat.client.reconnection import Outage

T = TypeVar("T")


class _Page(Protocol):
    @property
    def next(self) -> str | None: ...


Page = TypeVar("Page", bound=_Page)

CONNECT_S = 5.0
RETRY_FOR_S = 30.0
"""How long to retry a cancel while the server is unreachable."""


class Connection:
    """The server at `address`. Each call opens its own connection."""

    def __init__(self, address: Address | None = None) -> None:
        self.address = address or find()

    def send(self, call: Call[T]) -> T:
        try:
            status, content = self._exchange(call)
        except ssl.SSLCertVerificationError as doubt:
            raise untrusted(self.address) from doubt
        except (OSError, http.client.HTTPException) as lost:
            reason = getattr(lost, "strerror", None) or str(lost) or type(lost).__name__
            raise ServerUnreachable(f"No answer from the Longboat server at {self.address}: {reason}") from lost
        try:
            return call.read(status, content)
        except Unauthorized:  # the server's own message is for people who write requests by hand
            what = "rejects the token" if self.address.token else "requires a token"
            raise Unauthorized(f"The Longboat server at {self.address} {what}.") from None

    def send_with_retry(self, call: Call[T], *, on_outage: "Outage", give_up_after_s: float = RETRY_FOR_S) -> T:
        """As `send`, again while the server is away or cannot write. Only for calls that are safe to repeat."""
        from longboat.client.reconnection import Reconnection

        reconnection = Reconnection(give_up_after_s, on_outage=on_outage)
        while True:
            try:
                answer = self.send(call)
            except (ServerUnreachable, WorkspaceClosing, Unavailable) as lost:
                time.sleep(reconnection.lost(lost))
            else:
                reconnection.heard()
                return answer

    def carry_out(self, procedure: Asking[T]) -> T:
        """Carry out a procedure that needs no stream."""
        try:
            call = next(procedure)
            while True:
                try:
                    answer = self.send(call)
                except LongboatError as refusal:
                    call = procedure.throw(refusal)
                else:
                    call = procedure.send(answer)
        except StopIteration as end:
            return cast(T, end.value)

    def join(self, path: str, *, client_id: str | None = None, env: Mapping[str, str] | None = None) -> Workspace:
        """The workspace of a directory. `env`: the environment for the commands of this client's runs."""
        return self.send(calls.join(path, client_id, env))

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
            return self._heard(wire.sock, call)
        finally:
            wire.close()

    def _heard(self, wire: socket.socket, call: Call[T]) -> tuple[int, bytes]:
        most = GREETING if call.answer in (Health, Version) else LARGEST
        reception = BoundedReading(str(self.address), timeout_s=call.timeout_s, most=most)
        with http.client.HTTPResponse(limit_reading(wire, reception), method=call.method) as response:
            response.begin()
            return response.status, response.read()

    def _open(self, timeout_s: float) -> http.client.HTTPConnection:
        if self.address.url is None:
            return _UnixConnection(self.address.socket or "", timeout_s)
        parts = urlsplit(self.address.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname or "localhost", parts.port, timeout=timeout_s)


def last_session(connection: Connection, workspace_id: str) -> str | None:
    """The session with the newest prompt, which need not be the newest session. Ignores sub-agents."""
    for runs in connection.pages(lambda after: calls.runs(workspace_id, limit=20, after=after)):
        for run in runs.items:
            if run.parent_run_id is None:
                return run.session_id
    newest = SessionOrder.NEWEST
    for sessions in connection.pages(lambda after: calls.sessions(workspace_id, limit=20, after=after, order=newest)):
        for session in sessions.items:
            if session.parent_id is None:
                return session.id
    return None


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
