"""The HTTP client below the SDKs: how long it waits for the first piece of an answer, and for each next one.

Counts bytes, not the library's events: a server that sends signs of life while its model thinks is not silent. Import
it through `pydantic_adapter.py` only: the library is heavy.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from longboat.models.http_client import ServerSilent

CONNECT_S = 10.0


class TimedClient(httpx2.AsyncClient):
    def __init__(self, *, first_s: float, idle_s: float, headers: Mapping[str, str]) -> None:
        super().__init__(timeout=httpx2.Timeout(max(first_s, idle_s), connect=CONNECT_S), headers=headers)
        self._first_s = first_s
        self._idle_s = idle_s

    async def send(self, request: httpx2.Request, *, stream: bool = False, **more: Any) -> httpx2.Response:
        deadline = _now() + self._first_s
        async with _until(deadline, ServerSilent(self._first_s, began=False)):
            response = await super().send(request, stream=stream, **more)
        if stream and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _TimedStream(response.stream, deadline, self._first_s, self._idle_s)
        return response


class _TimedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, deadline: float, first_s: float, idle_s: float) -> None:
        self._stream = stream
        self._deadline = deadline
        self._first_s = first_s
        self._idle_s = idle_s

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._stream)
        async with _until(self._deadline, ServerSilent(self._first_s, began=False)):
            piece = await anext(pieces, None)
        while piece is not None:
            yield piece
            async with _until(_now() + self._idle_s, ServerSilent(self._idle_s, began=True)):
                piece = await anext(pieces, None)

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def _until(deadline: float, late: ServerSilent) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout_at(deadline) as limit:
            yield
    except TimeoutError:
        if limit.expired():
            raise late from None
        raise


def _now() -> float:
    return asyncio.get_running_loop().time()
