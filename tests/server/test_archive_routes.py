"""Fork, export, import, summarize, files, search, diff and stats over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from server_harness import Served, checked_client, refusal, serve_in

from longboat.client import Client, SyncClient
from longboat.config.settings import ServerSection


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serve_in(tmp_path) as served:
        yield served


@pytest.fixture
async def workspace(served: Served, tmp_path: Path) -> str:
    return await served.workspace(tmp_path / "project")


async def told(served: Served, workspace: str) -> str:
    """A session with a run that ended in an error: nobody has its model."""
    session_id = await served.session(workspace)
    await served.unix.post(f"{workspace}/agent", json={"session_id": session_id, "prompt": "hello", "run_id": "r1"})
    assert (await served.unix.get(f"{workspace}/runs/r1?wait=30")).json()["outcome"] == "error"
    return session_id


async def test_a_session_is_forked_with_and_without_a_body(served: Served, workspace: str) -> None:
    session_id = await told(served, workspace)
    one = f"{workspace}/sessions/{session_id}"
    messages = (await served.unix.get(f"{one}/messages")).json()["items"]
    answer = await served.unix.post(f"{one}/fork")
    assert (answer.status_code, answer.json()["title"]) == (202, "Fork of hello")
    answer = await served.unix.post(f"{one}/fork", json={"message_id": messages[0]["id"]})
    forked = (await served.unix.get(f"{workspace}/sessions/{answer.json()['id']}/messages")).json()["items"]
    assert [message["parts"] for message in forked] == [messages[0]["parts"]]
    assert refusal(await served.unix.post(f"{one}/fork", json={"message_id": "x"})) == (404, "message_not_found")
    assert refusal(await served.unix.post(f"{one}/fork", json={"upto": "x"})) == (400, "bad_input")
    assert refusal(await served.unix.post(f"{workspace}/sessions/x/fork")) == (404, "session_not_found")


async def test_an_export_is_imported_into_another_workspace(served: Served, workspace: str, tmp_path: Path) -> None:
    session_id = await told(served, workspace)
    export = await served.unix.get(f"{workspace}/sessions/{session_id}/export")
    document = export.json()
    assert (export.status_code, document["format"], document["version"]) == (200, "longboat-session", 1)
    other = await served.workspace(tmp_path / "other")
    answer = await served.unix.post(f"{other}/sessions/import", content=export.content)
    assert (answer.status_code, answer.json()["title"]) == (201, "hello")
    again = (await served.unix.get(f"{other}/sessions/{answer.json()['id']}/export")).json()
    assert [run["prompt"] for run in again["runs"]] == ["hello"]
    assert [message["parts"] for message in again["messages"]] == [each["parts"] for each in document["messages"]]


async def test_a_wrong_import_is_refused_with_its_own_code(served: Served, workspace: str) -> None:
    place = f"{workspace}/sessions/import"
    assert refusal(await served.unix.post(place, content=b"{}")) == (400, "bad_export")
    newer = {"format": "longboat-session", "version": 99}
    assert refusal(await served.unix.post(place, json=newer)) == (400, "export_version")
    form = {"content-type": "text/plain"}
    assert refusal(await served.unix.post(place, content=b"{}", headers=form)) == (400, "bad_content_type")
    assert (await served.unix.get(f"{workspace}/sessions")).json()["items"] == []


async def test_an_own_export_comes_in_again_however_large_and_what_is_too_large_is_told(tmp_path: Path) -> None:
    """Issue 3: re-importable. The limit of other bodies is not that of imports, which names its own setting."""
    limits = ServerSection(drain_s=1, max_body_mb=1, max_import_mb=8)
    async with serve_in(tmp_path, server=limits) as served:
        workspace = await served.workspace(tmp_path / "project")
        session_id = await told(served, workspace)
        document = (await served.unix.get(f"{workspace}/sessions/{session_id}/export")).json()
        document["messages"][0]["parts"][0]["text"] = "long " * 800_000
        place = f"{workspace}/sessions/import"
        for client in (served.unix, served.tcp):
            made = await client.post(place, json=document)
            assert made.status_code == 201
            again = await client.get(f"{workspace}/sessions/{made.json()['id']}/export")
            assert len(again.content) > 4_000_000
            assert (await client.post(place, content=again.content)).status_code == 201
        workspace_id = workspace.rpartition("/")[2]
        async with Client(socket=served.socket) as client:
            export = await client.export_session(workspace_id, made.json()["id"])
            assert (await client.import_session(workspace_id, export)).title == "hello"
        with SyncClient(socket=served.socket) as sync:
            made_too = await asyncio.to_thread(sync.import_session, workspace_id, export)
            assert made_too.title == "hello"
        refused = await served.unix.post(place, content=b" " * ((8 << 20) + 1))
        assert refusal(refused) == (413, "body_too_large")
        assert "server.max_import_mb" in refused.json()["message"]

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(9):
                yield b" " * (1 << 20)

        assert refusal(await served.unix.post(place, content=pieces())) == (413, "body_too_large")
        prompt = {"session_id": session_id, "prompt": "x" * (2 << 20)}
        assert refusal(await served.unix.post(f"{workspace}/agent", json=prompt)) == (413, "body_too_large")


async def test_nobody_without_the_token_imports_anything(served: Served, workspace: str) -> None:
    """http.md: TCP always needs the bearer token; the body is not even read."""
    async with checked_client(served) as stranger:
        answer = await stranger.post(f"{workspace}/sessions/import", content=b" " * (4 << 20))
    assert refusal(answer) == (401, "unauthorized")


async def test_the_markdown_export_is_markdown(served: Served, workspace: str) -> None:
    session_id = await told(served, workspace)
    page = await served.unix.get(f"{workspace}/sessions/{session_id}/export?format=markdown")
    assert page.headers["content-type"] == "text/markdown; charset=utf-8"
    assert page.text.startswith("# hello\n")
    wrong = await served.unix.get(f"{workspace}/sessions/{session_id}/export?format=pdf")
    assert refusal(wrong) == (400, "bad_input")


async def test_a_summary_is_accepted_as_a_run_and_ends_once(served: Served, workspace: str) -> None:
    """A7, E1, E3."""
    session_id = await told(served, workspace)
    answer = await served.unix.post(f"{workspace}/sessions/{session_id}/summarize", json={"run_id": "s"})
    assert (answer.status_code, answer.json()["run_id"]) == (202, "s")
    assert answer.headers["location"] == f"{workspace}/runs/s"
    run = (await served.unix.get(f"{workspace}/runs/s?wait=30")).json()
    assert (run["state"], run["prompt"]) == ("finished", "Summarize this conversation.")
    assert (await served.unix.post(f"{workspace}/sessions/{session_id}/summarize")).status_code == 202
    assert refusal(await served.unix.post(f"{workspace}/sessions/x/summarize")) == (404, "session_not_found")


async def test_files_names_and_diffs_are_shown(served: Served, workspace: str, tmp_path: Path) -> None:
    (tmp_path / "project" / "notes.txt").write_text("x")
    items = (await served.unix.get(f"{workspace}/files")).json()["items"]
    assert [item["name"] for item in items] == ["longboat.json", "notes.txt"]
    assert (await served.unix.get(f"{workspace}/search?q=ntes")).json() == {"items": ["notes.txt"], "complete": True}
    session_id = await served.session(workspace)
    diff = await served.unix.get(f"{workspace}/diff?session_id={session_id}")
    assert diff.json() == {"items": [], "complete": True}
    for target, told in {
        "files?path=..": (400, "path_outside"),
        "files?path=/etc": (400, "path_outside"),
        "search?limit=0": (400, "bad_input"),
        f"search?q={'x' * 300}": (400, "bad_input"),
        "diff": (400, "bad_diff"),
        "diff?run_id=x": (404, "run_not_found"),
    }.items():
        assert refusal(await served.unix.get(f"{workspace}/{target}")) == told, target


async def test_the_python_client_has_all_of_it(served: Served, workspace: str) -> None:
    session_id = await told(served, workspace)
    workspace_id = workspace.rpartition("/")[2]
    async with Client(socket=served.socket) as client:
        forked = await client.fork_session(workspace_id, session_id)
        assert forked.title == "Fork of hello"
        document = await client.export_session(workspace_id, session_id)
        assert (await client.import_session(workspace_id, document)).title == "hello"
        assert (await client.summarize_session(workspace_id, session_id, run_id="s")).run_id == "s"
        assert (await client.get_run(workspace_id, "s", wait_s=30)).client_id == client.client_id
        everything = await client.files(workspace_id, everything=True)
        assert [item.path for item in everything.items] == ["longboat.json"]
        assert (await client.search(workspace_id, "long")).items == ("longboat.json",)
        assert (await client.diff(workspace_id, run_id="r1")).items == ()
        assert [each.runs for each in (await client.stats(workspace_id)).outcomes] == [2]
        assert (await client.stats()).since == (await client.stats(workspace_id)).since


async def test_stats_of_one_workspace_and_of_all(served: Served, workspace: str) -> None:
    await told(served, workspace)
    for place in (workspace, "/v1"):
        found = (await served.unix.get(f"{place}/stats?days=7")).json()
        assert found["outcomes"] == [{"outcome": "error", "runs": 1}]
    assert refusal(await served.unix.get("/v1/stats?days=0")) == (400, "bad_input")
    assert refusal(await served.unix.get("/v1/workspaces/nope/stats")) == (404, "workspace_not_found")
