"""Calls of one answer that only read are made at the same time; whatever may change something is a barrier (A1)."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from crash import check_log, restarted
from scenario import PLAIN, WINDOW, Scene, call, open_scenario
from wire_rules import check_wires

from longboat.config.rules import AddedRules, add_rules
from longboat.runtime.workspace import services
from longboat.testing import Gate, Say, ScriptedModel, ScriptedTool
from longboat.tools.context import ToolContext, ToolError
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.registry import built_in_traits
from longboat.wire.asks import AskState, PermissionAnswer
from longboat.wire.models import Message, Outcome, ToolResultPart
from longboat.wire.requests import AnswerPermission
from longboat.wire.tools import Effect, ToolTraits

READS = ToolTraits(effect=Effect.READS, side_by_side=True)
RESUME = {**PLAIN, "on_restart": "resume"}


def reading(name: str, reply: str | Exception = "read") -> tuple[ScriptedTool, Gate]:
    gate = Gate(name)
    return ScriptedTool(name, reply, gate=gate, traits=READS), gate


async def finished(scene: Scene, *, results: int) -> None:
    """Until so many calls have their result."""
    await scene.watcher.until(lambda _: len(scene.results()) >= results)


def test_what_only_reads_runs_side_by_side_and_nothing_that_changes_something_does() -> None:
    traits = built_in_traits()
    together = {name for name, each in traits.items() if each.side_by_side}
    reads = {"view", "ls", "grep", "glob", "fetch", "definition", "references", "symbols", "diagnostics"}
    assert together - {"web_search"} == {*reads, "agent"}
    assert [name for name in together if traits[name].writes] == []


async def test_two_reads_of_different_tools_begin_before_either_ends_and_the_results_keep_the_calls_order(
    tmp_path: Path,
) -> None:
    (left, left_gate), (right, right_gate) = reading("left", "from left"), reading("right", "from right")
    steps = [[call("left"), call("right")], [Say("Both.")]]
    async with open_scenario(tmp_path, steps, tools=[left, right]) as scene:
        await scene.start("look")
        await left_gate.reached()
        await right_gate.reached()
        right_gate.open()
        await finished(scene, results=1)
        assert [part.content for part in scene.results()] == ["from right"]
        left_gate.open()
        assert (await scene.running.completed("r1")).text == "Both."
        assert scene.fine() == ["from left", "from right"]
        await scene.check()


async def test_an_edit_between_reads_waits_for_those_before_it_and_is_seen_by_those_after_it(tmp_path: Path) -> None:
    look, gate = reading("look")
    change = call("edit", path="a.txt", old_text="old", new_text="new")
    steps = [
        [call("view", path="a.txt")],
        [call("look"), call("view", path="a.txt"), change, call("view", path="a.txt"), call("grep", pattern="new")],
        [Say("Changed.")],
    ]
    async with open_scenario(tmp_path, steps, files={"a.txt": "old\n"}, tools=[look]) as scene:
        await scene.start("change it")
        await gate.reached()
        await finished(scene, results=2)
        assert scene.read("a.txt") == "old\n"
        gate.open()
        assert (await scene.running.completed("r1")).text == "Changed."
        _, _, before, _, after, found = scene.fine()
        assert ("old" in before, "new" in before) == (True, False)
        assert ("old" in after, "new" in after) == (False, True)
        assert "a.txt" in found
        await scene.check()


async def test_a_read_that_fails_leaves_the_others_alone(tmp_path: Path) -> None:
    look, gate = reading("look")
    wrong, wrong_gate = reading("wrong", ToolError("There is nothing."))
    steps = [[call("look"), call("wrong"), call("view", path="gone.txt")], [Say("One.")]]
    async with open_scenario(tmp_path, steps, tools=[look, wrong]) as scene:
        await scene.start("look")
        await gate.reached()
        wrong_gate.open()
        await finished(scene, results=2)
        assert look.canceled == 0
        gate.open()
        assert (await scene.running.completed("r1")).text == "One."
        assert [part.is_error for part in scene.results()] == [False, True, True]
        await scene.check()


async def test_a_cancel_ends_all_reads_and_each_call_has_a_result(tmp_path: Path) -> None:
    (left, left_gate), (right, right_gate) = reading("left"), reading("right")
    calls = [call("left"), call("view", path="a.txt"), call("right"), call("bash", command="touch b.txt")]
    async with open_scenario(
        tmp_path, [calls, [Say("Still here.")]], files={"a.txt": "a\n"}, tools=[left, right]
    ) as scene:
        await scene.start("look")
        await left_gate.reached()
        await right_gate.reached()
        await finished(scene, results=1)
        await scene.cancel()
        assert (left.canceled, right.canceled) == (1, 1)
        assert [part.name for part in scene.results()] == ["left", "view", "right", "bash"]
        assert not (scene.path / "b.txt").exists()
        await scene.canceled_once(lost=3)


async def test_the_same_read_made_over_and_over_in_one_step_is_a_loop_and_each_call_has_its_result(
    tmp_path: Path,
) -> None:
    """T9: judged when all of them are over, so none is broken off."""
    async with open_scenario(tmp_path, [[call("view", path="a.txt")] * 6], files={"a.txt": "a\n"}) as scene:
        assert "looping" in (await scene.turn("look")).error
        assert len(scene.fine()) == 6
        await scene.check()


async def test_live_output_of_calls_that_run_at_once_goes_to_the_right_one(tmp_path: Path) -> None:
    class Showing(ScriptedTool):
        async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
            context.output(f"{call.name} begins\n")
            return await super().run(call, context)

    gates = [Gate(), Gate()]
    tools = [Showing(name, gate=gate, traits=READS) for name, gate in zip(("left", "right"), gates, strict=True)]
    async with open_scenario(tmp_path, [[call("left"), call("right")], [Say("Both.")]], tools=tools) as scene:
        await scene.start("look")
        await scene.showing("right begins")
        await scene.showing("left begins")
        parts = {delta.part: delta.text for delta in scene.watcher.of("message_delta") if "begins" in delta.text}
        assert parts == {0: "left begins\n", 1: "right begins\n"}
        for gate in gates:
            gate.open()
        await scene.running.completed("r1")
        await scene.check()


async def test_reads_that_need_approval_ask_at_once_and_are_answered_in_any_order(tmp_path: Path) -> None:
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text(f"this is {name}\n")
    paths = [str(tmp_path / name) for name in ("one.txt", "two.txt")]
    steps = [[call("view", path=path) for path in paths], [Say("Seen.")]]
    async with open_scenario(tmp_path, steps) as scene:
        await scene.start("look outside", ask=True)
        asks = {ask.argument: ask for ask in (await scene.asked(1), await scene.asked(2))}
        assert set(asks) == set(paths)
        await scene.answer(asks[paths[1]], PermissionAnswer.ONCE)
        await finished(scene, results=1)
        await scene.answer(asks[paths[0]], PermissionAnswer.DENY)
        assert (await scene.running.completed("r1")).text == "Seen."
        first, second = scene.results()
        assert (first.is_error, "Denied" in first.content) == (True, True)
        assert (second.is_error, "this is two.txt" in second.content) == (False, True)
        await scene.check()


async def test_who_grants_a_rule_for_the_session_is_not_asked_again_by_calls_that_wait_for_the_same_rule(
    tmp_path: Path,
) -> None:
    """A2: both calls are on record with who let them run; one that waits for another rule still waits."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "one.txt").write_text("one\n")
    (tmp_path / "far.txt").write_text("far\n")
    one, far = str(outside / "one.txt"), str(tmp_path / "far.txt")
    steps = [[call("view", path=one), call("view", path=one, offset=1), call("view", path=far)], [Say("Seen.")]]
    async with open_scenario(tmp_path, steps) as scene:
        await scene.start("look outside", ask=True)
        first, second, other = sorted(
            [await scene.asked(nth) for nth in (1, 2, 3)], key=lambda ask: (ask.argument != one, ask.asked_at)
        )
        assert first.grant == second.grant != other.grant
        await scene.answer(first, PermissionAnswer.SESSION, by="ann")
        await finished(scene, results=2)
        assert await scene.workspace.asks.permissions() == (other,)
        assert [part.answers[0].answered_by for part in scene.results()] == ["ann", "ann"]
        await scene.answer(other, PermissionAnswer.DENY)
        await scene.running.completed("r1")
        assert [part.is_error for part in scene.results()] == [False, False, True]
        await scene.check()


async def test_rules_that_are_saved_at_once_are_all_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[tuple[str, ...]] = []
    began, go = threading.Event(), threading.Event()

    def add(directory: Path, rules: tuple[str, ...], **more: Any) -> AddedRules:
        entered.append(rules)
        began.set()
        go.wait()
        return add_rules(directory, rules, **more)

    monkeypatch.setattr(services, "add_rules", add)
    async with open_scenario(tmp_path, []) as scene:
        both = asyncio.gather(
            *(scene.workspace.services.remember((rule,)) for rule in ("fetch(a.org)", "fetch(b.org)"))
        )
        await asyncio.to_thread(began.wait)
        await asyncio.to_thread(int)  # a second one that did not wait would have entered by now
        at_once = len(entered)
        go.set()
        await both
        assert at_once == 1
        assert set(json.loads(scene.read("longboat.json"))["permissions"]["allow"]) == {"fetch(a.org)", "fetch(b.org)"}


async def test_a_cancel_withdraws_all_that_reads_ask(tmp_path: Path) -> None:
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("text\n")
    steps = [[call("view", path=str(tmp_path / name)) for name in ("one.txt", "two.txt")], [Say("Still here.")]]
    async with open_scenario(tmp_path, steps) as scene:
        await scene.start("look outside", ask=True)
        await scene.asked(2)
        await scene.cancel()
        told = scene.watcher.of("permission_notification")
        assert [each.state for each in told] == [AskState.WITHDRAWN] * 2
        await scene.canceled_once(lost=2)


async def test_after_a_restart_a_read_that_waited_is_made_and_the_results_keep_the_calls_order(tmp_path: Path) -> None:
    """A2, B6: the read beside it, which was done, is not made again."""
    outside = tmp_path / "outside.txt"
    outside.write_text("far\n")
    calls = [call("view", path=str(outside)), call("look"), call("write", path="new.txt", content="new\n")]
    after = ScriptedModel([[Say("All three.")]], context_window=WINDOW)
    look, gate = reading("look")
    gate.open()
    config = {**RESUME, "permissions": {"allow": ["write"]}}
    async with open_scenario(tmp_path, [calls], config=config, tools=[look]) as scene:
        await scene.start("look outside", ask=True)
        ask = await scene.asked()
        await finished(scene, results=1)
        again_look, _ = reading("look")
        async with restarted(scene.running, after, config=json.dumps(config), tools=[again_look]) as again:
            await again.workspace.asks.answer_permission(ask.id, AnswerPermission(answer=PermissionAnswer.ONCE))
            assert (await again.workspace.run("r1", wait_s=30)).outcome is Outcome.END_TURN
            await check_log(again)
            messages = await again.messages()
            results = results_in(messages)
            assert [(part.name, part.is_error) for part in results] == [
                ("view", False),
                ("look", False),
                ("write", False),
            ]
            assert list(again_look.calls) == []
            await check_wires(messages, summary_seq=0)
        await scene.cancel()


async def test_of_a_read_that_ran_beside_one_that_waited_nobody_is_told_that_it_was_not_run(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("far\n")
    look, gate = reading("look")
    calls = [call("view", path=str(outside)), call("look"), call("bash", command="touch b.txt")]
    async with open_scenario(tmp_path, [calls], tools=[look]) as scene:
        await scene.start("look outside", ask=True)
        await scene.asked()
        await gate.reached()
        async with restarted(scene.running, ScriptedModel([]), config=json.dumps(PLAIN), tools=[look]) as again:
            assert (await again.workspace.run("r1", wait_s=30)).outcome is Outcome.INTERRUPTED
            results = results_in(await again.messages())
            assert [part.name for part in results] == ["view", "look", "bash"]
            assert ["was not run" in part.content for part in results] == [True, False, True]
        await scene.cancel()


def results_in(messages: "list[Message] | tuple[Message, ...]") -> list[ToolResultPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolResultPart)]
