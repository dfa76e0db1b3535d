"""Who answers for a workspace, and what a door says that cannot reach its owner (G3, G5)."""

import asyncio

import pytest
from cluster import open_fleet

from longboat.testing import CallTool, Hang, Say

pytestmark = pytest.mark.acceptance


async def test_g3_two_nodes_that_are_asked_at_once_for_a_workspace_without_an_owner_agree_on_one() -> None:
    async with open_fleet("dead", "b", "c") as fleet:
        session = await fleet["dead"].session(fleet.project())
        clients = [await fleet.through(name, session) for name in ("b", "c")]
        await fleet["dead"].kill()
        await fleet.expire("dead")
        asked = [clients[n % 2].submit(f"prompt {n}", f"r{n}", delivery="queue") for n in range(10)]
        assert sorted(await asyncio.gather(*asked)) == sorted(f"r{n}" for n in range(10))
        for n in range(10):
            assert await clients[0].outcome(f"r{n}") == "end_turn"
        books = await clients[0].check_books()
        assert list(books) == list(await clients[1].check_books()), "one order, at both"
        assert sorted(books) == sorted(f"r{n}" for n in range(10))
        nodes = (await clients[0].http.get("/v1/nodes")).json()["items"]
        assert sorted(each["owns"] for each in nodes if each["name"] != "dead") == [0, 1]


async def test_g5_a_change_for_a_live_owner_that_a_door_cannot_reach_gets_503_owner_unreachable() -> None:
    """Nobody takes its workspaces away: it works on."""
    async with open_fleet("owner", "door", lease_s=8) as fleet:
        fleet["owner"].model.add([Say("one "), Hang()], name="held")
        session = await fleet["owner"].session(fleet["owner"].project())
        ben = await fleet.through("door", session)
        async with session.watch("anna") as annas:
            await ben.submit("[[held]]", "r1")
            await annas.text("one ")
            fleet.links["owner"].peers.reset()
            path = f"{ben.workspace}/sessions/{ben.session_id}"
            answers = await asyncio.gather(
                ben.ask("lost", "r2"),
                ben.http.post(f"{ben.workspace}/runs/r1/cancel"),
                ben.http.patch(path, json={"title": "lost"}),
            )
            assert [(each.status_code, each.json()["code"]) for each in answers] == [(503, "owner_unreachable")] * 3
            assert (await session.run("r1"))["state"] == "active"
            await session.submit("later", "r3", delivery="queue")
            fleet.links["owner"].peers.heal()
            await ben.cancel_run("r1")
            assert (await annas.complete("r1")).cancelled
            await annas.complete("r3")
        assert await ben.check_books() == {"r1": "canceled", "r3": "end_turn"}


async def test_g7_what_always_added_to_a_project_is_trusted_by_its_next_owner() -> None:
    """Every run of the next owner failed: the file had changed since it was trusted."""
    async with open_fleet("a", "b") as fleet:
        first = fleet["a"]
        first.model.add([CallTool("bash", {"command": "touch x"})], [Say("done")], name="work")
        anna = await first.session(fleet.project())
        ben = await fleet.through("b", anna)
        async with anna.watch("anna") as annas, ben.watch("ben") as bens:
            await anna.submit("[[work]]", "r1")
            ask = (await annas.until(lambda event: event.type == "permission_request")).payload
            said = await anna.http.post(f"{anna.workspace}/permissions/{ask.id}", json={"answer": "always"})
            assert said.status_code == 200, said.text
            await annas.complete("r1")
            await first.kill()
            await fleet.expire("a")
            await ben.submit("hello", "r2")
            assert (await bens.complete("r2")).outcome == "end_turn"
