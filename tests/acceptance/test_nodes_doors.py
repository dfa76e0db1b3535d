"""Requests that reach the wrong node, or the right one at a bad moment (G2, G4, G7-G9)."""

import asyncio
import signal

import asyncpg
import pytest
from cluster import open_fleet
from sessions import shared

from longboat.testing import Hang, Pause, Say

pytestmark = pytest.mark.acceptance


async def test_g2_a_shared_directory_is_the_same_workspace_however_it_is_opened() -> None:
    async with open_fleet("a", "b") as fleet:
        at_a, at_b = await fleet["a"].client(), await fleet["b"].client()
        body = {"path": str(fleet.project())}
        both = await asyncio.gather(*(http.post("/v1/workspaces", json=body) for http in (at_a, at_b)))
        assert {answer.status_code for answer in both} <= {200, 201}, [answer.text for answer in both]
        assert both[0].json()["id"] == both[1].json()["id"]
        for http in (at_a, at_b):
            for more in ({}, {"node": "a"}, {"node": "b"}):
                for path in ("/v1/workspaces", "/v1/workspaces/"):
                    joined = await http.post(path, json=body | more)
                    assert (joined.status_code, joined.json()["id"]) == (200, both[0].json()["id"]), joined.text
        unknown = await at_a.post("/v1/workspaces", json=body | {"node": "nobody"})
        assert (unknown.status_code, unknown.json()["code"]) == (400, "unknown_node")


async def test_g2_a_head_request_leaves_the_connection_usable() -> None:
    async with open_fleet("a", "b") as fleet:
        session = await fleet["a"].session(fleet["a"].project())
        reader, writer = await fleet["b"].raw()
        head = (
            f"{session.workspace} HTTP/1.1\r\nhost: localhost\r\nauthorization: {fleet['b'].headers['authorization']}"
        )
        for method in ("HEAD", "GET"):
            writer.write(f"{method} {head}\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 405")
        await reader.readuntil(b"\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_g4_a_stream_goes_on_where_it_was_when_its_own_node_becomes_the_owner_again() -> None:
    async with open_fleet("a", "b") as fleet:
        gate = fleet["a"].model.gate("held")
        fleet["a"].model.add([Say("one "), Pause(gate), Say("two")], name="held")
        session = await fleet["a"].session(fleet["a"].project())
        ben = await fleet.through("b", session)
        async with session.watch("anna") as annas, ben.watch("ben") as bens:
            await session.submit("[[held]]", "r1")
            await annas.text("one ")
            await bens.text("one ")
            client = await asyncpg.connect(fleet.dsn)
            await client.execute("UPDATE leases SET epoch = nextval('epochs')")  # as if another had been the owner
            await client.close()
            gate.open()
            assert (await annas.complete("r1")).error
            assert (await bens.complete("r1")).error
            for watch in (annas, bens):
                assert watch.types.count("snapshot") == 1, "the cursor is still good"
            one, other = shared(annas, bens)
            assert one == other
        assert await ben.check_books() == {"r1": "interrupted"}


async def test_g7_a_door_does_not_wait_for_an_owner_that_hangs_and_is_the_owner_no_longer() -> None:
    async with open_fleet("a", "b", "c", lease_s=15) as fleet:
        session = await fleet["a"].session(fleet.project())
        ben, carl = await fleet.through("b", session), await fleet.through("c", session)
        await carl.status()  # so that this door knows the owner
        fleet["a"].server.send_signal(signal.SIGSTOP)
        await fleet.expire("a")
        await ben.submit("by the next owner", "r1")
        await carl.submit("by a door that knows the former one", "r2")
        fleet["a"].server.send_signal(signal.SIGCONT)
        assert await carl.outcome("r2") == "end_turn"


async def test_g8_a_directory_that_its_home_opens_while_a_caretaker_still_has_it_is_the_same_workspace() -> None:
    async with open_fleet("a", "b") as fleet:
        home, directory = fleet["a"], fleet["a"].project()
        session = await home.session(directory)
        ben = await fleet.through("b", session)
        await home.kill()
        await fleet.expire("a")
        assert (await ben.http.get(ben.workspace)).json()["away"]
        await home.serve()
        joined = await (await home.client()).post("/v1/workspaces", json={"path": str(directory)})
        assert (joined.status_code, f"/v1/workspaces/{joined.json()['id']}") == (200, session.workspace)
        assert joined.json()["away"] is False


async def test_g9_a_node_that_drains_gives_back_each_workspace_that_is_quiet() -> None:
    async with open_fleet("a", "b", drain_s=60) as fleet:
        fleet["a"].model.add([Say("one "), Hang()], name="held")
        busy, quiet = [await fleet["a"].session(fleet.project()) for _ in range(2)]
        ben = await fleet.through("b", quiet)
        async with busy.watch() as watch:
            await busy.submit("[[held]]", "r1")
            await watch.text("one ")
            fleet["a"].server.terminate()
            await ben.submit("not held up", "r2")
            assert await ben.outcome("r2") == "end_turn"
            assert not watch.closed, "the other run is still being waited for"


async def test_g9_a_stream_through_a_door_that_leaves_ends_as_a_stream_should() -> None:
    async with open_fleet("a", "b") as fleet:
        session = await fleet["a"].session(fleet["a"].project())
        ben = await fleet.through("b", session)
        async with ben.watch("ben") as bens:
            fleet["b"].server.terminate()
            await bens.end()
            assert bens.clean
            assert await fleet["b"].server.wait() == 0


async def test_b5_the_only_node_refuses_prompts_at_once_when_it_leaves() -> None:
    async with open_fleet("a", drain_s=60) as fleet:
        fleet["a"].model.add([Say("one "), Hang()], name="held")
        session = await fleet["a"].session(fleet["a"].project())
        async with session.watch() as watch:
            await session.submit("[[held]]", "r1")
            await watch.text("one ")
            fleet["a"].server.terminate()
            while (await session.http.get("/v1/health")).json()["status"] != "leaving":
                pass
            refused = await session.ask("too late", "r2")
            assert (refused.status_code, refused.json()["code"]) == (503, "server_leaving")
            assert not watch.closed
