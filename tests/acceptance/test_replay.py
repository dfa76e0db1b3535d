"""One log, many cursors: whoever comes back with Last-Event-ID gets exactly what it missed (http.md, E2, E5)."""

import asyncio
import random
from functools import partial

import pytest
from processes import AROUND, Site, open_site
from sessions import SessionClient, Watch, cursor_of, shared

from longboat.testing import Break, Pause, Refuse, Say, Think, words
from longboat.wire.events import Event

pytestmark = [pytest.mark.acceptance, pytest.mark.parametrize("door", AROUND)]

CURSORS = 25


async def _history(site: Site, session: SessionClient) -> None:
    """A little of everything: text, thought, bursts, retries with withdrawn partials, cancels, errors, queues."""
    site.model.add([Think("hm"), *words("ünïcödé 🛶 words")], name="thought")
    site.model.add([Say("withdrawn"), Break(drop=True)], [Say("kept")], name="retried")
    site.model.add([Refuse(401)], name="refused")
    site.model.add([Say("x"), Pause(site.model.gate("hold"))], name="canceled")
    for name in ("thought", "retried", "refused", "burst:400"):
        await session.submit(f"[[{name}]]", name)
        await session.submit(f"behind {name}", f"after-{name}")
    await session.outcome("after-burst:400")
    await session.submit("[[canceled]]", "canceled")
    await site.model.gate("hold").reached()
    await session.cancel()
    assert await session.outcome("canceled") == "canceled"


async def test_any_cursor_gives_the_same_bytes_from_there_on(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        session = await site.session(site.project())
        async with session.watch("witness") as witness:
            await _history(site, session)
            await witness.complete("canceled")
        await _check_cursors(session, witness, random.Random(1))
        await session.check_books()


async def _check_cursors(session: SessionClient, witness: Watch, dice: random.Random) -> None:
    """What the witness saw after any of its frames is what a client with that cursor is sent."""
    last = cursor_of(witness.frames[-1])
    for place in dice.sample(range(len(witness.frames) - 1), CURSORS):
        async with session.watch("returning", after=cursor_of(witness.frames[place])) as watch:
            await watch.until(lambda event: event.cursor == last)
        rest = witness.frames[place + 1 :]
        assert watch.frames[: len(rest)] == rest


async def test_cursors_of_a_former_server_hold_after_a_crash_and_a_restart(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        session = await site.session(site.project())
        async with session.watch("witness") as witness:
            await _history(site, session)
            await witness.complete("canceled")
        await site.kill()
        await site.serve()
        session = await site.back_at(session)
        await _check_cursors(session, witness, random.Random(2))
        await session.submit("after the crash", "later")
        async with session.watch("returning", after=cursor_of(witness.frames[0])) as watch:
            await watch.complete("later")
        before, again = shared(witness, watch)
        assert before == again
        await session.check_books()


async def test_clients_that_drop_and_return_while_it_streams_miss_nothing_and_hear_nothing_twice(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        session = await site.session(site.project())
        async with session.watch("witness") as witness:
            wanderers = [asyncio.create_task(_wander(session, f"wanderer-{n}", random.Random(n))) for n in range(5)]
            for n in range(6):
                await session.submit(f"[[burst:1500:{2 * n + 1}]]", f"r{n}")
            await session.outcome("r5")
            await session.submit("the end", "last")
            await witness.complete("last")
            for frames in await asyncio.gather(*wanderers):
                mine, theirs = shared(Watch(frames=frames), witness)
                assert mine == theirs
                assert len({cursor_of(frame) for frame in frames}) == len(frames)
        await session.check_books()


async def _wander(session: SessionClient, name: str, dice: random.Random) -> list[bytes]:
    """Read some frames, drop the connection, come back with the last cursor; until the run "last" has ended."""
    frames: list[bytes] = []
    cursor = await session.head()
    while not _over(frames):
        wanted = dice.randint(1, 60)
        async with session.watch(name, after=cursor) as watch:
            await watch.until(partial(_enough, watch, wanted))
        frames += watch.frames[:wanted]
        cursor = cursor_of(frames[-1])
    return frames


def _enough(watch: Watch, wanted: int, _: Event) -> bool:
    return len(watch.frames) >= wanted or _over(watch.frames)


def _over(frames: list[bytes]) -> bool:
    return any(b'"run_id":"last"' in frame and b"run_complete" in frame for frame in frames[-60:])
