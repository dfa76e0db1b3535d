"""What is forgotten after some days: in slices, by one server, without a gap. How readers see it is in test_log.py."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import asyncpg
import pytest
from bench import AT, Bench, entry, open_bench, said, unit
from postgres import database_of

from longboat.runtime import pruning
from longboat.runtime.ownership import Ownership, SoleOwner
from longboat.runtime.pruning import Pruning
from longboat.store.datadir import STORE_NAME
from longboat.store.postgres.store import open_postgres
from longboat.store.protocol import Write
from longboat.wire.listings import NodeInfo, NodeState

NOW_S = 2_000_000_000
WEEK_S = 7 * 86_400


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def bench(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(pruning.time, "time", lambda: NOW_S)
    monkeypatch.setattr(pruning, "SLICE", 10)
    async with open_bench(tmp_path, kind) as opened:
        yield opened


@pytest.fixture
def change(tmp_path: Path, kind: str) -> "Change":
    return Change(tmp_path, kind)


class Change:
    """Changes rows as no server does."""

    def __init__(self, path: Path, kind: str) -> None:
        self._path = path
        self._kind = kind

    async def __call__(self, sql: str) -> None:
        if self._kind == "sqlite":
            with sqlite3.connect(self._path / STORE_NAME) as file:
                file.execute(sql)
            file.close()
            return
        client = await asyncpg.connect(database_of(self._path))
        await client.execute(sql)
        await client.close()


def prune_of(bench: Bench, ownership: object | None = None) -> Pruning:
    return Pruning(bench.store, cast("Ownership", ownership or SoleOwner("")), keep_days=7)


async def write_events(bench: Bench, count: int) -> None:
    """As many entries, one event each."""
    await bench.store.submit(unit(entries=[entry(str(number)) for number in range(count)]))


async def kept_events(bench: Bench) -> list[int]:
    rows = await bench.rows("events_between", workspace_id="w", number=0, up_to=2**62, session_id=None)
    return [row["last"] for row in rows]


async def test_a_large_backlog_is_forgotten_in_slices_with_other_units_in_between(bench: Bench, change: Change) -> None:
    await write_events(bench, 95)
    await change("UPDATE events SET written_s = 0 WHERE last <= 93")
    committed: list[str] = []
    settle = bench.store.settle  # type: ignore[attr-defined]

    def look(batch: Sequence[Any]) -> None:
        """Somebody else submits a unit after each slice."""
        settle(batch)
        for pending in batch:
            committed.append("prune" if pending.unit.workspace_id == "" else "other")
            for write in pending.unit.writes:
                if write.query != "events_prune":
                    continue
                assert write.params["last"] - write.params["first"] < 10
                bench.store.submit(said(f"s{len(committed)}"))

    setattr(bench.store, "settle", look)  # noqa: B010 - the store calls it by name
    await prune_of(bench).prune()
    assert committed[:20] == ["prune", "other"] * 10, "a unit waits for one slice at most"
    assert (await kept_events(bench))[:2] == [94, 95]
    assert bench.numbers[-10:] == list(range(96, 106)), "and their events are published"


async def test_the_newest_event_is_kept_whatever_its_age(bench: Bench, change: Change) -> None:
    await write_events(bench, 33)
    await change("UPDATE events SET written_s = 0")
    await prune_of(bench).prune()
    assert await kept_events(bench) == [33]


async def test_what_a_message_needs_that_is_being_written_is_kept(bench: Bench, change: Change) -> None:
    await write_events(bench, 20)
    await bench.store.submit(unit(open_message("m"), entries=[entry("21")]))
    await write_events(bench, 20)
    await change("UPDATE events SET written_s = 0")
    await prune_of(bench).prune()
    assert await kept_events(bench) == list(range(22, 42)), "its deltas are behind 21"


@pytest.mark.parametrize("wrong", ["last <= 15", "last BETWEEN 30 AND 45", "last BETWEEN 50 AND 55"])
async def test_a_clock_that_was_wrong_does_not_keep_the_log_for_ever(bench: Bench, change: Change, wrong: str) -> None:
    """The log goes on, and after a while most of it was written at the right time."""
    await write_events(bench, 60)
    await change(f"UPDATE events SET written_s = {NOW_S - WEEK_S - 1}")
    await change(f"UPDATE events SET written_s = {2 * NOW_S} WHERE {wrong}")
    for _ in range(4):
        await prune_of(bench).prune()
        await write_events(bench, 60)
        await change(f"UPDATE events SET written_s = {NOW_S - WEEK_S - 1} WHERE written_s < {NOW_S}")
    kept = await kept_events(bench)
    assert kept[0] > 60
    assert kept == list(range(kept[0], kept[-1] + 1)), "no gap"


async def test_young_events_are_kept_and_found_young_by_the_oldest(bench: Bench, change: Change) -> None:
    await write_events(bench, 30)
    await change(f"UPDATE events SET written_s = {NOW_S - WEEK_S}")
    await prune_of(bench).prune()
    assert len(await kept_events(bench)) == 30


async def test_the_requests_of_a_run_are_forgotten_together(
    bench: Bench, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "SLICE", 2)
    young, old = NOW_S, NOW_S - WEEK_S - 1
    sent = [("r1", old), ("r2", old), ("r1", old), ("r3", old), ("r1", old), ("r2", young), ("r4", young)]
    for number, (run_id, sent_s) in enumerate(sent):
        await bench.store.submit(unit(request(f"q{number}", run_id, sent_s)))
    await prune_of(bench).prune()
    left = [run_id for run_id in ("r1", "r2", "r3", "r4") for _ in await requests_of(bench, run_id)]
    assert left == ["r2", "r2", "r4"]


async def test_pieces_of_requests_are_forgotten_a_day_later(
    bench: Bench, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That they are still used is noted only once a day."""
    monkeypatch.setattr(pruning, "SLICE", 2)
    limit = NOW_S - WEEK_S - 86_400
    times = [limit - 1, limit, limit - 1, limit - 1, limit - 2]
    writes = [
        Write("request_piece_put", {"session_id": "s", "digest": bytes([number]), "used_s": used_s, "content": b""})
        for number, used_s in enumerate(times)
    ]
    await bench.store.submit(unit(*writes))
    await prune_of(bench).prune()
    kept = [n for n in range(5) if await bench.rows("request_piece", session_id="s", digest=bytes([n]))]
    assert kept == [1]


@pytest.mark.parametrize(
    ("states", "ours"),
    [
        ([], True),
        ([("a", NodeState.RUNNING), ("me", NodeState.RUNNING)], False),
        ([("a", NodeState.GONE), ("me", NodeState.RUNNING)], True),
        ([("me", NodeState.RUNNING), ("z", NodeState.RUNNING)], True),
        ([("a", NodeState.GONE)], True),
    ],
)
async def test_one_node_prunes_for_all(states: list[tuple[str, NodeState]], ours: bool, bench: Bench) -> None:
    class Cluster(SoleOwner):
        async def nodes(self) -> tuple[NodeInfo, ...]:
            return tuple(node(name, state) for name, state in states)

    assert await prune_of(bench, Cluster("me")).is_ours() is ours


@pytest.mark.parametrize("kind", ["postgres"])
async def test_two_nodes_that_prune_at_once_leave_no_gap(bench: Bench, change: Change, tmp_path: Path) -> None:
    await write_events(bench, 120)
    await change("UPDATE events SET written_s = 0 WHERE last <= 110")
    await bench.store.aclose()  # type: ignore[attr-defined]
    dsn = database_of(tmp_path)
    async with open_postgres(dsn, node="a") as first, open_postgres(dsn, node="b") as second:
        await asyncio.gather(*(Pruning(store, SoleOwner(""), keep_days=7).prune() for store in (first, second)))
        left = await first.reads.log_page("w", after=110, session_id=None, entries=500, size=2**20)
    assert left is not None
    assert left.last == 120


def open_message(message_id: str) -> Write:
    params = {"message_id": message_id, "session_id": "s", "run_id": "r", "seq": 1, "role": "assistant", "parts": b"[]"}
    rest = {"model": None, "provider": None, "summary": False, "created_at": AT, "finished_at": None}
    return Write("message_put", params | rest)


def request(request_id: str, run_id: str, sent_s: int) -> Write:
    params = {"request_id": request_id, "session_id": "s", "run_id": run_id, "sent_s": sent_s}
    return Write("request_add", params | {"frame": b"", "same": 0, "messages": b"", "facts": b""})


async def requests_of(bench: Bench, run_id: str) -> list[dict[str, Any]]:
    return await bench.rows("requests_of", session_id="s", run_id=run_id)


def node(name: str, state: NodeState) -> NodeInfo:
    counts = dict.fromkeys(("owns", "home_of", "runs_active", "runs_waiting"), 0)
    return NodeInfo(
        name=name,
        url=None,
        version="1",
        started_at=AT,
        seen_at=AT,
        state=state,
        leaving=False,
        answering=name == "me",
        **counts,
    )
