"""Several nodes on one PostgreSQL (G1-G14): every client may talk to every node."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from cluster import SiteFleet, open_fleet
from processes import Door, ended
from sessions import SessionClient, Watch, shared, terminal_events

from longboat.testing import Hang, Pause, Say

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


async def gauge(fleet: SiteFleet, name: str, what: str) -> float:
    told = (await (await fleet[name].client()).get("/v1/metrics")).text
    (value,) = re.findall(rf'^longboat_{what}{{node="{name}"}} (\S+)$', told, flags=re.MULTILINE)
    return float(value)


async def test_g12_the_metrics_of_a_node_count_what_it_does_for_others() -> None:
    async with open_fleet("a", "b") as fleet:
        fleet["a"].model.add([Say("one "), Hang()], name="held")
        session = await fleet["a"].session(fleet.project())
        ben = await fleet.through("b", session)
        assert await gauge(fleet, "b", "takeovers") == 0
        before = await gauge(fleet, "b", "relayed_requests")
        async with ben.watch("ben") as bens:
            await ben.submit("[[held]]", "r1")
            await bens.text("one ")
            assert await gauge(fleet, "b", "relayed_requests") >= before + 2, "a stream and a prompt"
            assert await gauge(fleet, "a", "lease_confirmed_seconds_ago") >= 0
            await fleet["a"].kill()
            await fleet.expire("a")
            await bens.complete("r1")
        assert await gauge(fleet, "b", "takeovers") == 1


async def test_g2_a_door_refuses_a_body_that_is_too_large_for_its_route_before_it_has_all_of_it() -> None:
    async with open_fleet("a", "b", max_body_mb=1, max_import_mb=2) as fleet:
        session = await fleet["a"].session(fleet["a"].project())
        head = f"host: localhost\r\nauthorization: {fleet['b'].headers['authorization']}\r\n"
        head += "content-type: application/json\r\n"
        piece = b"x" * (3 << 19)  # one and a half
        chunk = b"%x\r\n%b\r\n" % (len(piece), piece)
        for length in ("transfer-encoding: chunked", "content-length: 2000000"):
            reader, writer = await fleet["b"].raw()
            writer.write(f"POST {session.workspace}/agent HTTP/1.1\r\n{head}{length}\r\n\r\n".encode())
            if "chunked" in length:
                writer.write(chunk)
            assert (await reader.readline()).startswith(b"HTTP/1.1 413"), "and there is more to come"
            writer.close()
        large = b'{"format": "' + b"x" * len(piece) + b'"}'
        ben = await fleet.through("b", session)
        kind = {"content-type": "application/json"}
        refused = await ben.http.post(f"{ben.workspace}/sessions/import", content=large, headers=kind)
        assert refused.status_code == 400, "an import may be larger"


async def test_g12_the_metrics_of_a_node_have_its_name() -> None:
    async with open_fleet("a", "b") as fleet:
        await fleet["b"].session(fleet["b"].project())
        for name, opened in (("a", "0.0"), ("b", "1.0")):
            told = (await (await fleet[name].client()).get("/v1/metrics")).text
            assert f'longboat_workspaces_open{{node="{name}"}} {opened}' in told.splitlines()
            assert not [line for line in told.splitlines() if re.match(r"longboat_\w+ ", line)]


async def test_g2_a_directory_that_only_another_node_has_is_found_by_its_path() -> None:
    async with open_fleet("a", "b") as fleet:
        directory = fleet["b"].project()
        session = await fleet["b"].session(directory)
        directory.rename(directory.with_name("moved"))  # all nodes of a test have one disk
        anna = await fleet["a"].client()
        found = await anna.post("/v1/workspaces", json={"path": str(directory)})
        assert found.status_code == 200, found.text
        assert found.json()["id"] == session.workspace.rpartition("/")[2]
        unknown = await anna.post("/v1/workspaces", json={"path": str(directory) + "x"})
        assert (unknown.status_code, unknown.json()["code"]) == (400, "path_not_found")


async def test_g7_the_directory_of_a_node_that_is_down_is_found_by_the_name_of_the_node() -> None:
    async with open_fleet("a", "b") as fleet:
        directory = fleet["b"].project()
        session = await fleet["b"].session(directory)
        await fleet["b"].kill()
        await fleet.expire("b")
        anna = await fleet["a"].client()
        found = await anna.post("/v1/workspaces", json={"path": str(directory), "node": "b"})
        assert found.status_code == 200, found.text
        assert (found.json()["id"], found.json()["away"]) == (session.workspace.rpartition("/")[2], True)
        unknown = await anna.post("/v1/workspaces", json={"path": "/", "node": "b"})
        assert (unknown.status_code, unknown.json()["code"]) == (400, "unknown_node")


async def test_g2_commands_name_a_directory_on_another_node() -> None:
    async with open_fleet("a", "b") as fleet:
        directory = fleet["b"].project()
        session = await fleet["b"].session(directory)
        await session.submit("hello", "r1")
        await session.outcome("r1")
        fleet["a"].environ |= {"LONGBOAT_URL": fleet.url("a"), "LONGBOAT_TOKEN": fleet.token}
        where = f"b:{directory}"
        runs = await ended(await fleet["a"].longboat("runs", "--cwd", where, cwd=fleet["a"].path))
        assert "hello" in runs.out, runs
        more = await ended(await fleet["a"].longboat("run", "-c", "--cwd", where, "more", cwd=fleet["a"].path))
        assert (more.code, more.out.strip()) == (0, "echo: more"), more
        assert len(await session.ledger()) == 2


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


async def test_g4_a_stream_continues_at_a_node_that_becomes_the_owner_a_second_time() -> None:
    """Found by chaos: the node's routes remembered the cursor of the first time, and sent everything since again."""
    async with open_fleet("a", "b") as fleet:
        session = await fleet["a"].session(fleet.project())
        ben = await fleet.through("b", session)
        async with session.watch("anna", after=session.start) as annas:
            await session.submit("first", "r1")
            await annas.complete("r1")
            fleet["a"].pause()
            await fleet.expire("a")
            await ben.submit("at b", "r2")
            fleet["a"].resume()
            await session.submit("by a, which notices", "r3")
            await annas.complete("r3")
            await fleet["b"].kill()
            await fleet.expire("b")
            await session.submit("at a again", "r4")
            await annas.complete("r4")
            assert "resync" not in annas.types
            assert shared(annas, annas)
            assert not annas.closed
        assert set(await session.check_books()) == {"r1", "r2", "r3", "r4"}


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


async def test_g5_a_repeated_cancel_has_the_same_mark_at_the_next_owner() -> None:
    async with open_fleet("a", "b") as fleet:
        fleet["a"].model.add([Say("one "), Hang()], name="held")
        fleet["a"].model.add([Say("two "), Hang()], name="more")
        session = await fleet["a"].session(fleet.project())
        ben = await fleet.through("b", session)
        async with ben.watch("ben") as bens:
            await session.submit("[[held]]", "r1")
            await bens.text("one ")
            assert await ben.cancel(key="once") == ["r1"]
            await bens.complete("r1")
            await session.submit("[[more]]", "r2")
            await bens.text("two ")
            await session.submit("later", "r3", delivery="queue")
            await bens.state("r3", "queued")
            assert await ben.cancel(key="once") == ["r1"]
            await fleet["a"].kill()
            await fleet.expire("a")
            assert await ben.cancel(key="once") == ["r1"]
            assert not (await bens.complete("r3")).error
        assert await ben.check_books() == {"r1": "canceled", "r2": "interrupted", "r3": "end_turn"}


async def test_g5_what_a_live_owner_writes_is_read_from_the_database_if_it_cannot_be_reached() -> None:
    async with open_fleet("a", "b") as fleet:
        gate = fleet["a"].model.gate("held")
        fleet["a"].model.add([Say("one "), Pause(gate), Say("two")], name="held")
        session = await fleet["a"].session(fleet.project())
        ben = await fleet.through("b", session)
        fleet.links["a"].peers.reset()
        async with ben.watch("ben") as bens:
            await session.submit("[[held]]", "r1")
            await session.submit("later", "r2", delivery="queue")
            await bens.text("one ")
            assert (await ben.run("r1"))["state"] == "active"
            status = await ben.status()
            assert (status["active_run_id"], status["queued"]) == ("r1", 1)
            fleet.links["a"].peers.heal()
            gate.open()
            assert (await bens.complete("r1")).text == "one two"
            await bens.complete("r2")
            await ben.submit("again", "r3")
            await bens.complete("r3")
        assert await ben.check_books() == {"r1": "end_turn", "r2": "end_turn", "r3": "end_turn"}


async def test_g5_reads_do_not_wait_for_an_owner_whose_kept_connections_are_dead() -> None:
    async with open_fleet("a", "b") as fleet:
        session = await fleet["a"].session(fleet.project())
        ben = await fleet.through("b", session)
        assert (await ben.status())["busy"] is False  # the nodes keep this connection
        fleet.links["a"].peers.black_hole()
        assert (await ben.status())["busy"] is False


async def test_g5_a_workspace_whose_owner_cannot_be_reached_says_where_it_is() -> None:
    async with open_fleet("a", "b") as fleet:
        session = await fleet["a"].session(fleet["a"].project())
        ben = await fleet.through("b", session)
        fleet.links["a"].peers.reset()
        seen = [(await each.http.get(each.workspace)).json() for each in (session, ben)]
        assert [(each["home"], each["owner"], each["away"]) for each in seen] == [("a", "a", False)] * 2
        await fleet["a"].kill()
        await fleet.expire("a")
        assert (await ben.http.get(ben.workspace)).json()["away"]


async def test_g5_a_change_is_refused_if_its_owner_is_alive_and_cannot_be_reached() -> None:
    async with open_fleet("a", "b") as fleet:
        session = await fleet["a"].session(fleet.project())
        ben = await fleet.through("b", session)
        fleet.links["a"].peers.reset()
        refused = asyncio.ensure_future(ben.http.post(f"{ben.workspace}/sessions", json={}))
        while not refused.done():
            await fleet.renew("a")
        assert (refused.result().status_code, refused.result().json()["code"]) == (503, "owner_unreachable")
        files = asyncio.ensure_future(ben.http.get(f"{ben.workspace}/files"))
        while not files.done():
            await fleet.renew("a")
        assert (files.result().status_code, files.result().json()["code"]) == (503, "owner_unreachable")


async def test_g4_a_stream_continues_at_its_cursor_where_a_node_lost_a_workspace_and_got_it_again() -> None:
    async with open_fleet("a", "b") as fleet:
        session = await fleet["a"].session(fleet.project())
        async with session.watch("anna", after=session.start) as annas:
            for number in range(3):
                await session.submit("hello", f"r{number}")
                await annas.complete(f"r{number}")
                await fleet.evict("a")
            await session.submit("once more", "r3")
            await annas.complete("r3")
            replayed = await session.replay()
            mine, theirs = shared(annas, replayed)
            assert mine == theirs
            assert not any(event.type in ("snapshot", "resync") for event in annas.events)


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


async def test_g9_a_prompt_waits_for_an_owner_that_is_leaving_and_still_renews_its_lease() -> None:
    async with open_fleet("a", "b", drain_s=60) as fleet:
        gate = fleet["a"].model.gate("held")
        fleet["a"].model.add([Say("one "), Pause(gate), Say("two")], name="held")
        session = await fleet["a"].session(fleet.project())
        ben = await fleet.through("b", session)
        async with ben.watch("ben") as bens:
            await ben.submit("[[held]]", "r1")
            await bens.text("one ")
            owner = await fleet["a"].client()
            fleet["a"].server.terminate()
            while (await owner.get("/v1/health")).json()["status"] != "leaving":  # until then, it accepts prompts
                pass
            later = asyncio.create_task(ben.ask("later", "r2"))
            for _ in range(20):
                await fleet.renew("a")
            assert not later.done(), later.result().text
            gate.open()
            assert (await later).status_code == 202
            await bens.complete("r2")
        assert await ben.check_books() == {"r1": "end_turn", "r2": "end_turn"}


async def test_g9_a_stream_that_has_not_begun_is_refused_by_a_node_that_leaves() -> None:
    """Found by chaos: it got 500. A node that stays would read the events from the database."""
    async with open_fleet("a", "b", drain_s=60) as fleet:
        leaving = fleet["a"]
        leaving.model.add([Say("one "), Hang()], name="held")
        busy = await leaving.session(leaving.project())
        anna = await fleet.through("a", await fleet["b"].session(fleet["b"].project()))
        async with busy.watch("ben") as bens:
            await busy.submit("[[held]]", "r1")
            await bens.text("one ")
            leaving.server.terminate()
            while (await anna.http.get("/v1/health")).json()["status"] != "leaving":
                pass
            fleet.links["b"].peers.reset()
            refused = await anna.http.get(f"{anna.workspace}/events", params={"client_id": "anna"})
            assert (refused.status_code, refused.json()["code"]) == (503, "server_leaving")
            leaving.server.terminate()  # the run does not end by itself
            await bens.complete("r1")
        assert await leaving.server.wait() == 0


async def test_g2_g13_a_node_without_the_secret_the_token_or_a_name_of_its_own_is_refused() -> None:
    async with open_fleet("a", "b", serve=False) as fleet:
        await fleet["a"].serve()
        for secret, told in (
            ("", "LONGBOAT_CLUSTER_SECRET"),
            ("another secret 16", "differs from that of"),
        ):
            process = await fleet["b"].launch(environ={"LONGBOAT_CLUSTER_SECRET": secret})
            assert await process.wait() == 1
            assert told in fleet["b"].log.read_text()
        process = await fleet["b"].launch(environ={"LONGBOAT_TOKEN": "a token of its own"})
        assert await process.wait() == 1
        assert "Set LONGBOAT_TOKEN to the same value on all of them" in fleet["b"].log.read_text()
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
async def resumed_later() -> AsyncIterator[tuple[SiteFleet, SessionClient, Watch]]:
    """The home a died during run r1, which it will resume, and r2 is queued behind it. Ben is at another node."""
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
            yield fleet, ben, bens


async def test_g6_a_run_that_waits_for_its_home_can_be_canceled_meanwhile() -> None:
    async with resumed_later() as (fleet, ben, bens):
        await ben.cancel_run("r1")
        assert (await bens.complete("r1")).cancelled
        await fleet["a"].serve()
        await bens.complete("r2")
        assert await ben.check_books() == {"r1": "canceled", "r2": "end_turn"}
        assert len(fleet["a"].model.requests) == 2


async def test_g6_a_cancel_that_is_written_later_ends_the_messages_of_a_run_that_waits_for_its_home() -> None:
    """Found by chaos: the run ended, and its message stayed unfinished for ever."""
    async with resumed_later() as (fleet, ben, bens):
        fleet.links["b"].database.reset()
        refused = await ben.http.post(f"{ben.workspace}/runs/r1/cancel")
        assert (refused.status_code, refused.json()["code"]) == (503, "cancel_not_durable")
        fleet.links["b"].database.heal()
        assert (await bens.complete("r1")).cancelled
        messages = (await ben.http.get(f"{ben.workspace}/sessions/{ben.session_id}/messages")).json()["items"]
        assert all(message["finished_at"] for message in messages), messages
        await fleet["a"].serve()
        await bens.complete("r2")
        assert await ben.check_books() == {"r1": "canceled", "r2": "end_turn"}


async def test_g7_a_run_that_is_to_resume_waits_for_its_home() -> None:
    async with resumed_later() as (fleet, ben, bens):
        assert (await ben.run("r1"))["state"] == "active"
        fleet["a"].model.add([Say("again")], name="held")
        await fleet["a"].serve()
        assert not (await bens.complete("r1")).error
        await bens.complete("r2")
        assert await ben.check_books() == {"r1": "end_turn", "r2": "end_turn"}


async def test_g7_the_policy_that_counts_is_the_one_when_the_home_was_lost() -> None:
    """It changed while the workspace was open: the store has it before anyone hears of it."""
    async with open_fleet("a", "b") as fleet:
        home = fleet["a"]
        home.model.add([Say("one "), Hang()], name="held")
        directory = home.project(on_restart="interrupt")
        session = await home.session(directory)
        ben = await fleet.through("b", session)
        async with ben.watch("ben") as bens:
            await session.submit("[[held]]", "r1")
            await bens.text("one ")
            home.configure(directory, on_restart="resume")
            await bens.until(lambda event: event.type == "config_changed")
            await home.kill()
            await fleet.expire("a")
            await ben.submit("later", "r2", delivery="queue")
            await bens.state("r2", "queued")
            assert (await ben.run("r1"))["state"] == "active"
