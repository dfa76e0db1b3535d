"""What a backup must not overwrite, what is not restored, and damage that is told instead of refused."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from bench import open_bench, said
from running_app import launch

from longboat.errors import DataDirError
from longboat.store.datadir import STORE_NAME
from longboat.store.sqlite.backup import back_up, restore
from longboat.store.sqlite.check import check_deeply
from longboat.testing import ScriptedModel


def another_way_to(file: Path, way: str, place: Path) -> Path:
    other = place / "other.db"
    match way:
        case "itself":
            return file.parent / ".." / file.parent.name / file.name
        case "symbolic link":
            other.symlink_to(file)
        case "hard link":
            other.hardlink_to(file)
        case _:
            (place / "link").symlink_to(file.parent)
            return place / "link" / file.name
    return other


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
@pytest.mark.parametrize("way", ["itself", "symbolic link", "hard link", "linked directory"])
async def test_a_backup_never_overwrites_its_source(tmp_path: Path, end: str, way: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    async with open_bench(data) as bench:
        await bench.store.submit(said("a"))
        file = data / f"{STORE_NAME}{end}"
        before = file.stat().st_ino
        with pytest.raises(DataDirError, match="is the database itself"):
            back_up(data / STORE_NAME, another_way_to(file, way, tmp_path), replace=True)
        assert file.stat().st_ino == before


async def test_a_backup_never_overwrites_a_side_file_of_a_database_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    async with open_bench(tmp_path / "real"):
        (tmp_path / STORE_NAME).symlink_to(tmp_path / "real" / STORE_NAME)
        with pytest.raises(DataDirError, match="is the database itself"):
            back_up(tmp_path / STORE_NAME, tmp_path / "real" / f"{STORE_NAME}-wal", replace=True)


async def test_a_backup_never_overwrites_the_database_of_another_server(tmp_path: Path) -> None:
    """Its write-ahead log would be read as part of the copy."""
    (tmp_path / "other").mkdir()
    async with open_bench(tmp_path), open_bench(tmp_path / "other"):
        with pytest.raises(DataDirError, match="is a database in use"):
            back_up(tmp_path / STORE_NAME, tmp_path / "other" / STORE_NAME, replace=True)


async def test_a_restore_of_the_database_onto_itself_is_refused(tmp_path: Path) -> None:
    async with open_bench(tmp_path):
        pass
    (tmp_path / "link.db").symlink_to(tmp_path / STORE_NAME)
    before = (tmp_path / STORE_NAME).stat().st_ino
    for file in (tmp_path / STORE_NAME, tmp_path / "link.db"):
        with pytest.raises(DataDirError, match="is the database itself"):
            restore(file, tmp_path)
    assert (tmp_path / STORE_NAME).stat().st_ino == before


async def test_a_backup_into_a_directory_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    async with open_bench(tmp_path):
        with pytest.raises(DataDirError, match=r"The directory .*nodir does not exist\. Create it first"):
            back_up(tmp_path / STORE_NAME, tmp_path / "nodir" / "copy.db")
    assert not (tmp_path / "nodir").exists()


async def test_a_row_that_cannot_be_read_is_told_by_backup_and_restore(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        await running.submit("hello", "r1")
        await running.completed("r1")
    with closing(sqlite3.connect(tmp_path / "data" / STORE_NAME, isolation_level=None)) as connection:
        connection.execute("UPDATE messages SET parts = x'5b' WHERE seq = 1")
    report = back_up(tmp_path / "data" / STORE_NAME, tmp_path / "copy.db")
    assert [problem.kind for problem in report.problems] == ["row"]
    assert check_deeply(tmp_path / "copy.db") == report
    assert restore(tmp_path / "copy.db", tmp_path / "elsewhere").report.problems == report.problems


async def test_a_refused_restore_names_the_file_to_check(tmp_path: Path) -> None:
    backup = tmp_path / "copy 1.db"
    async with open_bench(tmp_path):
        back_up(tmp_path / STORE_NAME, backup)
    backup.write_bytes(backup.read_bytes()[:-8192])
    with pytest.raises(DataDirError, match=f"`longboat store check '{backup}'` shows all problems"):
        restore(backup, tmp_path / "data")


def test_a_database_of_another_program_is_not_restored(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "cats.db")) as connection:
        connection.executescript("CREATE TABLE cats (name TEXT); PRAGMA user_version = 1")
    with pytest.raises(DataDirError, match="Not a Longboat database"):
        restore(tmp_path / "cats.db", tmp_path / "data")


def test_a_pipe_is_not_restored(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataDirError, match="There is no database at"):
        restore(tmp_path / "pipe", tmp_path / "data")
