"""Nodes that are killed at the worst moments (G5): accepted is accepted, and a repeated request does nothing twice."""

import asyncio

import pytest
from cluster import SiteFleet, open_fleet

from longboat.testing import Hang, Say

pytestmark = pytest.mark.acceptance

ACCEPTED = '"state":"accepted"'


@pytest.mark.parametrize("victims", [("door",), ("owner",), ("door", "owner")], ids="+".join)
async def test_g5_kill_9_right_after_the_202_loses_nothing(victims: tuple[str, ...]) -> None:
    async with open_fleet("owner", "door", "third") as fleet:
        session = await fleet["owner"].session(fleet.project())
        at_door, at_third = await fleet.through("door", session), await fleet.through("third", session)
        async with at_third.watch("carl") as carls:
            run_id = await at_door.submit("hello")
            for name in victims:
                fleet[name].server.kill()
            for name in victims:
                await fleet[name].died()
                await fleet.expire(name)
            await carls.complete(run_id)
            later = await at_third.submit("later")
            assert not (await carls.complete(later)).error
            assert not carls.closed
        assert list(await at_third.check_books()) == [run_id, later]


async def test_g5_a_prompt_for_a_pinned_directory_outlives_its_door_and_its_owner() -> None:
    async with open_fleet("home", "door", "third") as fleet:
        home = fleet["home"]
        session = await home.session(home.project())
        at_door, at_third = await fleet.through("door", session), await fleet.through("third", session)
        home.model.add([Say("one "), Hang()], name="held")
        async with at_third.watch("carl") as carls:
            await at_door.submit("[[held]]", "r1")
            await carls.text("one ")
            await at_door.submit("later", "r2", delivery="queue")
            for name in ("door", "home"):
                await fleet[name].kill()
                await fleet.expire(name)
            assert (await carls.complete("r1")).error, "a caretaker ends it at once"
            await home.serve()
            assert not (await carls.complete("r2")).error
        assert await at_third.check_books() == {"r1": "interrupted", "r2": "end_turn"}


async def lose_owner(fleet: SiteFleet, asked: "asyncio.Task[str]") -> None:
    """The owner dies at its failpoint while the door waits for its answer; its lease ends at once."""
    await fleet["owner"].died()
    assert not asked.done()
    await fleet.expire("owner")


async def test_g5_an_owner_that_dies_between_its_commit_and_its_answer_has_accepted_the_prompt_once() -> None:
    """The client gave neither a run_id nor a key: the door did."""
    async with open_fleet("owner", "door", serve=False) as fleet:
        await fleet["door"].serve()
        await fleet["owner"].serve("--committed", ACCEPTED)
        session = await fleet["owner"].session(fleet.project())
        ben = await fleet.through("door", session)
        asked = asyncio.create_task(ben.submit("hello"))
        await lose_owner(fleet, asked)
        run_id = await asked
        assert await ben.outcome(run_id) in ("end_turn", "interrupted")
        assert list(await ben.check_books()) == [run_id]


async def test_g5_a_cancel_whose_owner_died_before_it_answered_covers_nothing_newer() -> None:
    """The door is stopped meanwhile: it asks the next owner when that has already accepted another prompt."""
    async with open_fleet("owner", "door", "next", serve=False) as fleet:
        for site in fleet.nodes.values():
            site.model.add([Say("one "), Hang()], [Say("two "), Hang()], name="held")
        await asyncio.gather(
            fleet["door"].serve(), fleet["next"].serve(), fleet["owner"].serve("--committed", '"cancel_requested":true')
        )
        session = await fleet["owner"].session(fleet.project())
        at_door, at_next = await fleet.through("door", session), await fleet.through("next", session)
        async with at_next.watch("carl") as carls:
            await session.submit("[[held]]", "r1")
            await carls.text("one ")
            asked = asyncio.create_task(at_door.cancel())
            await fleet["owner"].died()
            fleet["door"].pause()
            await fleet.expire("owner")
            assert (await carls.complete("r1")).cancelled, "the cancel was durable before anyone heard of it"
            await at_next.submit("[[held]]", "r2")
            await carls.state("r2", "active")
            fleet["door"].resume()
            assert await asked == ["r1"]
            assert (await at_next.run("r2"))["cancel_requested"] is False
            assert await at_next.cancel() == ["r2"]
            await carls.complete("r2")
        assert await at_next.check_books() == {"r1": "canceled", "r2": "canceled"}


async def test_g5_what_has_no_key_is_not_repeated_and_says_that_its_outcome_is_unknown() -> None:
    async with open_fleet("owner", "door", serve=False) as fleet:
        await fleet["door"].serve()
        await fleet["owner"].serve("--committed", "a new name")
        session = await fleet["owner"].session(fleet.project())
        ben = await fleet.through("door", session)
        path = f"{ben.workspace}/sessions/{ben.session_id}"
        lost = await ben.http.patch(path, json={"title": "a new name"})
        assert (lost.status_code, lost.json()["code"]) == (503, "owner_lost")
        await fleet.expire("owner")
        assert (await ben.http.get(path)).json()["title"] == "a new name"
