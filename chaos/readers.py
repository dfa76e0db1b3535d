"""Readers of a workspace's event stream. Each continues after its cursor when its connection ends, which is often, at
whichever server it finds."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from enum import Enum

import httpx2
import msgspec

from chaos.evidence import Piece, number_of, seen_in

AGAIN_S = 0.05
GIVE_UP_S = 120


class Temper(Enum):
    """How a reader reads."""

    STEADY = "steady"
    SLOW = "slow"
    """Falls behind, so that it reads from the store."""
    RESTLESS = "restless"
    """Drops its connection now and then."""


class Reader:
    def __init__(
        self, doors: Sequence[httpx2.AsyncClient], events: str, name: str, temper: Temper, *, after: str, seed: str
    ) -> None:
        self.name = name
        self.pieces = [Piece(after)]
        self._doors = doors
        self._url = f"{events}?client_id={name}&answers=true"
        self._temper = temper
        self._random = random.Random(seed)
        self.refusals: list[str] = []
        """Answers that were no stream, other than that a server or its database is away."""
        self._is_lost = False
        """Its cursor was refused, and the snapshot has not come yet."""
        self._changed = asyncio.Event()
        self._awaited: tuple[bytes, asyncio.Event] | None = None

    @property
    def cursor(self) -> str:
        return self.pieces[-1].end

    async def follow(self) -> None:
        """Read on forever."""
        while True:
            try:
                async with aclosing(frames(self._random.choice(self._doors), self._url, self.cursor)) as stream:
                    await self._read(stream)
            except httpx2.TransportError:
                pass  # the server was killed, or is not there yet
            except httpx2.HTTPStatusError as error:
                if error.response.status_code != 503:
                    self.refusals.append(f"{error.response.status_code} {error.response.text}")
            await asyncio.sleep(AGAIN_S)

    async def _read(self, stream: AsyncIterator[bytes]) -> None:
        self._is_lost = False
        async for frame in stream:
            self._take(frame)
            if self._temper is Temper.SLOW:
                await asyncio.sleep(self._random.uniform(0, 0.002))
            elif self._temper is Temper.RESTLESS and self._random.random() < 0.005:
                return

    def _take(self, frame: bytes) -> None:
        if frame.startswith(b"event: resync"):
            self._is_lost = True
        elif frame.startswith(b"event: snapshot") and self._is_lost:
            self._is_lost = False
            self.pieces.append(Piece(_snapshot_cursor(frame)))
        elif frame.startswith(b"id: "):
            self.pieces[-1].seen.append(seen_in(frame))
            self._changed.set()
            self._changed = asyncio.Event()
            if self._awaited is not None and self._awaited[0] in frame:
                self._awaited[1].set()

    async def wait_for(self, text: bytes, *, limit_s: float) -> None:
        """Wait until an event with this text comes, but no longer than that."""
        self._awaited = (text, asyncio.Event())
        with suppress(TimeoutError):
            await asyncio.wait_for(self._awaited[1].wait(), limit_s)
        self._awaited = None

    async def reach(self, cursor: str) -> None:
        """Wait until it has read up to there, but not forever: the checks tell what is missing."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GIVE_UP_S):
                while number_of(self.cursor) < number_of(cursor):  # it may be past it: others come and go
                    await self._changed.wait()


async def frames(http: httpx2.AsyncClient, url: str, after: str | None) -> AsyncGenerator[bytes]:
    """Whole frames as they came, each with its empty line. One that was cut off is dropped."""
    headers = {} if after is None else {"last-event-id": after}
    async with http.stream("GET", url, headers=headers, timeout=None) as answer:
        if answer.is_error:
            await answer.aread()
            answer.raise_for_status()
        rest = b""
        async for chunk in answer.aiter_raw():
            *whole, rest = (rest + chunk).split(b"\n\n")
            for frame in whole:
                yield frame + b"\n\n"


async def head(http: httpx2.AsyncClient, events: str) -> str:
    """The cursor at which the log stands now."""
    found = await _first(http, f"{events}?client_id=historian", lambda frame: frame.startswith(b"event: snapshot"))
    return _snapshot_cursor(found)


def _snapshot_cursor(frame: bytes) -> str:
    return str(msgspec.json.decode(frame.split(b"\ndata: ", 1)[1])["payload"]["cursor"])


async def _first(http: httpx2.AsyncClient, url: str, fits: Callable[[bytes], bool]) -> bytes:
    async with aclosing(frames(http, url, None)) as stream:
        async for frame in stream:
            if fits(frame):
                return frame
    raise httpx2.ReadError("the stream ended")


async def replay(http: httpx2.AsyncClient, events: str, *, after: str, up_to: str) -> list[bytes]:
    """All frames of the log between two cursors."""
    found: list[bytes] = []
    async with aclosing(frames(http, f"{events}?client_id=historian", after)) as stream:
        async for frame in stream:
            if frame.startswith(b"id: "):
                found.append(frame)
                if seen_in(frame).cursor == up_to:
                    return found
    raise httpx2.ReadError("the stream ended")
