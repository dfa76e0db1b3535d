"""Language servers that crash, hang, lie and dawdle: every call ends, with words that help, and no process stays."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from controlled_lsp import CAPABLE, QUICK, ControlledServer, LspHarness, ask, open_lsp_harness, place
from open_programs import open_programs

from longboat.backoff import Backoff
from longboat.tools.context import ToolError
from longboat.tools.lsp.client import slot
from longboat.tools.lsp.client.servers import LanguageServers
from longboat.tools.lsp.client.slot import ServerState
from longboat.tools.lsp.references import ReferencesTool
from longboat.tools.lsp.rename import RenameTool
from longboat.tools.lsp.symbols import SymbolsTool


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.demo").write_text("let knot = 1\n")
    (tmp_path / "b.demo").write_text("use knot\n")
    return tmp_path.resolve()


@pytest.fixture
async def harness(project: Path) -> AsyncIterator[LspHarness]:
    async with open_lsp_harness(project) as harness:
        yield harness


async def ready(harness: LspHarness) -> ControlledServer:
    """A server that has answered its first question."""
    asking = ask(harness)
    controlled = await harness.next_server()
    await controlled.initialize(**CAPABLE)
    controlled.answer(await controlled.expect("textDocument/definition"), place(harness.directory / "a.demo", 0, 4, 8))
    assert (await asking).content == "a.demo:1\n     1\tlet knot = 1"
    return controlled


class TestAServerThatBehaves:
    async def test_it_is_started_by_the_first_question_and_greeted(self, harness: LspHarness) -> None:
        assert harness.servers.statuses == ()
        asking = ask(harness)
        controlled = await harness.next_server()
        initialization = (await controlled.initialize(**CAPABLE))["params"]
        assert initialization["rootUri"] == harness.directory.as_uri()
        assert initialization["processId"] == os.getpid()
        opened = (await controlled.expect("textDocument/didOpen"))["params"]["textDocument"]
        assert (opened["text"], opened["languageId"]) == ("use knot\n", "demo")
        request = await controlled.expect("textDocument/definition")
        assert request["params"]["position"] == {"line": 0, "character": 4}
        controlled.answer(request, [place(harness.directory / "a.demo", 0, 4, 8)])
        assert (await asking).content.startswith("a.demo:1\n")
        assert harness.states == [ServerState.STARTING, ServerState.READY]
        assert [need.action for need in harness.context.needs] == ["read"]

    async def test_several_questions_share_one_start(self, harness: LspHarness) -> None:
        asking = [ask(harness), ask(harness, ReferencesTool(harness.servers), path="a.demo", symbol="knot")]
        controlled = await harness.next_server()
        await controlled.initialize(definitionProvider=True, referencesProvider=True)
        for _ in asking:
            while "id" not in (request := await controlled.hear()):
                pass
            controlled.answer(request, [place(harness.directory / "a.demo", 0, 4, 8)])
        assert [(await each).is_error for each in asking] == [False, False]
        assert harness.states == [ServerState.STARTING, ServerState.READY]

    async def test_its_own_requests_are_answered(self, project: Path) -> None:
        async with open_lsp_harness(project, settings={"controlled": {"mood": {"good": True}}}) as harness:
            controlled = await ready(harness)
            answers: dict[str, Any] = {}
            for number, (method, params) in enumerate(
                [
                    ("workspace/configuration", {"items": [{"section": "controlled.mood"}, {"section": "x.y"}, {}]}),
                    ("client/registerCapability", {"registrations": []}),
                    ("window/workDoneProgress/create", {"token": 1}),
                    ("workspace/workspaceFolders", None),
                    ("workspace/applyEdit", {"edit": {}}),
                    ("workspace/semanticTokens/refresh", None),
                    ("controlled/unheardOf", {}),
                    ("workspace/configuration", {"items": 7}),
                ]
            ):
                controlled.say({"id": f"q{number}", "method": method, "params": params})
                while (answer := await controlled.hear()).get("id") != f"q{number}":
                    pass
                answers[f"{method}{number}"] = answer.get("result", answer.get("error", {}).get("code"))
        assert answers == {
            "workspace/configuration0": [{"good": True}, None, {"controlled": {"mood": {"good": True}}}],
            "client/registerCapability1": None,
            "window/workDoneProgress/create2": None,
            "workspace/workspaceFolders3": [{"uri": project.as_uri(), "name": project.name}],
            "workspace/applyEdit4": {"applied": False, "failureReason": "Longboat changes files itself."},
            "workspace/semanticTokens/refresh5": None,
            "controlled/unheardOf6": -32601,
            "workspace/configuration7": -32603,
        }

    async def test_files_changed_behind_its_back_are_told(self, harness: LspHarness) -> None:
        controlled = await ready(harness)
        (harness.directory / "b.demo").write_text("use knot twice\n")
        (harness.directory / "c.demo").write_text("new\n")
        (harness.directory / "a.demo").unlink()
        asking = ask(harness)
        told = (await controlled.expect("workspace/didChangeWatchedFiles"))["params"]["changes"]
        kinds = {Path(change["uri"]).name: change["type"] for change in told}
        assert kinds == {"a.demo": 3, "b.demo": 2, "c.demo": 1}
        changed = (await controlled.expect("textDocument/didChange"))["params"]
        assert changed["contentChanges"] == [{"text": "use knot twice\n"}]
        controlled.answer(
            await controlled.expect("textDocument/definition"), place(harness.directory / "c.demo", 0, 0, 3)
        )
        assert (await asking).content == "c.demo:1\n     1\tnew"

    async def test_a_definition_outside_the_workspace_is_named_but_not_read(
        self, harness: LspHarness, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        outside = tmp_path_factory.mktemp("outside") / "secret.demo"
        outside.write_text("hidden\n")
        (harness.directory / "link.demo").symlink_to(outside)
        asking = ask(harness)
        controlled = await harness.next_server()
        await controlled.initialize(**CAPABLE)
        request = await controlled.expect("textDocument/definition")
        controlled.answer(request, [place(outside, 0, 0, 1), place(harness.directory / "link.demo", 0, 0, 1)])
        assert (await asking).content == f"{outside.resolve()}:1"

    async def test_a_server_that_just_started_and_finds_nothing_is_asked_again(self, harness: LspHarness) -> None:
        asking = ask(harness)
        controlled = await harness.next_server()
        await controlled.initialize(**CAPABLE)
        controlled.answer(await controlled.expect("textDocument/definition"), [])
        controlled.say({"method": "$/progress", "params": {"token": "load", "value": {"kind": "begin", "title": ""}}})
        controlled.say({"method": "$/progress", "params": {"token": "load", "value": {"kind": "end"}}})
        controlled.answer(
            await controlled.expect("textDocument/definition"), place(harness.directory / "a.demo", 0, 4, 8)
        )
        assert (await asking).content.startswith("a.demo:1")

    async def test_a_name_in_a_string_is_passed_over_for_the_next_on_the_line(self, harness: LspHarness) -> None:
        (harness.directory / "c.demo").write_text("say 'knot' knot\n")
        asking = ask(harness, path="c.demo", symbol="knot", line=1)
        controlled = await harness.next_server()
        await controlled.initialize(**CAPABLE)
        controlled.refuse(await controlled.expect("textDocument/definition"), -32600, "no name here")
        request = await controlled.expect("textDocument/definition")
        assert request["params"]["position"] == {"line": 0, "character": 11}
        controlled.answer(request, place(harness.directory / "a.demo", 0, 4, 8))
        assert (await asking).content.startswith("a.demo:1")

    async def test_what_changed_while_it_thought_is_asked_again(self, harness: LspHarness) -> None:
        asking = ask(harness)
        controlled = await harness.next_server()
        await controlled.initialize(**CAPABLE)
        controlled.refuse(await controlled.expect("textDocument/definition"), -32801, "content modified")
        controlled.answer(
            await controlled.expect("textDocument/definition"), place(harness.directory / "a.demo", 0, 4, 8)
        )
        assert (await asking).content.startswith("a.demo:1")

    async def test_what_it_cannot_do_is_said(self, harness: LspHarness) -> None:
        await ready(harness)
        with pytest.raises(ToolError, match=r"controlled cannot find references\. Use grep and view instead"):
            await ask(harness, ReferencesTool(harness.servers), path="a.demo", symbol="knot")
        with pytest.raises(ToolError, match="controlled cannot find symbols by name"):
            await ask(harness, SymbolsTool(harness.servers), query="knot")
        (harness.directory / "x.unknown").write_text("x\n")
        with pytest.raises(ToolError, match=r"No language server is set up for \.unknown files"):
            await ask(harness, path="x.unknown", symbol="x")

    async def test_it_leaves_with_the_workspace_and_no_other_does(self, project: Path) -> None:
        """B7: closing one workspace never touches another, even of the same directory."""
        async with open_lsp_harness(project) as staying:
            other = await ready(staying)
            async with open_lsp_harness(project) as harness:
                controlled = await ready(harness)
                closing = asyncio.create_task(harness.servers.aclose())
                await controlled.leave()
                await closing
                assert not controlled.is_alive
                assert harness.states[-1] is ServerState.STOPPED
                with pytest.raises(ToolError, match="The workspace is closing"):
                    await ask(harness)
                assert await harness.servers.diagnostics_after(project / "a.demo", "x\n") == ""
            assert other.is_alive
            assert staying.states[-1] is ServerState.READY


class TestAServerThatDies:
    async def test_whoever_waits_for_its_answer_is_told_and_the_next_call_starts_it_again(
        self, harness: LspHarness
    ) -> None:
        controlled = await ready(harness)
        asking = ask(harness)
        await controlled.expect("textDocument/definition")
        controlled.die()
        with pytest.raises(ToolError, match=r"controlled exited before it answered \(signal 9\)\. Try again\."):
            await asking
        await ready(harness)
        started = [ServerState.STARTING, ServerState.READY]
        assert harness.states == [*started, ServerState.CRASHED, *started]

    async def test_it_is_started_again_only_so_often(self, project: Path) -> None:
        async with open_lsp_harness(project, replace(QUICK, restart=Backoff(base_s=0.0, attempts=3))) as harness:
            for _ in range(3):
                controlled = await ready(harness)
                controlled.die()
                await harness.wait_state(ServerState.CRASHED, ServerState.FAILED)
            assert harness.states.count(ServerState.STARTING) == 3
            assert harness.states[-1] is ServerState.FAILED
            with pytest.raises(
                ToolError, match=r"controlled does not work \(signal 9\)\. It will not be retried for now"
            ):
                await ask(harness)
            assert await harness.servers.diagnostics_after(project / "a.demo", "x\n") == ""
            assert not harness.has_next_server

    async def test_one_that_ran_long_enough_has_its_crashes_forgiven(self, project: Path) -> None:
        async with open_lsp_harness(
            project, replace(QUICK, restart=Backoff(base_s=0.0, attempts=2), stable_s=0.0)
        ) as harness:
            for _ in range(4):
                controlled = await ready(harness)
                controlled.die()
                await harness.wait_state(ServerState.CRASHED, ServerState.FAILED)
            assert ServerState.FAILED not in harness.states

    async def test_one_that_was_given_up_is_tried_again_after_a_while(self, project: Path) -> None:
        async with open_lsp_harness(
            project, replace(QUICK, restart=Backoff(base_s=0.0, attempts=1), forgive_s=0.0)
        ) as harness:
            (await ready(harness)).die()
            await harness.wait_state(ServerState.FAILED)
            await ready(harness)

    async def test_a_restart_waits_longer_each_time(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        waits: list[tuple[float, ServerState]] = []
        async with open_lsp_harness(project, replace(QUICK, restart=Backoff(base_s=0.2, attempts=4))) as harness:

            async def wait(seconds: float) -> None:
                waits.append((seconds, harness.states[-1]))

            monkeypatch.setattr(slot, "_sleep", wait)
            monkeypatch.setattr(slot, "_now", lambda: 0.0)  # no time has passed since the crash
            for _ in range(3):
                (await ready(harness)).die()
                await harness.wait_state(ServerState.CRASHED, ServerState.FAILED)
                asking = ask(harness)
                await harness.wait_state(ServerState.STARTING)
                asking.cancel()
            crashed = ServerState.CRASHED  # and not started yet
            assert waits == [(0.2, crashed), (0.4, crashed), (0.8, crashed)]

    async def test_one_that_dies_at_its_start_says_why(self, project: Path) -> None:
        dying = ["-c", "import sys; print('error: no licence', file=sys.stderr); sys.exit(3)"]
        async with open_lsp_harness(project, args=dying) as harness:
            with pytest.raises(
                ToolError, match=r"controlled does not work \(exit code 3: error: no licence\)\. Try again"
            ):
                await ask(harness)
            assert harness.states == [ServerState.STARTING, ServerState.CRASHED]

    async def test_a_command_that_is_not_there_fails_at_once(self, project: Path) -> None:
        async with open_lsp_harness(project, command="no-such-server", args=[]) as harness:
            with pytest.raises(ToolError, match="the command 'no-such-server' does not exist or cannot be run"):
                await ask(harness)
            assert harness.states == [ServerState.STARTING, ServerState.FAILED]

    async def test_what_it_started_is_ended_with_it(self, project: Path) -> None:
        """B7: also when it dies first."""
        child = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, file=sys.stderr); "
        async with open_lsp_harness(project, args=["-c", child + "raise SystemExit('error: left')"]) as harness:
            with pytest.raises(ToolError):
                await ask(harness)
        assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and is_child_of_controlled(pid, harness)]


def is_child_of_controlled(pid: str, harness: LspHarness) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/cwd") == str(harness.directory)
    except OSError:
        return False


class TestAServerThatHangs:
    async def test_a_question_without_an_answer_ends_and_is_called_back(self, project: Path) -> None:
        async with open_lsp_harness(project, replace(QUICK, answer_s=0.3)) as harness:
            asking = ask(harness)
            controlled = await harness.next_server()
            await controlled.initialize(**CAPABLE)
            request = await controlled.expect("textDocument/definition")
            with pytest.raises(ToolError, match=r"controlled gave no answer to textDocument/definition within 0\.3 s"):
                await asking
            assert (await controlled.expect("$/cancelRequest"))["params"] == {"id": request["id"]}

    async def test_three_in_a_row_end_it(self, project: Path) -> None:
        async with open_lsp_harness(project, replace(QUICK, answer_s=0.2)) as harness:
            asking = ask(harness)
            controlled = await harness.next_server()
            await controlled.initialize(**CAPABLE)
            with pytest.raises(ToolError, match="no answer"):
                await asking
            for _ in range(2):
                with pytest.raises(ToolError, match="no answer"):
                    await ask(harness)
            assert (await harness.wait_state(ServerState.CRASHED)).detail == "it left 3 requests unanswered"

    async def test_a_greeting_without_an_answer_ends_it(self, project: Path) -> None:
        async with open_lsp_harness(project, replace(QUICK, start_s=0.5)) as harness:
            asking = ask(harness)
            controlled = await harness.next_server()
            with pytest.raises(ToolError, match=r"no answer to initialize within 0\.5 s"):
                await asking
            assert not controlled.is_alive

    async def test_a_canceled_call_is_called_back_and_ends_at_once(self, harness: LspHarness) -> None:
        controlled = await ready(harness)
        asking = ask(harness)
        request = await controlled.expect("textDocument/definition")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await controlled.expect("$/cancelRequest"))["params"] == {"id": request["id"]}
        controlled.answer(request, None)  # too late, and heard by nobody
        asking = ask(harness)
        controlled.answer(
            await controlled.expect("textDocument/definition"), place(harness.directory / "a.demo", 0, 4, 8)
        )
        assert (await asking).content.startswith("a.demo:1")

    async def test_a_call_canceled_during_the_start_leaves_the_start_to_others(self, harness: LspHarness) -> None:
        first, second = ask(harness), ask(harness)
        controlled = await harness.next_server()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await controlled.initialize(**CAPABLE)
        controlled.answer(
            await controlled.expect("textDocument/definition"), place(harness.directory / "a.demo", 0, 4, 8)
        )
        assert (await second).content.startswith("a.demo:1")

    async def test_closing_ends_one_that_is_just_starting(self, harness: LspHarness) -> None:
        asking = ask(harness)
        controlled = await harness.next_server()
        await harness.servers.aclose()
        assert not controlled.is_alive
        with pytest.raises(ToolError, match="The workspace is closing"):
            await asking

    async def test_closing_ends_one_that_ignores_everything(self, harness: LspHarness) -> None:
        controlled = await ready(harness)
        await harness.servers.aclose()
        assert not controlled.is_alive


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
    async def test_it_is_ended_and_the_call_is_told(self, harness: LspHarness, nonsense: bytes, why: str) -> None:
        asking = ask(harness)
        controlled = await harness.next_server()
        await controlled.initialize(**CAPABLE)
        await controlled.expect("textDocument/definition")
        controlled.write(nonsense)
        with pytest.raises(ToolError, match=f"controlled exited before it answered \\({why}"):
            await asking
        assert harness.changes[-1].detail.startswith(why)

    async def test_an_answer_of_the_wrong_shape_is_told(self, harness: LspHarness) -> None:
        asking = ask(harness)
        controlled = await harness.next_server()
        await controlled.initialize(**CAPABLE)
        controlled.answer(await controlled.expect("textDocument/definition"), {"uri": 7})
        with pytest.raises(ToolError, match="its answer to textDocument/definition is invalid"):
            await asking
        assert harness.states[-1] is ServerState.READY

    async def test_notifications_of_the_wrong_shape_are_passed_over(self, harness: LspHarness) -> None:
        controlled = await ready(harness)
        for method, params in [("textDocument/publishDiagnostics", 7), ("$/progress", []), ("window/logMessage", {})]:
            controlled.say({"method": method, "params": params})
        controlled.say({"id": 99, "result": "nobody asked"})
        asking = ask(harness)
        controlled.answer(
            await controlled.expect("textDocument/definition"), place(harness.directory / "a.demo", 0, 4, 8)
        )
        assert (await asking).content.startswith("a.demo:1")

    async def test_a_refusal_is_passed_on(self, harness: LspHarness) -> None:
        asking = ask(harness, RenameTool(harness.servers), path="a.demo", symbol="knot", new_name="let")
        controlled = await harness.next_server()
        await controlled.initialize(**CAPABLE)
        controlled.refuse(await controlled.expect("textDocument/rename"), -32602, "let is a keyword")
        with pytest.raises(ToolError, match=r"controlled refused: let is a keyword\."):
            await asking


async def test_too_many_roots_share_the_workspaces_own(project: Path) -> None:
    for number in range(6):
        (project / f"p{number}").mkdir()
        (project / f"p{number}/root").touch()
        (project / f"p{number}/x.demo").write_text("x\n")
    failing = {"command": sys.executable, "args": ["-c", ""], "file_types": ["demo"], "root_markers": ["root"]}
    async with open_programs(project) as programs:
        servers = LanguageServers(project, {"gone": failing}, environ=dict(os.environ), programs=programs)
        for number in range(6):
            await servers.diagnostics_after(project / f"p{number}/x.demo", "x\n")
        roots = [status.root.name for status in servers.statuses]
        await servers.aclose()
    assert roots == ["p0", "p1", "p2", "p3", project.name]
