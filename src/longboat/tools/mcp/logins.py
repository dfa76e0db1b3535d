"""The local address that browsers return to after a login, and the private files that store tokens.

One object serves all workspaces of a server process: the port is registered with the remote server, and a person who
logged in for one workspace has logged in for all. Must not know OAuth beyond the `state` that identifies a login.
"""

import asyncio
import hashlib
import json
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from longboat import regular_files

_DONE = b"You are logged in: close this page and go back to Longboat.\n"
_LOST = b"Longboat does not wait for this login, or no longer: start it again.\n"
_REQUEST_S = 10.0
_LONGEST_REQUEST = 16_384

Query = dict[str, str]


class Logins:
    """`directory` is created when the first file is stored in it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._socket: socket.socket | None = None
        self._expected: dict[str, asyncio.Future[Query]] = {}
        self._server: asyncio.Server | None = None
        self._opening = asyncio.Lock()
        self._renewing: dict[Path, asyncio.Lock] = {}

    def file_for(self, url: str) -> Path:
        return self._directory / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"

    def renewing(self, file: Path) -> asyncio.Lock:
        """Held by the one who renews what is in the file: most tokens can be renewed only once."""
        return self._renewing.setdefault(file, asyncio.Lock())

    def address(self) -> str:
        """Where browsers return to. The port is ours from the first call until we close, and stays the same after a
        restart if it is still free."""
        if self._socket is None:
            self._socket = self._bound()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/callback"

    @asynccontextmanager
    async def expecting(self, state: str) -> AsyncIterator["asyncio.Future[Query]"]:
        """Wait for the login with this state to come back. We listen from the first time on."""
        async with self._opening:
            if self._server is None:
                self.address()
                self._server = await asyncio.start_server(self._greet, sock=self._socket, limit=_LONGEST_REQUEST)
        came: asyncio.Future[Query] = asyncio.get_running_loop().create_future()
        self._expected[state] = came
        try:
            yield came
        finally:
            del self._expected[state]

    def arrive(self, address: str) -> bool:
        """Take the address that a browser was sent to; whether a login waited for it. Anyone on this machine can knock,
        but only the one who was sent away knows the state."""
        query = query_of(address)
        came = self._expected.get(query.get("state", ""))
        if came is None or came.done():
            return False
        came.set_result(query)
        return True

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _bound(self) -> socket.socket:
        file = self._directory / "port.json"
        kept = load(file).get("port")
        try:
            bound = socket.create_server(("127.0.0.1", kept if isinstance(kept, int) else 0))
        except (OSError, OverflowError):
            bound = socket.create_server(("127.0.0.1", 0))
        save(file, {"port": bound.getsockname()[1]})
        return bound

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
                words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
                known = len(words) == 3 and words[0] == "GET" and self.arrive(words[1])
                status, body = (b"200 OK", _DONE) if known else (b"404 Not Found", _LOST)
                writer.write(b"HTTP/1.1 %s\r\ncontent-type: text/plain\r\n" % status)
                writer.write(b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            writer.close()


def query_of(address: str) -> Query:
    """What an address says after its `?`. Raises ValueError if it is none."""
    return {key: values[0] for key, values in parse_qs(urlsplit(address).query).items()}


def load(file: Path) -> dict[str, Any]:
    try:
        kept = json.loads(regular_files.read(file))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def save(file: Path, kept: dict[str, Any]) -> None:
    """Replace the file as a whole; no one else can read it."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as out:
        json.dump(kept, out)
    os.replace(new, file)
