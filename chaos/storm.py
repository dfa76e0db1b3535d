"""The storm: clients and readers work, a killer kills the server, and in the end everything is gathered as evidence."""

import asyncio
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from chaos.checks import violations
from chaos.clients import Client, Workspace
from chaos.collect import collect
from chaos.evidence import Evidence, Exchange, Violation
from chaos.readers import Reader, Temper, head
from chaos.settle import settle
from chaos.site import DRAIN_S, WORKSPACES, Site, StartFailed, open_site

SESSIONS = 3
"""Per workspace, to begin with."""
REQUEST_LIMIT_S = 45
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

Report = Callable[[str], None]
"""Hears how far it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    seed: int
    kills: int | None
    """How many servers are ended; None: as many as `seconds` allow."""
    seconds: float
    clients: int = 12
    pause_s: float = 0.7
    """The longest time between two requests of a client."""


@dataclass(kw_only=True)
class Result:
    violations: list[Violation]
    evidence: Evidence
    ends: Counter[str] = field(default_factory=Counter)
    """How many servers were ended, by how."""


class Storm:
    def __init__(self, settings: Settings, site: Site, http: httpx2.AsyncClient, report: Report) -> None:
        self.evidence = Evidence(starts=site.starts)
        self.ends: Counter[str] = Counter()
        self._settings = settings
        self._site = site
        self._http = http
        self._report = report
        self._random = random.Random(f"{settings.seed}/killer")
        self._workspaces: list[Workspace] = []
        self._readers: dict[str, list[Reader]] = {}
        self._first_cursors: dict[str, str] = {}
        self._start_s = 1.0

    async def run(self) -> None:
        await self._start()
        for name in WORKSPACES:
            await self._open(name)
        async with asyncio.TaskGroup() as tasks:
            over = asyncio.Event()
            clients = [tasks.create_task(client.work(over)) for client in self._clients()]
            reading = [tasks.create_task(each.follow()) for group in self._readers.values() for each in group]
            try:
                await self._kill_servers()
                over.set()
                await asyncio.wait(clients)
                await self._finish()
            finally:
                for task in reading:
                    task.cancel()

    # The beginning

    async def _open(self, name: str) -> None:
        joined = await self._http.post("/v1/workspaces", json={"path": str(self._site.directory(name))})
        workspace = Workspace(name, f"/v1/workspaces/{joined.raise_for_status().json()['id']}")
        cursor = await head(self._http, workspace.events)
        self._workspaces.append(workspace)
        self._first_cursors[name] = cursor
        self._readers[name] = [
            Reader(
                self._http,
                workspace.events,
                f"reader.{temper.value}",
                temper,
                after=cursor,
                seed=f"{self._settings.seed}/{name}/{temper.value}",
            )
            for temper in Temper
        ]
        for _ in range(SESSIONS):
            created = await self._http.post(f"{workspace.route}/sessions", json={})
            workspace.add_session(created.raise_for_status().json()["id"])

    def _clients(self) -> list[Client]:
        return [
            Client(
                self._http,
                self._workspaces[number % len(self._workspaces)],
                f"c{number}",
                seed=str(self._settings.seed),
                record=self._record,
                pause_s=self._settings.pause_s,
            )
            for number in range(self._settings.clients)
        ]

    def _record(self, exchange: Exchange) -> None:
        self.evidence.exchanges.append(exchange)

    # The kills

    async def _kill_servers(self) -> None:
        """Ends with a server that runs."""
        deadline = time.monotonic() + self._settings.seconds
        while time.monotonic() < deadline if self._settings.kills is None else self.ends.total() < self._settings.kills:
            await self._let_work()
            await self._end_server()
            if self._random.random() < 0.2:
                await asyncio.sleep(self._moment_s)
                self._found("no command outlives its server", self._site.living_commands())
            while self._random.random() < 0.15:
                await self._site.launch()
                await asyncio.sleep(self._random.uniform(0, self._start_s * 1.2))
                await self._site.kill()
                self.ends["killed while it started"] += 1
            await self._start()
            self._report(f"{self.ends.total()} servers ended, {len(self.evidence.exchanges)} requests")

    async def _let_work(self) -> None:
        """For a random time, or until an instant at which a kill is most awkward."""
        # A busy machine takes its time for a start, and as much for the work that is to be killed.
        life_s = self._random.choice([0.1, 0.5, 2.0]) * self._random.uniform(0.2, 1.8) * max(1.0, self._start_s)
        if self._random.random() < 0.5:
            await asyncio.sleep(life_s)
            self._look_for_older_commands()
            return
        reader = self._readers[self._random.choice(WORKSPACES)][0]
        await reader.wait_for(self._random.choice(INSTANTS), limit_s=2 * life_s)
        await asyncio.sleep(self._random.uniform(0, 0.02))

    async def _start(self) -> None:
        began = time.monotonic()
        await self._site.start()
        self._start_s = time.monotonic() - began

    @property
    def _moment_s(self) -> float:
        """Longer where a start takes long: the machine is busy."""
        return A_MOMENT_S * max(1.0, self._start_s)

    def _look_for_older_commands(self) -> None:
        if time.monotonic() - self._site.ready_at > self._moment_s:
            self._found("no command is left after the next start", self._site.older_commands())

    async def _end_server(self) -> None:
        chance = self._random.random()
        if chance < 0.85:
            await self._site.kill()
            self.ends["kill -9"] += 1
            return
        self._site.server.send_signal(signal.SIGTERM)
        if chance < 0.92:
            await asyncio.sleep(self._random.uniform(0, DRAIN_S * 1.2))
            await self._site.kill()
            self.ends["kill -9 after TERM"] += 1
            return
        self.ends["TERM"] += 1
        try:
            async with asyncio.timeout(LEAVE_S):
                code = await self._site.server.wait()
            if code != 0:
                self._found("TERM ends a server with exit code 0", [f"exit code {code}"])
        except TimeoutError:
            self._found("TERM ends a server in time", [f"it is there after {LEAVE_S} s"])
            await self._site.kill()

    def _found(self, promise: str, details: list[str]) -> None:
        number = len(self.evidence.starts)
        self.evidence.found += [Violation(promise=promise, what=f"server {number}: {each}") for each in details]

    # The end

    async def _finish(self) -> None:
        self._report("the last server stays; every run comes to its end")
        for workspace in self._workspaces:
            for complaint in await settle(self._http, workspace, self._record):
                self._found("every session goes on", [complaint])
        for workspace in self._workspaces:
            self.evidence.workspaces.append(
                await collect(
                    self._http,
                    workspace,
                    directory=self._site.directory(workspace.name),
                    readers=self._readers[workspace.name],
                    first_cursor=self._first_cursors[workspace.name],
                )
            )
        self._look_for_older_commands()
        await self._site.kill()
        await asyncio.sleep(self._moment_s)
        self._found("no command outlives its server", self._site.living_commands())
        self._look_at_files()

    def _look_at_files(self) -> None:
        with closing(sqlite3.connect(self._site.store)) as store:
            answers = [str(row[0]) for row in store.execute("PRAGMA integrity_check")]
        self._found("the store is sound", [answer for answer in answers if answer != "ok"])
        complaints = self._site.home / "complaints.jsonl"
        if complaints.exists():
            lines = complaints.read_text().splitlines()
            self._found("every model request is one that a provider takes", [line[:300] for line in lines])
        if count := self._site.log.read_text(errors="replace").count("Traceback"):
            self._found("nothing fails unseen", [f"{count} tracebacks in {self._site.log.name}"])


async def storm(settings: Settings, home: Path, *, report: Report = lambda _: None) -> Result:
    """Everything, in an empty directory, which holds the evidence afterwards."""
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(open_site(home))
        http = await stack.enter_async_context(site.client(timeout_s=REQUEST_LIMIT_S))
        work = Storm(settings, site, http, report)
        try:
            await work.run()
        except* StartFailed as group:
            work.evidence.found += [
                Violation(promise="every start succeeds", what=str(error)) for error in group.exceptions
            ]
        return Result(violations=violations(work.evidence), evidence=work.evidence, ends=work.ends)
