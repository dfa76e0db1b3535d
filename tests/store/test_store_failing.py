"""A store that cannot be written or opened: a clear refusal, nothing half-accepted, and the server stays up."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from bench import Bench, WriterGate, heard, locked, new_session, open_bench, said, unit
from crash import check_log, crashed
from running_app import launch, settings_in, unprivileged

from longboat.backoff import Backoff
from longboat.errors import DataDirError, ServerLeaving, StoreUnavailable
from longboat.runtime.app import open_app
from longboat.store.datadir import STORE_NAME
from longboat.store.protocol import Entry, UniqueViolated, Unit
from longboat.store.publishing import PendingUnit
from longboat.store.sqlite.store import SqliteStore, open_sqlite
from longboat.testing import Gate, Hang, Pause, Say, ScriptedModel
from longboat.wire.models import Outcome, RunState


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_bench(tmp_path) as opened:
        yield opened


async def test_a_full_disk_refuses_the_unit_and_says_so_until_there_is_room(bench: Bench) -> None:
    (pages,) = bench.store._connection.execute("PRAGMA page_count").fetchone()
    bench.store._connection.execute(f"PRAGMA max_page_count = {pages}")
    big = unit(new_session("big"), entries=[Entry(bodies=(b"x" * 100_000 + b"\n\n",), session_id="s")])
    with pytest.raises(StoreUnavailable, match="full"):
        await bench.store.submit(big)
    assert "full" in (bench.store.problem or "")
    assert await bench.titles() == ["s"]
    bench.store._connection.execute("PRAGMA max_page_count = 1000000")
    await bench.store.submit(big)
    assert bench.store.problem is None
    assert await bench.titles() == ["s", "big"]
    assert bench.numbers == [1]


async def test_a_full_disk_in_a_batch_accepts_all_of_a_unit_or_nothing(bench: Bench) -> None:
    (pages,) = bench.store._connection.execute("PRAGMA page_count").fetchone()
    bench.store._connection.execute(f"PRAGMA max_page_count = {pages}")
    big = Entry(bodies=(b"x" * 100_000 + b"\n\n",), session_id="s")
    gate = WriterGate(bench.store)
    futures = [bench.store.submit(said("before"))]
    await gate.reached()
    futures += [bench.store.submit(each) for each in (said("a"), unit(new_session("b"), entries=[big]), said("c"))]
    gate.open()
    outcomes = await asyncio.gather(*futures, return_exceptions=True)
    taken = [name for name, outcome in zip(("before", "a", "b", "c"), outcomes, strict=True) if outcome is None]
    assert isinstance(outcomes[2], StoreUnavailable)
    assert await bench.titles() == ["s", *taken]
    assert bench.numbers == list(range(1, len(taken) + 1))


async def test_a_locked_store_refuses_the_unit_until_the_lock_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longboat.store.sqlite.store.BUSY_TIMEOUT_S", 0.02)
    async with open_bench(tmp_path) as bench:
        with locked(tmp_path / STORE_NAME):
            with pytest.raises(StoreUnavailable, match="locked"):
                await bench.store.submit(said("a"))
            assert await bench.titles() == ["s"], "it can still be read"
        assert "locked" in (bench.store.problem or "")
        await bench.store.submit(said("a"))
        assert bench.store.problem is None
        assert bench.numbers == [1]


async def test_a_read_only_store_refuses_the_unit(bench: Bench) -> None:
    bench.store._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreUnavailable, match="readonly"):
        await bench.store.submit(said("a"))
    assert "readonly" in (bench.store.problem or "")
    bench.store._connection.execute("PRAGMA query_only = OFF")
    await bench.store.submit(said("a"))
    assert bench.store.problem is None


async def test_a_refused_unit_that_is_the_callers_fault_clears_the_problem_too(bench: Bench) -> None:
    """The disk has answered: health must not go on to blame it."""
    bench.store._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreUnavailable):
        await bench.store.submit(said("a"))
    bench.store._connection.execute("PRAGMA query_only = OFF")
    with pytest.raises(UniqueViolated):
        await bench.store.submit(said("s"))
    assert bench.store.problem is None


# The server on a store that fails


async def test_a_prompt_is_refused_while_the_store_fails_and_nothing_is_half_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L15, B1: the server stays up, health says why, and the same prompt is accepted once the store writes again."""
    monkeypatch.setattr("longboat.store.sqlite.store.BUSY_TIMEOUT_S", 0.02)
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        with locked(tmp_path / "data" / STORE_NAME):
            with pytest.raises(StoreUnavailable, match="Nothing was accepted"):
                await running.submit("hello", "r1")
            health = running.app.health()
            assert (health.status, "locked" in health.detail) == ("degraded", True)
            assert running.app.gauges()["store_failing"] == 1
            page = await running.workspace.runs(state=None, session_id=None, limit=10, after=None)
            assert page.items == ()
            assert not running.workspace.engaged
        await running.submit("hello", "r1")
        assert (await running.completed("r1")).text == "echo: hello"
        assert running.app.health().status == "ok"
        assert [run.run_id for run in running.watcher.of("run") if run.state is RunState.ACCEPTED] == ["r1"]


async def test_a_run_whose_end_cannot_be_written_stays_active_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E2: the write is tried again, the run stays active meanwhile, and still ends once."""
    monkeypatch.setattr("longboat.store.sqlite.store.BUSY_TIMEOUT_S", 0.02)
    monkeypatch.setattr("longboat.runtime.store_retry.BACKOFF", Backoff(base_s=0.01, factor=1.0))
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Say("so "), Pause(gate), Say("far")]])) as running:
        await running.submit("go", "r1")
        await gate.reached()
        await running.watcher.until(lambda event: event.type == "message_delta")
        with locked(tmp_path / "data" / STORE_NAME):
            refused = heard(
                running.workspace.store,
                lambda unit, error: bool(error) and any(entry.run_seq for entry in unit.entries),
            )
            gate.open()
            await refused.wait()
            assert running.app.health().status == "degraded"
            assert (await running.workspace.session_status(running.session_id)).busy
            assert running.watcher.terminals("r1") == []
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "so far")
        assert len(running.watcher.terminals("r1")) == 1
        assert running.app.health().status == "ok"


async def test_pruning_goes_on_after_the_store_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longboat.store.sqlite.store.BUSY_TIMEOUT_S", 0.02)
    monkeypatch.setattr("longboat.runtime.app.PRUNE_EVERY_S", 0.01)

    def pruned(unit: Unit) -> bool:
        return any(write.query == "inbox_prune" for write in unit.writes)

    async with launch(tmp_path, ScriptedModel.echo()) as running:
        store = running.workspace.store
        with locked(tmp_path / "data" / STORE_NAME):
            await heard(store, lambda unit, error: pruned(unit) and isinstance(error, StoreUnavailable)).wait()
        await heard(store, lambda unit, error: pruned(unit) and error is None).wait()


async def test_a_store_that_closes_waits_for_nobody_elses_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B5."""
    monkeypatch.setattr("longboat.store.sqlite.store.BUSY_TIMEOUT_S", 3600.0)
    async with open_bench(tmp_path) as bench:
        with locked(tmp_path / STORE_NAME):
            waiting = bench.store.submit(said("never"))
            await bench.store.aclose()
            with pytest.raises(StoreUnavailable, match="locked"):
                await waiting


async def test_a_start_waits_for_a_store_that_is_locked_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B6: what the last server left is taken up once the store can be written."""
    monkeypatch.setattr("longboat.store.sqlite.store.BUSY_TIMEOUT_S", 0.02)
    monkeypatch.setattr("longboat.runtime.store_retry.BACKOFF", Backoff(base_s=0.01, factor=1.0))
    async with launch(tmp_path, ScriptedModel([[Say("mid"), Hang()]])) as running:
        await running.submit("go", "r1")
        await running.watcher.until(lambda event: event.type == "message_delta")
        place = await crashed(running)
    lock = locked(place / "data" / STORE_NAME)
    refusals: list[Exception] = []

    def note(store: SqliteStore, batch: Sequence[PendingUnit]) -> None:
        settle(store, batch)
        refusals.extend(pending.error for pending in batch if pending.error is not None)
        if len(refusals) == 2:
            lock.__exit__(None, None, None)

    opened = open_sqlite

    @asynccontextmanager
    async def open_locked(path: Path) -> AsyncIterator[SqliteStore]:
        async with opened(path) as store:
            lock.__enter__()
            yield store

    settle = SqliteStore.settle
    monkeypatch.setattr(SqliteStore, "settle", note)
    monkeypatch.setattr("longboat.runtime.app.open_sqlite", open_locked)
    async with launch(place, ScriptedModel.echo(), session_id=running.session_id) as again:
        assert (await again.workspace.run("r1", wait_s=60)).outcome is Outcome.INTERRUPTED
        assert [type(error) for error in refusals] == [StoreUnavailable] * 2
        await check_log(again)


async def test_a_start_that_waits_for_a_lock_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B5: also before the store is open."""
    monkeypatch.setattr("longboat.store.sqlite.store.START_TIMEOUT_S", 3600.0)
    async with open_app(settings_in(tmp_path)):
        pass
    stop = asyncio.Event()

    async def start() -> None:
        async with open_app(settings_in(tmp_path), stop=stop):
            raise AssertionError("it must not open")

    with locked(tmp_path / "data" / STORE_NAME):
        starting = asyncio.create_task(start())
        stop.set()
        with pytest.raises(ServerLeaving):
            await starting


# A data directory that cannot be used


async def test_a_second_server_on_the_same_data_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    async with open_app(settings) as app:
        with pytest.raises(
            DataDirError, match=rf"Another server .pid {os.getpid()}. is using .*longboat stop"
        ) as refused:
            async with open_app(settings):
                pass
        assert refused.value.code == "data_dir_in_use"
        assert app.health().status == "ok"
    async with open_app(settings) as app:
        assert app.health().status == "ok", "free again once the first has left"


async def test_a_data_directory_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    settings.data_dir.mkdir()
    newer = sqlite3.connect(settings.data_dir / STORE_NAME)
    newer.execute("PRAGMA user_version = 999")
    newer.close()
    with pytest.raises(DataDirError, match="Upgrade Longboat, or choose another directory with --data-dir") as refused:
        async with open_app(settings):
            pass
    assert refused.value.code == "data_dir_newer"


async def test_a_data_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file is in the way")
    with pytest.raises(DataDirError, match=f"Cannot use the data directory {tmp_path / 'data'}: .*--data-dir"):
        async with open_app(settings_in(tmp_path)):
            pass


async def test_a_data_directory_without_write_permission_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o500)
    with unprivileged(), pytest.raises(DataDirError, match=r"Cannot use the data directory .*: Permission denied"):
        async with open_app(settings_in(tmp_path)):
            pass


@pytest.mark.parametrize("content", [b"this is no database at all, but long enough to look like one " * 20])
async def test_a_store_that_is_no_store_is_named(tmp_path: Path, content: bytes) -> None:
    settings = settings_in(tmp_path)
    settings.data_dir.mkdir()
    (settings.data_dir / STORE_NAME).write_bytes(content)
    with pytest.raises(DataDirError, match=r"longboat.db is damaged: file is not a database"):
        async with open_app(settings):
            pass
    assert (settings.data_dir / STORE_NAME).read_bytes() == content


async def test_what_is_in_the_data_directory_is_private(tmp_path: Path) -> None:
    """Transcripts are nobody else's business, also in a directory that was there before."""
    async with open_app(settings_in(tmp_path)):
        assert (tmp_path / "data").stat().st_mode & 0o077 == 0
    (tmp_path / "shared").mkdir(mode=0o755)
    async with open_app(settings_in(tmp_path, data_dir=tmp_path / "shared")) as app:
        await app.join(str(tmp_path), None)
        modes = {file.name: file.stat().st_mode & 0o077 for file in (tmp_path / "shared").iterdir()}
        assert set(modes) >= {"longboat.db", "longboat.db-wal", "lock"}
        assert set(modes.values()) == {0}
