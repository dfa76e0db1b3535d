"""kill -9 while the agent works: in a shell, while somebody is asked; and what the next start makes of it (A2, B6).

opencode #19023, #2264; crush #2046.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_home import GIVE_UP_S
from other_processes import is_alive, wait_until
from processes import AROUND, Site, open_site
from sessions import SessionClient, check_request

from longboat.testing import CallTool, Say

pytestmark = pytest.mark.acceptance

STUBBORN = "trap '' TERM HUP; echo $$ >> pids; (trap '' TERM; sleep 600) & echo $! >> pids; sleep 600"


def call(name: str, /, **arguments: Any) -> CallTool:
    return CallTool(name, json.dumps(arguments))


async def pids_in(file: Path, count: int) -> list[int]:
    await wait_until(lambda: len(_numbers(file)) >= count, within_s=GIVE_UP_S)
    return _numbers(file)


def _numbers(file: Path) -> list[int]:
    return [int(word) for word in file.read_text().split()] if file.exists() else []


async def restarted(site: Site, session: SessionClient) -> SessionClient:
    await site.kill()
    await site.serve()
    return await site.back_at(session)


async def listed(session: SessionClient, kind: str) -> list[dict[str, Any]]:
    return list((await session.http.get(f"{session.workspace}/{kind}")).json()["items"])


@pytest.mark.parametrize(("door", "background"), [("unix", False), ("unix", True), ("door", False)])
async def test_b6_the_processes_of_a_killed_servers_shells_are_gone_after_the_next_start(
    door: str, background: bool
) -> None:
    """B7 too: also those of a run that had ended, and those that ignore TERM; nobody has to prompt for it."""
    async with open_site(door) as site:
        await site.serve()
        shell = call("bash", command=STUBBORN, run_in_background=background)
        site.model.add([shell], [Say("It runs.")], name="work")
        site.model.add([Say("Here again.")], name="next")
        directory = site.project()
        session = await site.session(directory)
        await session.submit("[[work]]", "r1", approve="all")
        pids = await pids_in(directory / "pids", 2)
        if background:
            assert await session.outcome("r1") == "end_turn"
        assert all(is_alive(pid) for pid in pids)
        session = await restarted(site, session)
        assert [pid for pid in pids if is_alive(pid)] == []
        assert await session.outcome("r1") == ("end_turn" if background else "interrupted")
        await session.submit("[[next]]", "r2")
        assert await session.outcome("r2") == "end_turn"
        request = check_request(site.model.requests[-1].body)
        assert background or any("may have had effects" in text for role, text in request if role == "tool")
        await session.check_books()


@pytest.mark.parametrize("door", AROUND)
async def test_a2_a_permission_outlives_the_server_and_its_answer_is_heard_by_the_run_that_goes_on(door: str) -> None:
    """on_restart resume: the same ask, listed and in the snapshot of whoever comes; asked once, the call made once."""
    async with open_site(door) as site:
        await site.serve()
        site.model.add([call("bash", command="echo made >> made")], [Say("Made.")], name="work")
        directory = site.project(on_restart="resume")
        session = await site.session(directory)
        async with session.watch() as watch:
            await session.submit("[[work]]", "r1")
            ask = (await watch.until(lambda event: event.type == "permission_request")).payload
        session = await restarted(site, session)
        assert [item["id"] for item in await listed(session, "permissions")] == [ask.id]
        async with session.watch("ben") as watch:
            snapshot = next(event.payload for event in watch.events if event.type == "snapshot")
            assert [permission.id for permission in snapshot.permissions] == [ask.id]
            answer = {"answer": "once", "client_id": "ben"}
            told = await session.http.post(f"{session.workspace}/permissions/{ask.id}", json=answer)
            assert (told.status_code, told.json()["answered_by"]) == (200, "ben")
            complete = await watch.complete("r1")
            assert (complete.outcome, complete.text) == ("end_turn", "Made.")
        assert (directory / "made").read_text() == "made\n"
        assert await listed(session, "permissions") == []
        log = await session.replay()
        assert len([event for event in log.events if event.type == "permission_request"]) == 1
        for exchange in site.model.requests:
            check_request(exchange.body)
        assert await session.check_books() == {"r1": "end_turn"}


async def test_a2_a_permission_is_withdrawn_with_a_run_that_the_restart_interrupts() -> None:
    async with open_site() as site:
        await site.serve()
        site.model.add([call("bash", command="touch made")], name="work")
        site.model.add([Say("Here again.")], name="next")
        directory = site.project()
        session = await site.session(directory)
        async with session.watch() as watch:
            await session.submit("[[work]]", "r1")
            ask = (await watch.until(lambda event: event.type == "permission_request")).payload
        session = await restarted(site, session)
        assert await listed(session, "permissions") == []
        late = await session.http.post(f"{session.workspace}/permissions/{ask.id}", json={"answer": "once"})
        assert (late.status_code, "its run ended" in late.json()["message"]) == (409, True)
        log = await session.replay()
        told = [event.payload for event in log.events if event.type == "permission_notification"]
        assert [(each.id, each.state) for each in told] == [(ask.id, "withdrawn")]
        await session.submit("[[next]]", "r2")
        assert await session.outcome("r2") == "end_turn"
        check_request(site.model.requests[-1].body)
        assert not (directory / "made").exists()
        assert await session.check_books() == {"r1": "interrupted", "r2": "end_turn"}


async def test_a4_what_a_killed_run_had_changed_can_be_undone_after_the_restart() -> None:
    async with open_site() as site:
        await site.serve()
        steps = [[call("write", path="a.txt", content="a\n")], [call("bash", command=STUBBORN)]]
        site.model.add(*steps, name="work")
        directory = site.project()
        session = await site.session(directory)
        await session.submit("[[work]]", "r1", approve="all")
        await pids_in(directory / "pids", 2)
        session = await restarted(site, session)
        assert await session.outcome("r1") == "interrupted"
        await session.check_books()
        undone = await session.http.post(f"{session.workspace}/sessions/{session.session_id}/undo")
        assert (undone.status_code // 100, undone.json()["files"]) == (2, ["a.txt"])
        assert not (directory / "a.txt").exists()


@pytest.mark.parametrize("policy", ["interrupt", "resume"])
async def test_b6_sub_agents_of_a_killed_server_end_with_it_and_their_parent_is_settled(policy: str) -> None:
    """A1: nobody waits for the child any more. A parent that goes on is told so."""
    async with open_site() as site:
        await site.serve()
        site.model.add([call("agent", prompt="[[child]]", agent="hand")], [Say("Without it, then.")], name="work")
        site.model.add([call("bash", command="touch never")], name="child")
        directory = site.project(on_restart=policy)
        (directory / ".agents/agents").mkdir(parents=True)
        (directory / ".agents/agents/hand.md").write_text("---\ndescription: d\nread_only: false\n---\nDo.\n")
        session = await site.session(directory)
        async with session.watch() as watch:
            await session.submit("[[work]]", "r1")
            ask = (await watch.until(lambda event: event.type == "permission_request")).payload
            assert (ask.parent_run_id, ask.parent_session_id) == ("r1", session.session_id)
        session = await restarted(site, session)
        assert await session.outcome("r1") == ("interrupted" if policy == "interrupt" else "end_turn")
        child = await session.run(ask.run_id, wait_s=GIVE_UP_S / 2)
        assert (child["state"], child["outcome"]) == ("finished", "canceled")
        assert await listed(session, "permissions") == []
        assert not (directory / "never").exists()
        await session.check_books()
        for exchange in site.model.requests:
            check_request(exchange.body)
