"""The store: units are whole, commits come before publishing, constraints hold (E2, L15)."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from bench import AT, Bench, WriterGate, accepted, entry, new_session, open_bench, record, said, terminal, unit

from longboat.errors import StoreUnavailable
from longboat.store.changes import insert_run, update_run
from longboat.store.datadir import STORE_NAME
from longboat.store.protocol import UniqueViolated, Write, WriteMissed
from longboat.store.sqlite.queries import SqliteReader
from longboat.wire.models import Outcome, RunState


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    """Every store keeps the same promises."""
    return str(request.param)


@pytest.fixture
async def bench(tmp_path: Path, kind: str) -> AsyncIterator[Bench]:
    async with open_bench(tmp_path, kind) as opened:
        yield opened


@pytest.fixture
async def sqlite_bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_bench(tmp_path) as opened:
        yield opened


# Units and batches


async def test_a_unit_is_all_or_nothing(bench: Bench) -> None:
    """L15: its second write fails, so neither the first nor its event is there."""
    with pytest.raises(UniqueViolated):
        await bench.store.submit(unit(new_session("a"), new_session("a"), entries=[entry("a")]))
    assert await bench.titles() == ["s"]
    assert bench.published == []


async def test_a_write_that_misses_its_row_fails_its_unit(bench: Bench) -> None:
    gone = Write("session_title", {"session_id": "nobody", "title": "x", "folded_title": "x", "updated_at": AT}, rows=1)
    with pytest.raises(WriteMissed, match="session_title changed 0 rows instead of 1"):
        await bench.store.submit(unit(new_session("a"), gone, entries=[entry("a")]))
    assert await bench.titles() == ["s"]


async def test_a_failing_unit_leaves_the_others_of_its_commit_alone(bench: Bench) -> None:
    """L15: each unit has a savepoint, and a unit that failed uses up no number."""
    gate = WriterGate(bench.store)
    units = [said("first"), said("a"), said("s"), said("b"), unit(Write("no_such_query", {})), said("c")]
    futures = [bench.store.submit(units[0])]
    await gate.reached()
    futures += [bench.store.submit(each) for each in units[1:]]
    gate.open()
    outcomes = await asyncio.gather(*futures, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None)] * 2 + [UniqueViolated, type(None), KeyError] + [
        type(None)
    ]
    assert await bench.titles() == ["s", "first", "a", "b", "c"]
    assert bench.numbers == [1, 2, 3, 4]
    assert gate.statements.count("COMMIT") == 2, "the first unit alone, then all that waited together"


async def test_a_failed_commit_fails_all_its_units_and_publishes_none(sqlite_bench: Bench, tmp_path: Path) -> None:
    """L15. A constraint that SQLite checks only at COMMIT makes the commit itself fail."""
    poison = sqlite3.connect(tmp_path / STORE_NAME)
    poison.executescript(
        """
        CREATE TABLE promise (kept TEXT REFERENCES sessions (session_id) DEFERRABLE INITIALLY DEFERRED);
        CREATE TRIGGER break_it AFTER INSERT ON sessions WHEN new.title = 'poison'
        BEGIN INSERT INTO promise VALUES ('never'); END;
        """
    )
    gate = WriterGate(sqlite_bench.store)
    before = sqlite_bench.store.submit(said("before"))
    await gate.reached()
    together = [sqlite_bench.store.submit(said(name)) for name in ("a", "poison", "a", "b")]
    gate.open()
    await before
    outcomes = await asyncio.gather(*together, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 4, "what clashed with an undone one, too"
    assert sqlite_bench.store.problem is not None
    assert await sqlite_bench.titles() == ["s", "before"]
    assert sqlite_bench.numbers == [1]
    poison.execute("DROP TRIGGER break_it")
    poison.close()
    await sqlite_bench.store.submit(said("after"))
    assert sqlite_bench.numbers == [1, 2], "the failed units used up no number"
    assert sqlite_bench.store.problem is None


async def test_units_are_published_in_the_order_of_submit(bench: Bench) -> None:
    """One total order: the log's, the listener's and the submitters' are the same."""
    answered: list[int] = []
    heard_at: list[int] = []

    def note(index: int, _: object) -> None:
        answered.append(index)
        heard_at.append(len(bench.published))

    for index in range(700):
        future = bench.store.submit(unit(entries=[entry(f"c{index}")], durable=index % 3 == 0))
        future.add_done_callback(partial(note, index))
    await future
    await asyncio.sleep(0)
    assert answered == list(range(700))
    assert bench.numbers == list(range(1, 701))
    names = [f'"client_id":"c{index}"'.encode() in published.data for index, published in enumerate(bench.published)]
    assert all(names)
    assert all(heard >= place for place, heard in enumerate(heard_at, 1)), "published first, answered then"
    rows = await bench.rows("events_between", workspace_id="w", number=0, up_to=2**62, session_id=None)
    assert [row["frames"] for row in rows] == [published.data for published in bench.published]


async def test_an_entry_of_many_frames_has_a_number_for_each(bench: Bench) -> None:
    await bench.store.submit(unit(entries=[entry("a", "b", "c"), entry("d")]))
    assert [(each.first, each.last) for each in bench.published] == [(1, 3), (4, 4)]
    ids = [line for line in bench.published[0].data.split(b"\n") if line.startswith(b"id: ")]
    assert ids == [f"id: w/{bench.store.epoch}/{number}".encode() for number in (1, 2, 3)]


async def test_a_submitter_who_left_changes_nothing_for_the_others(bench: Bench) -> None:
    gate = WriterGate(bench.store)
    first = bench.store.submit(said("first"))
    await gate.reached()
    gone, other = bench.store.submit(said("gone")), bench.store.submit(said("other"))
    gone.cancel()
    gate.open()
    await asyncio.gather(first, other)
    assert await bench.titles() == ["s", "first", "gone", "other"]
    assert bench.numbers == [1, 2, 3]


async def test_only_deltas_go_without_a_sync_and_one_durable_unit_syncs_its_batch(sqlite_bench: Bench) -> None:
    gate = WriterGate(sqlite_bench.store)
    gate.open()
    for durable in (False, False, True, True, False):
        await sqlite_bench.store.submit(unit(entries=[entry("x")], durable=durable))
    syncs = [statement for statement in gate.statements if statement.startswith(("PRAGMA", "COMMIT"))]
    normal, full = "PRAGMA synchronous = NORMAL", "PRAGMA synchronous = FULL"
    assert syncs == [normal, "COMMIT", "COMMIT", full, "COMMIT", "COMMIT", normal, "COMMIT"]


async def test_a_durable_unit_makes_a_mixed_batch_durable(sqlite_bench: Bench) -> None:
    gate = WriterGate(sqlite_bench.store)
    futures = [sqlite_bench.store.submit(unit(entries=[entry("x")], durable=False))]
    await gate.reached()
    futures += [
        sqlite_bench.store.submit(unit(entries=[entry("x")], durable=durable)) for durable in (False, True, False)
    ]
    gate.open()
    await asyncio.gather(*futures)
    syncs = [statement for statement in gate.statements if statement.startswith(("PRAGMA", "COMMIT"))]
    assert syncs == ["PRAGMA synchronous = NORMAL", "COMMIT", "PRAGMA synchronous = FULL", "COMMIT"]


async def test_closing_waits_for_what_was_submitted(tmp_path: Path, kind: str) -> None:
    async with open_bench(tmp_path, kind) as bench:
        futures = [bench.store.submit(said(f"s{index}")) for index in range(300)]
    assert all(future.done() and future.exception() is None for future in futures)
    async with open_bench(tmp_path, kind) as bench:
        assert await bench.titles() == ["s", *(f"s{index}" for index in range(300))]


# Constraints


async def test_a_second_terminal_event_breaks_its_unit(bench: Bench) -> None:
    """E2: the database makes it impossible, whatever else the unit holds."""
    await bench.store.submit(unit(accepted("r", 1), entries=[terminal("r", 1)]))
    with pytest.raises(UniqueViolated):
        await bench.store.submit(unit(new_session("a"), entries=[entry("a"), terminal("r", 1)]))
    assert await bench.titles() == ["s"]
    assert bench.numbers == [1]


async def test_a_session_has_one_active_run(bench: Bench) -> None:
    await bench.store.submit(unit(accepted("r1", 1, RunState.ACTIVE), accepted("r2", 2, RunState.QUEUED)))
    with pytest.raises(UniqueViolated, match=r"runs(_one_active|\.session_id)"):
        await bench.store.submit(unit(update_run(record("r2", 2, RunState.ACTIVE))))
    (run,) = await bench.rows("run_by_id", workspace_id="w", run_id="r2")
    assert run["state"] == "queued"


async def test_a_finished_run_never_changes_again(bench: Bench) -> None:
    finished = update_run(record("r", 1, RunState.FINISHED, Outcome.CANCELED))
    await bench.store.submit(unit(accepted("r", 1), finished))
    for change in (update_run(record("r", 1, RunState.ACTIVE)), finished):
        with pytest.raises(WriteMissed):
            await bench.store.submit(unit(change))
    (run,) = await bench.rows("run_by_id", workspace_id="w", run_id="r")
    assert (run["state"], run["outcome"]) == ("finished", "canceled")


async def test_a_broken_constraint_is_a_defect_and_not_the_disks_fault(sqlite_bench: Bench) -> None:
    """Nobody is told to mend a disk, and nothing is tried again for ever."""
    orphan = record("r", 1, RunState.ACCEPTED)
    lost = {**insert_run(orphan, "w").params, "session_id": "nobody"}
    with pytest.raises(WriteMissed, match="FOREIGN KEY"):
        await sqlite_bench.store.submit(unit(Write("run_insert", lost)))
    with pytest.raises(WriteMissed, match="CHECK"):
        await sqlite_bench.store.submit(unit(accepted("r", 1, RunState.FINISHED)))
    assert sqlite_bench.store.problem is None


async def test_a_seq_is_never_handed_out_twice(tmp_path: Path, kind: str) -> None:
    """Not even when the session of the newest run is deleted and the server starts anew."""
    async with open_bench(tmp_path, kind) as bench:
        seqs = [bench.store.next_seq() for _ in range(3)]
        await bench.store.submit(unit(*(accepted(f"r{seq}", seq) for seq in seqs)))
        await bench.store.submit(unit(Write("session_delete", {"session_id": "s"}, rows=1)))
        assert await bench.rows("runs_unfinished", workspace_id="w") == []
    async with open_bench(tmp_path, kind) as bench:
        assert bench.store.next_seq() > seqs[-1]


async def test_every_start_has_an_epoch_of_its_own_and_numbers_go_on(tmp_path: Path, kind: str) -> None:
    epochs = []
    for start in range(3):
        async with open_bench(tmp_path, kind) as bench:
            await bench.store.submit(unit(entries=[entry("x")]))
            epochs.append(bench.store.epoch)
            assert bench.numbers == [start + 1]
    assert epochs == sorted(set(epochs))


async def test_a_read_does_not_wait_for_replays(sqlite_bench: Bench) -> None:
    """E5: replays have threads of their own; all of them stand still here."""
    on, loop = threading.Event(), asyncio.get_running_loop()
    stuck = asyncio.Event()

    async def stand_still(reader: SqliteReader) -> str:
        loop.call_soon_threadsafe(stuck.set)
        on.wait()
        (row,) = await reader.fetch("session_by_id", workspace_id="w", session_id="s")
        return str(row["title"])

    replays = [asyncio.ensure_future(sqlite_bench.store.read(stand_still, replay=True)) for _ in range(10)]
    try:
        await stuck.wait()
        assert await sqlite_bench.titles() == ["s"]
    finally:
        on.set()
    assert await asyncio.gather(*replays) == ["s"] * 10
