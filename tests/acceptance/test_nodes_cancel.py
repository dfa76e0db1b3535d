"""A cancel at any node, in every state, also while the owner is dead (G6)."""

import asyncio

import pytest
from cluster import SiteFleet, open_fleet
from sessions import SessionClient

from longboat.testing import CallTool, Hang, Pause, Say

pytestmark = pytest.mark.acceptance

TREES = pytest.mark.parametrize("tree", ["pinned", "shared"])


async def opened(fleet: SiteFleet, tree: str, owner: str, **changes: str) -> SessionClient:
    directory = fleet.project(**changes) if tree == "shared" else fleet[owner].project(**changes)
    return await fleet[owner].session(directory)


async def test_g6_trap_a_cancel_at_a_door_in_every_state_is_the_owners_own() -> None:
    """Elsewhere a node that was not the owner said 409, or 200 while the run went on (deer-flow #4064, aegra #528)."""
    async with open_fleet("owner", "door") as fleet:
        model = fleet["owner"].model
        hold = model.gate("hold")
        model.add([CallTool("nothing"), Pause(hold)], name="host")
        model.add([Say("both"), Hang()], name="deep")
        session = await fleet["owner"].session(fleet["owner"].project())
        ben = await fleet.through("door", session)
        async with ben.watch("ben") as bens:
            await ben.submit("before", "done")
            await bens.complete("done")
            await ben.submit("[[host]]", "host")
            await hold.reached()
            await ben.submit("withdrawn", "early", delivery="steer")
            await ben.submit("[[deep]]", "folded", delivery="steer")
            await ben.submit("later", "queued", delivery="queue")
            await bens.state("queued", "queued")
            assert (await ben.cancel_run("early"))["state"] == "finished"
            hold.open()
            await bens.text("both")
            late = await ben.http.post(f"{ben.workspace}/runs/folded/cancel")
            assert (late.status_code, late.json()["code"]) == (409, "too_late"), "its host has sent it"
            told = {each: await ben.cancel_run(each) for each in ("done", "queued", "host")}
            for each in ("early", "queued", "host", "folded"):
                assert (await bens.complete(each)).cancelled
        ends = {each: (run["state"], run["outcome"]) for each, run in told.items()}
        assert ends == {
            "done": ("finished", "end_turn"),
            "queued": ("finished", "canceled"),
            "host": ("active", None),  # it ends as soon as its turn has
        }
        assert model.requests[-1].prompt == "[[deep]]"
        assert await ben.check_books() == dict.fromkeys(("done", "host", "early", "folded", "queued"), "canceled") | {
            "done": "end_turn"
        }


@TREES
async def test_g6_a_prompt_that_was_just_accepted_when_its_owner_died_can_be_canceled(tree: str) -> None:
    async with open_fleet("owner", "door", serve=False) as fleet:
        for site in fleet.nodes.values():
            site.model.add([Hang()], name="held", repeat=True)
            site.model.add([Say("fine")], name="fine", repeat=True)
        await fleet["door"].serve()
        await fleet["owner"].serve("--committed", '"state":"accepted"')
        session = await opened(fleet, tree, "owner")
        ben = await fleet.through("door", session)
        asked = asyncio.create_task(session.ask("[[held]]", "r1"))
        await fleet["owner"].died()
        await asyncio.wait([asked])
        canceled = asyncio.create_task(ben.cancel())
        await fleet.expire("owner")
        assert await canceled == ["r1"]
        async with ben.watch("ben") as bens:
            await fleet["owner"].serve()
            await ben.submit("[[fine]]", "r2")
            assert not (await bens.complete("r2")).error
        assert await ben.check_books() == {"r1": "canceled", "r2": "end_turn"}
        assert all("[[fine]]" in each.prompt for each in fleet["owner"].model.requests)


@TREES
async def test_g6_a_cancel_while_the_owner_is_dead_covers_the_active_the_folded_and_the_queued_run(tree: str) -> None:
    """And it holds when the owner is back, even if the node that took the cancel has died by then."""
    async with open_fleet("owner", "door") as fleet:
        owner = fleet["owner"]
        for site in fleet.nodes.values():
            site.model.add([CallTool("nothing"), Pause(site.model.gate("hold"))], name="host", repeat=True)
            site.model.add([Say("both"), Hang()], name="deep", repeat=True)
            site.model.add([Say("fine")], name="fine", repeat=True)
        session = await opened(fleet, tree, "owner", on_restart="resume")
        ben = await fleet.through("door", session)
        async with ben.watch("ben") as bens:
            await session.submit("[[host]]", "host")
            await owner.model.gate("hold").reached()
            await session.submit("[[deep]]", "folded", delivery="steer")
            await session.submit("later", "queued", delivery="queue")
            await bens.state("queued", "queued")
            owner.model.gate("hold").open()
            await bens.text("both")
            await owner.kill()
            canceled = asyncio.create_task(ben.cancel())
            await fleet.expire("owner")
            assert set(await canceled) == {"host", "folded", "queued"}
        await fleet["door"].kill()
        await fleet.expire("door")
        asked = len(owner.model.requests)
        await owner.serve()
        back = await owner.back_at(session)
        await back.submit("[[fine]]", "after")
        assert await back.outcome("after") == "end_turn"
        books = dict.fromkeys(("host", "folded", "queued"), "canceled") | {"after": "end_turn"}
        assert await back.check_books() == books
        assert ["[[fine]]" in each.prompt for each in owner.model.requests[asked:]] == [True]
