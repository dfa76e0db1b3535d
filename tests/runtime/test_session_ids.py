"""A session made under an id that the client chose is made once, however often it is asked for (http.md, R5)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from running_app import launch
from server_harness import refusal, serve_in

from longboat.client import Client, SyncClient
from longboat.testing import ScriptedModel
from longboat.wire.requests import CreateSession


async def test_the_same_id_again_is_the_same_session_and_nothing_new(tmp_path: Path) -> None:
    async with serve_in(tmp_path) as served:
        workspace = await served.workspace(tmp_path / "project")
        path, body = f"{workspace}/sessions", {"session_id": "mine", "title": "first"}
        made = await served.unix.post(path, json=body)
        assert (made.status_code, made.json()["id"], made.json()["title"]) == (201, "mine", "first")
        await served.unix.patch(f"{path}/mine", json={"title": "renamed since"})
        again = await served.unix.post(path, json=body)
        assert (again.status_code, again.json()["id"], again.json()["title"]) == (200, "mine", "renamed since")
        assert [item["id"] for item in (await served.unix.get(path)).json()["items"]] == ["mine"]


async def test_an_id_that_is_taken_elsewhere_is_refused(tmp_path: Path) -> None:
    async with serve_in(tmp_path) as served:
        here, there = [await served.workspace(tmp_path / name) for name in ("here", "there")]
        assert (await served.unix.post(f"{here}/sessions", json={"session_id": "mine"})).status_code == 201
        answer = await served.unix.post(f"{there}/sessions", json={"session_id": "mine"})
        assert refusal(answer) == (409, "session_id_taken")


async def test_the_session_of_a_sub_agent_is_nobody_elses(tmp_path: Path) -> None:
    async with serve_in(tmp_path) as served:
        path = await served.workspace(tmp_path / "project")
        workspace = await served.serving.app.workspace(path.rpartition("/")[2])
        child = await workspace.create_session(CreateSession(), sent_by=("parent", "call"))
        answer = await served.unix.post(f"{path}/sessions", json={"session_id": child.id})
        assert refusal(answer) == (409, "session_id_taken")


@pytest.mark.parametrize("wrong", ["", ".", "..", "a/b", "ä", "x" * 129, "import"])
async def test_what_is_no_id_or_a_name_of_a_route_is_refused(tmp_path: Path, wrong: str) -> None:
    async with serve_in(tmp_path) as served:
        workspace = await served.workspace(tmp_path / "project")
        answer = await served.unix.post(f"{workspace}/sessions", json={"session_id": wrong})
        assert refusal(answer) == (400, "bad_session_id")


async def test_two_who_ask_for_one_id_at_once_get_one_session_and_one_event(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([])) as running:
        wanted = CreateSession(session_id="mine")
        both = await asyncio.gather(*(running.workspace.open_session(wanted) for _ in range(2)))
        assert sorted(new for _, new in both) == [False, True]
        assert {session.id for session, _ in both} == {"mine"}
        last = await running.workspace.create_session(CreateSession())
        await running.watcher.until(lambda event: event.type == "session" and event.payload.id == last.id)
        assert [session.id for session in running.watcher.of("session")].count("mine") == 1


async def test_a_deleted_session_leaves_its_id_free(tmp_path: Path) -> None:
    async with serve_in(tmp_path) as served:
        workspace = await served.workspace(tmp_path / "project")
        for _ in range(2):
            made = await served.unix.post(f"{workspace}/sessions", json={"session_id": "mine"})
            assert made.status_code == 201
            assert (await served.unix.delete(f"{workspace}/sessions/mine")).status_code == 204


async def made_by_async(socket: Path, workspace: str) -> str:
    async with Client(socket=socket) as client:
        await client.workspace(workspace)
        events = [event async for event in client.run("hi", workspace_id=workspace)]
        return str(events[-1].payload.session_id)


async def made_by_sync(socket: Path, workspace: str) -> str:
    def make() -> str:
        with SyncClient(socket=socket) as client:
            client.workspace(workspace)
            return str(list(client.run("hi", workspace_id=workspace))[-1].payload.session_id)

    return await asyncio.to_thread(make)


@pytest.mark.parametrize("make", [made_by_async, made_by_sync])
async def test_an_answer_lost_on_the_way_leaves_no_second_session_behind(
    tmp_path: Path, make: Callable[[Path, str], Awaitable[str]]
) -> None:
    """The line is cut after the server has made the session: the SDK asks again, and gets that one."""
    async with serve_in(tmp_path) as served:
        workspace = (await served.workspace(tmp_path / "project")).rpartition("/")[2]
        cut = 0

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            far_reader, far_writer = await asyncio.open_unix_connection(served.socket)
            asked = b""

            async def there() -> None:
                nonlocal asked
                while piece := await reader.read(65_536):
                    asked += piece
                    far_writer.write(piece)
                far_writer.close()

            async def back() -> None:
                nonlocal cut
                while piece := await far_reader.read(65_536):
                    if b"/sessions" in asked and not cut:
                        cut += 1
                        break
                    writer.write(piece)
                writer.close()

            await asyncio.gather(there(), back())

        line = await asyncio.start_unix_server(carry, tmp_path / "line.sock")
        async with line:
            made = await make(tmp_path / "line.sock", workspace)
        assert cut == 1
        sessions = (await served.unix.get(f"/v1/workspaces/{workspace}/sessions")).json()["items"]
        assert [item["id"] for item in sessions] == [made]
