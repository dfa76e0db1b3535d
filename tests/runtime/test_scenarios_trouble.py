"""A task that meets trouble: the window overflows, the provider fails between and inside steps (A7, T3, T7, T8)."""

from pathlib import Path
from typing import Any

import pytest
from scenario import call, open_scenario

from longboat.errors import ModelError
from longboat.testing import Break, CallTool, Fail, Gate, Pause, Say, ScriptedModel, ScriptedTool, Use
from longboat.testing.scripted import last_prompt
from longboat.wire.models import AgentEventType, Outcome

RULE = "Never use the word banana."
PLAN = [{"text": "read the log", "state": "completed"}, {"text": "fix the bug", "state": "in_progress"}]


def overflow() -> ModelError:
    return ModelError("too long", title="The context window is full", code="context_overflow")


@pytest.mark.parametrize("sign", ["counted", "refused"])
async def test_the_window_overflows_in_mid_task_and_the_same_run_goes_on(tmp_path: Path, sign: str) -> None:
    """A7, T8: the plan, the instructions and the request survive; what was read before may still be edited (A3)."""
    begun = [call("todos", items=PLAN), call("view", path="app.py")]
    trouble: list[list[Any]] = (
        [[Use(input_tokens=95_000), *begun]] if sign == "counted" else [begun, [Fail(overflow())]]
    )
    steps: list[list[Any]] = [
        *trouble,
        [Say("I have read app.py.")],
        [call("edit", path="app.py", old_text="x = 1", new_text="x = 2")],
        [Say("Done.")],
    ]
    files = {"app.py": "x = 1\n", "AGENTS.md": RULE}
    async with open_scenario(tmp_path, steps, files=files) as scene:
        complete = await scene.turn("fix the bug in app.py")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "Done.")
        assert scene.read("app.py") == "x = 2\n"
        after = scene.model.requests[-2]
        (shown,) = after.messages
        text = last_prompt(after)
        assert shown.role == "user"
        for needed in ("I have read app.py.", "fix the bug in app.py", "[completed] read the log", "[in_progress] fix"):
            assert needed in text
        assert RULE in after.system
        kinds = [event.type for event in scene.watcher.of("agent_event")]
        assert kinds.count(AgentEventType.SUMMARIZING) == 1
        await scene.check()


async def test_the_instructions_of_a_subdirectory_are_read_again_after_a_summary(tmp_path: Path) -> None:
    """A7: what a file below said to the model went with the summary; reading there says it again."""
    steps: list[list[Any]] = [
        [Use(input_tokens=95_000), call("view", path="web/a.js")],
        [Say("Summary.")],
        [call("view", path="web/a.js")],
        [Say("Done.")],
    ]
    files = {"web/a.js": "let x\n", "web/AGENTS.md": "Tabs here."}
    async with open_scenario(tmp_path, steps, files=files) as scene:
        await scene.turn("look")
        assert ["Tabs here." in content for content in scene.fine()] == [True, True]
        await scene.check()


async def test_a_cancel_while_summarizing_is_a_cancel_of_the_run(tmp_path: Path) -> None:
    """T8: half a summary is nobody's answer, and the next prompt summarizes anew."""
    gate = Gate()
    steps: list[list[Any]] = [
        [Use(input_tokens=95_000), call("ls", path=".")],
        [Say("Half a sum"), Pause(gate)],
        [Say("Still here.")],
    ]
    async with open_scenario(tmp_path, steps) as scene:
        await scene.start("look")
        await gate.reached()
        await scene.cancel()
        await scene.canceled_once(lost=0)
        assert "Half a sum" not in str(scene.model.requests[-1].messages)


@pytest.mark.parametrize("trouble", ["refuses", "breaks off", "breaks off in a call"])
async def test_a_provider_that_fails_after_a_tool_is_asked_again_and_the_tool_is_not(
    tmp_path: Path, trouble: str
) -> None:
    """T7: the call's effect happens once; half an answer is withdrawn; one terminal event."""
    again = ModelError("busy", title="Overloaded", code="overloaded", retryable=True)
    failing: dict[str, list[Any]] = {
        "refuses": [Fail(again)],
        "breaks off": [Say("I wri"), Break()],
        "breaks off in a call": [Say("Now "), CallTool("bash", '{"command": "touch never'), Break()],
    }
    tool = ScriptedTool("launch", "launched")
    steps: list[list[Any]] = [[call("launch")], failing[trouble], failing[trouble], [Say("Launched once.")]]
    async with open_scenario(tmp_path, steps, tools=[tool]) as scene:
        assert (await scene.turn("launch")).text == "Launched once."
        assert len(tool.calls) == 1
        assert not (scene.path / "never").exists()
        kinds = [event.type for event in scene.watcher.of("agent_event")]
        assert kinds.count(AgentEventType.RETRYING) == 2
        await scene.check()


@pytest.mark.parametrize("partial", [[], [Say("I am "), CallTool("bash", '{"command": "touch nev')]])
async def test_a_provider_that_fails_for_good_ends_the_run_with_an_error_and_the_next_prompt_works(
    tmp_path: Path, partial: list[Any]
) -> None:
    """T3: what was done stays, a call that was cut off was not made and says so."""
    fatal = ModelError("no credit", title="Payment required", code="payment")
    steps: list[list[Any]] = [
        [call("write", path="a.txt", content="a\n")],
        [*partial, Fail(fatal)],
        [Say("Back again.")],
    ]
    async with open_scenario(tmp_path, steps) as scene:
        complete = await scene.turn("write")
        assert (complete.outcome, complete.error) == (Outcome.ERROR, "Payment required: no credit")
        assert scene.read("a.txt") == "a\n"
        assert not (scene.path / "nev").exists()
        assert (await scene.turn("go on", "r2")).text == "Back again."
        await scene.check()
        assert (await scene.workspace.undo_turn(scene.running.session_id)).run_id == "r2"
        assert (await scene.workspace.undo_turn(scene.running.session_id)).files == ("a.txt",)
        assert not (scene.path / "a.txt").exists()


async def test_a_tool_that_cannot_be_called_is_an_answer_to_the_model_not_the_end(tmp_path: Path) -> None:
    """T3: an unknown tool, arguments that are no JSON, none at all, the wrong ones, a tool that raises."""
    bad = [
        call("fly"),
        CallTool("view", '{"path": '),
        CallTool("view", "[1]"),
        CallTool("view", ""),
        call("view", path=7),
        call("view", path="a.txt", colour="red"),
        call("burst"),
    ]
    tool = ScriptedTool("burst", RuntimeError("out of steam"))
    async with open_scenario(tmp_path, [bad, [Say("I see.")]], files={"a.txt": ""}, tools=[tool]) as scene:
        assert (await scene.turn("try")).text == "I see."
        assert [part.is_error for part in scene.results()] == [True] * 7
        await scene.check()


async def test_a_small_model_answers_with_fewer_tools(tmp_path: Path) -> None:
    """A6: a short prompt and few tools, the same life of a run."""
    model = ScriptedModel([[Say("A little.")]], context_window=4_000)
    async with open_scenario(tmp_path, model) as scene:
        assert (await scene.turn("hello")).text == "A little."
        assert len(scene.model.requests[0].tools) < 10
        await scene.check()
