"""D8: a data directory that is deleted, moved or replaced under a running server is noticed; nothing is accepted."""

import asyncio
import logging
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from bench import WriterGate, open_bench, said
from running_app import launch

from longboat.errors import DataDirGone
from longboat.store.datadir import STORE_NAME
from longboat.store.sqlite.queries import SqliteReader
from longboat.testing import Gate, Pause, Say, ScriptedModel


def delete_directory(data: Path) -> None:
    shutil.rmtree(data)


def move_directory(data: Path) -> None:
    data.rename(data.with_name("elsewhere"))


def replace_directory(data: Path) -> None:
    data.rename(data.with_name("elsewhere"))
    shutil.copytree(data.with_name("elsewhere"), data)


def delete_write_ahead_log(data: Path) -> None:
    (data / f"{STORE_NAME}-wal").unlink()


def delete_database(data: Path) -> None:
    (data / STORE_NAME).unlink()


@pytest.fixture(autouse=True)
def look_at_every_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longboat.store.datadir.SIDE_FILES_EVERY_S", 0.0)


ways = pytest.mark.parametrize(
    "take_away", [delete_directory, move_directory, replace_directory, delete_write_ahead_log, delete_database]
)


@ways
async def test_d8_the_first_prompt_after_the_data_directory_is_gone_is_refused(
    tmp_path: Path, take_away: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        await running.submit("before", "r1")
        await running.completed("r1")
        take_away(tmp_path / "data")
        with pytest.raises(DataDirGone, match="deleted, moved or replaced") as refused:
            await running.submit("after", "r2")
        assert refused.value.code == "data_dir_gone"
        health = running.app.health()
        assert (health.status, health.detail) == ("degraded", refused.value.message)
        assert [run.run_id for run in await running.ledger()] == ["r1"], "and nothing was half accepted"
        assert [record.levelno for record in caplog.records if "was deleted" in record.message] == [logging.ERROR]


async def test_d8_health_notices_it_while_nobody_writes(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        assert running.app.health().status == "ok"
        delete_directory(tmp_path / "data")
        assert running.app.health().status == "degraded"
        assert running.app.gauges()["store_failing"] == 1


async def test_d8_a_unit_that_is_committed_while_the_directory_goes_is_refused(tmp_path: Path) -> None:
    """The look before the commit came too early: the look after it decides."""
    (tmp_path / "data").mkdir()
    async with open_bench(tmp_path / "data") as bench:
        gate = WriterGate(bench.store)
        late = bench.store.submit(said("late"))
        await gate.reached()
        delete_directory(tmp_path / "data")
        gate.open()
        with pytest.raises(DataDirGone):
            await late
        assert bench.published == []


async def test_d8_what_was_saved_can_be_read_by_every_reader_until_the_server_stops(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    async with open_bench(tmp_path / "data") as bench:
        replace_directory(tmp_path / "data")
        sqlite3.connect(tmp_path / "data" / STORE_NAME).executescript("UPDATE sessions SET title = 'of another'")
        both = threading.Barrier(2)

        async def read(reader: SqliteReader) -> list[str]:
            both.wait()  # at the same time, so on both threads
            rows = await reader.fetch("sessions_page", workspace_id="w", before=2**62, limit=5)
            return [row["title"] for row in rows]

        assert await asyncio.gather(bench.store.read(read), bench.store.read(read)) == [["s"], ["s"]]


async def test_d8_active_runs_are_stopped_and_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They would act, and cost, without a record."""
    gate = Gate()
    model = ScriptedModel([[Say("so "), Pause(gate), Say("far")]])
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1")
        await gate.reached()
        await running.submit("then", "r2")
        await running.watcher.in_state("r2", "queued")
        delete_directory(tmp_path / "data")
        stopped = running.actor._loop.turn
        assert stopped is not None
        assert running.app.health().status == "degraded"
        await asyncio.wait([stopped._task])
        assert any("unfinished runs" in record.message and "r1, r2" in record.message for record in caplog.records)
        assert not gate.is_open, "the model was not waited for"
