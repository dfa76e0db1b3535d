"""Full-text search: the index follows the log, whatever happens in between, and can be lost at any time."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from crash import restarted
from running_app import RunningApp, launch

from longboat.errors import StoreUnavailable, WorkspaceNotFound
from longboat.store.datadir import STORE_NAME
from longboat.store.sqlite import search as search_module
from longboat.store.sqlite import search_index
from longboat.store.sqlite.search import INDEX_NAME
from longboat.store.sqlite.search_index import SearchIndex
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel
from longboat.testing.scripted import last_prompt
from longboat.wire.models import Role
from longboat.wire.requests import CreateSession, UpdateSession
from longboat.wire.search import SearchHit

ANSWERS = ScriptedModel(lambda request: [Say(f"Answer to {last_prompt(request)}")])


async def found(running: RunningApp, typed: str, **more: object) -> list[str]:
    """The texts of the hits, without their surroundings."""
    return [hit.snippet.text for hit in await hits(running, typed, **more)]


async def hits(running: RunningApp, typed: str, *, workspace_id: str | None = None, limit: int = 50) -> list[SearchHit]:
    page = await running.app.search(typed, workspace_id=workspace_id, before=None, limit=limit)
    assert page.complete
    return list(page.items)


async def say(running: RunningApp, prompt: str, run_id: str, session_id: str | None = None) -> None:
    await running.submit(prompt, run_id, session_id=session_id or running.session_id)
    await running.completed(run_id)


async def test_prompts_answers_and_titles_are_found_newest_first(tmp_path: Path) -> None:
    async with launch(tmp_path, ANSWERS) as running:
        await running.workspace.update_session(running.session_id, UpdateSession(title="The keel"))
        await say(running, "Mend the keel", "r1")
        newest, prompt, title = await hits(running, "keel")
        assert newest.role is Role.ASSISTANT
        assert newest.snippet.text == "Answer to Mend the keel"
        assert [newest.snippet.text[a:b] for a, b in newest.snippet.matches] == ["keel"]
        messages = await running.messages()
        assert [hit.message_id for hit in (prompt, newest)] == [message.id for message in messages]
        assert prompt.at == messages[0].created_at
        assert (title.message_id, title.role, title.snippet.text) == (None, None, "The keel")
        for hit in (newest, prompt, title):
            assert (hit.session_id, hit.session_title, hit.archived) == (running.session_id, "The keel", False)
            assert (hit.workspace_id, hit.workspace_path) == (running.workspace.id, str(running.workspace.directory))


async def test_case_accents_prefixes_and_phrases(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        await say(running, "Ça déjà vu, STRASSE", "r1")
        text = "Ça déjà vu, STRASSE"
        for typed in ("deja", "DÉJÀ", "ca vu", "stras", '"deja vu"', "vu ca", 'ca "vu strasse"'):
            assert text in await found(running, typed), typed
        for typed in ("dej vu", '"vu deja"', '"deja v"', "nothing", "!!!", "", '"'):
            assert await found(running, typed) == [], typed


async def test_the_commands_of_tools_are_found_and_what_they_answered_is_not(tmp_path: Path) -> None:
    model = ScriptedModel([[CallTool("view", json.dumps({"path": "needle.txt"}))], [Say("seen")]])
    async with launch(tmp_path, model) as running:
        (running.workspace.directory / "needle.txt").write_text("haystack\n")
        await say(running, "look", "r1")
        assert await found(running, "needle") == ["view needle.txt"]
        assert await found(running, "haystack") == []


async def test_what_is_being_written_is_found_when_it_is_finished(tmp_path: Path) -> None:
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Say("halfway"), Pause(gate), Say(" there")]])) as running:
        await running.submit("go", "r1")
        await gate.reached()
        assert await found(running, "halfway") == []
        gate.open()
        await running.completed("r1")
        assert await found(running, "halfway") == ["halfway there"]


async def test_undone_turns_are_not_found_until_they_are_redone(tmp_path: Path) -> None:
    async with launch(tmp_path, ANSWERS) as running:
        await say(running, "first keel", "r1")
        await say(running, "second keel", "r2")
        assert len(await found(running, "second")) == 2
        await running.workspace.undo_turn(running.session_id)
        assert await found(running, "second") == []
        await running.workspace.redo_turn(running.session_id)
        assert len(await found(running, "second")) == 2
        await running.workspace.undo_turn(running.session_id)
        await say(running, "third keel", "r3")  # what was undone is gone for good
        assert await found(running, "second") == []
        assert len(await found(running, "third")) == 2


@pytest.mark.only_sqlite
async def test_an_index_that_lags_behind_shows_nothing_that_is_undone_or_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has the last word: the index only says where to look."""
    async with launch(tmp_path, ANSWERS) as running:
        other = (await running.workspace.create_session(CreateSession(title="other keel"))).id
        await say(running, "first keel", "r1")
        await say(running, "second keel", "r2", other)
        assert len(await found(running, "keel")) == 6  # with both titles
        monkeypatch.setattr(SearchIndex, "catch_up", lambda *_, **__: True)
        await running.workspace.undo_turn(running.session_id)
        await running.workspace.delete_session(other)
        assert await found(running, "second") == []
        assert await found(running, '"answer to"') == []


@pytest.mark.only_sqlite
async def test_a_deleted_session_leaves_no_word_in_the_index(tmp_path: Path) -> None:
    async with launch(tmp_path, ANSWERS) as running:
        await say(running, "secretkeel", "r1")
        assert await found(running, "secretkeel")
        await running.workspace.delete_session(running.session_id)
        assert await found(running, "secretkeel") == []
        with sqlite3.connect(tmp_path / "data" / INDEX_NAME) as index:
            assert index.execute("SELECT count(*) FROM texts").fetchone() == (0,)
            assert index.execute("SELECT count(*) FROM documents").fetchone() == (0,)


async def test_only_the_workspace_that_is_named_is_searched_and_none_is_opened(tmp_path: Path) -> None:
    async with launch(tmp_path, ANSWERS) as running:
        (tmp_path / "other").mkdir()
        other, _ = await running.app.join(str(tmp_path / "other"), None)
        await other.create_session(CreateSession(title="keel elsewhere"))
        await say(running, "keel here", "r1")
        open_now = {workspace.id for workspace in running.app.opened.all}
        assert len(await found(running, "keel")) == 4
        assert await found(running, "keel", workspace_id=other.id) == ["keel elsewhere"]
        assert "keel elsewhere" not in await found(running, "keel", workspace_id=running.workspace.id)
        with pytest.raises(WorkspaceNotFound):
            await found(running, "keel", workspace_id="nowhere")
        assert {workspace.id for workspace in running.app.opened.all} == open_now


async def test_pages_go_on_where_the_last_one_ended(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        for number in range(4):
            await say(running, f"keel {number}", f"r{number}")
        all_of_them = [hit.message_id for hit in await hits(running, "keel")]
        paged, before = [], None
        while True:
            page = await running.app.search("keel", workspace_id=None, before=before, limit=2)
            paged += [hit.message_id for hit in page.items]
            if (before := page.next) is None:
                break
        assert paged == all_of_them


async def test_sub_agents_and_archived_sessions(tmp_path: Path) -> None:
    """Sessions that no list shows: those of sub-agents are not found, archived ones are and say so."""
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        await say(running, "keel", "r1")
        await running.workspace.create_session(CreateSession(title="keel below"), sent_by=(running.session_id, "c1"))
        await running.workspace.update_session(running.session_id, UpdateSession(archived=True))
        assert {(hit.session_id, hit.archived) for hit in await hits(running, "keel")} == {(running.session_id, True)}


# The index and what happens to it


def contents(index: SearchIndex) -> set[tuple[str, str | None, str]]:
    rows = index.connection.execute(
        "SELECT session_id, message_id, body FROM documents JOIN texts ON texts.rowid = document_id"
    )
    return {(row["session_id"], row["message_id"], row["body"]) for row in rows}


def whole(index: SearchIndex) -> set[tuple[str, str | None, str]]:
    assert index.catch_up(for_s=60)
    return contents(index)


Change = Callable[[RunningApp], Awaitable[object]]


CHANGES: dict[str, Change] = {
    "undo": lambda running: running.workspace.undo_turn(running.session_id),
    "delete": lambda running: running.workspace.delete_session(running.session_id),
    "rename": lambda running: running.workspace.update_session(running.session_id, UpdateSession(title="renamed")),
    "fork": lambda running: running.workspace.archive.fork(running.session_id, None),
    "prompt": lambda running: say(running, "one more", "more"),
}


@pytest.mark.only_sqlite
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("steps", range(5))
@pytest.mark.parametrize("entries", [1, 3])
async def test_a_change_at_any_point_of_indexing_ends_in_the_same_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, steps: int, entries: int
) -> None:
    """Built or half built, followed or not, killed in between or not: what a new index would have."""
    monkeypatch.setattr("longboat.store.sqlite.search_index.ENTRIES", entries + 1)  # one is the entry read last
    monkeypatch.setattr("longboat.store.sqlite.search_index.MESSAGES", 1)
    async with launch(tmp_path, ANSWERS) as running:
        store = tmp_path / "data" / STORE_NAME
        await say(running, "first", "r1")
        index = SearchIndex(tmp_path / "stepped.db", store)
        await say(running, "second", "r2")
        for _ in range(steps):
            index.catch_up(for_s=0)
        killed = tmp_path / "killed.db"
        for end in ("", "-wal"):
            shutil.copy(f"{tmp_path / 'stepped.db'}{end}", f"{killed}{end}")
        await CHANGES[change](running)
        fresh = SearchIndex(tmp_path / "fresh.db", store)
        again = SearchIndex(killed, store)
        try:
            assert whole(index) == whole(fresh) == whole(again)
            if change == "delete":
                assert contents(index) == set()
        finally:
            for each in (index, fresh, again):
                each.close()


@pytest.mark.only_sqlite
async def test_the_index_follows_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to search for it: who does so late does not pay for all."""
    monkeypatch.setattr(search_module, "FOLLOW_AFTER_S", 0)
    monkeypatch.setattr(search_module, "PAUSE_S", 0)
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        await say(running, "keel", "r1")
        search = running.app._store.reads._search  # type: ignore[attr-defined]
        while search._is_due:  # noqa: ASYNC110 — it only lets the indexing go on
            await asyncio.sleep(0)
        with sqlite3.connect(tmp_path / "data" / INDEX_NAME) as index:
            assert index.execute("SELECT count(*) FROM texts WHERE texts MATCH 'keel'").fetchone() == (3,)


async def test_after_a_kill_the_index_goes_on(tmp_path: Path) -> None:
    async with launch(tmp_path, ANSWERS) as running:
        await say(running, "before the keel", "r1")
        await found(running, "keel")
        await say(running, "after the keel", "r2")  # not indexed when the server is killed
        async with restarted(running, ANSWERS) as again:
            assert len(await found(again, '"the keel"')) == 5  # with the title


@pytest.mark.only_sqlite
@pytest.mark.parametrize("damage", ["lost", "rubbish", "another version", "a page"])
async def test_an_index_that_is_lost_or_damaged_is_made_again(tmp_path: Path, damage: str) -> None:
    async with launch(tmp_path, ANSWERS) as running:
        for number in range(20):
            await say(running, f"keel {number}", f"r{number}")
        before = await found(running, "keel")
    file = tmp_path / "data" / INDEX_NAME
    match damage:
        case "lost":
            file.unlink()
        case "rubbish":
            file.write_bytes(b"no database" * 1000)
        case "another version":
            with sqlite3.connect(file) as connection:
                connection.execute("PRAGMA user_version = 999")
            connection.close()
        case "a page":
            content = bytearray(file.read_bytes())
            content[4096:] = b"\xff" * (len(content) - 4096)
            file.write_bytes(content)
    async with launch(tmp_path, ANSWERS, session_id=running.session_id) as running:
        assert sorted(await found(running, "keel")) == sorted(before)


@pytest.mark.only_sqlite
@pytest.mark.parametrize("failure", [sqlite3.OperationalError("database or disk is full"), OSError(28, "full")])
async def test_an_index_that_could_not_be_made_again_is_made_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """It used to call the store damaged, and to advise a restore, until the next start."""

    def fail(*_: object) -> None:
        raise failure

    async with launch(tmp_path, ANSWERS) as running:
        await say(running, "keel", "r1")
        before = await found(running, "keel")
        for _ in range(2):
            with monkeypatch.context() as full:
                full.setattr(search_index, "_create", fail)
                full.setattr(SearchIndex, "_advance", lambda _: fail_as_changed())
                with pytest.raises(StoreUnavailable):
                    await found(running, "keel")
                with pytest.raises(StoreUnavailable):
                    await found(running, "keel")
            assert await found(running, "keel") == before


def fail_as_changed() -> None:
    raise search_index._LogChanged


@pytest.mark.only_sqlite
async def test_a_restored_backup_has_its_own_words_only(tmp_path: Path) -> None:
    """The index has followed a log that the backup does not have."""
    async with launch(tmp_path, ANSWERS) as running:
        await say(running, "kept keel", "r1")
        async with restarted(running, ANSWERS) as backup:
            store = backup.app.settings.data_dir / STORE_NAME
            await say(running, "lost keel", "r2")
            await found(running, "keel")
            await say(backup, "other keel", "r2")
            await say(backup, "more keel", "r3")
            index = backup.app.settings.data_dir / "stolen.db"
            mine = SearchIndex(tmp_path / "mine.db", tmp_path / "data" / STORE_NAME)
            whole(mine)
            mine.close()
            shutil.copy(tmp_path / "mine.db", index)
            followed = SearchIndex(index, store)
            bodies = {body for _, _, body in whole(followed)}
            followed.close()
            assert "lost keel" not in bodies
            assert {"kept keel", "other keel", "more keel"} <= bodies


@pytest.mark.only_sqlite
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE messages SET parts = x'5b7b' WHERE seq = 1",
        "UPDATE messages SET role = 'nobody' WHERE seq = 1",
        "UPDATE messages SET created_at = CAST(x'61ff62' AS TEXT) WHERE seq = 1",
        "UPDATE sessions SET title = CAST(x'61ff62' AS TEXT)",
        "UPDATE events SET frames = x'00'",
        "UPDATE events SET frames = 'event: message' || char(10) || 'data: {' || char(10) || char(10)",
    ],
)
@pytest.mark.parametrize("built", [True, False])
async def test_a_damaged_row_costs_its_own_words_only(tmp_path: Path, damage: str, built: bool) -> None:
    async with launch(tmp_path, ANSWERS) as running:
        if built:
            await found(running, "keel")
        await say(running, "damaged", "r1")
    with sqlite3.connect(tmp_path / "data" / STORE_NAME) as connection:
        connection.execute(damage)
    connection.close()
    async with launch(tmp_path, ANSWERS) as running:
        await say(running, "whole keel", "r2")
        assert {"whole keel", "Answer to whole keel"} <= set(await found(running, "keel"))


@pytest.mark.only_sqlite
async def test_a_large_store_is_searched_while_it_is_being_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search waits only so long; the page says that something may be missing."""
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        for number in range(5):
            await say(running, f"keel {number}", f"r{number}")
        monkeypatch.setattr(search_module, "CATCH_UP_S", 0)
        page = await running.app.search("keel", workspace_id=None, before=None, limit=50)
        assert not page.complete
        monkeypatch.undo()
        assert len(await found(running, '"keel 4"')) == 2
