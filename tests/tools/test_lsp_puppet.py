"""Language servers that crash, hang, lie and dawdle: every call ends, with words that help, and no process stays."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lsp_puppet import CAPABLE, QUICK, Puppet, Stage, ask, open_stage, place

from longboat.backoff import Backoff
from longboat.tools.context import ToolError
from longboat.tools.lsp.client.servers import LanguageServers
from longboat.tools.lsp.client.slot import ServerState
from longboat.tools.lsp.references import ReferencesTool
from longboat.tools.lsp.rename import RenameTool
from longboat.tools.lsp.symbols import SymbolsTool


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.pup").write_text("let knot = 1\n")
    (tmp_path / "b.pup").write_text("use knot\n")
    return tmp_path.resolve()


@pytest.fixture
async def stage(project: Path) -> AsyncIterator[Stage]:
    async with open_stage(project) as stage:
        yield stage


async def ready(stage: Stage) -> Puppet:
    """A puppet that has answered its first question."""
    asking = ask(stage)
    puppet = await stage.entrance()
    await puppet.greet(**CAPABLE)
    puppet.answer(await puppet.expect("textDocument/definition"), place(stage.directory / "a.pup", 0, 4, 8))
    assert (await asking).content == "a.pup:1\n     1\tlet knot = 1"
    return puppet


class TestAServerThatBehaves:
    async def test_it_is_started_by_the_first_question_and_greeted(self, stage: Stage) -> None:
        assert stage.servers.statuses == ()
        asking = ask(stage)
        puppet = await stage.entrance()
        greeting = (await puppet.greet(**CAPABLE))["params"]
        assert greeting["rootUri"] == stage.directory.as_uri()
        assert greeting["processId"] == os.getpid()
        opened = (await puppet.expect("textDocument/didOpen"))["params"]["textDocument"]
        assert (opened["text"], opened["languageId"]) == ("use knot\n", "pup")
        request = await puppet.expect("textDocument/definition")
        assert request["params"]["position"] == {"line": 0, "character": 4}
        puppet.answer(request, [place(stage.directory / "a.pup", 0, 4, 8)])
        assert (await asking).content.startswith("a.pup:1\n")
        assert stage.states == [ServerState.STARTING, ServerState.READY]
        assert [need.action for need in stage.context.needs] == ["read"]

    async def test_several_questions_share_one_start(self, stage: Stage) -> None:
        asking = [ask(stage), ask(stage, ReferencesTool(stage.servers), path="a.pup", symbol="knot")]
        puppet = await stage.entrance()
        await puppet.greet(definitionProvider=True, referencesProvider=True)
        for _ in asking:
            while "id" not in (request := await puppet.hear()):
                pass
            puppet.answer(request, [place(stage.directory / "a.pup", 0, 4, 8)])
        assert [(await each).is_error for each in asking] == [False, False]
        assert stage.states == [ServerState.STARTING, ServerState.READY]

    async def test_its_own_requests_are_answered(self, project: Path) -> None:
        async with open_stage(project, settings={"puppet": {"mood": {"good": True}}}) as stage:
            puppet = await ready(stage)
            answers: dict[str, Any] = {}
            for number, (method, params) in enumerate(
                [
                    ("workspace/configuration", {"items": [{"section": "puppet.mood"}, {"section": "x.y"}, {}]}),
                    ("client/registerCapability", {"registrations": []}),
                    ("window/workDoneProgress/create", {"token": 1}),
                    ("workspace/workspaceFolders", None),
                    ("workspace/applyEdit", {"edit": {}}),
                    ("workspace/semanticTokens/refresh", None),
                    ("puppet/unheardOf", {}),
                    ("workspace/configuration", {"items": 7}),
                ]
            ):
                puppet.say({"id": f"q{number}", "method": method, "params": params})
                while (answer := await puppet.hear()).get("id") != f"q{number}":
                    pass
                answers[f"{method}{number}"] = answer.get("result", answer.get("error", {}).get("code"))
        assert answers == {
            "workspace/configuration0": [{"good": True}, None, {"puppet": {"mood": {"good": True}}}],
            "client/registerCapability1": None,
            "window/workDoneProgress/create2": None,
            "workspace/workspaceFolders3": [{"uri": project.as_uri(), "name": project.name}],
            "workspace/applyEdit4": {"applied": False, "failureReason": "Longboat changes files itself."},
            "workspace/semanticTokens/refresh5": None,
            "puppet/unheardOf6": -32601,
            "workspace/configuration7": -32603,
        }

    async def test_files_changed_behind_its_back_are_told(self, stage: Stage) -> None:
        puppet = await ready(stage)
        (stage.directory / "b.pup").write_text("use knot twice\n")
        (stage.directory / "c.pup").write_text("new\n")
        (stage.directory / "a.pup").unlink()
        asking = ask(stage)
        told = (await puppet.expect("workspace/didChangeWatchedFiles"))["params"]["changes"]
        kinds = {Path(change["uri"]).name: change["type"] for change in told}
        assert kinds == {"a.pup": 3, "b.pup": 2, "c.pup": 1}
        changed = (await puppet.expect("textDocument/didChange"))["params"]
        assert changed["contentChanges"] == [{"text": "use knot twice\n"}]
        puppet.answer(await puppet.expect("textDocument/definition"), place(stage.directory / "c.pup", 0, 0, 3))
        assert (await asking).content == "c.pup:1\n     1\tnew"

    async def test_a_definition_outside_the_workspace_is_named_but_not_read(
        self, stage: Stage, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        outside = tmp_path_factory.mktemp("outside") / "secret.pup"
        outside.write_text("hidden\n")
        (stage.directory / "link.pup").symlink_to(outside)
        asking = ask(stage)
        puppet = await stage.entrance()
        await puppet.greet(**CAPABLE)
        request = await puppet.expect("textDocument/definition")
        puppet.answer(request, [place(outside, 0, 0, 1), place(stage.directory / "link.pup", 0, 0, 1)])
        assert (await asking).content == f"{outside.resolve()}:1"

    async def test_a_server_that_just_started_and_finds_nothing_is_asked_again(self, stage: Stage) -> None:
        asking = ask(stage)
        puppet = await stage.entrance()
        await puppet.greet(**CAPABLE)
        puppet.answer(await puppet.expect("textDocument/definition"), [])
        puppet.say({"method": "$/progress", "params": {"token": "load", "value": {"kind": "begin", "title": ""}}})
        puppet.say({"method": "$/progress", "params": {"token": "load", "value": {"kind": "end"}}})
        puppet.answer(await puppet.expect("textDocument/definition"), place(stage.directory / "a.pup", 0, 4, 8))
        assert (await asking).content.startswith("a.pup:1")

    async def test_a_name_in_a_string_is_passed_over_for_the_next_on_the_line(self, stage: Stage) -> None:
        (stage.directory / "c.pup").write_text("say 'knot' knot\n")
        asking = ask(stage, path="c.pup", symbol="knot", line=1)
        puppet = await stage.entrance()
        await puppet.greet(**CAPABLE)
        puppet.refuse(await puppet.expect("textDocument/definition"), -32600, "no name here")
        request = await puppet.expect("textDocument/definition")
        assert request["params"]["position"] == {"line": 0, "character": 11}
        puppet.answer(request, place(stage.directory / "a.pup", 0, 4, 8))
        assert (await asking).content.startswith("a.pup:1")

    async def test_what_changed_while_it_thought_is_asked_again(self, stage: Stage) -> None:
        asking = ask(stage)
        puppet = await stage.entrance()
        await puppet.greet(**CAPABLE)
        puppet.refuse(await puppet.expect("textDocument/definition"), -32801, "content modified")
        puppet.answer(await puppet.expect("textDocument/definition"), place(stage.directory / "a.pup", 0, 4, 8))
        assert (await asking).content.startswith("a.pup:1")

    async def test_what_it_cannot_do_is_said(self, stage: Stage) -> None:
        await ready(stage)
        with pytest.raises(ToolError, match=r"puppet cannot find references\. Use grep and view instead"):
            await ask(stage, ReferencesTool(stage.servers), path="a.pup", symbol="knot")
        with pytest.raises(ToolError, match="puppet cannot find symbols by name"):
            await ask(stage, SymbolsTool(stage.servers), query="knot")
        (stage.directory / "x.unknown").write_text("x\n")
        with pytest.raises(ToolError, match=r"No language server is set up for \.unknown files"):
            await ask(stage, path="x.unknown", symbol="x")

    async def test_it_leaves_with_the_workspace_and_no_other_does(self, project: Path) -> None:
        """B7: closing one workspace never touches another, even of the same directory."""
        async with open_stage(project) as staying:
            other = await ready(staying)
            async with open_stage(project) as stage:
                puppet = await ready(stage)
                closing = asyncio.create_task(stage.servers.aclose())
                await puppet.leave()
                await closing
                assert not puppet.is_alive
                assert stage.states[-1] is ServerState.STOPPED
                with pytest.raises(ToolError, match="The workspace is closing"):
                    await ask(stage)
                assert await stage.servers.diagnostics_after(project / "a.pup", "x\n") == ""
            assert other.is_alive
            assert staying.states[-1] is ServerState.READY


class TestAServerThatDies:
    async def test_whoever_waits_for_its_answer_is_told_and_the_next_call_starts_it_again(self, stage: Stage) -> None:
        puppet = await ready(stage)
        asking = ask(stage)
        await puppet.expect("textDocument/definition")
        puppet.die()
        with pytest.raises(ToolError, match=r"puppet exited before it answered \(signal 9\)\. Try again\."):
            await asking
        await ready(stage)
        started = [ServerState.STARTING, ServerState.READY]
        assert stage.states == [*started, ServerState.CRASHED, *started]

    async def test_it_is_started_again_only_so_often(self, project: Path) -> None:
        async with open_stage(project, replace(QUICK, restart=Backoff(base_s=0.0, attempts=3))) as stage:
            for _ in range(3):
                puppet = await ready(stage)
                puppet.die()
                await stage.wait_state(ServerState.CRASHED, ServerState.FAILED)
            assert stage.states.count(ServerState.STARTING) == 3
            assert stage.states[-1] is ServerState.FAILED
            with pytest.raises(ToolError, match=r"puppet does not work \(signal 9\)\. It will not be retried for now"):
                await ask(stage)
            assert await stage.servers.diagnostics_after(project / "a.pup", "x\n") == ""
            assert not stage.has_entrance

    async def test_one_that_ran_long_enough_has_its_crashes_forgiven(self, project: Path) -> None:
        async with open_stage(project, replace(QUICK, restart=Backoff(base_s=0.0, attempts=2), stable_s=0.0)) as stage:
            for _ in range(4):
                puppet = await ready(stage)
                puppet.die()
                await stage.wait_state(ServerState.CRASHED, ServerState.FAILED)
            assert ServerState.FAILED not in stage.states

    async def test_one_that_was_given_up_is_tried_again_after_a_while(self, project: Path) -> None:
        async with open_stage(project, replace(QUICK, restart=Backoff(base_s=0.0, attempts=1), forgive_s=0.0)) as stage:
            (await ready(stage)).die()
            await stage.wait_state(ServerState.FAILED)
            await ready(stage)

    async def test_a_restart_waits_longer_each_time(self, project: Path) -> None:
        async with open_stage(project, replace(QUICK, restart=Backoff(base_s=0.2, attempts=4))) as stage:
            for least_s in (0.1, 0.2, 0.4):  # half of each, as the crash was a while ago
                puppet = await ready(stage)
                puppet.die()
                await stage.wait_state(ServerState.CRASHED, ServerState.FAILED)
                earlier = asyncio.ensure_future(asyncio.sleep(least_s))
                asking = ask(stage)
                await stage.wait_state(ServerState.STARTING)
                assert earlier.done()
                asking.cancel()

    async def test_one_that_dies_at_its_start_says_why(self, project: Path) -> None:
        dying = ["-c", "import sys; print('error: no licence', file=sys.stderr); sys.exit(3)"]
        async with open_stage(project, args=dying) as stage:
            with pytest.raises(ToolError, match=r"puppet does not work \(exit code 3: error: no licence\)\. Try again"):
                await ask(stage)
            assert stage.states == [ServerState.STARTING, ServerState.CRASHED]

    async def test_a_command_that_is_not_there_fails_at_once(self, project: Path) -> None:
        async with open_stage(project, command="no-such-server", args=[]) as stage:
            with pytest.raises(ToolError, match="the command 'no-such-server' does not exist or cannot be run"):
                await ask(stage)
            assert stage.states == [ServerState.STARTING, ServerState.FAILED]

    async def test_what_it_started_is_ended_with_it(self, project: Path) -> None:
        """B7: also when it dies first."""
        child = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, file=sys.stderr); "
        async with open_stage(project, args=["-c", child + "raise SystemExit('error: left')"]) as stage:
            with pytest.raises(ToolError):
                await ask(stage)
        assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and is_child_of_puppet(pid, stage)]


def is_child_of_puppet(pid: str, stage: Stage) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/cwd") == str(stage.directory)
    except OSError:
        return False


class TestAServerThatHangs:
    async def test_a_question_without_an_answer_ends_and_is_called_back(self, project: Path) -> None:
        async with open_stage(project, replace(QUICK, answer_s=0.3)) as stage:
            asking = ask(stage)
            puppet = await stage.entrance()
            await puppet.greet(**CAPABLE)
            request = await puppet.expect("textDocument/definition")
            with pytest.raises(ToolError, match=r"puppet gave no answer to textDocument/definition within 0\.3 s"):
                await asking
            assert (await puppet.expect("$/cancelRequest"))["params"] == {"id": request["id"]}

    async def test_three_in_a_row_end_it(self, project: Path) -> None:
        async with open_stage(project, replace(QUICK, answer_s=0.2)) as stage:
            asking = ask(stage)
            puppet = await stage.entrance()
            await puppet.greet(**CAPABLE)
            with pytest.raises(ToolError, match="no answer"):
                await asking
            for _ in range(2):
                with pytest.raises(ToolError, match="no answer"):
                    await ask(stage)
            assert (await stage.wait_state(ServerState.CRASHED)).detail == "it left 3 requests unanswered"

    async def test_a_greeting_without_an_answer_ends_it(self, project: Path) -> None:
        async with open_stage(project, replace(QUICK, start_s=0.5)) as stage:
            asking = ask(stage)
            puppet = await stage.entrance()
            with pytest.raises(ToolError, match=r"no answer to initialize within 0\.5 s"):
                await asking
            assert not puppet.is_alive

    async def test_a_canceled_call_is_called_back_and_ends_at_once(self, stage: Stage) -> None:
        puppet = await ready(stage)
        asking = ask(stage)
        request = await puppet.expect("textDocument/definition")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await puppet.expect("$/cancelRequest"))["params"] == {"id": request["id"]}
        puppet.answer(request, None)  # too late, and heard by nobody
        asking = ask(stage)
        puppet.answer(await puppet.expect("textDocument/definition"), place(stage.directory / "a.pup", 0, 4, 8))
        assert (await asking).content.startswith("a.pup:1")

    async def test_a_call_canceled_during_the_start_leaves_the_start_to_others(self, stage: Stage) -> None:
        first, second = ask(stage), ask(stage)
        puppet = await stage.entrance()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await puppet.greet(**CAPABLE)
        puppet.answer(await puppet.expect("textDocument/definition"), place(stage.directory / "a.pup", 0, 4, 8))
        assert (await second).content.startswith("a.pup:1")

    async def test_closing_ends_one_that_is_just_starting(self, stage: Stage) -> None:
        asking = ask(stage)
        puppet = await stage.entrance()
        await stage.servers.aclose()
        assert not puppet.is_alive
        with pytest.raises(ToolError, match="The workspace is closing"):
            await asking

    async def test_closing_ends_one_that_ignores_everything(self, stage: Stage) -> None:
        puppet = await ready(stage)
        await stage.servers.aclose()
        assert not puppet.is_alive


class TestAServerThatTalksNonsense:
    @pytest.mark.parametrize(
        ("nonsense", "why"),
        [
            (b"garbage\n" * 10_000, "it writes something other than messages to its standard output"),
            (b"Content-Length: 99999999999\r\n\r\n", "it announced a message of 99,999,999,999 bytes"),
            (b"Content-Length: 3\r\n\r\n}{}", "it sent a message that is not JSON-RPC"),
            (b"Content-Length: 2\r\n\r\n[]", "it sent a message that is not JSON-RPC"),
        ],
    )
    async def test_it_is_ended_and_the_call_is_told(self, stage: Stage, nonsense: bytes, why: str) -> None:
        asking = ask(stage)
        puppet = await stage.entrance()
        await puppet.greet(**CAPABLE)
        await puppet.expect("textDocument/definition")
        puppet.write(nonsense)
        with pytest.raises(ToolError, match=f"puppet exited before it answered \\({why}"):
            await asking
        assert stage.changes[-1].detail.startswith(why)

    async def test_an_answer_of_the_wrong_shape_is_told(self, stage: Stage) -> None:
        asking = ask(stage)
        puppet = await stage.entrance()
        await puppet.greet(**CAPABLE)
        puppet.answer(await puppet.expect("textDocument/definition"), {"uri": 7})
        with pytest.raises(ToolError, match="its answer to textDocument/definition is invalid"):
            await asking
        assert stage.states[-1] is ServerState.READY

    async def test_notifications_of_the_wrong_shape_are_passed_over(self, stage: Stage) -> None:
        puppet = await ready(stage)
        for method, params in [("textDocument/publishDiagnostics", 7), ("$/progress", []), ("window/logMessage", {})]:
            puppet.say({"method": method, "params": params})
        puppet.say({"id": 99, "result": "nobody asked"})
        asking = ask(stage)
        puppet.answer(await puppet.expect("textDocument/definition"), place(stage.directory / "a.pup", 0, 4, 8))
        assert (await asking).content.startswith("a.pup:1")

    async def test_a_refusal_is_passed_on(self, stage: Stage) -> None:
        asking = ask(stage, RenameTool(stage.servers), path="a.pup", symbol="knot", new_name="let")
        puppet = await stage.entrance()
        await puppet.greet(**CAPABLE)
        puppet.refuse(await puppet.expect("textDocument/rename"), -32602, "let is a keyword")
        with pytest.raises(ToolError, match=r"puppet refused: let is a keyword\."):
            await asking


async def test_too_many_roots_share_the_workspaces_own(project: Path) -> None:
    for number in range(6):
        (project / f"p{number}").mkdir()
        (project / f"p{number}/root").touch()
        (project / f"p{number}/x.pup").write_text("x\n")
    failing = {"command": sys.executable, "args": ["-c", ""], "file_types": ["pup"], "root_markers": ["root"]}
    servers = LanguageServers(project, {"gone": failing}, environ=dict(os.environ))
    for number in range(6):
        await servers.diagnostics_after(project / f"p{number}/x.pup", "x\n")
    roots = [status.root.name for status in servers.statuses]
    await servers.aclose()
    assert roots == ["p0", "p1", "p2", "p3", project.name]
