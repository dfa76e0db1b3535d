"""Tasks with servers besides: MCP in a turn, one that fails, and two workspaces at once that never meet (A1, B7)."""

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_harness import stdio
from other_processes import is_alive, wait_until, wait_until_gone
from running_app import RunningApp, watch
from scenario import PLAIN, Scene, call, make_repository, open_scenario

from longboat.config.load import user_config_file
from longboat.config.trust import record, trusted_file
from longboat.testing import Say, ScriptedModel
from longboat.testing.scripted import last_prompt
from longboat.wire.asks import PermissionAnswer
from longboat.wire.models import Message, Outcome, ToolResultPart
from longboat.wire.requests import Approve, CreateSession


async def test_a_turn_uses_a_real_server_and_one_that_fails_never_blocks_it(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    servers = {
        "good": stdio(notes),
        "gone": {"type": "stdio", "command": "/nowhere/at/all"},
        "mute": {"type": "stdio", "command": "sleep", "args": ["600"]},
    }
    steps: list[list[Any]] = [
        [call("mcp__good__echo", text="ahoy"), call("mcp__good__fail", text="aground")],
        [call("mcp_resource", server="good", uri="memo://today")],
        [call("mcp__gone__anything")],
        [Say("Ahoy it is.")],
    ]
    async with open_scenario(tmp_path, steps, config={"mcp": servers}) as scene:
        await scene.start("say ahoy", ask=True)
        for nth, tool in enumerate(("mcp__good__echo", "mcp__good__fail", "mcp_resource"), start=1):
            ask = await scene.asked(nth)
            assert ask.tool == tool
            await scene.answer(ask, PermissionAnswer.ONCE)
        assert (await asyncio.wait_for(scene.running.completed("r1"), 30)).text == "Ahoy it is."
        said, failed, memo, unknown = scene.results()
        assert (said.content, said.is_error) == ("ahoy", False)
        assert (failed.is_error, "aground" in failed.content) == (True, True)
        assert "buy rope" in memo.content
        assert unknown.is_error
        assert "Echo before you shout." in scene.model.requests[0].system
        phases = {state.server: state.phase for state in scene.watcher.of("mcp_event")}
        assert (phases["good"], phases["gone"]) == ("ready", "failed")
        await scene.check()


@asynccontextmanager
async def neighbour(scene: Scene, directory: Path, config: dict[str, Any]) -> AsyncIterator[Scene]:
    """Another workspace of the same server."""
    make_repository(directory, {"longboat.json": json.dumps({**PLAIN, **config})})
    workspace, _ = await scene.running.app.join(str(directory), None)
    session_id = (await workspace.create_session(CreateSession())).id
    async with watch(workspace) as watcher, watch(workspace, client_id="other") as other:
        yield Scene(RunningApp(scene.running.app, workspace, session_id, watcher), scene.model, other)


@pytest.mark.usefixtures("awaited_servers")
async def test_two_workspaces_share_no_job_no_server_no_grant_and_no_event(tmp_path: Path) -> None:
    """B7: what one grants, starts or closes, the other never notices."""

    def answer(request: Any) -> list[Any]:
        prompt, after = last_prompt(request), request.messages[-1].role == "tool"
        if after:
            return [Say(f"{prompt} done")]
        match prompt:
            case "serve":
                return [call("bash", command="echo $$; exec sleep 600", run_in_background=True), call("job_list")]
            case "jobs":
                return [call("job_list")]
            case "echo":
                return [call("mcp__test__echo", text="here")]
            case _:
                return [call("bash", command="touch made")]

    left, right = tmp_path / "notes-left", tmp_path / "notes-right"
    left.mkdir()
    right.mkdir()
    model = ScriptedModel(answer, context_window=100_000)
    # What is held for a client that comes back would keep the second one open.
    async with open_scenario(tmp_path, model, config={"mcp": {"test": stdio(left)}}, detach_grace_s=0.0) as one:
        for text in ("serve", "echo"):
            await one.turn(text, text)
        (job,) = one.workspace.tools.jobs_shown()
        pid = int(
            next(part.content for part in one.results() if "running in the background" in part.content).split()[0]
        )
        assert is_alive(pid)
        async with neighbour(one, tmp_path / "second", {"mcp": {"test": stdio(right)}}) as two:
            await two.turn("jobs", "jobs")
            assert job.id not in two.results()[-1].content
            assert two.workspace.tools.jobs_shown() == ()
            await two.turn("echo", "echo")
            pids = [int((notes / "pid").read_text()) for notes in (left, right)]
            assert pids[0] != pids[1]
            await one.start("touch", "touch", ask=True)
            await one.answer(await one.asked(), PermissionAnswer.ALWAYS)
            assert (await one.running.completed("touch")).outcome is Outcome.END_TURN
            await two.start("touch", "touch", ask=True)
            await two.answer(await two.asked(), PermissionAnswer.DENY)
            await two.running.completed("touch")
            assert [(scene.path / "made").exists() for scene in (one, two)] == [True, False]
            assert {event.payload.id for event in two.watcher.events if event.type == "session"} == {
                two.running.session_id
            }
            assert two.watcher.of("job") == []
            await two.check()
        await wait_until(lambda: two.workspace.closing)
        await wait_until_gone(pids[1:])
        assert (is_alive(pid), is_alive(pids[0])) == (True, True)
        assert (await one.turn("echo", "again")).text == "echo done"
        await one.check()
    await wait_until_gone([pid, pids[0]])


@pytest.mark.usefixtures("awaited_servers")
async def test_a_workspace_that_is_opened_again_while_it_closes_keeps_what_it_then_starts(tmp_path: Path) -> None:
    """B7: the old one ends all that it started before the new one starts anything."""
    serve = call("bash", command="trap '' TERM; echo $$; sleep 600", run_in_background=True)
    steps: list[list[Any]] = [[serve], [Say("one")], [serve], [Say("two")]]
    async with open_scenario(tmp_path, steps, detach_grace_s=0.0) as scene:
        await scene.turn("serve", "r1")
        app, closing = scene.running.app, scene.workspace
        for client in ("watcher", "other"):
            await closing.presence.release(client)
        await wait_until(lambda: closing.closing)
        again, _ = await app.join(str(scene.path), None)
        assert again is not closing
        async with watch(again) as watcher:
            running = RunningApp(app, again, scene.running.session_id, watcher)
            await running.submit("serve", "r2", approve=Approve.ALL)
            await running.completed("r2")
            old, new = (int(part.content.split()[0]) for part in scene_results(await running.messages()))
            assert (is_alive(old), is_alive(new)) == (False, True)
            (job,) = again.tools.jobs_shown()
            assert job.state == "running"
    await wait_until_gone([new])


def scene_results(messages: Iterable[Message]) -> list[ToolResultPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolResultPart)]


@pytest.mark.usefixtures("awaited_servers")
async def test_a_configuration_that_changes_between_turns_is_heeded_by_the_next(tmp_path: Path) -> None:
    """A server that is taken out of the file ends, a new rule holds, and what is running is not disturbed."""
    notes = tmp_path / "notes"
    notes.mkdir()
    steps: list[list[Any]] = [
        [call("mcp__test__echo", text="here")],
        [Say("one")],
        [call("mcp__test__echo", text="here"), call("bash", command="touch made")],
        [Say("two")],
    ]
    async with open_scenario(tmp_path, steps, config={"mcp": {"test": stdio(notes)}}) as scene:
        await scene.turn("echo", "r1")
        server = int((notes / "pid").read_text())
        config = json.dumps({**PLAIN, "permissions": {"deny": ["bash(touch *)"]}}).encode()
        (scene.path / "longboat.json").write_bytes(config)
        record(trusted_file(user_config_file(os.environ, Path.home())), scene.path, hashlib.sha256(config).hexdigest())
        await scene.turn("echo again", "r2")
        assert [part.is_error for part in scene.results()] == [False, True, True]
        assert not (scene.path / "made").exists()
        await wait_until_gone([server])
        await scene.check()
