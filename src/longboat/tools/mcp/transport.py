"""The transports to a server that someone else runs: streamable HTTP, SSE. Owns what the SDK's transports do not
report: that the other side is gone, and the status of a refused request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from longboat.tools.mcp.settings import Target
from longboat.tools.process.terminal_text import Plain

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, TransportStreams

_STDERR_KEPT = 4_096
_HTTP_S = 30.0


@dataclass(slots=True)
class TransportState:
    """What was observed of the other side, to explain a failure."""

    gone: anyio.Event = field(default_factory=anyio.Event)
    status: int = 0
    stderr: bytes = b""

    def take(self, data: bytes) -> None:
        self.stderr = (self.stderr + data)[-_STDERR_KEPT:]

    @property
    def last_words(self) -> str:
        """The end of what it wrote to stderr: where a traceback says what happened."""
        plain = Plain()
        lines = (plain.decode(self.stderr) + plain.flush()).strip().splitlines()
        return "\n".join(lines[-3:])[-600:]


@asynccontextmanager
async def open_http(
    target: Target, *, auth: httpx2.Auth | None, witness: TransportState
) -> AsyncIterator["TransportStreams"]:
    async with (
        _client(target, auth, witness) as client,
        streamable_http_client(target.url, http_client=client) as streams,
    ):
        yield watched(streams, witness)


@asynccontextmanager
async def open_sse(
    target: Target, *, auth: httpx2.Auth | None, witness: TransportState
) -> AsyncIterator["TransportStreams"]:
    def client(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
    ) -> httpx2.AsyncClient:
        return _client(target, auth, witness)

    async with sse_client(target.url, auth=auth, httpx_client_factory=client) as streams:
        yield watched(streams, witness)


def _client(target: Target, auth: httpx2.Auth | None, witness: TransportState) -> httpx2.AsyncClient:
    async def note(response: httpx2.Response) -> None:
        if response.status_code >= 400:
            witness.status = response.status_code

    # No limit for reading: streams may be silent for hours, and each request has its own limit above.
    return httpx2.AsyncClient(
        headers=dict(target.headers),
        timeout=httpx2.Timeout(_HTTP_S, read=None),
        auth=auth,
        event_hooks={"response": [note]},
    )


def watched(streams: "TransportStreams", witness: TransportState) -> "TransportStreams":
    read, write = streams
    return _Watched(read, witness.gone), write


class _Watched:
    """The read stream, with an event for its end, which the session does not report."""

    def __init__(self, stream: "ReadStream[SessionMessage | Exception]", gone: anyio.Event) -> None:
        self._stream = stream
        self._gone = gone

    @property
    def last_context(self) -> object:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return await self._stream.receive()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._stream.__anext__()

    async def aclose(self) -> None:
        self._gone.set()
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._gone.set()
        return await self._stream.__aexit__(kind, error, trace)
