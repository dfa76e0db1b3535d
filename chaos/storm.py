"""The storm: clients and readers work, trouble comes over the servers, and in the end everything becomes evidence."""

import asyncio
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
from chaos.collect import collect, get, post, steadily
from chaos.evidence import Evidence, Exchange, Violation
from chaos.readers import Reader, Temper, head
from chaos.server import StartFailed
from chaos.settle import settle
from chaos.site import LEASE_S, Place, Site, open_site
from chaos.trouble import A_MOMENT_S, GIVE_UP_S, Trouble

SESSIONS = 3
"""Per workspace, to begin with."""
REQUEST_LIMIT_S = 45
CLUSTER_REQUEST_LIMIT_S = 120
"""On a busy machine, a request may meet several takeovers before it is answered."""

Report = Callable[[str], None]
"""Hears how far it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    seed: int
    kills: int | None
    """How many servers are ended; None: as many as `seconds` allow."""
    seconds: float
    nodes: int = 1
    postgresql: bool = False
    """Also for a single server."""
    clients: int = 12
    pause_s: float = 0.7
    """The longest time between two requests of a client."""


@dataclass(kw_only=True)
class Result:
    violations: list[Violation]
    evidence: Evidence
    ends: Counter[str] = field(default_factory=Counter)
    """How many servers were ended, by how."""
    others: Counter[str] = field(default_factory=Counter)
    """What else went wrong."""


class Storm:
    def __init__(self, settings: Settings, site: Site, doors: list[httpx2.AsyncClient], report: Report) -> None:
        self.evidence = Evidence()
        self._settings = settings
        self._site = site
        self._doors = doors
        self._report = report
        self._deadline = 0.0
        self._workspaces: list[Workspace] = []
        self._readers: dict[str, list[Reader]] = {}
        self._first_cursors: dict[str, str] = {}
        self.trouble = Trouble(site, seed=settings.seed, is_over=self._is_over, report=self._report_progress)

    async def run(self) -> None:
        for server in self._site.servers:
            await server.start()
        if self._site.database is not None:
            await self._site.database.watch_owners()
        for place in self._site.places:
            await self._open(place)
        async with asyncio.TaskGroup() as tasks:
            over = asyncio.Event()
            clients = [tasks.create_task(client.work(over)) for client in self._clients()]
            reading = [tasks.create_task(each.follow()) for group in self._readers.values() for each in group]
            try:
                self._deadline = time.monotonic() + self._settings.seconds
                await self.trouble.run()
                over.set()
                await asyncio.wait(clients)
                await self._finish()
            finally:
                for task in reading:
                    task.cancel()

    def _is_over(self) -> bool:
        if self._settings.kills is None:
            return time.monotonic() >= self._deadline
        return self.trouble.ends.total() >= self._settings.kills

    def _report_progress(self) -> None:
        self._report(f"{self.trouble.ends.total()} servers ended, {len(self.evidence.exchanges)} requests")

    # The beginning

    async def _open(self, place: Place) -> None:
        door = self._doors[self._site.servers.index(place.server)]
        joined = await post(door, "/v1/workspaces", path=str(place.directory))
        nodes = [server.name for server in self._site.servers] if place.is_shared and self._site.is_cluster else []
        workspace = Workspace(place.name, f"/v1/workspaces/{joined['id']}", nodes)
        cursor = await steadily(lambda: head(door, workspace.events))
        self._workspaces.append(workspace)
        self._first_cursors[place.name] = cursor
        self._readers[place.name] = [
            Reader(
                self._doors,
                workspace.events,
                f"reader.{temper.value}",
                temper,
                after=cursor,
                seed=f"{self._settings.seed}/{place.name}/{temper.value}",
            )
            for temper in Temper
        ]
        self.trouble.readers.append(self._readers[place.name][0])
        for _ in range(SESSIONS):
            workspace.add_session((await post(door, f"{workspace.route}/sessions"))["id"])

    def _clients(self) -> list[Client]:
        return [
            Client(
                self._doors,
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

    # The end

    async def _finish(self) -> None:
        self._report("the last servers stay; every run comes to its end")
        for workspace in self._workspaces:
            await self._wait_for_home(workspace)
            complaints = await settle(self._doors, workspace, self._record)
            self.trouble.note("every session goes on", "at the end", complaints)
        for workspace, place in zip(self._workspaces, self._site.places, strict=True):
            self.evidence.workspaces.append(
                await collect(
                    self._doors,
                    workspace,
                    directory=place.directory,
                    readers=self._readers[workspace.name],
                    first_cursor=self._first_cursors[workspace.name],
                    takeovers=await self._site.takeovers(workspace.workspace_id),
                )
            )
        self.trouble.note("no command is left after the next start", "at the end", self._site.stale_commands())
        await self._end_servers()
        if self._site.database is None:
            self._look_at_store()
        self._look_at_files()

    async def _wait_for_home(self, workspace: Workspace) -> None:
        """Until a caretaker has given the workspace back."""
        async with asyncio.timeout(GIVE_UP_S):
            while True:
                if not (await get(self._doors[0], workspace.route)).get("away"):
                    return
                await asyncio.sleep(0.2)

    async def _end_servers(self) -> None:
        """The first leaves, the others are killed. After a lease, nobody owns anything and no command runs."""
        first, *others = reversed(self._site.servers)
        for server in others:
            await server.kill()
        if others:
            first.server.terminate()
            await first.server.wait()
        await first.kill()
        await asyncio.sleep(max(LEASE_S if others else 0, A_MOMENT_S * max(1.0, first.start_s)))
        self.trouble.note("no command outlives its server", "at the end", self._site.living_commands())
        if self._site.database is not None:
            self.trouble.note("leases end", "at the end", await self._site.database.living_leases())

    def _look_at_store(self) -> None:
        with closing(sqlite3.connect(self._site.store)) as store:
            answers = [str(row[0]) for row in store.execute("PRAGMA integrity_check")]
        self.trouble.note("the store is sound", "at the end", [answer for answer in answers if answer != "ok"])

    def _look_at_files(self) -> None:
        complaints = self._site.home / "complaints.jsonl"
        if complaints.exists():
            lines = complaints.read_text().splitlines()
            promise = "every model request is one that a provider takes"
            self.trouble.note(promise, "the model", [line[:300] for line in lines])
        for server in self._site.servers:
            self.trouble.note("nothing fails unseen", server.name, server.errors())


async def storm(settings: Settings, home: Path, *, report: Report = lambda _: None) -> Result:
    """Everything, in an empty directory, which holds the evidence afterwards."""
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(open_site(home, nodes=settings.nodes, postgresql=settings.postgresql))
        limit_s = CLUSTER_REQUEST_LIMIT_S if site.is_cluster else REQUEST_LIMIT_S
        doors = [await stack.enter_async_context(client) for client in site.clients(timeout_s=limit_s)]
        work = Storm(settings, site, doors, report)
        try:
            await work.run()
        except* StartFailed as group:
            work.trouble.note("every start succeeds", "a server", [str(error) for error in group.exceptions])
        evidence = work.evidence
        evidence.found = work.trouble.found
        evidence.crashes = 0 if site.database is None else site.database.crashes
        return Result(
            violations=violations(evidence), evidence=evidence, ends=work.trouble.ends, others=work.trouble.others
        )
