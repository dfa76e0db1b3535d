"""The plainest HTTP client: blocking sockets, so that what is timed is the server and not its client."""

import socket
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

GIVE_UP_S = 60
RUN_COMPLETE = b"event: run_complete"


class Wire:
    """One connection to a unix socket, kept open."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(GIVE_UP_S)
        self._rest = b""
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, request: bytes) -> None:
        self._socket.sendall(request)

    def receive(self) -> bytes:
        """Whatever comes next."""
        data = self._socket.recv(256 * 1024)
        if not data:
            raise ConnectionError("the server closed the connection")
        return data

    def answer(self) -> tuple[int, bytes]:
        """Status and body of a response that tells its length."""
        head = self._until(b"\r\n\r\n")
        lengths = [line[15:] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        length = int(lengths[0]) if lengths else 0
        while len(self._rest) < length:
            self._rest += self.receive()
        body, self._rest = self._rest[:length], self._rest[length:]
        return int(head.split(b" ", 2)[1]), body

    def wait_for(self, mark: bytes, count: int = 1) -> None:
        """Read until `mark` came `count` times; what came after it is not kept."""
        for _ in range(count):
            self._until(mark)
        if count == 1:
            self._rest = b""

    def ask(self, method: str, target: str, value: Any = None) -> Any:
        """A request and what its answer says. For setting up: what is timed uses `send` and `answer`."""
        self.send(request(method, target, value))
        status, body = self.answer()
        if status >= 300:
            raise RuntimeError(f"{method} {target}: {status} {body.decode()}")
        return msgspec.json.decode(body) if body else None

    def _until(self, mark: bytes) -> bytes:
        start = 0
        while (at := self._rest.find(mark, start)) < 0:
            start = max(0, len(self._rest) - len(mark))
            self._rest += self.receive()
        found, self._rest = self._rest[:at], self._rest[at + len(mark) :]
        return found


def request(method: str, target: str, value: Any = None) -> bytes:
    """A request as bytes, with `value` as its JSON body."""
    body = b"" if value is None else msgspec.json.encode(value)
    head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
