"""Secrets that every server under test is given, and the search for them in all that comes out of it.

The harnesses hand their servers these secrets and show here every response, event frame, log line and command's output
that passes through them; `conftest` fails the test that let one out, with its name and the place. Exceptions are said
in the test: `@pytest.mark.shows_secrets("provider key", reason="…")`. The discovery file is not searched: the server's
token is there for the user's own programs, as is the browser's cookie, which is made from the token and is not it.
"""

import asyncio
import base64
import json
import logging
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

CANARY = "Zq4x"
_CODES = {
    "provider key": "PK",
    "provider header": "PH",
    "server token": "ST",
    "stored key": "SK",
    "environment variable": "EV",
    "MCP environment": "ME",
    "MCP header": "MH",
    "cluster secret": "CS",
}
SECRETS = {name: f"s-{f'{CANARY}{code}' * 5}" for name, code in _CODES.items()}
"""Any nine characters of one in a row hold the canary: a secret that is cut or starred is found too."""

ENVIRON = {
    "LB_TEST_KEY": SECRETS["provider key"],
    "LB_TEST_HEADER": SECRETS["provider header"],
    "LB_TEST_MCP": SECRETS["MCP environment"],
    "LB_TEST_MCP_HEADER": SECRETS["MCP header"],
    "LB_TEST_UNRELATED": SECRETS["environment variable"],
}
"""What servers find in their environment. Configurations name the first four."""

_ENOUGH = 24
"""So many characters of a secret in base64 are a leak."""


def _wrapped(secret: str) -> tuple[bytes, ...]:
    """The secret in base64, wherever it stands in what was encoded."""
    texts = (base64.b64encode(b"." * lead + secret.encode()) for lead in range(3))
    return tuple(text[8 : 8 + _ENOUGH] for text in texts)


_SPELLINGS = [
    (name, (f"{CANARY}{code}".encode(), f"{code}{CANARY}".encode(), *_wrapped(SECRETS[name])))
    for name, code in _CODES.items()
]
_LONGEST = max(map(len, SECRETS.values())) * 2


def secrets_in(said: bytes) -> list[str]:
    """The secrets of which a piece is in there, plain or in base64."""
    return [name for name, spellings in _SPELLINGS if any(spelling in said for spelling in spellings)]


@dataclass
class LeakRecorder:
    """What was let out in one test, and where."""

    leaks: dict[str, set[str]] = field(default_factory=dict)
    """Places by secret."""

    def check_for_secrets(self, said: bytes | str, where: str) -> None:
        for name in secrets_in(said.encode(errors="replace") if isinstance(said, str) else said):
            self.leaks.setdefault(name, set()).add(where)

    def complaint(self, *allowed: str) -> str:
        """What is wrong, or nothing."""
        found = {name: sorted(places) for name, places in self.leaks.items() if name not in allowed}
        return "".join(f"\nthe {name} came out in {', '.join(places)}" for name, places in found.items())


recorder = LeakRecorder()
"""That of the test that is running: `conftest` empties it before each."""


def check_for_secrets(said: bytes | str, where: str) -> None:
    recorder.check_for_secrets(said, where)


class StreamCheck:
    """Hears a stream in pieces: a secret that is cut in two is found as well."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._rest = b""

    def check_for_secrets(self, piece: bytes) -> None:
        said = self._rest + piece
        check_for_secrets(said, self._where)
        self._rest = said[-_LONGEST:]


class LogCheck(logging.Handler):
    """Hears every log line of this process, tracebacks too."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == "httpx2" and "/login?token=" in record.getMessage():
            return  # a test's own client, which tells where it logs in
        check_for_secrets(f"{self.format(record)}\n{vars(record)}", f"the log of {record.name}")


class _CheckedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, check: StreamCheck) -> None:
        self._stream = stream
        self._check = check

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._check.check_for_secrets(piece)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class CheckedTransport(httpx2.AsyncBaseTransport):
    """A transport whose every answer is heard: its headers and, piece by piece, its body, streams too."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._transport.handle_async_request(request)
        where = f"{request.method} {request.url.path}"
        check_for_secrets(
            b"\n".join(name + b": " + value for name, value in answer.headers.raw), f"the headers of {where}"
        )
        assert isinstance(answer.stream, httpx2.AsyncByteStream)
        answer.stream = _CheckedStream(answer.stream, StreamCheck(f"the answer to {where}"))
        return answer

    async def aclose(self) -> None:
        await self._transport.aclose()


def check_reader(reader: asyncio.StreamReader, where: str) -> None:
    """Hear all that comes on a bare connection from now on."""
    check, feed = StreamCheck(where), reader.feed_data

    def check_and_feed(data: bytes) -> None:
        check.check_for_secrets(data)
        feed(data)

    setattr(reader, "feed_data", check_and_feed)  # noqa: B010 - the protocol calls it by name


def provider(base_url: str = "http://127.0.0.1:1/v1", **changes: Any) -> dict[str, Any]:
    """A provider with a key and a header that nobody may see."""
    headers = {"X-Secret": "$LB_TEST_HEADER"}
    entry = {"type": "openai-compatible", "base_url": base_url, "api_key": "$LB_TEST_KEY", "headers": headers}
    return entry | {"models": [{"id": "m"}]} | changes


def mcp() -> dict[str, Any]:
    """Servers with secrets that are switched off: they are shown, and never started."""
    run = {"command": "true", "env": {"TOKEN": "$LB_TEST_MCP"}, "enabled": False}
    web = {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": "$LB_TEST_MCP_HEADER"}}
    return {"quiet": run, "far": web | {"enabled": False}}


def add_secrets(file: Path) -> None:
    """Give a user without a configuration one that holds secrets and changes nothing else."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"providers": {"spare": provider()}, "mcp": mcp()}))


def check_files(*files: Path) -> None:
    for file in files:
        if file.is_file():
            check_for_secrets(file.read_bytes(), os.path.basename(file))
