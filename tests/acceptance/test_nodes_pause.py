"""Owners that stand still, and nodes whose clock is wrong: two nodes never work on one workspace (G3, G7)."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from cluster import SiteFleet, locked, open_fleet, try_locks, until_there
from sessions import SessionClient, terminal_events

from longboat.testing import CallTool, Hang, Say
from parts import how, missing

pytestmark = pytest.mark.acceptance


async def test_g3_trap_two_owners_after_a_pause_the_commands_of_the_first_are_dead_before_the_next_starts() -> None:
    """A lease of ten seconds really ends here, while its owner is stopped (OpenHands SDK #2966). A bash tool and a
    background job hold locks in a shared directory; the first command of the next owner finds them free."""
    async with open_fleet("owner", "door", lease_s=10) as fleet:
        owner = fleet["owner"]
        background = CallTool("bash", {"command": locked("job"), "run_in_background": True})
        owner.model.add([background], [CallTool("bash", {"command": locked("tool")})], name="long")
        owner.model.add([CallTool("bash", {"command": try_locks("job", "tool")})], [Say("done")], name="look")
        directory = fleet.project()
        session = await owner.session(directory)
        ben = await fleet.through("door", session)
        async with ben.watch("ben") as bens:
            await session.submit("[[long]]", "r1", approve="all")
            await until_there(directory / "job.held", directory / "tool.held")
            await ben.submit("[[look]]", "r2", approve="all", delivery="queue")
            await bens.state("r2", "queued")
            before = len(bens.frames)
            owner.pause()
            assert (await bens.complete("r1")).error
            assert not (await bens.complete("r2")).error
            assert psutil.Process(owner.server.pid).status() == psutil.STATUS_STOPPED
            assert terminal_events(bens.events[:before]) == []
            found = [message for message in await ben.messages() if message["role"] == "tool"][-1]
            assert "job is free" in str(found)
            assert "tool is free" in str(found)
            owner.resume()
            # By the node that was stopped: it writes nothing and hands on.
            await session.submit("and now?", "r3")
            await bens.complete("r3")
        ends = {"r1": "interrupted", "r2": "end_turn", "r3": "end_turn"}
        assert await session.check_books() == await ben.check_books() == ends


async def test_g4_g5_trap_what_waits_for_a_stopped_owner_is_answered_by_the_next() -> None:
    """Its connections stay open and silent: streams of a dead node must not wait for them (deer-flow #4420), and its
    history must not be hidden (PR #4212)."""
    async with open_fleet("owner", "door") as fleet:
        session = await fleet["owner"].session(fleet.project())
        ben = await fleet.through("door", session)
        async with ben.watch("ben") as bens:
            await ben.submit("before", "r1")
            await bens.complete("r1")
            fleet["owner"].pause()
            asked = asyncio.create_task(ben.ask("meanwhile", "r2"))
            listed = asyncio.create_task(ben.messages())
            await fleet.expire("owner")
            assert (await asked).status_code == 202
            assert len(await listed) >= 2
            await bens.complete("r2")
            assert not bens.closed
            fleet["owner"].resume()
        assert await ben.check_books() == {"r1": "end_turn", "r2": "end_turn"}


def wrong_by(hours: int) -> dict[str, str]:
    """The environment of a node whose wall clock is wrong. What counts seconds is not touched."""
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")
    return {"LD_PRELOAD": str(library), "FAKETIME": f"{hours:+d}h", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


async def accepted_at(session: SessionClient, run_id: str) -> datetime:
    return datetime.fromisoformat((await session.run(run_id))["accepted_at"])


@pytest.mark.skipif(missing("faketime"), reason=how("faketime"))
async def test_g3_g13_nodes_whose_clocks_are_an_hour_off_trust_each_other_and_keep_their_leases() -> None:
    async with open_fleet("right", "fast", "slow", serve=False) as fleet:
        await fleet["right"].serve()
        await fleet["fast"].serve(environ=wrong_by(hours=+1))
        await fleet["slow"].serve(environ=wrong_by(hours=-1))
        await _check_every_pair(fleet)
        await _check_away_since(fleet, home="fast", caretaker="slow")


async def _check_every_pair(fleet: SiteFleet) -> None:
    """Each node is the owner of a directory, and each other one its door. Commands live as long as they should."""
    off: dict[str, timedelta] = {}
    for owner, site in fleet.nodes.items():
        site.model.add([CallTool("bash", {"command": "echo done by $$"})], [Say("fine")], name="command")
        session = await site.session(site.project())
        await session.submit("[[command]]", "r0", approve="all")
        assert await session.outcome("r0") == "end_turn"
        for door in fleet.nodes:
            seen = await fleet.through(door, session)
            run_id = await seen.submit(f"by {door}")
            assert await seen.outcome(run_id) == "end_turn"
        assert "done by" in str(await session.messages())
        off[owner] = await accepted_at(session, "r0") - datetime.now(UTC)
        assert (await session.http.get(session.workspace)).json()["away"] is False
    assert off["fast"] > timedelta(minutes=50), "its clock is wrong indeed"
    assert off["slow"] < -timedelta(minutes=50)
    nodes = (await session.http.get("/v1/nodes")).json()["items"]
    assert {each["state"] for each in nodes} == {"running"}


async def _check_away_since(fleet: SiteFleet, *, home: str, caretaker: str) -> None:
    site = fleet[home]
    site.model.add([Say("one "), Hang()], name="held")
    session = await fleet.through(caretaker, await site.session(site.project()))
    async with session.watch("ben") as bens:
        await session.submit("[[held]]", "r1")
        await bens.text("one ")
        await site.kill()
        await fleet.expire(home)
        assert (await bens.complete("r1")).error
        workspace = (await session.http.get(session.workspace)).json()
        assert workspace["away"], workspace
        assert abs(datetime.fromisoformat(workspace["away_since"]) - datetime.now(UTC)) < timedelta(minutes=30), (
            "the database's time"
        )
