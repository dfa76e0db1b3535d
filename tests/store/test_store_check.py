"""The check of a store: a sound one has no findings, and each kind of damage is found (D12)."""

import asyncio
import os
import random
import re
import sqlite3
import threading
from pathlib import Path

import pytest
from running_app import launch, settings_in

from longboat.cli.doctor import Severity, examine
from longboat.errors import DataDirError
from longboat.runtime.app import open_app
from longboat.store.datadir import STORE_NAME
from longboat.store.protocol import Problem
from longboat.store.sqlite.check import check_deeply, check_quickly, database_of
from longboat.testing import ScriptedModel


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """The store of a server that has done two runs and has left."""
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        for run_id in ("r1", "r2"):
            await running.submit("hello", run_id)
            await running.completed(run_id)
    return tmp_path / "data" / STORE_NAME


def damage(file: Path, sql: str) -> None:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.executescript(sql)
    connection.close()


def tear(file: Path, *, page: int | None = None) -> None:
    """Overwrite a page, in the middle of the file unless told, as a bad disk does."""
    content = bytearray(file.read_bytes())
    place = (len(content) // 4096 // 2 if page is None else page) * 4096
    content[place : place + 4096] = b"\xa5" * 4096
    file.write_bytes(content)


def test_a_sound_store_has_no_findings(file: Path) -> None:
    report = check_deeply(file)
    assert report.problems == ()
    assert report.complete
    wanted = {"workspaces": 1, "sessions": 1, "messages": 4, "runs": 2, "unfinished_runs": 0}
    assert report.counts.items() >= wanted.items()
    assert report.counts["events"] > 10


TERMINAL = "entry_id = (SELECT min(entry_id) FROM events WHERE run_seq IS NOT NULL)"


@pytest.mark.parametrize(
    ("sql", "kind", "detail"),
    [
        ("UPDATE messages SET parts = x'5b' WHERE seq = 1", "row", "message 1 of session"),
        ("UPDATE runs SET options = '' WHERE run_id = 'r1'", "row", "run r1 of session"),
        ("UPDATE sessions SET title = CAST(x'ff' AS TEXT)", "row", "session "),
        ("INSERT INTO todos SELECT session_id, x'7b' FROM sessions", "row", "plan of session"),
        ("INSERT INTO grants SELECT session_id, '(' FROM sessions", "row", "granted rule ("),
        ("DELETE FROM sessions", "reference", "refers to nothing in sessions"),
        (f"UPDATE events SET run_seq = NULL WHERE {TERMINAL}", "run", "r1 .* is finished and has no terminal event"),
        ("UPDATE runs SET state = 'queued', outcome = NULL WHERE run_id = 'r2'", "run", "r2 .* has a terminal event"),
        (
            "DROP INDEX events_one_terminal; UPDATE events SET run_seq = 1 WHERE run_seq = 2",
            "run",
            "r1 .* has 2 terminal events",
        ),
        ("UPDATE events SET frames = x'00' WHERE entry_id = 3", "log", "are damaged"),
        ("DELETE FROM events WHERE entry_id = 4", "log", "numbers are missing or used twice"),
        ("UPDATE events SET epoch = 99 WHERE entry_id = 2", "log", "from an earlier server start"),
        (
            "INSERT INTO questions (question_id, workspace_id, session_id, run_id, state, body)"
            " SELECT 'q', workspace_id, session_id, 'r1', 'pending', '{}' FROM sessions",
            "ask",
            "q of session .* is still waiting, but its run has ended",
        ),
    ],
)
def test_what_is_wrong_is_found_and_named(file: Path, sql: str, kind: str, detail: str) -> None:
    damage(file, sql)
    problems = check_deeply(file).problems
    text = "\n".join(f"{problem.kind}: {problem.detail}" for problem in problems)
    assert kind in {problem.kind for problem in problems}, text
    assert any(re.search(detail if ".*" in detail else re.escape(detail), problem.detail) for problem in problems), text


def test_pruned_events_are_no_finding(file: Path) -> None:
    """Runs whose first events were forgotten may have lost their ends too."""
    damage(file, f"DELETE FROM events WHERE entry_id <= (SELECT entry_id FROM events WHERE {TERMINAL})")
    assert check_deeply(file).problems == ()


def test_a_torn_page_is_found_by_both_checks(file: Path) -> None:
    tear(file)
    assert {problem.kind for problem in check_deeply(file).problems} >= {"file"}
    assert check_quickly(file, limit_s=60).problems


def test_a_store_of_a_newer_version_is_a_finding(file: Path) -> None:
    damage(file, "PRAGMA user_version = 999")
    (problem,) = check_deeply(file).problems
    assert "newer Longboat (schema 999" in problem.detail


@pytest.mark.parametrize("content", [b"", b"nothing like a database " * 99])
def test_a_file_that_is_no_database_is_a_finding(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.db").write_bytes(content)
    for report in (check_deeply(tmp_path / "x.db"), check_quickly(tmp_path / "x.db", limit_s=60)):
        assert report.problems == (Problem(kind="file", detail="Not a Longboat database."),)


def test_a_database_of_another_program_is_a_finding(tmp_path: Path) -> None:
    damage(tmp_path / "x.db", "CREATE TABLE cats (name TEXT); PRAGMA user_version = 1")
    assert check_deeply(tmp_path / "x.db").problems == (Problem(kind="file", detail="Not a Longboat database."),)


def test_directories_missing_files_and_pipes_are_refused_without_being_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "missing", tmp_path / "pipe"):
        with pytest.raises(DataDirError, match="There is no database at"):
            database_of(path)
        with pytest.raises(DataDirError, match="There is no database at"):
            check_deeply(path)


def test_a_file_cut_off_anywhere_has_findings(file: Path) -> None:
    """An interrupted copy. One of these ended in a traceback: a row whose numbers were NULL."""
    whole = file.read_bytes()
    for size in (*range(0, len(whole), 4096 * 3), 1, 99, 100, 5000, len(whole) - 4096, len(whole) - 1):
        file.write_bytes(whole[:size])
        assert check_deeply(file).problems, f"{size} of {len(whole)} bytes"
        check_quickly(file, limit_s=60)


@pytest.mark.parametrize("filler", [b"\0", b"\xa5", b"\x0d", b"\xff"])
def test_any_page_overwritten_never_ends_in_a_traceback(file: Path, filler: bytes) -> None:
    whole = file.read_bytes()
    for place in range(0, len(whole), 4096):
        file.write_bytes(whole[:place] + filler * 4096 + whole[place + 4096 :])
        check_quickly(file, limit_s=60)
        assert check_deeply(file).complete


def test_flipped_bytes_never_end_in_a_traceback(file: Path) -> None:
    whole = file.read_bytes()
    luck = random.Random(10)
    for _ in range(60):
        content = bytearray(whole)
        for place in luck.sample(range(100, len(content)), 200):
            content[place] ^= luck.randrange(1, 256)
        file.write_bytes(content)
        assert check_deeply(file).complete


def test_a_row_of_the_log_without_numbers_is_a_finding_and_hides_no_other(file: Path) -> None:
    damage(
        file,
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '')"
        " WHERE name = 'events'",
    )
    damage(file, "UPDATE events SET first = NULL, last = NULL, epoch = NULL WHERE entry_id = 2")
    damage(file, "UPDATE messages SET parts = x'5b' WHERE seq = 1")
    assert {problem.kind for problem in check_deeply(file).problems} >= {"row", "log"}


def test_a_check_that_is_given_up_says_that_it_is_not_complete(file: Path) -> None:
    given_up = threading.Event()
    given_up.set()
    damage(
        file,
        "CREATE TABLE filler AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
        " SELECT i, hex(randomblob(100)) AS t FROM n; CREATE INDEX filling ON filler (t);",
    )
    assert not check_quickly(file, limit_s=3600, give_up=given_up).complete


async def test_a_server_on_a_damaged_store_says_so_in_health_and_log(
    file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """D12: it goes on as far as it can; nothing of the damage is silent."""
    damage(file, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'questions_pending'")
    async with open_app(settings_in(tmp_path)) as app:
        await app.check_store()
        health = app.health()
        assert health.status == "degraded"
        assert health.detail.startswith("The database is damaged: ")
        assert "longboat store check" in health.detail
    assert any(record.levelname == "ERROR" and "damaged" in record.message for record in caplog.records)


async def test_a_server_that_leaves_does_not_wait_for_its_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B5."""
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def check(file: Path, *, limit_s: float, give_up: threading.Event) -> object:
        loop.call_soon_threadsafe(begun.set)
        assert give_up.wait(60), "closing the store gives the check up"
        return check_quickly(file, limit_s=limit_s)

    monkeypatch.setattr("longboat.store.sqlite.store.check_quickly", check)
    async with open_app(settings_in(tmp_path)):
        await begun.wait()


def test_doctor_tells_of_the_database(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGBOAT_DATA_DIR", str(file.parent))

    def finding(*, deep: bool) -> tuple[Severity, str]:
        return next((f.severity, f.detail) for f in examine(file.parent, deep=deep) if f.subject == "database")

    assert finding(deep=False)[0] is finding(deep=True)[0] is Severity.OK
    damage(file, "UPDATE messages SET parts = x'5b' WHERE seq = 1")
    severity, detail = finding(deep=False)
    assert severity is Severity.OK, "only reading every row finds it"
    assert detail.startswith(f"{file}, ")
    assert detail.endswith(": the file is intact; use --deep to check its rows too"), "no more than is known"
    severity, detail = finding(deep=True)
    assert severity is Severity.WRONG
    assert "message 1" in detail
    assert f"longboat store check {file}" in detail


async def test_a_server_on_a_malformed_database_names_the_commands_that_help(file: Path, tmp_path: Path) -> None:
    tear(file, page=1)
    with pytest.raises(DataDirError) as refused:
        async with open_app(settings_in(tmp_path)):
            pass
    assert f"longboat store check --data-dir {file.parent}" in refused.value.message
    assert f"longboat store restore FILE --data-dir {file.parent}" in refused.value.message
