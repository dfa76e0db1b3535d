"""The check of a store: a sound one has no findings, and each kind of damage is found (D12)."""

import asyncio
import re
import sqlite3
import threading
from pathlib import Path

import pytest
from boat import launch, settings_in

from longboat.cli.doctor import Verdict, examine
from longboat.errors import DataDirError
from longboat.runtime.app import open_app
from longboat.store.check import check_deeply, check_quickly, database_of
from longboat.store.datadir import STORE_NAME
from longboat.testing import ScriptedModel


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """The store of a server that has done two runs and has left."""
    async with launch(tmp_path, ScriptedModel.echo()) as boat:
        for run_id in ("r1", "r2"):
            await boat.submit("hello", run_id)
            await boat.completed(run_id)
    return tmp_path / "data" / STORE_NAME


def damage(file: Path, sql: str) -> None:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.executescript(sql)
    connection.close()


def tear(file: Path) -> None:
    """Overwrite a page in the middle of the file, as a bad disk does."""
    content = bytearray(file.read_bytes())
    place = len(content) // 4096 // 2 * 4096
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
        ("UPDATE events SET epoch = 99 WHERE entry_id = 2", "log", "of an older start"),
        (
            "INSERT INTO questions (question_id, workspace_id, session_id, run_id, state, body)"
            " SELECT 'q', workspace_id, session_id, 'r1', 'pending', '{}' FROM sessions",
            "ask",
            "q of session .* still waits, though its run is over",
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
def test_what_is_no_store_is_refused_or_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.db").write_bytes(content)
    if content:
        with pytest.raises(DataDirError, match="cannot be read as a Longboat database"):
            check_deeply(tmp_path / "x.db")
    else:
        assert [problem.kind for problem in check_deeply(tmp_path / "x.db").problems] == ["file"]
    with pytest.raises(DataDirError, match="There is no database at"):
        database_of(tmp_path)


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

    monkeypatch.setattr("longboat.store.sqlite.check_quickly", check)
    async with open_app(settings_in(tmp_path)):
        await begun.wait()


def test_doctor_tells_of_the_database(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGBOAT_DATA_DIR", str(file.parent))

    def finding(*, deep: bool) -> tuple[Verdict, str]:
        return next((f.verdict, f.detail) for f in examine(file.parent, deep=deep) if f.subject == "database")

    assert finding(deep=False)[0] is finding(deep=True)[0] is Verdict.OK
    damage(file, "UPDATE messages SET parts = x'5b' WHERE seq = 1")
    assert finding(deep=False)[0] is Verdict.OK, "only reading every row finds it"
    verdict, detail = finding(deep=True)
    assert verdict is Verdict.WRONG
    assert "message 1" in detail
    assert "longboat store check" in detail
