"""A bare ASGI application that sends frames, encoded beforehand, to all who listen.

Each listener is a place in the list of frames; what waits for it goes out in one write of at most 64 KB. A frame holds
as many chunks as the scripted endpoint puts into one write, merged as Longboat may merge them; after each frame the
listeners are woken, as by a live model."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

CHUNKS, STEP, WRITE = int(sys.argv[2]), 32, 64 * 1024
_WORKSPACE, _OTHER = "019a0000-0000-7000-8000-000000000000", "019a0000-0000-7000-8000-000000000001"


def _frame(number: int) -> bytes:
    """The chunks of one write as Longboat would send them."""
    text = "".join(f"word{chunk % 1000} " for chunk in range(number * STEP, min(number * STEP + STEP, CHUNKS)))
    payload = (
        f'{{"message_id":"{_OTHER}","session_id":"{_OTHER}","run_id":"{_OTHER}","part":0,'
        f'"offset":{number * STEP * 8},"text":"{text}"}}'
    )
    data = f'{{"type":"message_delta","payload":{{"type":"updated","payload":{payload}}}}}'
    return f"id: {_WORKSPACE}/1/{number}\nevent: message_delta\ndata: {data}\n\n".encode()


class Fanout:
    def __init__(self) -> None:
        self._frames = [_frame(number) for number in range(-(-CHUNKS // STEP))]
        self._frames.append(b"event: run_complete\ndata: {}\n\n")
        self._ready = 0
        self._news = asyncio.Event()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            await send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
            await self._publish()
        else:
            await self._listen(send)

    async def _publish(self) -> None:
        self._ready = 0
        while self._ready < len(self._frames):
            self._ready += 1
            news, self._news = self._news, asyncio.Event()
            news.set()
            await asyncio.sleep(0)

    async def _listen(self, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"event: snapshot\ndata: {}\n\n", "more_body": True})
        while True:
            place = 0
            await self._news.wait()
            while place < len(self._frames):
                if place == self._ready:
                    await self._news.wait()
                piece: list[bytes] = []
                size = 0
                while place < self._ready and size < WRITE:
                    piece.append(self._frames[place])
                    size += len(piece[-1])
                    place += 1
                await send({"type": "http.response.body", "body": b"".join(piece), "more_body": True})


if __name__ == "__main__":
    uvicorn.run(
        Fanout(),
        uds=sys.argv[1],
        loop="uvloop",
        http="httptools",
        interface="asgi3",
        lifespan="off",
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=0,
    )
