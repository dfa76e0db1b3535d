"""One log at every node (G4): the same bytes from any cursor, and streams that outlive their owners."""

import asyncio
import random
from contextlib import AsyncExitStack

import pytest
from cluster import SiteFleet, open_fleet
from sessions import SessionClient, Watch, cursor_of

from longboat.testing import Break, Hang, Say, Think, words

pytestmark = pytest.mark.acceptance

CURSORS = 6
WATCHERS = 100


async def change_owner(fleet: SiteFleet, session: SessionClient, name: str) -> None:
    """As the administrator does, without the owner's end."""
    moved = await session.http.post(f"{session.workspace}/move", json={"node": name})
    assert moved.status_code == 200, moved.text


async def test_g4_a_cursor_of_one_node_gives_the_same_bytes_at_every_node() -> None:
    """Random ones from a long stream of two owners, of which the first was killed."""
    async with open_fleet("a", "b", "c") as fleet:
        model = fleet["a"].model
        model.add([Think("hm"), *words("ünïcödé 🛶 words")], name="thought")
        model.add([Say("withdrawn"), Break(drop=True)], [Say("kept")], name="retried")
        model.add([Say("one "), Hang()], name="held")
        session = await fleet["a"].session(fleet.project())
        ben = await fleet.through("b", session)
        async with ben.watch("witness") as witness:
            for name in ("thought", "retried", "burst:300"):
                await session.submit(f"[[{name}]]", name, delivery="queue")
            await witness.complete("burst:300")
            await session.submit("[[held]]", "cut-off")
            await witness.text("one ")
            await fleet["a"].kill()
            await fleet.expire("a")
            await witness.complete("cut-off")
            await ben.submit("[[burst:300]]", "last")
            await witness.complete("last")
            await fleet["a"].serve()
            assert not witness.closed
        assert len({cursor_of(frame).split("/")[1] for frame in witness.frames}) == 2, "two owners, two epochs"
        dice = random.Random(4)
        clients = [await fleet.through(name, session) for name in fleet.nodes]
        for place in dice.sample(range(len(witness.frames) - 1), CURSORS):
            await asyncio.gather(*(check_cursor(client, witness, place) for client in clients))


async def check_cursor(client: SessionClient, witness: Watch, place: int) -> None:
    last = cursor_of(witness.frames[-1])
    async with client.watch("returning", after=cursor_of(witness.frames[place])) as watch:
        await watch.until(lambda event: event.cursor == last)
    rest = witness.frames[place + 1 :]
    assert watch.frames[: len(rest)] == rest


async def test_g4_trap_when_the_owner_changes_under_100_watchers_they_all_see_the_same() -> None:
    """By a kill, and by a move to a third node. No stream ends, has a gap, or shows an event twice; elsewhere the
    streams of a dead node never ended (deer-flow #4420)."""
    async with open_fleet("a", "b", "c") as fleet, AsyncExitStack() as streams:
        fleet["a"].model.add([Say("one "), Hang()], name="held")
        session = await fleet["a"].session(fleet.project())
        doors = [await fleet.through(name, session) for name in ("b", "c")]
        watches = await asyncio.gather(
            *(streams.enter_async_context(doors[n % 2].watch(f"w{n}", after=session.start)) for n in range(WATCHERS))
        )
        await doors[0].submit("[[held]]", "r1")
        await doors[0].submit("[[burst:50]]", "r2", delivery="queue")
        await watches[0].text("one ")
        await watches[0].state("r2", "queued")
        await fleet["a"].kill()
        await fleet.expire("a")
        await asyncio.gather(*(watch.complete("r2") for watch in watches))
        for name in ("b", "c"):  # one of them is the owner already
            await change_owner(fleet, doors[0], name)
            await doors[1].submit("[[burst:50]]", f"at-{name}", delivery="queue")
            await asyncio.gather(*(watch.complete(f"at-{name}") for watch in watches))
        assert [watch.closed for watch in watches] == [False] * WATCHERS
        last = watches[0].cursor
        await asyncio.gather(*(watch.until(lambda event: event.cursor == last) for watch in watches))
        length = len(watches[0].frames)
        numbers = [int(cursor_of(frame).rpartition("/")[2]) for frame in watches[0].frames]
        assert numbers == list(range(numbers[0], numbers[0] + length)), "no gap and no repeat"
        assert all(watch.frames[:length] == watches[0].frames[:length] for watch in watches)
        ends = {"r1": "interrupted", "r2": "end_turn", "at-b": "end_turn", "at-c": "end_turn"}
        assert await doors[0].check_books() == await doors[1].check_books() == ends
