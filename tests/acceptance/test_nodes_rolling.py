"""Every node is replaced under load (G9): no accepted run is lost, and no event is missed."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, cycle

import httpx2
import pytest
from cluster import open_fleet
from sessions import SessionClient, Watch, cursor_of, terminal_events

from longboat.tasks import Tasks
from longboat.testing import Hang, Say

pytestmark = pytest.mark.acceptance

NAMES = ("a", "b", "c")


@dataclass(kw_only=True)
class Load:
    """Clients of one session that turn to the next node whenever theirs is gone."""

    doors: list[SessionClient]
    watches: list[Watch] = field(default_factory=lambda: [Watch() for _ in NAMES])
    accepted: list[str] = field(default_factory=list)

    async def submit(self, name: str, stop: asyncio.Event) -> None:
        """One prompt after another, each at the next door, every third one canceled at yet another."""
        doors = cycle(self.doors)
        for number in count():
            if stop.is_set():
                return
            run_id, held = f"{name}{number}", number % 3 == 2
            prompt = "[[held]]" if held else "[[fine]]"
            await _send_until_answered(doors, lambda door, run_id=run_id, prompt=prompt: door.ask(prompt, run_id), 202)
            self.accepted.append(run_id)
            if held:
                path = f"{self.doors[0].workspace}/runs/{run_id}/cancel"
                await _send_until_answered(doors, lambda door, path=path: door.http.post(path), 200)
            await self.watches[number % len(self.watches)].complete(run_id)

    async def follow(self, number: int) -> None:
        """One stream after another, each from the last event on."""
        watch = self.watches[number]
        for door in cycle(self.doors[number:] + self.doors[:number]):
            after = watch.cursor if watch.frames else door.start
            url = f"{door.workspace}/events?client_id=w{number}"
            try:
                async with door.http.stream("GET", url, headers={"last-event-id": after}) as answer:
                    if answer.status_code == 200:
                        watch.reconnect()
                        async for chunk in answer.aiter_raw():
                            watch.feed(chunk)
            except httpx2.TransportError:
                pass
            await asyncio.sleep(0.05)  # as a client does before it tries the next one

    async def check(self) -> None:
        for watch in self.watches:
            for run_id in self.accepted:
                await watch.complete(run_id)
        length = min(len(watch.frames) for watch in self.watches)
        numbers = [int(cursor_of(frame).rpartition("/")[2]) for frame in self.watches[0].frames]
        assert numbers == list(range(numbers[0], numbers[-1] + 1)), "no gap and no repeat"
        for watch in self.watches:
            assert watch.frames[:length] == self.watches[0].frames[:length]
            ends = Counter(end.run_id for end in terminal_events(watch.events))
            assert ends == dict.fromkeys(self.accepted, 1)
        assert sorted(await self.doors[0].check_books()) == sorted(self.accepted)


async def _send_until_answered(
    doors: Iterator[SessionClient], ask: Callable[[SessionClient], Awaitable[httpx2.Response]], wanted: int
) -> None:
    """The same request at one door after the other, until it is done."""
    for door in doors:
        try:
            answer = await ask(door)
        except httpx2.TransportError:
            await asyncio.sleep(0.05)
            continue
        if answer.status_code == wanted:
            return
        assert answer.status_code == 503, answer.text


async def test_g9_while_one_node_after_another_is_replaced_no_run_is_lost_and_no_event_is_missed() -> None:
    """One directory that all have, and one on a single node: that node's runs wait for it."""
    async with open_fleet(*NAMES) as fleet, Tasks() as tasks:
        for site in fleet.nodes.values():
            site.model.add([Say("fine")], name="fine", repeat=True)
            site.model.add([Say("x"), Hang()], name="held", repeat=True)
        loads = []
        for directory in (fleet.project(), fleet["b"].project()):
            session = await fleet["b"].session(directory)
            loads.append(Load(doors=[await fleet.through(name, session) for name in NAMES]))
        stop = asyncio.Event()
        for load in loads:
            for number in range(len(NAMES)):
                tasks.spawn(load.follow(number), name="follow")
        submitting = [tasks.spawn(load.submit(n, stop), name="submit", awaited=True) for load in loads for n in "xy"]
        for name in NAMES:
            fleet[name].server.terminate()
            assert await fleet[name].server.wait() == 0
            await fleet[name].serve()
        stop.set()
        await asyncio.gather(*submitting)
        for load in loads:
            assert len(load.accepted) > len(NAMES), "there was some load"
            await load.check()
