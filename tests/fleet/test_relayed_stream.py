"""A client's stream while what it comes from breaks, refuses and comes back (G4, G10)."""

import asyncio
from typing import Any, cast

import pytest

from longboat.fleet.door import Door
from longboat.fleet.stream import Stream
from longboat.wire.sse import HEARTBEAT

FRAMES = [f'id: w/1/{number}\nevent: x\ndata: {{"n":{number}}}\n\n'.encode() for number in (1, 2)]


class Source:
    """A door whose own routes answer, each time with the next of these."""

    heartbeat_s = 60.0

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self._answers = iter(answers)
        self._count = len(answers)
        self.cursors: list[str | None] = []

    @property
    def leaving(self) -> bool:
        return len(self.cursors) == self._count

    async def wait_leaving(self) -> None:
        await asyncio.get_running_loop().create_future()

    @property
    def owners(self) -> "Source":
        return self

    def search(self, _workspace_id: str) -> "Source":
        return self

    async def find(self) -> None:
        """Here."""

    def forget(self, _workspace_id: str) -> None: ...

    async def send_own_stream(self, _scope: Any, cursor: str | None, send: Any) -> None:
        self.cursors.append(cursor)
        status, body = next(self._answers)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body, "more_body": True})


async def follow(door: Source) -> tuple[list[int], bytes]:
    """The statuses and the bytes that a client gets."""
    statuses: list[int] = []
    got = bytearray()

    async def receive() -> Any:
        await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])
        else:
            got.extend(message["body"])

    await Stream(cast(Door, door), {}, receive, send, "w").run()
    return statuses, bytes(got)


async def test_g10_a_stream_that_has_begun_outlives_refusals_and_failures_of_its_own_node() -> None:
    refused = b'{"code":"store_unavailable","message":"The database is away."}'
    door = Source((200, FRAMES[0]), (503, refused), (409, refused), (200, FRAMES[1]))
    statuses, got = await follow(door)
    assert (statuses, got.replace(HEARTBEAT, b"")) == ([200], b"".join(FRAMES))
    assert door.cursors == [None, *["w/1/1"] * 3]


async def test_a_stream_that_has_not_begun_gets_the_refusal() -> None:
    assert await follow(Source((503, b"{}"), (200, FRAMES[0]))) == ([503], b"{}")


async def test_g10_a_source_that_says_no_more_than_that_it_is_there_is_not_asked_without_rests() -> None:
    door = Source((200, FRAMES[0]), (200, HEARTBEAT), (200, HEARTBEAT), (200, FRAMES[1]))
    rests: list[float] = []
    sleep = asyncio.sleep

    async def note(delay_s: float) -> None:
        rests.append(delay_s)
        await sleep(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "sleep", note)
        await follow(door)
    assert [rest for rest in rests if rest] == [0.05, 0.1]
