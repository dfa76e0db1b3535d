"""`longboat store` beside real servers, and a server whose data directory is taken away (D8, D12)."""

import asyncio
import json
import shutil
import sqlite3

import pytest
from processes import Site, ended, open_site
from sessions import SessionClient

from longboat.store.datadir import STORE_NAME

pytestmark = pytest.mark.acceptance


async def store(site: Site, *arguments: str) -> tuple[int, str, str]:
    done = await ended(await site.longboat("store", *arguments, cwd=site.path))
    return done.code, done.out, done.err


async def test_d8_no_prompt_is_accepted_once_the_data_directory_is_deleted() -> None:
    async with open_site() as site:
        await site.serve()
        session = await site.session(site.project())
        assert await session.outcome(await session.submit("before")) == "end_turn"
        shutil.rmtree(site.data)
        refused = await session.ask("after")
        assert (refused.status_code, refused.json()["code"]) == (503, "data_dir_gone")
        assert "put the directory back or restore a backup" in refused.json()["message"]
        health = (await session.http.get("/v1/health")).json()
        assert (health["status"], str(site.data) in health["detail"]) == ("degraded", True)
        assert "was deleted, moved or replaced" in site.log.read_text()
        exported = await session.http.get(f"{session.workspace}/sessions/{session.session_id}/export")
        assert len(exported.json()["messages"]) == 2, "what was saved can be rescued"


async def test_a_backup_under_load_is_restored_with_every_run_and_event() -> None:
    async with open_site() as site:
        await site.serve()
        session = await site.session(site.project())
        async with session.watch() as watch:
            early = [await session.submit(f"early {number}") for number in range(5)]
            for run_id in early:
                await watch.complete(run_id)
            known = list(watch.frames)
            enough = asyncio.Event()
            load = asyncio.create_task(_keep_prompting(session, enough))
            await watch.until(lambda event: event.type == "run" and event.payload.prompt == "load 5")
            code, out, err = await store(site, "backup", str(site.path / "copy.db"))
            assert code == 0, err
            assert out.startswith("Backed up 1 session, ")
            enough.set()
            for run_id in await load:
                await watch.complete(run_id)
        await site.kill()
        code, out, err = await store(site, "restore", str(site.path / "copy.db"))
        assert code == 0, err
        assert "is now" in out
        await site.serve()
        session = await site.back_at(session)
        ledger = {run["run_id"]: run for run in await session.ledger()}
        assert [ledger[run_id]["outcome"] for run_id in early] == ["end_turn"] * len(early)
        for run_id in ledger:  # those that the backup caught in the middle, too
            await session.outcome(run_id)
        async with session.watch(after=session.start) as replay:
            for run_id in ledger:
                await replay.complete(run_id)
        assert [frame for frame in replay.frames if frame in set(known)] == known, "every event, byte for byte"
        code, out, err = await store(site, "check")
        assert (code, err) == (0, ""), out


async def _keep_prompting(session: SessionClient, enough: asyncio.Event) -> list[str]:
    sent: list[str] = []
    while not enough.is_set():
        sent.append(await session.submit(f"load {len(sent)}"))
    return sent


async def test_a_restore_beside_a_running_server_is_refused_and_says_how_to_stop_it() -> None:
    async with open_site() as site:
        await site.serve()
        session = await site.session(site.project())
        await session.outcome(await session.submit("hello"))
        backup = str(site.path / "copy.db")
        assert (await store(site, "backup", backup))[0] == 0
        code, _, err = await store(site, "restore", backup)
        assert (code, "Stop the server first: `longboat stop`." in err) == (1, True)
        assert f"Then: longboat store restore {backup} --data-dir {site.data}" in err
        code, _, err = await store(site, "backup", str(site.data / STORE_NAME), "--force")
        assert (code, "is the database itself" in err) == (1, True), "the live database is not overwritten"
        code, _, err = await store(site, "backup", backup)
        assert (code, "--force" in err) == (1, True)
        assert await session.outcome(await session.submit("still here")) == "end_turn"


async def test_check_finds_a_damaged_row_in_a_backup_and_exits_with_1() -> None:
    async with open_site() as site:
        await site.serve()
        session = await site.session(site.project())
        await session.outcome(await session.submit("hello"))
        backup = site.path / "copy.db"
        assert (await store(site, "backup", str(backup)))[0] == 0
        code, out, _ = await store(site, "check", str(backup), "--format", "json")
        assert (code, json.loads(out)["problems"]) == (0, [])
        with sqlite3.connect(backup) as connection:
            connection.execute("UPDATE messages SET parts = x'5b' WHERE seq = 1")
        connection.close()
        code, out, err = await store(site, "check", str(backup))
        assert (code, "message 1 of session" in out) == (1, True)
        assert err == "Do not rely on this backup.\n"
        for path in ([str(site.data)], ["--data-dir", str(site.data)]):
            code, out, _ = await store(site, "check", *path)
            assert (code, out.splitlines()[-1]) == (0, "No problems found."), "the server's own database is sound"
            assert out.startswith(f"{site.data / STORE_NAME}: 1 session, ")


async def test_backup_and_restore_warn_of_a_row_that_cannot_be_read_and_exit_with_1() -> None:
    async with open_site() as site:
        await site.serve()
        session = await site.session(site.project())
        await session.outcome(await session.submit("hello"))
        with sqlite3.connect(site.data / STORE_NAME) as connection:
            connection.execute("UPDATE messages SET parts = x'5b' WHERE seq = 1")
        connection.close()
        backup = site.path / "copy.db"
        code, out, err = await store(site, "backup", str(backup))
        assert (code, f"from {site.data / STORE_NAME} to {backup}." in out) == (1, True)
        assert "The backup was made, but it has problems: message 1 of session" in err
        assert f"List all of them with: longboat store check {backup}" in err
        code, out, err = await store(site, "restore", str(backup), "--data-dir", str(site.path / "other"))
        assert (code, "Restored 1 session" in out) == (1, True)
        assert "The backup was restored, but it has problems: message 1 of session" in err


async def test_a_run_in_a_damaged_session_is_not_told_that_the_session_goes_on() -> None:
    async with open_site() as site:
        await site.serve()
        directory = site.project()
        session = await site.session(directory)
        await session.outcome(await session.submit("hello"))
        await site.kill()  # a running server has recent transcripts in memory
        with sqlite3.connect(site.data / STORE_NAME) as connection:
            connection.execute("UPDATE messages SET parts = x'5b' WHERE seq = 1")
        connection.close()
        await site.serve()
        run = await ended(await site.longboat("run", "-s", session.session_id, "go on", cwd=directory))
        assert (run.code, "is damaged: message 1 cannot be read" in run.err) == (1, True), run.err
        assert "Continue with" not in run.err


@pytest.mark.parametrize("content", [b"", b"no database " * 500])
async def test_check_says_that_a_file_is_no_longboat_database(content: bytes) -> None:
    async with open_site() as site:
        (site.path / "x.db").write_bytes(content)
        code, out, err = await store(site, "check", "x.db")
        assert (code, err) == (1, "Do not rely on this backup.\n")
        assert [line.split() for line in out.splitlines()] == [
            ["x.db:", "0.0", "MB"],
            ["error", "file", "Not", "a", "Longboat", "database."],
        ]


async def test_d12_a_server_starts_on_a_database_with_a_damaged_row_and_serves_the_other_sessions() -> None:
    async with open_site() as site:
        await site.serve()
        directory = site.project()
        bad, good = await site.session(directory), await site.session(directory)
        for session in (bad, good):
            await session.outcome(await session.submit("hello"))
        await site.kill()
        with sqlite3.connect(site.data / STORE_NAME) as connection:
            connection.execute("UPDATE messages SET parts = x'5b' WHERE session_id = ?", (bad.session_id,))
            state = "UPDATE runs SET state = 'active', outcome = NULL WHERE session_id = ?"
            connection.execute(state, (bad.session_id,))
            connection.execute("DELETE FROM events WHERE run_seq IS NOT NULL AND session_id = ?", (bad.session_id,))
        connection.close()
        await site.serve()
        bad, good = await site.back_at(bad), await site.back_at(good)
        assert await good.outcome(await good.submit("again")) == "end_turn"
        page = await bad.http.get(f"{bad.workspace}/sessions/{bad.session_id}/messages")
        assert (page.status_code, page.json()["code"]) == (409, "session_damaged")
        (run,) = await bad.ledger()
        assert (run["outcome"], "is damaged" in run["error"]) == ("error", True)
        exported = await ended(await site.longboat("session", "export", bad.session_id, cwd=directory))
        assert (exported.code, "Damaged and omitted: message 1, message 2." in exported.err) == (0, True), exported.err
        deleted = await bad.http.delete(f"{bad.workspace}/sessions/{bad.session_id}")
        assert deleted.status_code == 204, deleted.text
