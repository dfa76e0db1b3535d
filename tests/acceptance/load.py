"""Load on sessions of a cluster whose nodes come and go: prompts, cancels and streams, at one node after the other."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, cycle

import httpx2
from cli_home import GIVE_UP_S
from cluster import SiteFleet
from sessions import SessionClient, Watch, cursor_of, terminal_events

from longboat.client import Client
from longboat.errors import StoreUnavailable
from longboat.server.waiting import PROBLEM
from longboat.tasks import Tasks
from longboat.testing import Hang, Say
from longboat.wire.events import Event
from longboat.wire.models import RunComplete

SUBMITTERS = "xy"
TURN = 3
"""Of this many prompts, one is canceled."""
LAST = "last"
"""The run after all others."""


@dataclass(kw_only=True)
class Load:
    """Clients of one session that turn to the next node whenever theirs is gone."""

    doors: list[SessionClient]
    watches: list[Watch]
    """A stream that begins at each node and goes on at the next."""
    followed: list[asyncio.Task[list[Event]]] = field(default_factory=list)
    """What our own clients have seen, each at one node."""
    accepted: list[str] = field(default_factory=list)
    refusals: list[dict[str, str]] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)
    """How many runs of each submitter."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def submit(self, name: str, stop: asyncio.Event) -> None:
        """One prompt after another, each at the next door, every third one canceled at yet another."""
        doors = cycle(self.doors)
        for number in count():
            if stop.is_set():
                return
            run_id, held = f"{name}{number}", number % TURN == TURN - 1
            prompt = "[[held]]" if held else "[[fine]]"
            await self._send(doors, lambda door, run_id=run_id, prompt=prompt: door.ask(prompt, run_id), 202)
            self.accepted.append(run_id)
            if held:
                path = f"{self.doors[0].workspace}/runs/{run_id}/cancel"
                await self._send(doors, lambda door, path=path: door.http.post(path), 200)
            await self.watches[number % len(self.watches)].complete(run_id)
            self.ended[name] += 1
            self._changed.set()

    async def _send(
        self, doors: Iterator[SessionClient], ask: Callable[[SessionClient], Awaitable[httpx2.Response]], wanted: int
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
            self.refusals.append(answer.json())

    async def go_on(self) -> None:
        """Until each submitter has seen a prompt at every node, and a cancel, from now on."""
        wanted = {name: self.ended[name] + TURN for name in SUBMITTERS}
        async with asyncio.timeout(GIVE_UP_S):
            while any(self.ended[name] < number for name, number in wanted.items()):
                self._changed.clear()
                await self._changed.wait()

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
                    else:
                        self.refusals.append(json.loads(await answer.aread()))
            except httpx2.TransportError:
                pass
            await asyncio.sleep(0.05)  # as a client does before it tries the next one

    async def check(self) -> None:
        assert len(self.accepted) > len(self.doors), "there was some load"
        away = [each["message"] for each in self.refusals if each["code"] == StoreUnavailable.code]
        assert set(away) <= {PROBLEM}, "PostgreSQL is there; only a node that makes room with its migration waits"
        for watch in self.watches:
            for run_id in self.accepted:
                await watch.complete(run_id)
        for events in [*(watch.events for watch in self.watches), *[await each for each in self.followed]]:
            self._check_events(events)
        length = min(len(watch.frames) for watch in self.watches)
        for watch in self.watches:
            assert watch.frames[:length] == self.watches[0].frames[:length]
            assert len(watch.events) == len(watch.frames), "no snapshot and no resync"
        assert sorted(await self.doors[0].check_books()) == sorted(self.accepted)

    def _check_events(self, events: list[Event]) -> None:
        """What a stream showed since the session began."""
        numbers = [int((event.cursor or "").rpartition("/")[2]) for event in events]
        first = int(cursor_of(self.watches[0].frames[0]).rpartition("/")[2])
        assert numbers == list(range(first, numbers[-1] + 1)), "no gap and no repeat"
        assert Counter(end.run_id for end in terminal_events(events)) == dict.fromkeys(self.accepted, 1)


async def _open_sessions(fleet: SiteFleet, name: str) -> list[Load]:
    """Load for two directories: one that all nodes have, and one that only this node has."""
    for site in fleet.nodes.values():
        site.model.add([Say("fine")], name="fine", repeat=True)
        site.model.add([Say("x"), Hang()], name="held", repeat=True)
    loads = []
    for directory in (fleet.project(), fleet[name].project()):
        session = await fleet[name].session(directory)
        doors = [await fleet.through(each, session) for each in fleet.nodes]
        loads.append(Load(doors=doors, watches=[Watch() for _ in doors]))
    return loads


@asynccontextmanager
async def open_load(fleet: SiteFleet, *, home: str) -> AsyncIterator[list[Load]]:
    """Load on two directories: one that all nodes have, and one that only the node `home` has. At the end, everything
    that was accepted has ended, and is checked."""
    loads, stop = await _open_sessions(fleet, home), asyncio.Event()
    async with AsyncExitStack() as clients, Tasks() as tasks:
        for name in fleet.nodes:
            client = await clients.enter_async_context(Client(url=fleet.url(name), token=fleet.token))
            await client.health()  # only who knows the server waits for it
            for load in loads:
                following = _follow_to_the_last(client, load.doors[0])
                load.followed.append(tasks.spawn(following, name="our client", awaited=True))
        for load in loads:
            for number in range(len(load.watches)):
                tasks.spawn(load.follow(number), name="follow")
        async with asyncio.TaskGroup() as submitting:
            for load in loads:
                for name in SUBMITTERS:
                    submitting.create_task(load.submit(name, stop))
            yield loads
            stop.set()
        for load in loads:
            load.accepted.append(await load.doors[0].submit("[[fine]]", LAST))
        for load in loads:
            await load.check()


async def _follow_to_the_last(client: Client, session: SessionClient) -> list[Event]:
    """The events of a session's workspace since it began. The client reconnects by itself."""
    seen = []
    async with aclosing(client.events(session.workspace.rpartition("/")[2], after=session.start)) as events:
        async for event in events:
            seen.append(event)
            if isinstance(event.payload, RunComplete) and event.payload.run_id == LAST:
                break
    return seen
