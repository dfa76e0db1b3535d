"""The event stream endpoint: sends a workspace's stream to one connection, and notices when the client is gone.

Does no work per frame: a chunk contains the frames that were ready, or a slice of a large one, and is sent at once.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

from litestar.types import Receive, Scope, Send

from longboat.tasks import Tasks

_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]


class EventStream:
    """An ASGI application for one connection. If the source cannot be opened, it answers with the error."""

    def __init__(self, source: AbstractAsyncContextManager[AsyncIterator[bytes]]) -> None:
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._source as chunks, Tasks() as tasks:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            sending = tasks.spawn(_send_all(chunks, send), name="send events", awaited=True)
            leaving = tasks.spawn(_wait_disconnected(receive), name="wait for the client to leave")
            try:
                await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            finally:
                # The source must not be left while it is still being read.
                await _end(leaving, sending)
        if not sending.cancelled():
            sending.result()


async def _send_all(chunks: AsyncIterator[bytes], send: Send) -> None:
    async for chunk in chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        del chunk  # a stream may be silent for days
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _wait_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
