"""A pinned directory whose node is not running, seen from a caretaker (G5, G7)."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest
from cluster import SiteFleet, open_fleet, until_there

from longboat.config.trust import record
from longboat.testing import CallTool, Hang, Say

pytestmark = pytest.mark.acceptance


def trusted_by_all(fleet: SiteFleet, project: Path) -> Path:
    """As if every node had a directory at this path, with these very files, that its user trusts."""
    digest = hashlib.sha256((project / "longboat.json").read_bytes()).hexdigest()
    for site in fleet.nodes.values():
        record(site.path / "config" / "longboat" / "trusted.json", project, digest)
    return project


def hooks(told: Path, done: Path) -> dict[str, Any]:
    """Note what a hook is told about a run that has finished."""
    return {"run_finished": [{"command": f"cat >> {told}; touch {done}"}]}


async def test_g7_a_caretaker_reads_and_runs_nothing_of_its_own_directory_at_the_same_path(tmp_path: Path) -> None:
    """Machines are set up alike: each has another checkout below the same path."""
    told, done = tmp_path / "told", tmp_path / "done"
    async with open_fleet("home", "other") as fleet:
        home = fleet["home"]
        home.model.add([Say("one "), Hang()], name="held")
        project = trusted_by_all(fleet, home.project(hooks=hooks(told, done)))
        skill = project / ".agents" / "skills" / "own" / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text("---\nname: own\ndescription: of the project\n---\n")
        ben = await fleet.through("other", await home.session(project))

        async def skills() -> str:
            return (await ben.http.get(f"{ben.workspace}/skills")).text

        assert "of the project" in await skills()
        async with ben.watch("ben") as bens:
            await ben.submit("[[held]]", "r1")
            await bens.text("one ")
            await home.kill()
            await fleet.expire("home")
            assert (await bens.complete("r1")).error
            assert "of the project" not in await skills()
            assert (await ben.http.get(f"{ben.workspace}/agent")).json()["ready"] is False
            await home.serve()
            await ben.submit("again", "r2")
            await bens.complete("r2")
        assert await ben.check_books() == {"r1": "interrupted", "r2": "end_turn"}
        await until_there(done)
        runs = told.read_text()
        assert ("r1" in runs, "r2" in runs) == (False, True), "only the home has run it"


async def test_g7_longboat_run_queues_a_new_prompt_for_a_directory_whose_node_is_down() -> None:
    """Its caretaker knows no model of that directory, and needs none."""
    async with open_fleet("home", "other") as fleet:
        home = fleet["home"]
        ben = await fleet.through("other", await home.session(project := home.project()))
        await home.kill()
        await fleet.expire("home")
        detached = await fleet["other"].longboat("run", "--detach", "--cwd", f"home:{project}", "hello", cwd=project)
        out, err = await detached.communicate()
        assert detached.returncode == 0, err
        assert b"Node home is down. The prompt is queued until it is back." in err
        run_id = out.decode().strip()
        assert (await ben.run(run_id))["state"] == "queued"
        await home.serve()
        assert await ben.outcome(run_id) == "end_turn"


async def test_g7_what_needs_the_directory_is_refused_and_an_answer_for_once_is_not() -> None:
    async with open_fleet("home", "other") as fleet:
        home = fleet["home"]
        home.model.add([CallTool("bash", {"command": "touch made"})], [Say("done")], name="ask")
        session = await home.session(home.project(on_restart="resume"))
        ben = await fleet.through("other", session)
        async with ben.watch("ben") as bens:
            await ben.submit("[[ask]]", "r1")
            ask = await bens.until(lambda event: event.type == "permission_request")
            await home.kill()
            await fleet.expire("home")
            await ben.submit("later", "r2", delivery="queue")  # waits for the caretaker
            url = f"{ben.workspace}/permissions/{ask.payload.id}"
            refused = await ben.http.post(url, json={"answer": "always", "client_id": "ben"})
            assert (refused.status_code, refused.json()["code"]) == (409, "tree_away")
            for path in ("undo", "redo"):
                refused = await ben.http.post(f"{ben.workspace}/sessions/{ben.session_id}/{path}")
                assert (refused.status_code, refused.json()["code"]) == (409, "tree_away")
            answered = await ben.http.post(url, json={"answer": "once", "client_id": "ben"})
            assert answered.status_code == 200, answered.text
            await home.serve()
            assert not (await bens.complete("r1")).error
            await bens.complete("r2")
        assert await ben.check_books() == {"r1": "end_turn", "r2": "end_turn"}


@pytest.mark.parametrize("what", ["command", "shell"])
async def test_g5_a_prompt_that_was_accepted_is_not_refused_by_the_caretaker_that_is_asked_again(what: str) -> None:
    """A new one would be refused: its text is a file of the directory, or it is run there."""
    async with open_fleet("home", "other", serve=False) as fleet:
        await fleet["other"].serve()
        home = fleet["home"]
        await home.serve("--committed", '"state":"accepted"')
        project = home.project()
        (project / ".agents" / "commands").mkdir(parents=True)
        (project / ".agents" / "commands" / "deploy.md").write_text("Deploy it.")
        ben = await fleet.through("other", await home.session(project))
        shell = f"{ben.workspace}/sessions/{ben.session_id}/shell"
        asking = ben.ask("/deploy") if what == "command" else ben.http.post(shell, json={"command": "true"})
        asked = asyncio.create_task(asking)
        await home.died()
        await fleet.expire("home")
        accepted = await asked
        assert accepted.status_code == 202, accepted.text
        run_id = accepted.json()["run_id"]
        new = await ben.ask("/deploy")
        assert (new.status_code, new.json()["code"]) == (409, "tree_away")
        await home.serve()
        assert await ben.outcome(run_id) in ("end_turn", "interrupted")
        assert list(await ben.check_books()) == [run_id]


async def test_g9_a_caretaker_leaves_at_once_though_a_run_waits_for_its_home() -> None:
    """L16: it has no turn that could end in the drain time."""
    async with open_fleet("home", "other", drain_s=3600) as fleet:
        home, other = fleet["home"], fleet["other"]
        home.model.add([Say("one "), Hang()], name="held")
        ben = await fleet.through("other", await home.session(home.project(on_restart="resume")))
        async with ben.watch("ben") as bens:
            await ben.submit("[[held]]", "r1")
            await bens.text("one ")
            await home.kill()
            await fleet.expire("home")
            await ben.submit("later", "r2", delivery="queue")
            await bens.state("r2", "queued")
            other.server.terminate()
            assert await other.server.wait() == 0
        assert "did not end" not in other.log.read_text()


@pytest.mark.parametrize("is_shared", [False, True])
async def test_g9_a_run_that_outlasts_the_drain_of_its_node_is_resumed(is_shared: bool) -> None:
    """By the next owner of a shared directory, or by its home when that is back. It was interrupted."""
    async with open_fleet("home", "other", drain_s=0) as fleet:
        home = fleet["home"]
        home.model.add([Say("one "), Hang()], [Say("and two")], name="held")
        project = fleet.project(on_restart="resume") if is_shared else home.project(on_restart="resume")
        ben = await fleet.through("other", await home.session(project))
        async with ben.watch("ben") as bens:
            await ben.submit("[[held]]", "r1")
            await bens.text("one ")
            home.server.terminate()
            assert await home.server.wait() == 0
            if not is_shared:
                await bens.until(lambda event: event.type == "workspace" and event.payload.away)
                assert (await ben.run("r1"))["state"] == "active"
                await home.serve()
            assert (await bens.complete("r1")).text.endswith("and two")
        assert await ben.check_books() == {"r1": "end_turn"}
        assert "ERROR" not in home.log.read_text()
