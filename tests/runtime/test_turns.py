"""The turn as a person meets it: it answers, streams, fails in the open, and leaves a whole transcript."""

import asyncio
import random
from collections.abc import Iterable
from pathlib import Path

import pytest
from checks import check_ends, check_requests, finish_of
from running_app import launch

from longboat.core.turn import LOOP_REPEATS
from longboat.errors import ModelError
from longboat.models.protocol import StopReason
from longboat.testing import (
    Break,
    CallTool,
    Fail,
    Gate,
    Pause,
    Say,
    ScriptedModel,
    ScriptedTool,
    Step,
    Stop,
    Think,
    Use,
)
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.wire.models import (
    AgentEvent,
    AgentEventType,
    FinishPart,
    FinishReason,
    Message,
    Outcome,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)


def results(messages: Iterable[Message]) -> list[ToolResultPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolResultPart)]


async def test_a_prompt_is_answered_and_its_terminal_event_comes_last(tmp_path: Path) -> None:
    """E1, T5: one terminal event, after the final state of the messages."""
    model = ScriptedModel([[Say("Hello, "), Say("crew.")]])
    async with launch(tmp_path, model) as running:
        await running.submit("Say hello", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "Hello, crew.")
        assert len(running.watcher.terminals("r1")) == 1
        kinds = [event.type for event in running.watcher.events]
        last_message = max(index for index, kind in enumerate(kinds) if kind == "message")
        assert last_message < kinds.index("run_complete")
        user, answer = await running.messages()
        assert user.parts == (TextPart(text="Say hello"),)
        assert answer.parts == (TextPart(text="Hello, crew."), FinishPart(reason=FinishReason.END_TURN))
        await check_ends(running)


async def test_busy_lasts_until_the_turn_has_unwound(tmp_path: Path) -> None:
    """T6."""
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Say("a"), Pause(gate), Say("b")]])) as running:
        await running.submit("go", "r1")
        await gate.reached()
        assert (await running.workspace.session_status(running.session_id)).busy
        gate.open()
        await running.completed("r1")
        assert not (await running.workspace.session_status(running.session_id)).busy


async def test_nothing_of_a_fast_turn_is_flushed_after_its_terminal_event(tmp_path: Path) -> None:
    """T5: deltas that still wait when the turn ends go out before its end, in order."""
    words = [f"word{number} " for number in range(5_000)]
    async with launch(tmp_path, ScriptedModel([[Say(word) for word in words]])) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "".join(words)
        deltas = [event.text for event in running.watcher.of("message_delta")]
        assert "".join(deltas) == "".join(words)
        await check_ends(running)


@pytest.mark.parametrize("reason", [StopReason.MAX_TOKENS, StopReason.CONTENT_FILTER])
async def test_an_answer_that_was_cut_is_an_end_with_its_reason(tmp_path: Path, reason: StopReason) -> None:
    """E1: outcome end_turn, finish reason as the provider gave it."""
    async with launch(tmp_path, ScriptedModel([[Say("so far"), Stop(reason)]])) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).outcome is Outcome.END_TURN
        assert finish_of((await running.messages())[-1]).reason == reason.value
        await check_ends(running)


# Errors


async def test_an_error_in_mid_stream_keeps_what_was_streamed(tmp_path: Path) -> None:
    """T3: text stays, open calls get a result, the answer says what went wrong, and the session goes on."""
    refusal = ModelError("Your account is out of credit.", title="Quota used up")
    model = ScriptedModel([[Say("so far"), CallTool("look", '{"at', "c1"), Fail(refusal)], [Say("next")]])
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.ERROR, "so far")
        assert complete.error == "Quota used up: Your account is out of credit."
        _, answer, tool = await running.messages()
        assert answer.parts == (
            TextPart(text="so far"),
            ToolCallPart(id="c1", name="look", input="{}", finished=True),
            FinishPart(
                reason=FinishReason.ERROR,
                title="Quota used up",
                detail="Your account is out of credit.",
                code="model_error",
            ),
        )
        assert [(part.tool_call_id, part.is_error) for part in results([tool])] == [("c1", True)]
        notices = [e for e in running.watcher.of("agent_event") if e.type is AgentEventType.ERROR]
        assert notices == [
            AgentEvent(
                type=AgentEventType.ERROR,
                session_id=running.session_id,
                run_id="r1",
                message="Quota used up",
                detail="Your account is out of credit.",
            )
        ]
        assert (await running.workspace.run("r1")).error == complete.error
        await running.submit("next", "r2")
        assert (await running.completed("r2")).text == "next"
        check_requests(model.requests)
        await check_ends(running)


async def test_a_model_that_is_not_configured_ends_the_run_with_an_error(tmp_path: Path) -> None:
    """E3, L11: a terminal event with the error, a notice besides, and the next prompt works once there is a model."""
    async with launch(tmp_path, ScriptedModel([[Say("here now")]])) as running:
        source, running.app._models._source = running.app._models._source, None  # as a server without any provider
        await running.submit("go", "r1", model="nobody/nothing")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.ERROR, "")
        assert "nobody" in complete.error
        (notice,) = [e for e in running.watcher.of("agent_event") if e.type is AgentEventType.ERROR]
        assert (notice.run_id, notice.session_id) == ("r1", running.session_id)
        user, answer = await running.messages()
        assert (user.role, finish_of(answer).reason) == (Role.USER, FinishReason.ERROR)
        running.app._models._source = source
        await running.submit("again", "r2")
        assert (await running.completed("r2")).text == "here now"
        await check_ends(running)


async def test_a_broken_config_ends_the_run_with_the_place_to_mend(tmp_path: Path) -> None:
    """E3: the file was spoiled after the server started."""
    async with launch(tmp_path, ScriptedModel([[Say("mended")]])) as running:
        config = running.workspace.directory / "longboat.json"
        sound = config.read_text()
        config.write_text('{"titles": 3}')
        await running.submit("go", "r1")
        assert "longboat.json" in (await running.completed("r1")).error
        config.write_text(sound)
        await running.submit("go", "r2")
        assert (await running.completed("r2")).text == "mended"
        await check_ends(running)


async def test_a_fault_of_ours_is_an_error_of_the_run_and_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """E1: whatever an adapter raises, the run ends once and the session goes on."""

    def answer(request: object) -> Step:
        if len(model.requests) == 1:
            raise ZeroDivisionError("a defect")
        return [Say("fine")]

    model = ScriptedModel(answer)
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert complete.outcome is Outcome.ERROR
        assert "ZeroDivisionError" in complete.error
        assert "a defect" in caplog.text
        await running.submit("go", "r2")
        assert (await running.completed("r2")).text == "fine"
        await check_ends(running)


async def test_a_turn_that_cannot_be_closed_still_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """E1: a defect in the very end of a turn does not leave the run active and the session busy for ever."""
    model = ScriptedModel([[Say("a")], [Say("b")]])
    async with launch(tmp_path, model) as running:
        with monkeypatch.context() as patch:
            patch.setattr("longboat.runtime.turn.turn.close_turn", lambda *args, **kwargs: 1 / 0)
            await running.submit("go", "r1")
            complete = await running.completed("r1")
        assert complete.outcome is Outcome.ERROR
        assert complete.error == "Longboat failed. See the server's log for details."
        assert "ZeroDivisionError" in caplog.text
        await running.submit("go", "r2")
        assert (await running.completed("r2")).text == "b"


# Tools


async def test_what_goes_wrong_in_a_call_is_a_result_that_the_model_reads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """T3: an unknown tool, input that is no JSON object, a tool that raises, one whose own task was canceled."""

    def leak(call: ToolCall) -> str:
        raise asyncio.CancelledError

    calls = [
        CallTool("nope", {}, "c1"),
        CallTool("look", "{not json", "c2"),
        CallTool("look", "[1]", "c3"),
        CallTool("look", '{"a":' * 5_000, "c4"),
        CallTool("burst", {}, "c5"),
        CallTool("leak", {}, "c6"),
        CallTool("look", "", "c7"),
        CallTool("odd", {}, "c8"),
    ]
    model = ScriptedModel([calls, [Say("I see")]])
    tools = [
        ScriptedTool("look", "fine"),
        ScriptedTool("burst", ValueError("too hot")),
        ScriptedTool("leak", leak),
        ScriptedTool("odd", ToolResult(content="half a pair: \ud83d", is_error=False)),
    ]
    async with launch(tmp_path, model, tools=tools) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "I see"), complete
        found = {result.tool_call_id: result for result in results(model.requests[1].messages)}
        assert [call_id for call_id, result in found.items() if not result.is_error] == ["c7", "c8"]
        assert "no tool 'nope'" in found["c1"].content
        assert "look" in found["c1"].content  # and which there are
        for call_id in ("c2", "c3", "c4"):
            assert "not a JSON object" in found[call_id].content
        assert "too hot" in found["c5"].content
        assert found["c8"].content == "half a pair: \ufffd"
        assert len(tools[0].calls) == 1
        check_requests(model.requests)
        await check_ends(running)


async def test_a_turn_that_goes_round_in_circles_is_stopped(tmp_path: Path) -> None:
    """T9: the same call with the same result, again and again; the session goes on."""
    tool = ScriptedTool("look", "nothing there")
    model = ScriptedModel(
        lambda request: [Say("ok")] if len(model.requests) > LOOP_REPEATS else [CallTool("look", {"at": "x"})]
    )
    async with launch(tmp_path, model, tools=[tool]) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert complete.outcome is Outcome.ERROR
        assert "the agent was looping" in complete.error
        assert len(tool.calls) == len(model.requests) == LOOP_REPEATS
        await running.submit("do it differently", "r2")
        assert (await running.completed("r2")).text == "ok"
        check_requests(model.requests)
        await check_ends(running)


async def test_the_same_call_with_new_results_is_no_circle(tmp_path: Path) -> None:
    """T9."""
    numbers = iter(range(100))
    tool = ScriptedTool("poll", lambda call: f"{next(numbers)} %")
    model = ScriptedModel([*[[CallTool("poll")]] * 12, [Say("done")]])
    async with launch(tmp_path, model, tools=[tool]) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "done"
        await check_ends(running)


# What clients see


def scripted_turn(dice: random.Random) -> list[Step]:
    """A turn of any shape; text far beyond what fits into 16 bits."""
    letters = 'aß€𝔘🛶\u200d\n"\\\x00'

    def text() -> str:
        return "".join(dice.choices(letters, k=dice.randint(1, 40)))

    def answer(*, calls: int) -> Step:
        spoken = [Say(text()) if dice.random() < 0.5 else Think(text()) for _ in range(dice.randint(0, 6))]
        return [*spoken, *[CallTool("look", {"at": text()}) for _ in range(calls)]]

    steps: list[Step] = []
    for _ in range(dice.randint(0, 3)):
        if dice.random() < 0.3:
            steps.append([*answer(calls=dice.randint(0, 1)), Break()])
        steps.append(answer(calls=dice.randint(1, 3)))
    return [*steps, [*answer(calls=0), Say(f"So {text()}")]]


@pytest.mark.parametrize("seed", range(8))
async def test_deltas_and_whole_messages_add_up_to_the_stored_transcript(tmp_path: Path, seed: int) -> None:
    """T5, T7: whoever replays every event by the client's rules has exactly what the store has."""
    dice = random.Random(seed)
    model = ScriptedModel()
    async with launch(
        tmp_path, model, tools=[ScriptedTool("look", lambda call: f"🔎 {call.arguments['at']}")]
    ) as running:
        for number in range(6):
            model.add(*scripted_turn(dice))
            await running.submit("🛶 go", f"r{number}")
            assert (await running.completed(f"r{number}")).outcome is Outcome.END_TURN
        assert len(running.watcher.of("message_delta")) > 6
        check_requests(model.requests)
        await check_ends(running)


async def test_half_a_surrogate_pair_from_a_model_does_not_break_the_turn(tmp_path: Path) -> None:
    """E1: what no UTF-8 can say becomes the replacement character."""
    async with launch(tmp_path, ScriptedModel([[Say("a\ud83d"), Think("\ude00"), Say("b")]])) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "a\ufffdb")
        await check_ends(running)


@pytest.mark.parametrize(
    "usage",
    [
        Usage(input_tokens=10**30, output_tokens=-5),
        Usage(input_tokens=2**63 - 1, output_tokens=2**63 - 1),
        Usage(cost=float("inf")),
        Usage(cost=float("nan")),
    ],
    ids=["huge", "int64", "infinite", "not a number"],
)
async def test_nonsense_counts_of_a_provider_cost_no_run_its_end(tmp_path: Path, usage: Usage) -> None:
    """E1, E2: the ledger takes what can be counted."""
    use = Use(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost=usage.cost)
    async with launch(tmp_path, ScriptedModel([[Say("hi"), use]])) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).outcome is Outcome.END_TURN
        counted = (await running.workspace.session(running.session_id)).usage
        assert 0 <= counted.input_tokens <= 10**9
        assert 0 <= counted.output_tokens <= 10**9
        assert counted.cost == 0


@pytest.mark.parametrize(
    "config", ["{ half written", '{"providers": {"x": {"type": "openai", "base_url": "http://x"}}}']
)
async def test_a_configuration_that_is_edited_in_mid_turn_does_not_end_the_turn(tmp_path: Path, config: str) -> None:
    """A formatter, a git pull or a person at the keyboard: the turn has its model and goes on."""
    gate = Gate()
    tool = ScriptedTool("look", gate=gate)
    async with launch(tmp_path, ScriptedModel([[CallTool("look")], [Say("done")]]), tools=[tool]) as running:
        await running.submit("go", "r1")
        await gate.reached()
        (running.workspace.directory / "longboat.json").write_text(config)
        gate.open()
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "done")
