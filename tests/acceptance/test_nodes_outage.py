"""PostgreSQL stops, restarts, or is cut off from one node or from all (G10): nothing is half-accepted, streams stay."""

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cluster import SiteFleet, locked, open_fleet, try_locks, until_there
from postgres import PostgresServer
from sessions import SessionClient, Watch, shared

from longboat.testing import CallTool, Hang, Pause, Say

pytestmark = pytest.mark.acceptance

SHORT_S = 9.0
"""A lease that really ends while its owner is cut off."""


async def refused(session: SessionClient, run_id: str) -> None:
    answer = await session.ask("lost", run_id)
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable"), answer.text


@pytest.mark.parametrize("how", ["reset", "black hole"])
async def test_g3_g10_trap_a_node_without_the_database_gives_up_in_time_and_is_a_door_again_when_healed(
    how: str,
) -> None:
    """Its renewals raise, or never return: unconfirmed means lost (deer-flow #4414). Its command is dead before the
    next owner begins; its own client's stream goes on at the next owner once it can find that."""
    async with open_fleet("owner", "other", lease_s=SHORT_S) as fleet:
        owner, link = fleet["owner"], fleet.links["owner"].database
        owner.model.add([CallTool("bash", {"command": locked("tool")})], name="long")
        owner.model.add([CallTool("bash", {"command": try_locks("tool")})], [Say("done")], name="look")
        directory = fleet.project()
        session = await owner.session(directory)
        ben = await fleet.through("other", session)
        async with session.watch("anna") as annas, ben.watch("ben") as bens:
            await session.submit("[[long]]", "r1", approve="all")
            await until_there(directory / "tool.held")
            await ben.submit("[[look]]", "r2", approve="all", delivery="queue")
            await bens.state("r2", "queued")
            link.reset() if how == "reset" else link.black_hole()
            assert (await bens.complete("r1")).outcome == "interrupted", (await bens.complete("r1")).error
            assert not (await bens.complete("r2")).error
            assert "tool is free" in str(await ben.messages())
            assert not annas.closed
            link.heal()
            await annas.complete("r2")
            await session.submit("through the healed node", "r3")
            await annas.complete("r3")
            await bens.complete("r3")
            assert not annas.closed
            assert not bens.closed
            mine, theirs = shared(annas, bens)
            assert mine == theirs
        ends = {"r1": "interrupted", "r2": "end_turn", "r3": "end_turn"}
        assert await session.check_books() == await ben.check_books() == ends


@asynccontextmanager
async def held_run(fleet: SiteFleet, **others: str) -> AsyncIterator[tuple[SessionClient, SessionClient, Watch]]:
    """A run that waits at a gate, seen through a door. Afterwards the gate opens, and all is well. `others`: how other
    runs have to end."""
    owner = fleet["owner"]
    gate = owner.model.gate("held")
    owner.model.add([Say("one "), Pause(gate), Say("two")], name="held")
    session = await owner.session(owner.project())
    ben = await fleet.through("door", session)
    async with ben.watch("ben") as bens:
        await session.submit("[[held]]", "r1")
        await bens.text("one ")
        yield session, ben, bens
        gate.open()
        assert not (await bens.complete("r1")).error
        await ben.submit("after", "r2")
        await bens.complete("r2")
        assert not bens.closed
    assert await ben.check_books() == {"r1": "end_turn", "r2": "end_turn"} | others


@asynccontextmanager
async def away(how: str, fleet: SiteFleet, server: PostgresServer) -> AsyncIterator[None]:
    """No node reaches the database."""
    links = [each.database for each in fleet.links.values()]
    if how in ("stopped", "crashed"):
        await asyncio.to_thread(server.stop, signal.SIGINT if how == "stopped" else signal.SIGQUIT)
    for link in links:
        if how == "reset":
            link.reset()
        elif how == "black hole":
            link.black_hole()
    yield
    if how in ("stopped", "crashed"):
        await asyncio.to_thread(server.start)
    for link in links:
        link.heal()


@pytest.mark.parametrize("how", ["stopped", "reset"])
async def test_g10_while_no_node_has_the_database_nothing_is_accepted_and_all_continues_when_it_is_back(
    how: str, own_server: PostgresServer
) -> None:
    """For less than a lease: the run stays active."""
    async with (
        open_fleet("owner", "door", dsn=own_server.dsn()) as fleet,
        held_run(fleet) as (session, ben, _),
        away(how, fleet, own_server),
    ):
        await asyncio.gather(refused(session, "lost"), refused(ben, "lost"))


async def test_g10_longer_than_a_lease_in_a_black_hole_turns_end_and_are_settled_afterwards(
    own_server: PostgresServer,
) -> None:
    """No node gets an answer from the database, and no error either. A prompt on its way there may arrive later: its
    client hears that its fate is not known, and never that nothing was accepted."""
    async with open_fleet("owner", "door", dsn=own_server.dsn(), lease_s=SHORT_S) as fleet:
        owner = fleet["owner"]
        owner.model.add([Say("one "), Hang()], name="held")
        owner.model.add([Say("fine")], name="fine", repeat=True)
        session = await owner.session(owner.project())
        ben = await fleet.through("door", session)
        async with ben.watch("ben") as bens:
            await session.submit("[[held]]", "r1")
            await bens.text("one ")
            async with away("black hole", fleet, own_server):
                asked = [each.ask("[[fine]]", delivery="queue") for each in (session, ben)]
                answers = await asyncio.gather(*asked)
            assert [each.status_code for each in answers] == [503, 503]
            unknown = [each.json()["code"] for each in answers].count("owner_lost")
            assert (await bens.complete("r1")).error
            await ben.submit("[[fine]]", "r2")
            await bens.complete("r2")
            assert not bens.closed
        books = await ben.check_books()
        assert (books.pop("r1"), books.pop("r2")) == ("interrupted", "end_turn")
        assert len(books) <= unknown
        assert set(books.values()) <= {"end_turn"}


async def test_g4_g10_a_crash_of_postgresql_costs_a_resync_at_most(own_server: PostgresServer) -> None:
    """It may lose deltas that clients have seen. Then the run is ended, and the cursor's epoch tells."""
    async with open_fleet("owner", "door", dsn=own_server.dsn()) as fleet:
        owner = fleet["owner"]
        owner.model.add([Say("one "), Hang()], name="held")
        owner.model.add([Say("fine")], name="fine")
        session = await owner.session(owner.project())
        ben = await fleet.through("door", session)
        async with ben.watch("ben") as bens:
            await session.submit("[[held]]", "r1")
            await bens.text("one ")
            async with away("crashed", fleet, own_server):
                await refused(ben, "lost")
            await ben.submit("[[fine]]", "r2", delivery="queue")
            await ben.cancel_run("r1")
            await bens.until(lambda event: event.type == "resync" or getattr(event.payload, "run_id", None) == "r2")
        assert await ben.outcome("r2") == "end_turn"
        assert (await ben.check_books())["r1"] in ("canceled", "interrupted")


async def test_g10_a_prompt_is_accepted_once_if_its_commit_gets_no_answer_or_does_not_arrive() -> None:
    """The connection breaks with the transaction that accepts it: its client hears 202 all the same."""
    texts = ("answer lost", "answer lost at a door", "request lost", "request lost at a door")
    others = {f"q{number}": "canceled" for number in range(len(texts))}
    async with open_fleet("owner", "door") as fleet, held_run(fleet, **others) as (session, ben, bens):
        link = fleet.links["owner"].database
        for number, text in enumerate(texts):
            lose = link.lose_answer if "answer" in text else link.lose_request
            lost = lose(text.encode())
            await (ben if "door" in text else session).submit(text, f"q{number}", delivery="queue")
            assert lost.is_set()
            await bens.state(f"q{number}", "queued")
        assert [run["prompt"] for run in (await ben.ledger())[1:]] == list(texts)
        cleared = await ben.http.post(f"{ben.workspace}/agent/sessions/{ben.session_id}/prompts/clear")
        assert sorted(cleared.json()["canceled"]) == sorted(others)


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """One that a test may stop."""
    server = PostgresServer(Path(tempfile.mkdtemp(prefix="lb-pg-", dir="/tmp")), fsync=True)
    server.start()
    yield server
    server.remove()
