"""Nodes and the database they share, as docs/deployment.md sets it up: a pooler, a standby, TLS."""

import asyncio
import signal
from collections.abc import Iterator

import pytest
from cluster import SiteFleet, open_fleet
from pgbouncer import PASSWORD, needs_pgbouncer, open_way
from replication import Pair, open_pair
from sessions import SessionClient, terminal_events

from longboat.testing import Hang, Say

pytestmark = pytest.mark.acceptance


async def serve_at(fleet: SiteFleet, address: str, **environ: str) -> None:
    """Start all nodes with this address of their database."""
    for site in fleet.nodes.values():
        site.environ |= {"LONGBOAT_STORE": address, **environ}
        await site.serve()


@needs_pgbouncer
@pytest.mark.parametrize("way", ["transaction", "session"])
async def test_g3_g4_g7_nodes_behind_pgbouncer_stream_queue_and_take_over(way: str) -> None:
    async with open_fleet("a", "b", serve=False) as fleet:
        with open_way(way, fleet.dsn) as address:
            await serve_at(fleet, address.replace(f":{PASSWORD}@", "@"), PGPASSWORD=PASSWORD)
            fleet["a"].model.add([Say("one "), Hang()], name="held")
            session = await fleet["a"].session(fleet.project())
            ben = await fleet.through("b", session)
            async with ben.watch("ben") as bens:
                await session.submit("[[held]]", "r1")
                await session.submit("later", "r2", delivery="queue")
                await bens.text("one ")
                fleet["a"].server.send_signal(signal.SIGSTOP)
                await fleet.expire("a")
                assert (await bens.complete("r1")).error
                assert not (await bens.complete("r2")).error
                fleet["a"].server.send_signal(signal.SIGCONT)
                await session.submit("once more", "r3")
                await bens.complete("r3")
                assert not bens.closed
            assert await ben.check_books() == {"r1": "interrupted", "r2": "end_turn", "r3": "end_turn"}


# Failover


@pytest.fixture
def pair() -> Iterator[Pair]:
    with open_pair() as opened:
        yield opened


async def prompt_until(session: SessionClient, name: str, end: asyncio.Event, accepted: set[str]) -> None:
    """One prompt after the other; those that were accepted."""
    number = 0
    while not end.is_set():
        number += 1
        answer = await session.ask("ahoy", f"{name}-{number}", delivery="queue")
        if answer.status_code == 202:
            accepted.add(f"{name}-{number}")
        else:
            assert answer.json()["code"] in ("store_unavailable", "owner_unreachable"), answer.text


async def test_g5_g10_with_a_synchronous_standby_a_failover_loses_no_accepted_prompt(pair: Pair) -> None:
    await asyncio.to_thread(pair.replicate_synchronously)
    async with open_fleet("a", "b", dsn=pair.primary.dsn(), serve=False) as fleet:
        await serve_at(fleet, pair.dsn)
        session = await fleet["a"].session(fleet["a"].project())
        ben = await fleet.through("b", session)
        accepted: set[str] = set()
        end = asyncio.Event()
        async with ben.watch("ben") as bens, asyncio.TaskGroup() as tasks:
            for client, name in ((session, "anna"), (ben, "ben")):
                tasks.create_task(prompt_until(client, name, end, accepted))
            await bens.complete("anna-3")
            await asyncio.to_thread(pair.primary.stop, signal.SIGQUIT)
            await asyncio.to_thread(pair.standby.promote)
            while (await session.ask("ahoy", "after")).status_code != 202:
                pass
            end.set()
        async with ben.watch("later", after=session.start) as watch:
            for run_id in (*accepted, "after"):
                assert (await watch.complete(run_id)).run_id == run_id
        books = await ben.check_books()
        assert accepted <= set(books)
        ends = [each.run_id for each in terminal_events((await ben.replay(session.start)).events)]
        assert sorted(ends) == sorted(set(ends))


async def test_g4_with_an_asynchronous_standby_who_saw_what_was_lost_resyncs(pair: Pair) -> None:
    async with open_fleet("a", "b", dsn=pair.primary.dsn(), serve=False) as fleet:
        await serve_at(fleet, pair.dsn)
        home = fleet["a"]
        home.model.add([Say("one "), Hang()], name="held")
        session = await home.session(home.project())
        ben = await fleet.through("b", session)
        async with ben.watch("ben") as bens:
            await session.submit("ahoy", "r1")
            await bens.complete("r1")
            await asyncio.to_thread(pair.wait_until_copied)
            await asyncio.to_thread(pair.standby.stop)
            await session.submit("[[held]]", "r2")
            await bens.text("one ")
            await asyncio.to_thread(pair.primary.stop, signal.SIGQUIT)
            await asyncio.to_thread(pair.standby.start)
            await asyncio.to_thread(pair.standby.promote)
            await bens.until(lambda event: event.type == "resync")
        await ben.submit("after", "r3")
        async with ben.watch("ben-again") as bens:
            await bens.complete("r3")
        assert await session.check_books() == await ben.check_books() == {"r1": "end_turn", "r3": "end_turn"}
