"""What everyone can see of several nodes (G12): who they are, where directories are, and which of them are away."""

import re

import pytest
from cluster import open_fleet
from processes import ended, open_site

from longboat.testing import Hang, Say

pytestmark = pytest.mark.acceptance


async def test_g12_every_node_is_listed_with_its_workspaces_and_its_load() -> None:
    async with open_fleet("a", "b") as fleet:
        fleet["a"].model.add([Say("one "), Hang()], name="held")
        pinned = await fleet["a"].session(fleet["a"].project())
        await fleet["b"].session(fleet.project())
        async with pinned.watch("anna") as annas:
            await pinned.submit("[[held]]", "r1")
            await annas.text("one ")
            await pinned.submit("later", "r2", delivery="queue")
            await annas.state("r2", "queued")
            listed = (await (await fleet["b"].client()).get("/v1/nodes")).json()["items"]
        facts = [{key: value for key, value in each.items() if key not in _VARYING} for each in listed]
        calm = {"state": "running", "leaving": False}
        assert facts == [
            {"name": "a", **calm, "owns": 1, "home_of": 1, "runs_active": 1, "runs_waiting": 1, "answering": False},
            {"name": "b", **calm, "owns": 1, "home_of": 0, "runs_active": 0, "runs_waiting": 0, "answering": True},
        ]
        assert all(each["started_at"] <= each["seen_at"] for each in listed)
        done = await ended(await fleet["a"].longboat("nodes", cwd=fleet["a"].path))
        assert [line.split()[:2] for line in done.out.splitlines()] == [["NAME", "STATE"], ["a", "*"], ["b", "running"]]


_VARYING = ("url", "version", "started_at", "seen_at")


async def test_g12_a_server_alone_is_one_node() -> None:
    async with open_site() as site:
        await site.serve()
        await site.session(site.project())
        (only,) = (await (await site.client()).get("/v1/nodes")).json()["items"]
        seen = {key: only[key] for key in ("url", "state", "leaving", "owns", "home_of", "runs_active", "answering")}
        assert seen == {
            "url": None,
            "state": "running",
            "leaving": False,
            "owns": 1,
            "home_of": 1,
            "runs_active": 0,
            "answering": True,
        }


async def test_g7_a_command_whose_text_is_in_a_directory_that_is_away_is_refused_and_a_path_is_not() -> None:
    """The caretaker may have another directory of the same name, with another text."""
    async with open_fleet("a", "b") as fleet:
        directory = fleet["a"].project()
        commands = directory / ".longboat" / "commands"
        commands.mkdir(parents=True)
        (commands / "deploy.md").write_text("Deploy it.\n")
        session = await fleet["a"].session(directory)
        ben = await fleet.through("b", session)
        await fleet["a"].kill()
        await fleet.expire("a")
        refused = await ben.ask("/deploy now", "r1")
        assert (refused.status_code, refused.json()["code"]) == (409, "tree_away")
        assert (await ben.ask("/etc/hosts is wrong", "r2")).status_code == 202
        assert [run["run_id"] for run in await ben.ledger()] == ["r2"]


async def test_g12_a_load_balancer_is_told_which_node_can_work() -> None:
    """An idle node that is cut off the database refuses nothing, since nobody asks it for anything."""
    async with open_fleet("a", lease_s=3, drain_s=60) as fleet:
        http = await fleet["a"].client()
        for cut, expected in ((True, (503, "store_unavailable", "degraded")), (False, (200, "", "ok"))):
            link = fleet.links["a"].database
            link.black_hole() if cut else link.heal()
            while (ready := await http.get("/v1/ready")).status_code != expected[0]:
                pass
            health = await http.get("/v1/health")
            assert (ready.status_code, ready.json().get("code", "")) == expected[:2]
            assert (health.status_code, health.json()["status"]) == (200, expected[2])
        fleet["a"].model.add([Say("one "), Hang()], name="held")
        session = await fleet["a"].session(fleet.project())
        async with session.watch() as watch:
            await session.submit("[[held]]", "r1")
            await watch.text("one ")
            fleet["a"].server.terminate()
            while (ready := await http.get("/v1/ready")).json().get("code") != "server_leaving":
                pass
            assert ready.status_code == 503
            assert (await http.get("/v1/health")).status_code == 200, "it is alive"


async def test_g7_g12_lists_say_where_directories_are_and_which_are_away_and_since_when() -> None:
    async with open_fleet("a", "b") as fleet:
        pinned = await fleet["a"].session(fleet["a"].project())
        shared = await fleet["b"].session(fleet.project())
        http = await fleet["b"].client()

        async def places() -> dict[str, tuple[str | None, str | None, bool]]:
            items = (await http.get("/v1/workspaces")).json()["items"]
            return {f"/v1/workspaces/{each['id']}": (each["home"], each["owner"], each["away"]) for each in items}

        assert await places() == {pinned.workspace: ("a", "a", False), shared.workspace: (None, "b", False)}
        await fleet["a"].kill()
        await fleet.expire("a")
        assert (await places())[pinned.workspace] == ("a", None, True)
        caretaker = (await http.get(pinned.workspace)).json()
        listed = {each["id"]: each for each in (await http.get("/v1/workspaces")).json()["items"]}[caretaker["id"]]
        assert (caretaker["home"], caretaker["owner"], caretaker["away"]) == ("a", "b", True)
        gone = (await http.get("/v1/nodes")).json()["items"][0]
        assert (gone["name"], gone["state"]) == ("a", "gone")
        assert caretaker["away_since"] == listed["away_since"] == gone["seen_at"]
        done = await ended(await fleet["b"].longboat("status", cwd=fleet["b"].path))
        rows = [line.split() for line in done.out.splitlines()[1:]]
        assert [(row[0], *row[2:-1]) for row in rows] == [
            ("STATE", "HOME", "OWNER"),
            ("down", "a", "b"),
            ("idle", "(shared)", "b"),
        ]
        assert re.search(r"Node a has been down for .+ \(since \d\d:\d\d\)\. Prompts", done.err)
        done = await ended(await fleet["b"].longboat("nodes", cwd=fleet["b"].path))
        assert done.out.splitlines()[1].split()[:2] == ["a", "down"]


async def test_g7_g12_a_node_that_finishes_its_runs_is_stopping_and_not_down() -> None:
    async with open_fleet("a", "b", drain_s=60) as fleet:
        fleet["a"].model.add([Say("one "), Hang()], name="held")
        session, idle = (
            await fleet["a"].session(fleet["a"].project()),
            await fleet["a"].session(fleet["a"].project("c")),
        )
        http = await fleet["b"].client()
        async with session.watch() as watch:
            await session.submit("[[held]]", "r1")
            await watch.text("one ")
            fleet["a"].server.terminate()

            async def place() -> tuple[bool, bool]:
                items = (await http.get("/v1/workspaces")).json()["items"]
                found = next(each for each in items if idle.workspace.endswith(each["id"]))
                return found["away"], found["home_stopping"]

            while not (await place())[0]:
                pass
            assert await place() == (True, True)
            done = await ended(await fleet["b"].longboat("status", cwd=fleet["b"].path))
            assert "Node a is stopping. Prompts for its directories are queued until it is back." in done.err
            assert "stopping" in done.out
            done = await ended(await fleet["b"].longboat("nodes", cwd=fleet["b"].path))
            assert done.out.splitlines()[1].split()[:2] == ["a", "stopping"]
            caretaker = (await http.get(idle.workspace)).json()
            assert (caretaker["away"], caretaker["home_stopping"]) == (True, True)
        await fleet["a"].kill()
        await fleet.expire("a")
        assert await place() == (True, False)
        caretaker = (await http.get(idle.workspace)).json()
        assert (caretaker["away"], caretaker["home_stopping"]) == (True, False)
