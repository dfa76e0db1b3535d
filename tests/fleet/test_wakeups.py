"""Wake-ups between nodes: what one writes, another sees without waiting for its next look."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from bench import accepted, entry, terminal, unit
from node_pairs import QUESTION, Pair, open_pair
from postgres import database_of

from longboat.fleet import node as nodes
from longboat.runtime.inbox import Inbox
from longboat.store.changes import put_ask
from longboat.store.postgres import wakeups
from longboat.store.postgres.store import PostgresStore
from longboat.store.postgres.wakeups import CHANNEL, Topic
from longboat.tasks import Tasks

NEVER_S = 3_600.0
"""Longer than a test: who looks only now and then does not look."""


@pytest.fixture
def dsn(tmp_path: Path) -> str:
    return database_of(tmp_path)


@pytest.fixture
async def pair(dsn: str) -> AsyncIterator[Pair]:
    async with open_pair(dsn) as both:
        yield both


class Heard:
    """The wake-ups that anyone at the database can hear."""

    def __init__(self, client: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._client = client
        self.all: list[str] = []
        self._news = asyncio.Event()

    def take(self, *told: object) -> None:
        self.all.append(str(told[-1]))
        self._news.set()

    async def so_far(self, store: PostgresStore) -> list[str]:
        """All that were sent: PostgreSQL delivers in the order of the commits."""
        await store.wakeups.tell(Topic.LEASES)  # also waits for what is on its way
        marker = f"marker {len(self.all)}"
        await self._client.execute("SELECT pg_notify($1, $2)", CHANNEL, marker)
        while marker not in self.all:
            self._news.clear()
            await self._news.wait()
        return [each for each in self.all if each.startswith(Topic.INBOX)]


@pytest.fixture
async def heard(dsn: str) -> AsyncIterator[Heard]:
    client = await asyncpg.connect(dsn)
    found = Heard(client)
    await client.add_listener(CHANNEL, found.take)
    yield found
    await client.close()


async def test_an_ask_at_one_node_is_at_once_in_the_inbox_of_another(
    pair: Pair,
) -> None:
    (_, at_a), (b, at_b) = pair
    inbox = Inbox(at_b, heartbeat_s=NEVER_S, on_listeners=lambda: None, poll_s=NEVER_S)
    b.when_inbox_changed(inbox.look)
    async with inbox.stream("ann") as frames:
        assert b'"waiting":0' in await anext(frames)
        await at_a.submit(unit(put_ask("w", QUESTION)))
        assert b'"waiting":1' in await anext(frames)


async def test_trap_where_no_wake_up_is_heard_the_next_look_sees_it(
    pair: Pair,
) -> None:
    """As through a pooler in transaction mode, where LISTEN hears nothing."""
    (_, at_a), (_, at_b) = pair
    inbox = Inbox(at_b, heartbeat_s=NEVER_S, on_listeners=lambda: None, poll_s=0.01)
    async with inbox.stream("ann") as frames:
        await anext(frames)
        await at_a.submit(unit(put_ask("w", QUESTION)))
        assert b'"waiting":1' in await anext(frames)


async def test_trap_events_and_deltas_wake_nobody_and_a_batch_wakes_once(pair: Pair, heard: Heard) -> None:
    """One NOTIFY for each event would make all commits wait for each other."""
    (_, at_a), _ = pair
    for _ in range(20):
        await at_a.submit(unit(entries=[entry("delta")], durable=False))
    assert await heard.so_far(at_a) == []
    runs = [(f"r{seq}", seq) for seq in range(1, 51)]
    await asyncio.gather(*(at_a.submit(unit(accepted(*run))) for run in runs))
    assert await heard.so_far(at_a) == []
    ends = [at_a.submit(unit(entries=[terminal(*run)])) for run in runs]  # one batch
    await asyncio.gather(*ends)
    assert await heard.so_far(at_a) == ["inbox a"]


async def test_g9_a_released_workspace_is_taken_over_at_once(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "LOOK_S", NEVER_S)
    (a, at_a), (b, _) = pair
    b.lease_s = NEVER_S
    await at_a.submit(unit(accepted("r1", 1)))
    taken = asyncio.Event()

    async def take_over(workspace_id: str) -> None:
        await b.acquire(workspace_id)
        taken.set()

    b.when_orphaned(take_over)
    async with Tasks() as tasks:
        tasks.spawn(b.take_over_orphans(), name="take over orphans")
        await a.release("w")
        await taken.wait()
    assert b.owns("w")


async def test_a_door_that_waits_for_the_next_owner_is_woken(
    pair: Pair,
) -> None:
    (a, _), (b, _) = pair
    async with Tasks() as tasks:
        waiting = tasks.spawn(b.wait_leases_moved(NEVER_S), name="wait", awaited=True)
        await asyncio.sleep(0)
        await a.release("w")
        await waiting


async def test_a_node_that_lost_the_connection_on_which_it_listens_listens_again_and_looks(
    pair: Pair, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeups, "RETRY", wakeups.Backoff(base_s=0.01))
    (_, at_a), (b, _) = pair
    told: asyncio.Queue[None] = asyncio.Queue()
    b.when_inbox_changed(lambda: told.put_nowait(None))
    client = await asyncpg.connect(dsn)
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ILIKE 'LISTEN%'"
    while not await client.fetch(ended):
        pass
    await client.close()
    await told.get()  # it missed what was said meanwhile
    while not told.empty():
        told.get_nowait()
    await at_a.submit(unit(put_ask("w", QUESTION)))
    await told.get()
