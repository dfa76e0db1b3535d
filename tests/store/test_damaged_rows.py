"""D12: one damaged row costs its session, not the server. Each table, damaged in a real file, under a real start."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from crash import crashed
from mirror import log_of
from running_app import RunningApp, Watcher, launch, watch

from longboat.core.history import text_of
from longboat.errors import LongboatError, SessionDamaged
from longboat.store.datadir import STORE_NAME
from longboat.store.rows import is_intact
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel
from longboat.wire.models import Outcome
from longboat.wire.requests import CreateSession

GOOD = "good"
"""The session beside the damaged one."""

NOT_UTF8 = "CAST(x'61ff62' AS TEXT)"

INSERTS = {
    "todos": "INSERT INTO todos VALUES (:bad, x'5b')",
    "grants": f"INSERT INTO grants VALUES (:bad, {NOT_UTF8})",
    "a rule": "INSERT INTO grants VALUES (:bad, 'bash(')",
    "permission": "INSERT INTO permissions (permission_id, workspace_id, session_id, run_id, state, body)"
    " SELECT 'p1', workspace_id, :bad, 'bad-active', 'pending', x'00' FROM sessions WHERE session_id = :bad",
    "question": "INSERT INTO questions (question_id, workspace_id, session_id, run_id, state, body)"
    " SELECT 'q1', workspace_id, :bad, 'bad-active', 'pending', '{}' FROM sessions WHERE session_id = :bad",
    "file change": "INSERT INTO file_changes (session_id, run_id, path, before, after)"
    f" VALUES (:bad, 'bad-done', {NOT_UTF8}, NULL, x'61')",
    "file contents": "INSERT INTO file_changes (session_id, run_id, path, before, after)"
    " VALUES (:bad, 'bad-done', '/x', 7, x'61')",
}
UPDATES = {
    "parts": "UPDATE messages SET parts = x'5b7b' WHERE session_id = :bad",
    "parts of another type": "UPDATE messages SET parts = 7 WHERE session_id = :bad",
    "role": "UPDATE messages SET role = 'nobody' WHERE session_id = :bad",
    "message text": f"UPDATE messages SET created_at = {NOT_UTF8} WHERE session_id = :bad",
    "options": "UPDATE runs SET options = '{' WHERE run_id = 'bad-active'",
    "attachments": "UPDATE runs SET attachments = x'ff' WHERE run_id = 'bad-active'",
    "prompt": f"UPDATE runs SET prompt = {NOT_UTF8} WHERE run_id = 'bad-active'",
    "state": "UPDATE runs SET state = 'acting' WHERE run_id = 'bad-active'",
    "title": f"UPDATE sessions SET title = {NOT_UTF8} WHERE session_id = :bad",
    "cost": "UPDATE sessions SET cost = 'much' WHERE session_id = :bad",
    "streamed text": "UPDATE events SET frames = x'00' WHERE message_id IS NOT NULL AND session_id = :bad",
}
ENDS_ITS_RUN = [*UPDATES, "permission", "question"]


@asynccontextmanager
async def restarted(tmp_path: Path, damage: str, model: ScriptedModel | None = None) -> AsyncIterator[RunningApp]:
    """Two sessions, each with a run that is over and one that was active in the crash; then the damage to one."""
    gates = [Gate(), Gate()]
    script = [[Say("done")], [Say("done")], *([Say("half"), Pause(gate)] for gate in gates)]
    async with launch(tmp_path, ScriptedModel(script)) as running:
        await running.workspace.create_session(CreateSession(session_id=GOOD))
        for name, session_id in (("bad", running.session_id), ("good", GOOD)):
            await running.submit("first", f"{name}-done", session_id=session_id)
            await running.completed(f"{name}-done")
        for name, session_id, gate in (("bad", running.session_id, gates[0]), ("good", GOOD, gates[1])):
            await running.submit("second", f"{name}-active", session_id=session_id)
            await gate.reached()
            await running.watcher.until(
                lambda event, run_id=f"{name}-active": event.type == "message_delta" and event.payload.run_id == run_id
            )
        place = await crashed(running)
    database = sqlite3.connect(place / "data" / STORE_NAME)
    with database:
        assert database.execute(damage, {"bad": running.session_id} if ":bad" in damage else {}).rowcount >= 1
    database.close()
    async with launch(place, model or ScriptedModel.echo(), session_id=GOOD) as again:
        again.session_id = running.session_id
        yield again


async def refusal(work: object) -> str:
    with pytest.raises(LongboatError) as refused:
        await work  # type: ignore[misc]
    return refused.value.code


@pytest.mark.parametrize("damage", [*INSERTS, *UPDATES])
async def test_d12_the_server_starts_and_every_other_session_is_taken_up(tmp_path: Path, damage: str) -> None:
    async with restarted(tmp_path, (INSERTS | UPDATES)[damage]) as running:
        assert (await running.workspace.run("good-active", wait_s=60)).outcome is Outcome.INTERRUPTED
        assert [text_of(message) for message in await running.messages(GOOD)] == ["first", "done", "second", "half"]
        await running.submit("third", "r3", session_id=GOOD)
        assert (await running.completed("r3")).text == "echo: third"
        snapshot = running.watcher.events[0].payload
        assert {session.id for session in snapshot.sessions} == {GOOD, running.session_id}
        assert await running.workspace.asks.permissions() == await running.workspace.asks.questions() == ()
        page = await running.workspace.ledger.sessions(limit=10, after=None)
        assert {session.id for session in page.items} == {GOOD, running.session_id}


@pytest.mark.parametrize("damage", ENDS_ITS_RUN)
async def test_d12_the_run_of_a_damaged_session_ends_once_and_says_why(tmp_path: Path, damage: str) -> None:
    async with restarted(tmp_path, (INSERTS | UPDATES)[damage]) as running:
        (row,) = await running.workspace.store.read(
            lambda reader: reader.fetch("run_by_id", workspace_id=running.workspace.id, run_id="bad-active")
        )
        assert (row["state"], row["outcome"]) == ("finished", "error")
        reader = Watcher()
        for entry in await log_of(running.workspace):
            if is_intact(entry, running.workspace.id):
                reader.take(entry["frames"])
        (complete,) = reader.terminals("bad-active")
        assert complete.outcome is Outcome.ERROR
        assert complete.error.startswith("The session is damaged: Session ")
        assert "longboat session export" in complete.error
        assert not running.workspace.sessions.runs_unfinished


async def test_d12_the_session_of_a_damaged_message_says_so_and_can_be_exported_and_deleted(tmp_path: Path) -> None:
    damage = "UPDATE messages SET parts = x'5b7b' WHERE session_id = :bad AND seq = 1"
    async with restarted(tmp_path, damage) as running:
        workspace, bad = running.workspace, running.session_id
        assert await refusal(running.messages(bad)) == "session_damaged"
        assert await refusal(workspace.undo_turn(bad)) == "session_damaged"
        assert await refusal(workspace.archive.fork(bad)) == "session_damaged"
        await running.submit("go on", "r9")
        complete = await running.completed("r9")
        assert (complete.outcome, "message 1 cannot be read" in complete.error) == (Outcome.ERROR, True)
        document = await workspace.archive.export(bad)
        assert document.left_out == ("message 1",)
        assert [text_of(message) for message in document.messages][:3] == ["done", "second", "half"]
        await workspace.delete_session(bad)
        assert await refusal(workspace.session(bad)) == "session_not_found"


@pytest.mark.parametrize("damage", ["title", "cost"])
async def test_d12_a_session_whose_own_row_is_damaged_is_listed_and_can_be_deleted(tmp_path: Path, damage: str) -> None:
    async with restarted(tmp_path, UPDATES[damage]) as running:
        workspace, bad = running.workspace, running.session_id
        assert await refusal(workspace.session(bad)) == "session_damaged"
        assert await refusal(running.submit("go on")) == "session_damaged"
        (listed,) = [each for each in (await workspace.ledger.sessions(limit=10, after=None)).items if each.id == bad]
        assert listed.title.startswith("(damaged)")
        assert (await workspace.archive.export(bad)).left_out == (f"session {bad}",)
        await workspace.delete_session(bad)
        assert await refusal(workspace.session(bad)) == "session_not_found"


@pytest.mark.parametrize("damage", ["prompt", "options", "state"])
async def test_d12_a_damaged_run_is_left_out_of_the_ledger_and_named_where_it_is_asked_for(
    tmp_path: Path, damage: str
) -> None:
    async with restarted(tmp_path, UPDATES[damage]) as running:
        named = [run.run_id for run in await running.ledger()]
        assert [run_id for run_id in named if run_id != "bad-active"] == ["bad-done", "good-done", "good-active"]
        if damage == "prompt":
            assert "bad-active" not in named
            assert await refusal(running.workspace.run("bad-active")) == "session_damaged"
            query = {"state": None, "limit": 10, "after": None}
            assert await refusal(running.workspace.runs(session_id=running.session_id, **query)) == "session_damaged"


async def test_d12_a_damaged_plan_is_refused_where_it_is_asked_for(tmp_path: Path) -> None:
    async with restarted(tmp_path, INSERTS["todos"]) as running:
        assert await refusal(running.workspace.todos(running.session_id)) == "session_damaged"
        assert (await running.workspace.archive.export(running.session_id)).left_out == (
            f"plan of session {running.session_id}",
        )


@pytest.mark.parametrize("damage", ["file change", "file contents"])
async def test_d12_damaged_file_changes_are_neither_shown_nor_undone(tmp_path: Path, damage: str) -> None:
    async with restarted(tmp_path, INSERTS[damage]) as running:
        browse = running.workspace.browse
        assert await refusal(browse.diff(session_id=running.session_id, run_id=None)) == "session_damaged"
        await running.workspace.undo_turn(running.session_id)
        assert await refusal(running.workspace.undo_turn(running.session_id)) == "session_damaged"


@pytest.mark.parametrize("damage", ["grants", "a rule"])
async def test_d12_nothing_is_allowed_by_a_damaged_grant(tmp_path: Path, damage: str) -> None:
    model = ScriptedModel([[CallTool("write", {"path": "new.txt", "content": "x"})], [Say("so be it")]])
    async with restarted(tmp_path, INSERTS[damage], model) as running:
        await running.submit("write it", "r9")
        await running.completed("r9")
        result = (await running.messages(running.session_id))[-2].parts[0]
        assert (result.is_error, "is damaged: granted rule" in result.content) == (True, True)
        assert not (running.workspace.directory / "new.txt").exists()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE events SET frames = x'00'",
        "UPDATE events SET frames = 'text'",
        "UPDATE events SET frames = substr(frames, 1, length(frames) - 9)",
        "UPDATE events SET frames = CAST(replace(CAST(frames AS TEXT), '{', '[') AS BLOB)",
        "UPDATE events SET frames = CAST(replace(CAST(frames AS TEXT), 'id: ', 'id: x') AS BLOB)",
    ],
)
async def test_d12_a_reader_of_a_damaged_log_gets_a_resync_and_goes_on(tmp_path: Path, damage: str) -> None:
    """Nobody can say what was in it: the state as it is now stands for it."""
    where = "entry_id = (SELECT entry_id FROM events WHERE session_id = 'good' ORDER BY entry_id LIMIT 1)"
    async with (
        restarted(tmp_path, f"{damage} WHERE {where}") as running,
        watch(running.workspace, client_id="late", after=f"{running.workspace.id}/1/1") as reader,
    ):
        resync = await reader.until(lambda event: event.type == "resync")
        assert "damaged" in resync.payload.reason
        snapshot = await reader.until(lambda event: event.type == "snapshot")
        assert {session.id for session in snapshot.payload.sessions} == {GOOD, running.session_id}
        await running.submit("third", "r3", session_id=GOOD)
        assert (await reader.completed("r3")).text == "echo: third"


def test_a_damaged_session_says_what_to_do() -> None:
    error = SessionDamaged("s1", "message 3")
    assert error.code == "session_damaged"
    assert "session export s1" in error.message
    assert "delete the session" in error.message
    assert "longboat store restore" in error.message
