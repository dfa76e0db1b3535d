"""The scripted model and tool that every other test stands on."""

import asyncio
from pathlib import Path

import pytest
from model_events import answer_events

from longboat.core.tool import ToolSpec
from longboat.errors import ModelError
from longboat.models.protocol import (
    Finished,
    Model,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from longboat.testing import (
    Break,
    CallTool,
    Delay,
    Fail,
    Gate,
    Hang,
    Pause,
    Say,
    ScriptedModel,
    ScriptedTool,
    Step,
    Stop,
    Think,
    Use,
    words,
)
from longboat.testing.tool_context import OpenToolContext
from longboat.tools.protocol import Tool, ToolCall, ToolResult
from longboat.wire.models import Message, Role, TextPart, Usage


def request(text: str = "hello") -> ModelRequest:
    message = Message(
        id="m", session_id="s", run_id="r", seq=1, role=Role.USER, parts=(TextPart(text=text),), created_at=""
    )
    return ModelRequest(system="", messages=(message,))


async def read(model: Model, seen: list[ModelEvent], asked: ModelRequest | None = None) -> None:
    async with model.stream(asked or request()) as events:
        async for event in answer_events(events):
            seen.append(event)


async def events_of(model: Model, asked: ModelRequest | None = None) -> list[ModelEvent]:
    seen: list[ModelEvent] = []
    await read(model, seen, asked)
    return seen


async def test_a_step_is_played_item_by_item() -> None:
    step: Step = [
        Think("hm"),
        Say("Hel"),
        Delay(0),
        Say("lo"),
        CallTool("look", {"at": 1}),
        CallTool("cut", '{"a', call_id="own"),
        Use(input_tokens=3, output_tokens=2, cost=0.5),
    ]
    model = ScriptedModel([step])
    assert await events_of(model) == [
        ReasoningDelta("hm"),
        TextDelta("Hel"),
        TextDelta("lo"),
        ToolCallStart(0, "call_1", "look"),
        ToolCallDelta(0, '{"at":1}'),
        ToolCallStart(1, "own", "cut"),
        ToolCallDelta(1, '{"a'),
        Finished(StopReason.TOOL_USE, Usage(input_tokens=3, output_tokens=2, cost=0.5)),
    ]
    assert model.abandoned == 0


async def test_stop_ends_a_step_with_its_reason() -> None:
    model = ScriptedModel([[Say("a"), Stop(StopReason.MAX_TOKENS), Say("never")]])
    assert await events_of(model) == [TextDelta("a"), Finished(StopReason.MAX_TOKENS)]


async def test_requests_are_recorded_and_can_be_waited_for() -> None:
    model = ScriptedModel([[Say("1")], [Say("2")]])
    waiting = asyncio.create_task(model.wait_requests(2))
    first, second = request("one"), request("two")
    await events_of(model, first)
    assert not waiting.done()
    await events_of(model, second)
    await waiting
    assert model.requests == [first, second]


async def test_a_gate_holds_the_model_until_it_is_opened() -> None:
    gate = Gate()
    seen: list[ModelEvent] = []
    reading = asyncio.create_task(read(ScriptedModel([[Say("a"), Pause(gate), Say("b")]]), seen))
    await gate.reached()
    assert seen == [TextDelta("a")]
    gate.open()
    await reading
    assert seen == [TextDelta("a"), TextDelta("b"), Finished(StopReason.END_TURN)]


async def test_a_refusal_comes_before_an_answer_and_a_failure_within_it() -> None:
    error = ModelError("no", code="auth")
    model = ScriptedModel([[Fail(error)], [Say("a"), Fail(error)]])
    with pytest.raises(ModelError, match="no"):
        assert not await events_of(model), "refused requests have no answer"
    seen: list[ModelEvent] = []
    with pytest.raises(ModelError, match="no"):
        await read(model, seen)
    assert seen == [TextDelta("a")]
    assert model.abandoned == 0


async def test_a_broken_stream_is_retryable() -> None:
    with pytest.raises(ModelError) as caught:
        await events_of(ScriptedModel([[Say("a"), Break()]]))
    assert (caught.value.code, caught.value.retryable) == ("stream_broken", True)


async def test_a_hanging_model_leaves_when_it_is_canceled() -> None:
    model = ScriptedModel([[Hang()]])
    task = asyncio.create_task(events_of(model))
    await model.wait_requests(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.abandoned == 1


async def test_leaving_early_is_counted() -> None:
    model = ScriptedModel([words("one two three")])
    async with model.stream(request()) as events:
        assert await anext(answer_events(events)) == TextDelta("one")
    assert model.abandoned == 1


async def test_a_script_that_runs_out_says_so() -> None:
    model = ScriptedModel([[Say("only")]])
    await events_of(model)
    with pytest.raises(ModelError) as caught:
        await events_of(model, request("again"))
    assert caught.value.message == (
        "Request 2 came to the scripted model, but all 1 steps of the script are used up. The last prompt was 'again'."
    )
    assert not caught.value.retryable


async def test_steps_can_be_added_repeated_or_computed() -> None:
    model = ScriptedModel()
    model.add([Say("later")])
    assert await events_of(model) == [TextDelta("later"), Finished(StopReason.END_TURN)]

    model = ScriptedModel([[Say("1")], [Say("2")]], repeat=True)
    assert [(await events_of(model))[0] for _ in range(5)] == [TextDelta(text) for text in "12121"]

    model = ScriptedModel(lambda asked: [Say(f"{len(asked.messages)} messages")])
    assert (await events_of(model))[0] == TextDelta("1 messages")

    assert await events_of(ScriptedModel.echo(), request("a  b")) == [
        TextDelta("echo:"),
        TextDelta(" a"),
        TextDelta(" "),
        TextDelta(" b"),
        Finished(StopReason.END_TURN),
    ]


def test_a_model_has_the_name_and_window_it_was_given() -> None:
    model: Model = ScriptedModel(provider="p", name="n", context_window=9)
    assert (model.provider, model.name, model.context_window) == ("p", "n", 9)


CALL = ToolCall(call_id="c", name="look", arguments={"at": 1}, session_id="s", run_id="r")
KIT = OpenToolContext(Path("/"))


async def test_a_tool_replies_records_and_raises() -> None:
    tool: Tool = ScriptedTool("look")
    assert tool.spec == ToolSpec(
        name="look", description="A scripted tool.", schema={"type": "object"}, brief="A scripted tool."
    )
    assert await tool.run(CALL, KIT) == ToolResult(content="done")

    failed = ToolResult(content="no", is_error=True)
    assert await ScriptedTool("look", failed).run(CALL, KIT) == failed

    computed = ScriptedTool("look", lambda call: f"at {call.arguments['at']}")
    assert await computed.run(CALL, KIT) == ToolResult(content="at 1")
    await computed.wait_calls(1)
    assert computed.calls == [CALL]

    with pytest.raises(OSError, match="gone"):
        await ScriptedTool("look", OSError("gone")).run(CALL, KIT)


async def test_a_tool_waits_at_its_gate_and_lets_a_cancel_through() -> None:
    gate = Gate()
    tool = ScriptedTool("look", gate=gate)
    canceled = asyncio.create_task(tool.run(CALL, KIT))
    await gate.reached()
    canceled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await canceled
    assert tool.canceled == 1
    gate.open()
    assert await tool.run(CALL, KIT) == ToolResult(content="done")
