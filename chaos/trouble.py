"""What goes wrong: servers are killed, stopped and asked to leave, links are cut, slow or half-closed, the database
restarts and crashes.

Every decision is drawn from a seed: one for each server, and one for the database. In a cluster each server has trouble
of its own, whatever the others have.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import assert_never

from chaos.database import Database
from chaos.evidence import Violation
from chaos.readers import Reader
from chaos.server import Server, StartFailed
from chaos.site import DRAIN_S, LEASE_S, Site
from longboat.testing.cutoff import Cutoff, Side

A_MOMENT_S = 1.0
"""What is left of a killed server's commands is gone so soon after the next start, or without one."""
LEAVE_S = DRAIN_S + 5 + 10
"""B5 grants the drain and 5 s; the rest is for a busy machine."""
INSTANTS = (
    b'"type":"tool_call"',
    b'"finished":false',
    b"event: permission_notification",
    b"event: run_complete",
    b'"cancel_requested":true',
    b'"payload":{"type":"deleted"',
)
"""Texts in events that come when a call is about to be made, an ask or a run ended, something was undone or deleted."""
BETWEEN_OUTAGES_S = (6.0, 18.0)
GIVE_UP_S = 60.0


class Way(Enum):
    """What may be wrong with a link until it is healed."""

    RESET = "reset"
    BLACK_HOLE = "in a black hole"
    ONE_WAY = "one-way"
    """Nothing arrives at one of its sides."""
    HALF_CLOSED = "half-closed"
    """One side of each connection sees its end. New connections are whole."""
    SLOW = "slow"

    @property
    def cuts(self) -> bool:
        """Whether no request over it gets an answer."""
        return self in (Way.RESET, Way.BLACK_HOLE, Way.ONE_WAY)

    def apply(self, link: Cutoff, chance: random.Random) -> None:
        match self:
            case Way.RESET:
                link.reset()
            case Way.BLACK_HOLE:
                link.black_hole()
            case Way.ONE_WAY:
                link.black_hole(chance.choice(list(Side)))
            case Way.HALF_CLOSED:
                link.half_close(chance.choice(list(Side)))
            case Way.SLOW:
                link.delay(chance.choice([0.05, 0.2, 0.8]))
            case _:
                assert_never(self)


WAYS = {Way.RESET: 3, Way.BLACK_HOLE: 3, Way.ONE_WAY: 4, Way.HALF_CLOSED: 2, Way.SLOW: 3}


class Trouble:
    def __init__(self, site: Site, *, seed: int, is_over: Callable[[], bool], report: Callable[[], None]) -> None:
        self.ends: Counter[str] = Counter()
        """How many servers were ended, by how."""
        self.others: Counter[str] = Counter()
        """What else was done."""
        self.found: list[Violation] = []
        self.readers: list[Reader] = []
        """Who tell when an awkward instant comes."""
        self.site = site
        self.seed = seed
        self.is_over = is_over
        self.report = report
        self._all_done = asyncio.Event()

    async def run(self) -> None:
        """Ends with servers and a database that run, and links that are whole."""
        async with asyncio.TaskGroup() as tasks:
            afflicted = [tasks.create_task(_Afflicted(self, server).run()) for server in self.site.servers]
            if self.site.database is not None and self.site.is_cluster:
                tasks.create_task(self._restart_database(self.site.database))
            await asyncio.wait(afflicted)
            self._all_done.set()

    def note(self, promise: str, where: str, details: Sequence[str]) -> None:
        self.found += [Violation(promise=promise, what=f"{where}: {each}") for each in details]

    async def start(self, server: Server) -> None:
        """Once there is a database."""
        while True:
            outages = self.outages
            try:
                return await server.start()
            except StartFailed:
                if self.outages == outages and (self.site.database is None or self.site.database.up.is_set()):
                    raise
                async with asyncio.timeout(GIVE_UP_S):
                    assert self.site.database is not None
                    await self.site.database.up.wait()

    @property
    def outages(self) -> int:
        return 0 if self.site.database is None else self.site.database.outages

    async def _restart_database(self, database: Database) -> None:
        chance = random.Random(f"{self.seed}/database")
        while not self._all_done.is_set():
            with suppress(TimeoutError):
                pause_s = chance.uniform(*BETWEEN_OUTAGES_S) * max(
                    1.0, *(server.start_s for server in self.site.servers)
                )
                await asyncio.wait_for(self._all_done.wait(), pause_s)
                return
            crash = chance.random() < 0.4
            self.others["crash of PostgreSQL" if crash else "restart of PostgreSQL"] += 1
            await database.stop(crash=crash)
            await asyncio.sleep(chance.choice([0, 0, 1, LEASE_S + 1]))
            await database.start()


class _Afflicted:
    """One server and its trouble."""

    def __init__(self, trouble: Trouble, server: Server) -> None:
        self._trouble = trouble
        self._server = server
        self._site = trouble.site
        self._random = random.Random(f"{trouble.seed}/{server.name if self._site.is_cluster else 'killer'}")
        self._kinds: dict[Callable[[], Awaitable[None]], int] = {
            self._kill: 85,
            self._kill_while_leaving: 7,
            self._leave: 8,
        }
        if self._site.is_cluster:
            self._kinds |= {self._stop: 12, self._cut_database: 14, self._cut_peers: 14, self._cut_clients: 10}

    async def run(self) -> None:
        while not self._trouble.is_over():
            await self._let_work()
            (do,) = self._random.choices(list(self._kinds), list(self._kinds.values()))
            await do()
            if not self._server.is_running:
                await self._come_back()
            self._trouble.report()

    # Between two troubles

    async def _let_work(self) -> None:
        """For a random time, or until an instant at which a kill is most awkward."""
        # A busy machine takes its time for a start, and as much for the work that is to be killed.
        life_s = self._random.choice([0.1, 0.5, 2.0]) * self._random.uniform(0.2, 1.8) * max(1.0, self._server.start_s)
        if self._random.random() < 0.5:
            await asyncio.sleep(life_s)
            self._look_for_stale_commands()
            return
        reader = self._random.choice(self._trouble.readers)
        await reader.wait_for(self._random.choice(INSTANTS), limit_s=2 * life_s)
        await asyncio.sleep(self._random.uniform(0, 0.02))

    async def _come_back(self) -> None:
        if self._random.random() < 0.2:
            await self._look_for_commands_of(self._server.mark)
        while self._random.random() < 0.15:
            await self._server.launch()
            await asyncio.sleep(self._random.uniform(0, self._server.start_s * 1.2))
            await self._server.kill()
            self._trouble.ends["killed while it started"] += 1
        if self._site.is_cluster:
            await asyncio.sleep(self._random.choice([0, 0, LEASE_S * self._random.random(), LEASE_S + 1]))
        await self._trouble.start(self._server)

    @property
    def _moment_s(self) -> float:
        """Longer where a start takes long: the machine is busy."""
        return A_MOMENT_S * max(1.0, self._server.start_s)

    async def _look_for_commands_of(self, mark: str) -> None:
        """Of a process that has just ended, or lost its leases."""
        await asyncio.sleep(self._moment_s)
        self._note("no command outlives its server", self._site.commands_of(mark))

    def _look_for_stale_commands(self) -> None:
        if not self._site.is_cluster and time.monotonic() - self._server.ready_at > self._moment_s:
            self._note("no command is left after the next start", self._site.stale_commands())

    def _note(self, promise: str, details: Sequence[str]) -> None:
        self._trouble.note(promise, f"server {self._server.mark}", details)

    # Ends

    async def _kill(self) -> None:
        await self._server.kill()
        self._trouble.ends["kill -9"] += 1

    async def _kill_while_leaving(self) -> None:
        self._server.server.terminate()
        await asyncio.sleep(self._random.uniform(0, DRAIN_S * 1.2))
        await self._server.kill()
        self._trouble.ends["kill -9 after TERM"] += 1

    async def _leave(self) -> None:
        outages = self._trouble.outages
        self._server.server.terminate()
        self._trouble.ends["TERM"] += 1
        try:
            async with asyncio.timeout(LEAVE_S):
                code = await self._server.server.wait()
            if code != 0:
                self._note("TERM ends a server with exit code 0", [f"exit code {code}"])
        except TimeoutError:
            if self._trouble.outages == outages:
                self._note("TERM ends a server in time", [f"it is there after {LEAVE_S} s"])
        await self._server.kill()

    # What others may take for an end

    async def _stop(self) -> None:
        """SIGSTOP, mostly for longer than its leases."""
        self._trouble.others["SIGSTOP"] += 1
        self._server.pause()
        try:
            await self._outlast(self._random.choice([0.5, LEASE_S, LEASE_S + 2]))
        finally:
            self._server.resume()

    async def _cut_database(self) -> None:
        await self._afflict(self._site.links[self._server.name].database, "to PostgreSQL", self._outlast)

    async def _cut_peers(self) -> None:
        await self._afflict(self._site.links[self._server.name].peers, "between servers", asyncio.sleep)

    async def _cut_clients(self) -> None:
        await self._afflict(self._site.links[self._server.name].clients, "of clients", asyncio.sleep)

    async def _afflict(self, link: Cutoff, name: str, outlast: Callable[[float], Awaitable[None]]) -> None:
        """`outlast`: how to wait while nothing can pass the link, there and back."""
        way = self._random.choices(list(WAYS), list(WAYS.values()))[0]
        self._trouble.others[f"link {name} {way.value}"] += 1
        way.apply(link, self._random)
        try:
            wait = outlast if way.cuts else asyncio.sleep
            await wait(self._random.choice([0.2, 1, LEASE_S, LEASE_S + 2]))
        finally:
            link.heal()

    async def _outlast(self, seconds: float) -> None:
        """The server cannot renew its leases for this long. Beyond their end, its commands must be gone."""
        await asyncio.sleep(seconds)
        if seconds > LEASE_S:
            self._note("no command outlives its lease", self._site.commands_of(self._server.mark))
