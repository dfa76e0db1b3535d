"""Backups: one instant of the store in one verified file, and the way back."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from bench import new_session, open_bench, said, unit
from running_app import launch, settings_in, watch

from longboat.errors import DataDirError
from longboat.runtime.app import open_app
from longboat.store.datadir import STORE_NAME
from longboat.store.protocol import Entry
from longboat.store.sqlite.backup import back_up, restore
from longboat.store.sqlite.check import check_deeply
from longboat.store.sqlite.migrations import migrations
from longboat.testing import ScriptedModel


def titles(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        return [title for (title,) in connection.execute("SELECT title FROM sessions ORDER BY place")]


async def test_a_backup_is_one_instant_whatever_is_written_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longboat.store.sqlite.backup.STEP_PAGES", 10)
    async with open_bench(tmp_path) as bench:
        await bench.store.submit(unit(entries=[Entry(bodies=(b"x" * 2_000_000 + b"\n\n",), session_id="s")]))
        writer = sqlite3.connect(tmp_path / STORE_NAME, isolation_level=None)
        steps: list[tuple[int, int]] = []

        def write_too(done: int, total: int) -> None:
            steps.append((done, total))
            writer.execute("UPDATE sessions SET title = title || '+'")

        report = back_up(tmp_path / STORE_NAME, tmp_path / "copy.db", progress=write_too)
        writer.close()
        assert len(steps) > 20
        assert steps == sorted(steps), "it never began anew"
        assert report.counts["sessions"] == 1
    assert titles(tmp_path / "copy.db") == ["s"]
    assert titles(tmp_path / STORE_NAME) == ["s" + "+" * len(steps)]


async def test_a_backup_is_private_whole_and_alone(tmp_path: Path) -> None:
    target = tmp_path / "backups" / "copy.db"
    target.parent.mkdir()
    async with open_bench(tmp_path) as bench:
        await bench.store.submit(said("a"))
        back_up(tmp_path / STORE_NAME, target)
    assert [(file.name, file.stat().st_mode & 0o777) for file in target.parent.iterdir()] == [("copy.db", 0o600)]
    assert titles(target) == ["s", "a"]


async def test_a_backup_never_overwrites_unless_told_to(tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("precious")
    async with open_bench(tmp_path):
        with pytest.raises(DataDirError, match=r"exists\. Choose another name, or overwrite it with --force"):
            back_up(tmp_path / STORE_NAME, target)
        assert target.read_text() == "precious"
        back_up(tmp_path / STORE_NAME, target, replace=True)
    assert titles(target) == ["s"]


async def test_a_backup_of_a_damaged_store_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        await bench.store.submit(unit(new_session("a")))
    with closing(sqlite3.connect(tmp_path / STORE_NAME, isolation_level=None)) as connection:
        connection.executescript(
            "PRAGMA writable_schema = ON;UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'sessions_by_workspace'"
        )
    (tmp_path / "backups").mkdir()
    with pytest.raises(DataDirError, match=f"`longboat store check {tmp_path / STORE_NAME}` shows all problems"):
        back_up(tmp_path / STORE_NAME, tmp_path / "backups" / "copy.db")
    assert list((tmp_path / "backups").iterdir()) == []


async def test_a_restore_brings_the_backup_back_and_keeps_what_was_there(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "copy.db"
    data.mkdir()
    async with open_bench(data) as bench:
        await bench.store.submit(said("before"))
        back_up(data / STORE_NAME, backup)
        await bench.store.submit(said("after"))
    done = restore(backup, data)
    assert titles(data / STORE_NAME) == ["s", "before"]
    assert done.kept is not None
    assert titles(Path(done.kept)) == ["s", "before", "after"]
    assert Path(done.kept).name.startswith(f"{STORE_NAME}.before-restore-")
    assert (data / STORE_NAME).stat().st_mode & 0o777 == 0o600
    again = restore(backup, data)
    assert again.kept not in (None, done.kept)
    assert {file.name for file in data.iterdir()} == {
        STORE_NAME, "lock", Path(done.kept).name, Path(again.kept or "").name
    }  # fmt: skip


async def test_a_restore_never_mixes_the_backup_with_the_log_of_a_crashed_server(tmp_path: Path) -> None:
    """A write-ahead log that was left behind would be read as part of the new database."""
    data, backup = tmp_path / "data", tmp_path / "copy.db"
    data.mkdir()
    async with open_bench(tmp_path) as bench:
        back_up(tmp_path / STORE_NAME, backup)
        await bench.store.submit(said("only in the log"))
        for end in ("", "-wal"):
            (data / f"{STORE_NAME}{end}").write_bytes((tmp_path / f"{STORE_NAME}{end}").read_bytes())
    done = restore(backup, data)
    assert titles(data / STORE_NAME) == ["s"]
    assert done.kept is not None
    assert titles(Path(done.kept)) == ["s", "only in the log"]


async def test_a_restore_over_a_database_beyond_repair_keeps_its_bytes(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "copy.db"
    data.mkdir()
    async with open_bench(tmp_path):
        back_up(tmp_path / STORE_NAME, backup)
    (data / STORE_NAME).write_bytes(b"rubbish" * 1000)
    (data / f"{STORE_NAME}-wal").write_bytes(b"log")
    done = restore(backup, data)
    assert titles(data / STORE_NAME) == ["s"]
    kept = {file.name: file.read_bytes() for file in data.glob("*before-restore*")}
    name = (done.kept or "").rpartition("/")[2]
    assert kept == {name: b"rubbish" * 1000, f"{name}-wal": b"log"}


async def test_a_restore_is_refused_while_a_server_uses_the_directory(tmp_path: Path) -> None:
    backup = tmp_path / "copy.db"
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        back_up(tmp_path / "data" / STORE_NAME, backup)
        with pytest.raises(DataDirError, match=r"Stop the server first: `longboat stop`\.$") as refused:
            restore(backup, tmp_path / "data")
        assert refused.value.code == "data_dir_in_use"
        await running.submit("hello", "r1")
        assert (await running.completed("r1")).text == "echo: hello"


@pytest.mark.parametrize("content", [b"", b"no database at all " * 500])
async def test_a_file_that_is_no_backup_is_refused_and_nothing_is_touched(tmp_path: Path, content: bytes) -> None:
    data, backup = tmp_path / "data", tmp_path / "copy.db"
    data.mkdir()
    async with open_bench(data):
        pass
    backup.write_bytes(content)
    before = (data / STORE_NAME).read_bytes()
    with pytest.raises(DataDirError):
        restore(backup, data)
    assert (data / STORE_NAME).read_bytes() == before
    assert {file.name for file in data.iterdir()} == {STORE_NAME, "lock"}


async def test_a_backup_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    backup = tmp_path / "copy.db"
    async with open_bench(tmp_path):
        back_up(tmp_path / STORE_NAME, backup)
    with closing(sqlite3.connect(backup)) as connection:
        connection.execute("PRAGMA user_version = 999")
    with pytest.raises(DataDirError, match="newer Longboat"):
        restore(backup, tmp_path / "elsewhere")


async def test_a_cursor_of_the_time_after_the_backup_gets_a_resync(tmp_path: Path) -> None:
    """E4: the restored server writes other events under the same numbers."""
    backup = tmp_path / "copy.db"
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        back_up(tmp_path / "data" / STORE_NAME, backup)
    for _ in range(3):
        async with launch(tmp_path, ScriptedModel.echo(), session_id=running.session_id) as lost:
            await lost.submit("lost")
            await lost.watcher.until(lambda event: event.type == "run_complete")
            cursor = next(event.cursor for event in reversed(lost.watcher.events) if event.cursor)
    restore(backup, tmp_path / "data")
    for _ in range(3):
        async with launch(tmp_path, ScriptedModel.echo(), session_id=running.session_id) as again:
            for _ in range(3):
                run = await again.submit("other")
                await again.completed(run.run_id)
            async with watch(again.workspace, client_id="old", after=cursor) as reader:
                await reader.until(lambda event: event.type == "resync")
    assert check_deeply(tmp_path / "data" / STORE_NAME).problems == ()


async def test_an_older_backup_is_brought_up_to_date_by_the_server(tmp_path: Path) -> None:
    backup = tmp_path / "copy.db"
    with closing(sqlite3.connect(tmp_path / "old.db", isolation_level=None)) as connection:
        number, sql = migrations()[0]
        connection.executescript(f"{sql}\nPRAGMA user_version = {number};")
    back_up(tmp_path / "old.db", backup)
    assert check_deeply(backup).problems == ()
    restore(backup, tmp_path / "data")
    async with open_app(settings_in(tmp_path)) as app:
        assert app.health().status == "ok"
    assert check_deeply(tmp_path / "data" / STORE_NAME).problems == ()
