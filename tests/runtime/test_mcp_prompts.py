"""A person's `/server:prompt` in a whole Longboat, with real MCP servers (A1, A5)."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp_harness import stdio
from other_processes import wait_until
from scenario import call, open_scenario

from longboat.core.history import text_of
from longboat.testing import Gate, Pause, Say
from longboat.testing.scripted import last_prompt
from longboat.wire.models import Attachment, Delivery, Outcome, RunState
from longboat.wire.requests import EditRun
from longboat.wire.workspace_state import CommandArgument, CommandInfo

STILL = [Say("Still here.")]
SILENT = {"command": "sleep", "args": ["600"]}


@pytest.fixture
def notes(tmp_path: Path, awaited_servers: None) -> Path:
    directory = tmp_path / "notes"
    directory.mkdir()
    return directory


async def test_its_text_takes_the_place_of_the_call_and_the_transcript_has_it(tmp_path: Path, notes: Path) -> None:
    seen = tmp_path / "seen"
    config = {
        "mcp": {"test": stdio(notes)},
        "hooks": {"prompt_submitted": [{"command": f"cat > {seen}"}]},
    }
    file = Attachment(name="a.txt", media_type="text/plain", text="attached")
    async with open_scenario(tmp_path, [[Say("Fine.")]], config=config) as scene:
        assert (await scene.turn("/test:review a.py tone='not so kind'", attachments=(file,))).text == "Fine."
        asked = (await scene.running.messages())[0]
        assert text_of(asked) == "Review a.py in a not so kind tone."
        assert [part.name for part in asked.parts[1:]] == ["a.txt"]  # type: ignore[union-attr]
        assert last_prompt(scene.model.requests[0]).startswith("Review a.py in a not so kind tone.")
        (run,) = await scene.running.ledger()
        assert run.prompt == "/test:review a.py tone='not so kind'"
        assert json.loads(seen.read_text())["prompt"] == text_of(asked)
        await scene.check()


async def test_faces_list_the_prompts_of_connected_servers_beside_the_commands(tmp_path: Path, notes: Path) -> None:
    files = {".agents/commands/test/dawdle.md": "Take your time.\n"}
    async with open_scenario(tmp_path, [STILL], files=files, config={"mcp": {"test": stdio(notes)}}) as scene:
        assert [each.name for each in (await scene.workspace.tools.list_skills()).commands] == ["test:dawdle"]
        await scene.turn("connect")
        assert (await scene.workspace.tools.list_skills()).commands == (
            CommandInfo(name="test:dawdle", description="Take your time.", argument_hint=""),
            CommandInfo(
                name="test:review",
                description="Review a file.",
                argument_hint="path [tone]",
                server="test",
                arguments=(CommandArgument(name="path", required=True), CommandArgument(name="tone")),
            ),
        )


async def test_a_command_in_a_file_wins_over_a_prompt_of_the_same_name(tmp_path: Path, notes: Path) -> None:
    files = {".agents/commands/test/review.md": "My own review of $1.\n"}
    config = {"mcp": {"test": stdio(notes)}}
    async with open_scenario(tmp_path, [STILL], files=files, config=config) as scene:
        await scene.turn("/test:review a.py")
        assert last_prompt(scene.model.requests[0]) == "My own review of a.py."
        await scene.check()


@pytest.mark.parametrize(
    ("prompt", "error"),
    [
        (
            "/test:review",
            "The MCP prompt cannot be used: Missing: path. Usage: /test:review path [tone]",
        ),
        (
            "/test:nothing",
            "The MCP prompt cannot be used: The MCP server test has no prompt 'nothing'. Its prompts: review, dawdle.",
        ),
        (
            "/gone:review",
            "The MCP prompt cannot be used: The MCP server gone cannot be used: mcp.gone.command: the program "
            "'/nowhere/at/all' was not found.",
        ),
        ("/off:review", "The MCP prompt cannot be used: The MCP server off cannot be used: it is disabled."),
    ],
)
async def test_one_that_cannot_be_had_ends_the_run_with_the_reason(
    tmp_path: Path, notes: Path, prompt: str, error: str
) -> None:
    """E1, E3: one terminal event; the model is never asked, and the next prompt works."""
    config = {
        "mcp": {
            "test": stdio(notes),
            "gone": {"command": "/nowhere/at/all"},
            "off": {"command": "true", "enabled": False},
        }
    }
    async with open_scenario(tmp_path, [STILL], config=config) as scene:
        complete = await scene.turn(prompt)
        assert (complete.outcome, complete.error) == (Outcome.ERROR, error)
        assert len(scene.watcher.terminals("r1")) == 1
        assert scene.model.requests == []
        assert text_of((await scene.running.messages())[0]) == prompt
        assert (await scene.turn("and now?", "r2")).text == "Still here."
        await scene.check()


async def test_a_call_of_a_server_that_nobody_configured_is_sent_as_it_stands_and_that_is_said(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, [STILL]) as scene:
        await scene.turn("/nobody:review a.py")
        assert last_prompt(scene.model.requests[0]) == "/nobody:review a.py"
        notices = [event.message for event in scene.watcher.of("agent_event") if event.type == "notice"]
        assert notices == ["/nobody:review was sent as plain text: there is no MCP server 'nobody'."]
        await scene.check()


async def test_a_cancel_while_the_server_ponders_ends_the_run_and_the_server_hears_of_it(
    tmp_path: Path, notes: Path
) -> None:
    """T2, E4: canceled before the model was asked."""
    async with open_scenario(tmp_path, [STILL], config={"mcp": {"test": stdio(notes)}}) as scene:
        await scene.start("/test:dawdle")
        await wait_until((notes / "hanging").exists)
        await scene.cancel()
        await wait_until((notes / "canceled").exists)
        await scene.canceled_once(lost=0)
        assert (notes / "started").read_text() == "started\n"


async def test_a_server_that_does_not_answer_holds_up_no_accept_and_no_cancel(tmp_path: Path) -> None:
    """B1: the prompt is accepted while the server is still being connected."""
    async with open_scenario(tmp_path, [STILL], config={"mcp": {"silent": SILENT}}) as scene:
        await scene.start("/silent:review a.py")
        await scene.watcher.until(lambda event: event.type == "mcp_event" and event.payload.phase == "connecting")
        await scene.cancel()
        await scene.canceled_once(lost=0)


async def test_it_has_a_turn_of_its_own_even_if_it_was_to_steer(tmp_path: Path, notes: Path) -> None:
    """L10: a server that hangs must not hold up a turn that somebody else waits for."""
    gate = Gate("step")
    steps: list[list[Any]] = [[Pause(gate), call("ls")], [Say("One.")], [Say("Two.")], [Say("Three.")]]
    async with open_scenario(tmp_path, steps, config={"mcp": {"test": stdio(notes)}}) as scene:
        await scene.start("first")
        await gate.reached()
        await scene.start("/test:review a.py", "r2", delivery=Delivery.STEER)
        await scene.start("plain", "r3", delivery=Delivery.QUEUE)
        await scene.watcher.in_state("r3", RunState.QUEUED)
        edited = await scene.workspace.edit_run("r2", EditRun(delivery=Delivery.STEER))
        assert edited.delivery is Delivery.QUEUE
        edit = EditRun(prompt="/test:review b.py", delivery=Delivery.STEER)
        assert (await scene.workspace.edit_run("r3", edit)).delivery is Delivery.QUEUE
        gate.open()
        assert [(await scene.running.completed(run)).text for run in ("r1", "r2", "r3")] == ["One.", "Two.", "Three."]
        assert [last_prompt(request) for request in scene.model.requests[-2:]] == [
            "Review a.py in a kind tone.",
            "Review b.py in a kind tone.",
        ]
        await scene.check()


async def test_what_the_model_tells_a_sub_agent_is_no_call(tmp_path: Path, notes: Path) -> None:
    steps: list[list[Any]] = [[call("agent", prompt="/test:review a.py")], [Say("Literally.")], [Say("Done.")]]
    async with open_scenario(tmp_path, steps, config={"mcp": {"test": stdio(notes)}}) as scene:
        await scene.turn("send somebody")
        assert last_prompt(scene.model.requests[1]) == "/test:review a.py"
        await scene.check()
