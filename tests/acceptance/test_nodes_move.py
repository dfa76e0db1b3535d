"""A workspace that all nodes share can be moved (G12): nothing is lost, nothing runs twice, streams stay open."""

import asyncio
import signal
from typing import Any

import httpx2
import pytest
from cluster import open_fleet
from processes import Site, ended, open_site
from sessions import SessionClient, shared

from longboat.testing import Hang, Pause, Say

pytestmark = pytest.mark.acceptance


async def move(client: SessionClient, node: str, **more: Any) -> httpx2.Response:
    return await client.http.post(f"{client.workspace}/move", json={"node": node, **more})


async def owner(client: SessionClient) -> str:
    return str((await client.http.get(client.workspace)).json()["owner"])


async def test_g12_an_idle_workspace_is_moved_under_its_watchers() -> None:
    async with open_fleet("a", "b", "c") as fleet:
        at_a = await fleet["a"].session(fleet.project())
        at_b, at_c = await fleet.through("b", at_a), await fleet.through("c", at_a)
        async with at_a.watch("anna") as annas, at_b.watch("ben") as bens, at_c.watch("carl") as carls:
            await at_c.submit("first", "r1")
            for watch in (annas, bens, carls):
                await watch.complete("r1")
            moved = await move(at_c, "b")
            assert (moved.status_code, moved.json()["owner"]) == (200, "b"), moved.text
            assert await owner(at_a) == await owner(at_b) == await owner(at_c) == "b"
            await at_a.submit("second", "r2")
            for watch in (annas, bens, carls):
                await watch.complete("r2")
                told = [event.payload.owner for event in watch.events if event.type == "workspace"]
                assert told[-1] == "b", "clients hear who works on it"
                assert not watch.closed
                assert watch.frames == [*dict.fromkeys(watch.frames)]
            assert shared(annas, bens)[0] == shared(annas, bens)[1]
            assert shared(annas, carls)[0] == shared(annas, carls)[1]
        assert await at_a.check_books() == await at_b.check_books() == {"r1": "end_turn", "r2": "end_turn"}
        assert len(fleet["a"].model.requests) == 2, "nothing ran twice"


async def test_g12_a_move_to_its_own_node_changes_nothing_and_may_be_repeated() -> None:
    async with open_fleet("a", "b") as fleet:
        at_a = await fleet["a"].session(fleet.project())
        at_b = await fleet.through("b", at_a)
        for _ in range(2):
            for client in (at_a, at_b):
                stayed = await move(client, "a")
                assert (stayed.status_code, stayed.json()["owner"]) == (200, "a")
        for _ in range(2):
            for client in (at_a, at_b):
                assert (await move(client, "b")).json()["owner"] == "b"


async def test_g8_g12_queued_runs_start_at_the_next_owner_and_prompts_meanwhile_are_accepted_once() -> None:
    async with open_fleet("a", "b", drain_s=30) as fleet:
        gate = fleet["a"].model.gate("held")
        fleet["a"].model.add([Say("one "), Pause(gate), Say("two")], name="held")
        at_a = await fleet["a"].session(fleet.project())
        at_b = await fleet.through("b", at_a)
        async with at_b.watch("ben") as bens:
            await at_a.submit("[[held]]", "r1")
            await bens.text("one ")
            await at_a.submit("later", "r2", delivery="queue")
            await bens.state("r2", "queued")
            busy = await move(at_b, "b")
            assert (busy.status_code, busy.json()["code"]) == (409, "workspace_busy")
            async with asyncio.TaskGroup() as group:
                moving = group.create_task(move(at_b, "b", force=True))
                await wait_logged(fleet["a"], "moves to b")
                meanwhile = group.create_task(at_a.ask("meanwhile", "r3"))
                gate.open()
            assert (moving.result().status_code, meanwhile.result().status_code) == (200, 202)
            assert await owner(at_a) == "b"
            for run_id in ("r1", "r2", "r3"):
                assert not (await bens.complete(run_id)).error
            assert not bens.closed
        assert await at_b.check_books() == dict.fromkeys(("r1", "r2", "r3"), "end_turn")
        assert len(fleet["a"].model.requests) == 3, "each run once"


async def wait_logged(site: Site, words: str) -> None:
    while words not in await asyncio.to_thread(site.log.read_text):
        pass


async def test_g9_g12_a_run_that_does_not_end_in_time_is_interrupted_and_the_queue_moves_on() -> None:
    async with open_fleet("a", "b") as fleet:
        fleet["a"].model.add([Say("one "), Hang()], name="held")
        at_a = await fleet["a"].session(fleet.project())
        at_b = await fleet.through("b", at_a)
        async with at_b.watch("ben") as bens:
            await at_b.submit("[[held]]", "r1")
            await bens.text("one ")
            await at_b.submit("later", "r2", delivery="queue")
            await bens.state("r2", "queued")
            assert (await move(at_a, "b", force=True)).json()["owner"] == "b"
            assert (await bens.complete("r1")).error
            assert not (await bens.complete("r2")).error
        assert await at_a.check_books() == {"r1": "interrupted", "r2": "end_turn"}
        assert len(fleet["a"].model.requests) == 2, "each run once"


async def test_g7_g12_a_node_that_dies_before_it_has_taken_what_it_was_given_loses_nothing() -> None:
    async with open_fleet("a", "b") as fleet:
        fleet["a"].model.add([Say("one "), Hang()], name="held")
        at_a = await fleet["a"].session(fleet.project())
        async with at_a.watch("anna") as annas:
            await at_a.submit("[[held]]", "r1")
            await annas.text("one ")
            await at_a.submit("later", "r2", delivery="queue")
            await annas.state("r2", "queued")
            fleet["b"].server.send_signal(signal.SIGSTOP)
            assert (await move(at_a, "b", force=True)).json()["owner"] == "b"
            await fleet["b"].kill()
            await fleet.expire("b")
            assert (await annas.complete("r1")).error
            assert not (await annas.complete("r2")).error
            assert not annas.closed
        assert await at_a.check_books() == {"r1": "interrupted", "r2": "end_turn"}


async def test_g12_what_cannot_be_moved_is_refused_with_what_to_do() -> None:
    async with open_fleet("a", "b") as fleet:
        pinned = await fleet["a"].session(fleet["a"].project())
        refused = await move(pinned, "b")
        assert (refused.status_code, refused.json()["code"]) == (409, "tree_pinned")
        assert "is on the disk of a" in refused.json()["message"]
        free = await fleet["a"].session(fleet.project())
        unknown = await move(free, "nobody")
        assert (unknown.status_code, unknown.json()["code"]) == (400, "unknown_node")
        await fleet["b"].kill()
        await fleet.expire("b")
        gone = await move(free, "b")
        assert (gone.status_code, gone.json()["code"]) == (400, "unknown_node")


async def test_g12_a_server_alone_says_why_it_moves_nothing() -> None:
    async with open_site() as site:
        await site.serve()
        session = await site.session(site.project())
        refused = await move(session, "b")
        assert (refused.status_code, refused.json()["code"]) == (400, "unknown_node")
        assert "longboat serve --store postgresql://" in refused.json()["message"]


async def test_g12_the_command_moves_a_workspace_by_its_directory_or_its_id() -> None:
    async with open_fleet("a", "b") as fleet:
        directory = fleet.project()
        at_a = await fleet["a"].session(directory)
        moved = await ended(await fleet["a"].longboat("workspace", "move", str(directory), "b", cwd=fleet["a"].path))
        assert (moved.code, moved.out) == (0, f"Moved {directory} to b.\n"), moved.err
        name = at_a.workspace.rpartition("/")[2]
        back = await ended(await fleet["b"].longboat("workspace", "move", name, "a", cwd=fleet["b"].path))
        assert (back.code, await owner(at_a)) == (0, "a"), back.err
        listed = await ended(await fleet["b"].longboat("workspace", "list", cwd=fleet["b"].path))
        assert listed.out.splitlines()[1].split()[2:] == ["(shared)", "a", str(directory)]
        pinned = fleet["a"].project()
        await fleet["a"].session(pinned)
        refused = await ended(await fleet["a"].longboat("workspace", "move", str(pinned), "b", cwd=fleet["a"].path))
        assert (refused.code, "is on the disk of a" in refused.err) == (1, True)
