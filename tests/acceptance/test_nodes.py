"""Several nodes on one PostgreSQL (G1-G14): every client may talk to every node."""

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest
from cluster import open_fleet
from postgres import PostgresServer
from processes import Door, Site, ended
from sessions import SessionClient, Watch, shared, terminal_events

from longboat.testing import CallTool, Hang, Pause, Say

pytestmark = pytest.mark.acceptance


async def test_g2_every_node_answers_for_a_session_of_another_one() -> None:
    async with open_fleet("a", "b", "c") as fleet:
        gate = fleet["c"].model.gate("held")
        fleet["c"].model.add([Say("one "), Pause(gate), Say("two")], name="held")
        at_c = await fleet["c"].session(fleet["c"].project())
        anna, ben = await fleet.through("a", at_c), await fleet.through("b", at_c)
        async with anna.watch("anna") as annas, ben.watch("ben") as bens, at_c.watch("carl") as carls:
            run_id = await anna.submit("[[held]]")
            await bens.text("one ")
            queued = await ben.submit("later", "r2", delivery="queue")
            gate.open()
            await annas.complete(run_id)
            for watch in (annas, bens, carls):
                await watch.complete(queued)
            assert shared(annas, bens)[0] == shared(annas, bens)[1]
            assert shared(annas, carls)[0] == shared(annas, carls)[1]
        assert (await ben.run(run_id))["outcome"] == "end_turn"
        assert await anna.check_books() == await ben.check_books() == await at_c.check_books()


async def test_g2_a_directory_is_opened_on_the_node_that_is_named_and_lists_cover_all_nodes() -> None:
    async with open_fleet("a", "b") as fleet:
        http = await fleet["a"].client()
        directory = fleet["b"].project()
        for _ in range(2):
            joined = await http.post("/v1/workspaces", json={"path": str(directory), "node": "b"})
            assert joined.status_code in (200, 201), joined.text
        unknown = await http.post("/v1/workspaces", json={"path": str(directory), "node": "nobody"})
        assert (unknown.status_code, unknown.json()["code"]) == (400, "unknown_node")
        own = await http.post("/v1/workspaces", json={"path": str(fleet["a"].project())})
        listed = (await (await fleet["b"].client()).get("/v1/workspaces")).json()["items"]
        assert sorted(each["id"] for each in listed) == sorted([joined.json()["id"], own.json()["id"]])
        nodes = (await http.get("/v1/nodes")).json()["items"]
        assert [(each["name"], each["state"], each["owned"], each["answering"]) for each in nodes] == [
            ("a", "running", 1, True),
            ("b", "running", 1, False),
        ]
        done = await ended(await fleet["a"].longboat("nodes", cwd=fleet["a"].path))
        assert [line.split()[:2] for line in done.out.splitlines()] == [["NAME", "STATE"], ["a", "*"], ["b", "running"]]


async def test_g4_a_stream_outlives_its_owner_and_the_queue_runs_when_the_home_is_back() -> None:
    """kill -9 of the home in the middle of a run: both clients keep their streams."""
    async with open_fleet("a", "b", "c") as fleet:
        home = fleet["c"]
        home.model.add([Say("one "), Hang()], name="held")
        at_c = await home.session(home.project())
        anna, ben = await fleet.through("a", at_c), await fleet.through("b", at_c)
        async with anna.watch("anna") as annas, ben.watch("ben") as bens:
            cut_off = await anna.submit("[[held]]", "r1")
            later = await ben.submit("later", "r2", delivery="queue")
            await annas.text("one ")
            await bens.state("r2", "queued")
            await home.kill()
            await home.serve()
            assert (await annas.complete(cut_off)).error
            assert (await bens.complete(cut_off)).error
            assert not (await annas.complete(later)).error
            await bens.complete(later)
            assert (annas.closed, bens.closed) == (False, False), "nobody had to reconnect"
            assert annas.frames == [*dict.fromkeys(annas.frames)], "nothing came twice"
            one, other = shared(annas, bens)
            assert one == other
        books = {"r1": "interrupted", "r2": "end_turn"}
        assert await anna.check_books() == await ben.check_books() == books


async def test_g7_another_node_takes_over_a_shared_directory() -> None:
    async with open_fleet("a", "b") as fleet:
        fleet["a"].model.add([Say("one "), Hang()], name="held")
        session = await fleet["a"].session(fleet.project())
        ben = await fleet.through("b", session)
        async with ben.watch("ben") as bens:
            await session.submit("[[held]]", "r1")
            await session.submit("later", "r2", delivery="queue")
            await bens.text("one ")
            await bens.state("r2", "queued")
            await fleet["a"].kill()
            await fleet.expire("a")
            assert (await bens.complete("r1")).error
            assert not (await bens.complete("r2")).error
        assert await ben.check_books() == {"r1": "interrupted", "r2": "end_turn"}


async def test_g3_an_owner_that_was_stopped_beyond_its_lease_writes_nothing_more() -> None:
    async with open_fleet("a", "b") as fleet:
        gate = fleet["a"].model.gate("held")
        fleet["a"].model.add([Say("one "), Pause(gate), Say("two")], name="held")
        session = await fleet["a"].session(fleet.project())
        ben = await fleet.through("b", session)
        async with ben.watch("ben") as bens:
            await session.submit("[[held]]", "r1")
            await bens.text("one ")
            fleet["a"].server.send_signal(signal.SIGSTOP)
            await fleet.expire("a")
            assert (await bens.complete("r1")).error
            await ben.submit("again", "r2")
            await bens.complete("r2")
            gate.open()
            fleet["a"].server.send_signal(signal.SIGCONT)
            # By the node that was stopped: it notices, and hands on.
            await session.submit("once more", "r3")
            await bens.complete("r3")
        assert await session.check_books() == {"r1": "interrupted", "r2": "end_turn", "r3": "end_turn"}
        assert [end.run_id for end in terminal_events((await ben.replay(session.start)).events)] == ["r1", "r2", "r3"]


async def test_g3_the_commands_of_a_stopped_owner_are_gone_before_another_one_begins() -> None:
    """Its guard ends them, although the server cannot."""
    async with open_fleet("a", "b", lease_s=10) as fleet:
        owner = fleet["a"]
        owner.model.add([CallTool("bash", {"command": "exec sleep 4321"})], name="long")
        session = await owner.session(fleet.project())
        ben = await fleet.through("b", session)
        async with ben.watch("ben") as bens:
            await session.submit("[[long]]", "r1", approve="all")
            await bens.until(lambda event: event.type == "message" and "4321" in repr(event.payload))
            command = await running("sleep 4321", owner.server.pid)
            owner.server.send_signal(signal.SIGSTOP)
            await asyncio.to_thread(command.wait)
            assert psutil.Process(owner.server.pid).status() == psutil.STATUS_STOPPED
            assert (await bens.complete("r1")).error
            owner.server.send_signal(signal.SIGCONT)
        assert await ben.check_books() == {"r1": "interrupted"}


async def running(command: str, server: int) -> psutil.Process:
    """The process of a command, once it is there."""
    while True:
        for process in await asyncio.to_thread(psutil.Process(server).children, recursive=True):
            with suppress(psutil.NoSuchProcess):
                if " ".join(process.cmdline()) == command:
                    return process


async def test_g6_a_cancel_at_a_door_covers_what_was_accepted_before_it() -> None:
    async with open_fleet("a", "b") as fleet:
        home = fleet["a"]
        home.model.add([Say("one "), Hang()], name="held")
        session = await home.session(home.project())
        ben = await fleet.through("b", session)
        async with ben.watch("ben") as bens:
            await session.submit("[[held]]", "r1")
            await session.submit("later", "r2", delivery="queue")
            await bens.text("one ")
            await bens.state("r2", "queued")
            assert sorted(await ben.cancel()) == ["r1", "r2"]
            await ben.submit("after", "r3")
            await bens.complete("r3")
        assert await ben.check_books() == {"r1": "canceled", "r2": "canceled", "r3": "end_turn"}


async def test_g9_a_node_that_leaves_hands_its_shared_directories_over() -> None:
    async with open_fleet("a", "b") as fleet:
        session = await fleet["a"].session(fleet.project())
        ben = await fleet.through("b", session)
        async with ben.watch("ben") as bens:
            await ben.submit("first", "r1")
            await bens.complete("r1")
            fleet["a"].server.terminate()
            await ben.submit("second", "r2")
            await bens.complete("r2")
            assert await fleet["a"].server.wait() == 0
            assert not bens.closed
        assert await ben.check_books() == {"r1": "end_turn", "r2": "end_turn"}


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """One that a test may stop."""
    server = PostgresServer(Path(tempfile.mkdtemp(prefix="lb-pg-", dir="/tmp")), fsync=True)
    server.start()
    yield server
    server.remove()


async def test_g10_while_the_database_is_away_nothing_is_accepted_and_streams_stay_open(
    own_server: PostgresServer,
) -> None:
    async with open_fleet("a", "b", dsn=own_server.dsn()) as fleet:
        home = fleet["a"]
        gate = home.model.gate("held")
        home.model.add([Say("one "), Pause(gate), Say("two")], name="held")
        session = await home.session(home.project())
        ben = await fleet.through("b", session)
        async with ben.watch("ben") as bens:
            await session.submit("[[held]]", "r1")
            await bens.text("one ")
            await asyncio.to_thread(own_server.stop)
            for client in (session, ben):
                refused = await client.ask("lost", "r2")
                assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
            gate.open()
            await asyncio.to_thread(own_server.start)
            assert not (await bens.complete("r1")).error
            await ben.submit("after", "r3")
            await bens.complete("r3")
            assert not bens.closed
        assert await ben.check_books() == {"r1": "end_turn", "r3": "end_turn"}


async def test_g13_a_node_without_the_secret_is_refused() -> None:
    async with open_fleet("a", "b", serve=False) as fleet:
        await fleet["a"].serve()
        for secret, told in (("", "LONGBOAT_CLUSTER_SECRET"), ("another", "not the one that the other nodes")):
            process = await fleet["b"].launch(environ={"LONGBOAT_CLUSTER_SECRET": secret})
            assert await process.wait() == 1
            assert told in fleet["b"].log.read_text()
        process = await fleet["b"].launch(environ={"LONGBOAT_NODE": "a"})
        assert await process.wait() == 1
        assert "Another machine uses the name a" in fleet["b"].log.read_text()


async def test_g13_a_client_cannot_pretend_to_be_a_node() -> None:
    async with open_fleet("a") as fleet:
        http = await fleet["a"].client()
        forged = {"longboat-relay": f"b 1 {'0' * 64} {'0' * 64}"}
        refused = await http.get("/v1/workspaces", headers=forged)
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
        local = await fleet["a"].client(Door.UNIX)
        for header in (*forged.values(), "nonsense"):
            refused = await local.get("/v1/workspaces", headers={"longboat-relay": header})
            assert (refused.status_code, refused.json()["code"]) == (400, "bad_relay")


async def test_g7_g8_while_the_home_is_away_a_caretaker_queues_and_cancels_and_hands_back() -> None:
    async with open_fleet("a", "b", "c") as fleet:
        home = fleet["c"]
        home.model.add([Say("one "), Hang()], name="held")
        at_c = await home.session(home.project())
        anna, ben = await fleet.through("a", at_c), await fleet.through("b", at_c)
        async with anna.watch("anna") as annas, ben.watch("ben") as bens:
            await anna.submit("[[held]]", "r1")
            await anna.submit("canceled", "r2", delivery="queue")
            await annas.text("one ")
            await annas.state("r2", "queued")
            await home.kill()
            await fleet.expire("c")
            assert (await bens.complete("r1")).error, "interrupted at once"
            await ben.cancel()
            assert (await annas.complete("r2")).cancelled
            accepted = await ben.ask("later", "r3")
            assert (accepted.status_code, accepted.json()["state"]) == (202, "accepted")
            await annas.state("r3", "queued")
            workspace = (await anna.http.get(anna.workspace)).json()
            assert workspace["away"]
            assert workspace["away_since"].startswith("20")
            for path in ("files", "diff", "search?query=x", "changes"):
                refused = await ben.http.get(f"{ben.workspace}/{path}")
                assert (refused.status_code, refused.json()["code"]) == (409, "tree_away"), path
            shell = await ben.http.post(f"{ben.workspace}/sessions/{ben.session_id}/shell", json={"command": "ls"})
            assert (shell.status_code, shell.json()["code"]) == (409, "tree_away")
            await home.serve()
            assert not (await annas.complete("r3")).error
            await bens.complete("r3")
            assert (annas.closed, bens.closed) == (False, False)
            one, other = shared(annas, bens)
            assert one == other
            assert not (await ben.http.get(ben.workspace)).json()["away"]
        books = {"r1": "interrupted", "r2": "canceled", "r3": "end_turn"}
        assert await anna.check_books() == await ben.check_books() == books
        assert len(home.model.requests) == 2, "nothing ran twice"


@asynccontextmanager
async def resumed_later() -> AsyncIterator[tuple[Site, SessionClient, Watch]]:
    """The home died during run r1, which it will resume, and r2 is queued behind it. The home, and Ben at another
    node."""
    async with open_fleet("a", "b") as fleet:
        home = fleet["a"]
        home.model.add([Say("one "), Hang()], name="held")
        session = await home.session(home.project(on_restart="resume"))
        ben = await fleet.through("b", session)
        async with ben.watch("ben") as bens:
            await session.submit("[[held]]", "r1")
            await bens.text("one ")
            await home.kill()
            await fleet.expire("a")
            await ben.submit("later", "r2", delivery="queue")
            await bens.state("r2", "queued")
            yield home, ben, bens


async def test_g6_a_run_that_waits_for_its_home_can_be_canceled_meanwhile() -> None:
    async with resumed_later() as (home, ben, bens):
        await ben.cancel_run("r1")
        assert (await bens.complete("r1")).cancelled
        await home.serve()
        await bens.complete("r2")
        assert await ben.check_books() == {"r1": "canceled", "r2": "end_turn"}
        assert len(home.model.requests) == 2


async def test_g7_a_run_that_is_to_resume_waits_for_its_home() -> None:
    async with resumed_later() as (home, ben, bens):
        assert (await ben.run("r1"))["state"] == "active"
        home.model.add([Say("again")], name="held")
        await home.serve()
        assert not (await bens.complete("r1")).error
        await bens.complete("r2")
        assert await ben.check_books() == {"r1": "end_turn", "r2": "end_turn"}
