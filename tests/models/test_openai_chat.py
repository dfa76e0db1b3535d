"""The native OpenAI-chat adapter, mostly against the scripted endpoint over real HTTP."""

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from descriptors import none_left
from model_events import answer_events

from longboat.core.tool import ToolSpec
from longboat.errors import ModelError
from longboat.models import openai_chat
from longboat.models.chat_habits import ChatMemory
from longboat.models.memory import forget_learned
from longboat.models.openai_chat import OpenAIChatModel
from longboat.models.openai_request import Dialect
from longboat.models.protocol import (
    Abilities,
    Finished,
    Model,
    ModelEvent,
    ModelRequest,
    Notice,
    Progress,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from longboat.testing import Break, CallTool, Fail, Gate, Hang, Pause, Raw, Refuse, Say, Stop, Think, Use, words
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.wire.models import (
    FilePart,
    Message,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)

KEY = "sk-very-secret-0123"
USED = Usage(input_tokens=1, output_tokens=1, cost=None)


def message(role: Role, *parts: Part) -> Message:
    return Message(id="i", session_id="s", run_id="r", seq=1, role=role, parts=parts, created_at="")


def prompt(text: str = "hi") -> ModelRequest:
    return ModelRequest(system="", messages=(message(Role.USER, TextPart(text=text)),))


async def read(model: Model, seen: list[ModelEvent]) -> None:
    async with model.stream(prompt()) as events:
        async for event in answer_events(events):
            seen.append(event)


async def ask(model: Model, request: ModelRequest) -> str:
    async with model.stream(request) as events:
        return "".join([event.text async for event in events if isinstance(event, TextDelta)])


async def events_of(model: Model) -> list[ModelEvent]:
    seen: list[ModelEvent] = []
    await read(model, seen)
    return seen


async def error_of(model: Model) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await events_of(model)
    assert KEY not in caught.value.message
    assert caught.value.__cause__ is None
    return caught.value


@pytest.fixture
async def endpoint() -> AsyncIterator[ScriptedEndpoint]:
    async with ScriptedEndpoint() as served:
        yield served


@pytest.fixture
async def model(endpoint: ScriptedEndpoint) -> AsyncIterator[OpenAIChatModel]:
    adapter = OpenAIChatModel(
        provider="mine", name="m", base_url=endpoint.base_url + "/", api_key=KEY, headers={"X-Team": "longboat-team"}
    )
    yield adapter
    await adapter.aclose()


# What comes back

THOUGHT = message(
    Role.ASSISTANT,
    ReasoningPart(text="hm", signature='{"field":"reasoning_content"}'),
    ToolCallPart(id="one", name="look", input="{}", finished=True),
)
RESULT = message(Role.TOOL, ToolResultPart(tool_call_id="one", content="seen"))


async def test_a_server_that_refuses_reasoning_is_asked_without_it(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel
) -> None:
    endpoint.add([Refuse(400, "property 'reasoning_content' is unsupported")])
    endpoint.add([Say("a")])
    endpoint.add([Say("b")])
    request = ModelRequest(system="", messages=(*prompt().messages, THOUGHT, RESULT))
    assert await ask(model, request) == "a"
    assert await ask(model, request) == "b"
    sent = ["reasoning_content" in str(exchange.body) for exchange in endpoint.requests]
    assert sent == [True, False, False]


async def test_a_server_that_misses_reasoning_is_asked_with_all_of_it(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel
) -> None:
    endpoint.add([Refuse(400, "The reasoning_content in the thinking mode must be passed back to the API")])
    endpoint.add([Say("a")])
    request = ModelRequest(system="", messages=(*prompt().messages, THOUGHT, RESULT, *prompt().messages))
    assert await ask(model, request) == "a"
    assert ["hm" in str(exchange.body) for exchange in endpoint.requests] == [False, True]


NEEDED = "Missing `reasoning_content` field in the assistant message at message index 3"
UNKNOWN_FIELD = "property 'reasoning_content' is unsupported"
EARLIER = (*prompt().messages, THOUGHT, RESULT, *prompt().messages)
"""A conversation with reasoning before its last prompt, and a call without any, as another model makes one."""
CALL = message(Role.ASSISTANT, ToolCallPart(id="two", name="look", input="{}", finished=True))
MORE = message(Role.TOOL, ToolResultPart(tool_call_id="two", content="seen"))


def reasoning_in(endpoint: ScriptedEndpoint) -> list[list[str | None]]:
    """The reasoning of the assistant's messages, for each request."""
    return [
        [message.get("reasoning_content") for message in exchange.body["messages"] if message["role"] == "assistant"]
        for exchange in endpoint.requests
    ]


async def test_a_server_that_misses_reasoning_in_the_turn_gets_all_of_it(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel
) -> None:
    endpoint.add([Refuse(400, NEEDED)], [Say("a")], [Say("b")])
    request = ModelRequest(system="", messages=(*EARLIER, THOUGHT, RESULT, CALL, MORE))
    assert await ask(model, request) == "a"
    assert await ask(model, request) == "b"
    assert reasoning_in(endpoint) == [[None, "hm", None], ["hm", "hm", ""], ["hm", "hm", ""]]


@pytest.mark.parametrize(
    ("said", "tried"),
    [
        (UNKNOWN_FIELD, [["hm", None], [None, None], ["hm", ""]]),
        (NEEDED, [["hm", None], ["hm", ""], [None, None]]),
    ],
)
async def test_what_did_not_help_is_not_kept(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel, said: str, tried: list[list[str | None]]
) -> None:
    endpoint.add([Refuse(400, said)], [Refuse(400, f"{said}, again")], [Refuse(400, f"{said}, again")], [Say("b")])
    request = ModelRequest(system="", messages=(*prompt().messages, THOUGHT, RESULT, CALL, MORE))
    with pytest.raises(ModelError) as caught:
        await ask(model, request)
    assert caught.value.message == f"mine answered 400: {said}"
    assert await ask(model, request) == "b"
    assert reasoning_in(endpoint) == [*tried, tried[0]]


async def test_a_later_refusal_for_another_reason_is_told(endpoint: ScriptedEndpoint, model: OpenAIChatModel) -> None:
    endpoint.add([Refuse(400, UNKNOWN_FIELD)], [Refuse(400, "bad temperature")])
    with pytest.raises(ModelError, match="bad temperature"):
        await ask(model, ModelRequest(system="", messages=(*prompt().messages, THOUGHT, RESULT)))


async def test_two_requests_at_once_both_find_what_the_server_wants(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel
) -> None:
    gates = Gate(), Gate()
    for gate in gates:
        endpoint.add([Pause(gate), Refuse(400, UNKNOWN_FIELD)])
    endpoint.add([Say("a")], [Say("a")])
    request = ModelRequest(system="", messages=(*prompt().messages, THOUGHT, RESULT))
    asked = asyncio.gather(ask(model, request), ask(model, request))
    for gate in gates:
        await gate.reached()
    for gate in gates:
        gate.open()
    assert await asked == ["a", "a"]


async def test_what_the_server_wants_is_still_known_after_a_restart(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    def model() -> OpenAIChatModel:
        memory = ChatMemory(tmp_path, address=endpoint.base_url, model="m")
        return OpenAIChatModel(provider="mine", name="m", base_url=endpoint.base_url, memory=memory)

    endpoint.add([Refuse(400, UNKNOWN_FIELD)], [Say("a")], [Say("b")], [Say("c")])
    request = ModelRequest(system="", messages=(*prompt().messages, THOUGHT, RESULT))
    for answer in ("a", "b"):
        asked = model()
        assert await ask(asked, request) == answer
        await asked.aclose()
    forget_learned(tmp_path)
    asked = model()
    await ask(asked, request)
    await asked.aclose()
    assert reasoning_in(endpoint) == [["hm"], [None], [None], ["hm"]]


def withdraws(event: ModelEvent) -> bool:
    return isinstance(event, Notice) and event.withdraw


async def test_that_a_model_begins_with_thoughts_is_known_the_next_time(
    endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    def model() -> OpenAIChatModel:
        memory = ChatMemory(tmp_path, address=endpoint.base_url, model="m")
        return OpenAIChatModel(provider="mine", name="m", base_url=endpoint.base_url, memory=memory)

    endpoint.add(*[[Say("Hm.\n"), Say("</think>"), Say("\n\n4")]] * 2, [Say("Just 4")], [Say("4")])
    seen: list[list[ModelEvent]] = []
    for _ in range(4):
        asked = model()
        events = await events_of(asked)
        await asked.aclose()
        seen.append([event for event in events if not isinstance(event, Finished)])
    first, second, third, fourth = seen
    assert first[0] == TextDelta("Hm.\n")
    assert withdraws(first[1])
    assert first[2:] == [ReasoningDelta("Hm."), TextDelta("4")]
    assert second == [ReasoningDelta("Hm.\n"), TextDelta("4")]
    assert withdraws(third[1])
    assert third[2:] == [TextDelta("Just 4")]
    assert fourth == [TextDelta("4")]


async def test_a_configured_way_is_not_left(endpoint: ScriptedEndpoint) -> None:
    endpoint.add([Refuse(400, UNKNOWN_FIELD)])
    model = OpenAIChatModel(
        provider="mine", name="m", base_url=endpoint.base_url, dialect=Dialect(send_reasoning="turn")
    )
    with pytest.raises(ModelError):
        await ask(model, ModelRequest(system="", messages=(*prompt().messages, THOUGHT, RESULT)))
    await model.aclose()
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("said", ["reasoning_effort is not supported", "no such thing"])
async def test_other_refusals_are_not_asked_about_again(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel, said: str
) -> None:
    endpoint.add([Refuse(400, said)])
    with pytest.raises(ModelError, match=said):
        await ask(model, ModelRequest(system="", messages=(*prompt().messages, THOUGHT, RESULT)))
    assert len(endpoint.requests) == 1


# Fields that not every server knows

ASKED = ModelRequest(system="", messages=prompt().messages, max_output_tokens=100, effort="low")
FIELDS = {"stream_options", "max_tokens", "max_completion_tokens", "reasoning_effort"}


def fields_in(endpoint: ScriptedEndpoint) -> list[set[str]]:
    return [FIELDS & exchange.body.keys() for exchange in endpoint.requests]


@pytest.mark.parametrize(
    ("refused", "instead"),
    [
        (Refuse(400, "Unrecognized request argument supplied: stream_options"), {"max_tokens", "reasoning_effort"}),
        (Refuse(422, "body.stream_options: Extra inputs are not permitted"), {"max_tokens", "reasoning_effort"}),
        (
            Refuse(
                400,
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
                " instead.",
            ),
            {"stream_options", "max_completion_tokens", "reasoning_effort"},
        ),
        (Refuse(400, "reasoning_effort is not supported"), {"stream_options", "max_tokens"}),
    ],
    ids=["stream_options", "pydantic", "max_tokens", "effort"],
)
async def test_a_field_that_the_server_does_not_know_is_left_out_also_after_a_restart(
    endpoint: ScriptedEndpoint, tmp_path: Path, refused: Refuse, instead: set[str]
) -> None:
    endpoint.add([refused], [Say("a")], [Say("b")])
    for answer in ("a", "b"):
        memory = ChatMemory(tmp_path, address=endpoint.base_url, model="m")
        model = OpenAIChatModel(provider="mine", name="m", base_url=endpoint.base_url, memory=memory)
        assert await ask(model, ASKED) == answer
        await model.aclose()
    usual = {"stream_options", "max_tokens", "reasoning_effort"}
    assert fields_in(endpoint) == [usual, instead, instead]
    bodies = [exchange.body for exchange in endpoint.requests]
    assert [body.get("max_tokens", body.get("max_completion_tokens")) for body in bodies] == [100] * 3


async def test_people_are_told_once_that_the_effort_is_ignored(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel
) -> None:
    endpoint.add([Refuse(400, "reasoning_effort is not supported")], [Say("a")], [Say("b")])
    told: list[str] = []
    for _ in range(2):
        async with model.stream(ASKED) as events:
            told += [event.message async for event in events if isinstance(event, Notice)]
    assert told == ["mine/m has no reasoning effort setting; it is ignored."]


async def test_several_fields_and_reasoning_that_are_refused_are_left_out_one_by_one(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel
) -> None:
    endpoint.add([Refuse(400, "Unknown parameter: 'stream_options'")], [Refuse(400, UNKNOWN_FIELD)])
    endpoint.add([Refuse(400, "Unknown parameter: 'max_tokens'")], [Say("a")], [Say("b")])
    request = replace(ASKED, messages=(*prompt().messages, THOUGHT, RESULT))
    assert (await ask(model, request), await ask(model, request)) == ("a", "b")
    assert fields_in(endpoint)[-2:] == [{"max_completion_tokens", "reasoning_effort"}] * 2
    assert reasoning_in(endpoint) == [["hm"], ["hm"], [None], [None], [None]]


@pytest.mark.parametrize(
    "said",
    [
        "max_tokens must be at most 4096",
        "Unsupported value: 'reasoning_effort' does not support 'low' with this model.",
        "Unsupported parameter: 'temperature'",
        "stream_options is unknown, says the prompt",
    ],
)
async def test_a_value_that_is_refused_is_not_left_out_and_nothing_is_tried_twice(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel, said: str
) -> None:
    tries = 2 if said.startswith("stream_options") else 1
    endpoint.add(*[[Refuse(400, said)]] * tries)
    with pytest.raises(ModelError, match=said[:20]):
        await ask(model, ASKED)
    assert len(endpoint.requests) == tries


async def test_reasoning_of_another_model_is_not_sent(endpoint: ScriptedEndpoint, model: OpenAIChatModel) -> None:
    endpoint.add([Say("a")])
    other = msgspec.structs.replace(THOUGHT, provider="other", model="m")
    await ask(model, ModelRequest(system="", messages=(*prompt().messages, other, RESULT)))
    assert "hm" not in str(endpoint.requests[0].body)


async def test_text_reasoning_and_usage_are_streamed(endpoint: ScriptedEndpoint, model: OpenAIChatModel) -> None:
    endpoint.add([Think("hm"), Say("Hé"), Say("llo ☃"), Use(input_tokens=7, output_tokens=3, cost=0.25)])
    assert await events_of(model) == [
        ReasoningDelta("hm"),
        ReasoningDelta("", '{"field":"reasoning_content"}'),
        TextDelta("Hé"),
        TextDelta("llo ☃"),
        Finished(StopReason.END_TURN, Usage(input_tokens=7, output_tokens=3, cost=0.25)),
    ]
    (exchange,) = endpoint.requests
    assert exchange.path == "/v1/chat/completions"
    assert exchange.headers["authorization"] == f"Bearer {KEY}"
    assert exchange.headers["x-team"] == "longboat-team"
    assert exchange.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_tool_calls_are_streamed_with_their_pieces(endpoint: ScriptedEndpoint, model: OpenAIChatModel) -> None:
    endpoint.add([Say("so"), CallTool("look", {"at": 1}, call_id="one"), CallTool("stop", "", call_id="two")])
    assert await events_of(model) == [
        TextDelta("so"),
        ToolCallStart(0, "one", "look"),
        ToolCallDelta(0, '{"at'),
        ToolCallDelta(0, '":1}'),
        ToolCallStart(1, "two", "stop"),
        Finished(StopReason.TOOL_USE, USED),
    ]


@pytest.mark.parametrize("reason", [StopReason.END_TURN, StopReason.MAX_TOKENS, StopReason.CONTENT_FILTER])
async def test_finish_reasons_are_mapped(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel, reason: StopReason
) -> None:
    endpoint.add([Say("a"), Stop(reason)])
    assert (await events_of(model))[-1] == Finished(reason, USED)


async def test_a_burst_arrives_whole(endpoint: ScriptedEndpoint, model: OpenAIChatModel) -> None:
    async with model.stream(prompt("[[burst:3000:7]]")) as events:
        texts = [event.text async for event in events if isinstance(event, TextDelta)]
    assert texts == [f"word{number % 1000} " for number in range(3000)]


async def test_a_connection_is_kept_for_the_next_request(endpoint: ScriptedEndpoint, model: OpenAIChatModel) -> None:
    await events_of(model)
    await events_of(model)
    assert len({exchange.peer for exchange in endpoint.requests}) == 1


async def test_leaving_with_the_last_event_keeps_the_connection_too(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel
) -> None:
    for _ in range(2):
        async with model.stream(prompt()) as events:
            async for event in answer_events(events):
                if isinstance(event, Finished):
                    break
    assert len({exchange.peer for exchange in endpoint.requests}) == 1


async def test_a_closed_model_opens_a_new_connection(endpoint: ScriptedEndpoint) -> None:
    model = OpenAIChatModel(provider="p", name="m", base_url=endpoint.base_url, context_window=9)
    for _ in range(2):
        await events_of(model)
        await model.aclose()
    assert (model.provider, model.name, model.context_window) == ("p", "m", 9)
    assert len({exchange.peer for exchange in endpoint.requests}) == 2
    assert "authorization" not in endpoint.requests[0].headers


# Leaving early


async def test_leaving_early_closes_the_connection_at_once(endpoint: ScriptedEndpoint, model: OpenAIChatModel) -> None:
    endpoint.add([Say("a"), Hang()])
    async with model.stream(prompt()) as events:
        assert await anext(answer_events(events)) == TextDelta("a")
    await endpoint.requests[0].ended.wait()
    assert endpoint.requests[0].state == "abandoned"


@pytest.mark.parametrize("said", [[], [Say("a")]], ids=["before the first byte", "in mid-answer"])
async def test_a_cancel_closes_the_connection_at_once(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel, said: list[Say]
) -> None:
    gate = Gate()
    endpoint.add([*said, Pause(gate)])
    task = asyncio.create_task(events_of(model))
    await gate.reached()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await endpoint.requests[0].ended.wait()
    assert endpoint.requests[0].state == "abandoned"


async def test_a_server_that_does_not_close_after_done_is_not_waited_for(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel
) -> None:
    end = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    endpoint.add([Say("a"), Raw(end), Hang()])
    async with model.stream(prompt()) as events:
        answer = answer_events(events)
        assert [await anext(answer), await anext(answer)] == [TextDelta("a"), Finished(StopReason.END_TURN)]
    await endpoint.requests[0].ended.wait()


FINISH = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
COUNTED = 'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}\n\n'


@pytest.mark.parametrize("said_last", [[], [Raw(": ping\n\n")], [Raw(COUNTED)]])
async def test_a_server_that_hangs_after_the_finish_reason_is_not_waited_for(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel, monkeypatch: pytest.MonkeyPatch, said_last: list[Raw]
) -> None:
    monkeypatch.setattr(openai_chat, "LAST_WORDS_S", 0.05)
    endpoint.add([Say("a"), Raw(FINISH), *said_last, Hang()])
    *said, end = await events_of(model)
    assert said == [TextDelta("a")]
    assert isinstance(end, Finished)
    assert end.reason is StopReason.END_TURN
    await endpoint.requests[0].ended.wait()
    assert endpoint.requests[0].state == "abandoned"


async def test_what_follows_the_finish_reason_still_counts(endpoint: ScriptedEndpoint, model: OpenAIChatModel) -> None:
    later = Gate("later")
    endpoint.add([Say("a"), Raw(FINISH), Pause(later), Say("b"), Raw(FINISH + COUNTED + "data: [DONE]\n\n"), Break()])
    reading = asyncio.create_task(events_of(model))
    await later.reached()
    later.open()
    counted = Usage(input_tokens=7, output_tokens=3, cost=None)
    assert await reading == [TextDelta("a"), TextDelta("b"), Finished(StopReason.END_TURN, counted)]


# Faults on the stream


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ([Break()], "mine ended the stream before the answer was complete, without a finish_reason."),
        (
            [Raw("data: [DONE]\n\n"), Break()],
            "mine ended the stream before the answer was complete, without a finish_reason.",
        ),
        ([Break(drop=True)], "mine dropped the connection before the answer was complete ("),
        ([Raw("data: {garbage\n\n")], "mine sent a chunk that cannot be read ("),
        ([Raw('data: {"choices": 3}\n\n')], "mine sent a chunk that cannot be read ("),
        (
            [Raw('data: {"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}\n\n')],
            "mine sent a tool call without a name.",
        ),
    ],
)
async def test_a_broken_stream_is_retryable_and_keeps_what_came_before(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel, fault: list[Any], said: str
) -> None:
    endpoint.add([Say("a"), Say("b"), *fault])
    seen: list[ModelEvent] = []
    with pytest.raises(ModelError) as caught:
        await read(model, seen)
    assert seen == [TextDelta("a"), TextDelta("b")]
    assert (caught.value.code, caught.value.retryable) == ("stream_broken", True)
    assert caught.value.message.startswith(said)


async def test_a_connection_dropped_after_the_finish_reason_is_a_whole_answer(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel
) -> None:
    end = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: {"usa'
    endpoint.add([Say("a"), Raw(end), Break(drop=True)])
    assert await events_of(model) == [TextDelta("a"), Finished(StopReason.END_TURN)]


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        ('{"message": "boom"}', "server_error", True),
        ('"boom"', "server_error", True),
        ('{"message": "boom", "code": 429}', "rate_limited", True),
        ('{"message": "boom", "type": "rate_limit_error"}', "rate_limited", True),
        ('{"message": "boom", "code": "insufficient_quota"}', "quota", False),
        ('{"message": "boom", "code": "invalid_api_key"}', "auth", False),
        ('{"message": "boom", "code": "context_length_exceeded"}', "context_overflow", False),
    ],
)
async def test_an_error_inside_the_stream_is_told(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel, error: str, code: str, retryable: bool
) -> None:
    endpoint.add([Say("a"), Raw(f'data: {{"error": {error}}}\n\n')])
    caught = await error_of(model)
    assert (caught.code, caught.retryable) == (code, retryable)
    assert "boom" in caught.message


async def test_a_model_that_is_being_loaded_is_waited_for(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_chat, "LOADING_POLL_S", 0)
    for _ in range(3):
        endpoint.add([Refuse(503, "Loading model")])
    endpoint.add([Say("ready")])
    events = await events_of(model)
    assert events[:2] == [Progress("mine is loading m."), TextDelta("ready")]
    assert len(endpoint.requests) == 4


async def test_a_model_that_is_never_loaded_ends_the_try(endpoint: ScriptedEndpoint) -> None:
    endpoint.add([Refuse(503, "Loading model")])
    model = OpenAIChatModel(provider="mine", name="m", base_url=endpoint.base_url, first_token_s=0.1)
    error = await error_of(model)
    await model.aclose()
    assert (error.code, error.retryable) == ("loading", False), "the limit is the limit of the whole request"
    assert error.message == (
        "mine answered 503: Loading model. Longboat waited 0.1 s. If it needs longer, set first_token_s of m."
    )


@pytest.mark.parametrize("said", ["The server is overloaded", "down for maintenance"])
async def test_other_troubles_are_not_waited_out(endpoint: ScriptedEndpoint, model: OpenAIChatModel, said: str) -> None:
    endpoint.add([Refuse(503, said)])
    assert (await error_of(model)).code == "server_error"
    assert len(endpoint.requests) == 1


async def test_a_finish_reason_error_is_an_error(endpoint: ScriptedEndpoint, model: OpenAIChatModel) -> None:
    endpoint.add([Say("a"), Raw('data: {"choices":[{"delta":{},"finish_reason":"error"}]}\n\n')])
    assert (await error_of(model)).retryable


async def test_a_scripted_failure_is_told(endpoint: ScriptedEndpoint, model: OpenAIChatModel) -> None:
    endpoint.add([Fail(ModelError(f"your key {KEY} is odd", code="whatever"))])
    assert (await error_of(model)).message == "mine answered 500: your key *** is odd"


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ([], "If it needs longer to begin, set first_token_s of m."),
        ([Say("a")], "If it needs longer between two pieces, set idle_s of m."),
    ],
    ids=["before the first byte", "in mid-answer"],
)
async def test_a_silent_server_is_retryable(endpoint: ScriptedEndpoint, said: list[Say], advice: str) -> None:
    endpoint.add([*said, Hang()])
    model = OpenAIChatModel(provider="mine", name="m", base_url=endpoint.base_url, first_token_s=0.1, idle_s=0.1)
    error = await error_of(model)
    await model.aclose()
    assert (error.code, error.retryable, error.message) == ("timeout", True, f"mine sent nothing for 0.1 s. {advice}")


# Refusals


@pytest.mark.parametrize(
    ("refuse", "code", "retryable", "message"),
    [
        (
            Refuse(401, message=f"Incorrect API key: {KEY}"),
            "auth",
            False,
            "mine answered 401: Incorrect API key: ***. Check providers.mine.api_key in longboat.json.",
        ),
        (Refuse(403), "auth", False, None),
        (Refuse(404, message="no m"), "model_not_found", False, None),
        (Refuse(402), "quota", False, None),
        (Refuse(429, code="insufficient_quota"), "quota", False, None),
        (Refuse(429, message="slow down"), "rate_limited", True, "mine answered 429: slow down"),
        (Refuse(408), "server_error", True, None),
        (Refuse(409), "server_error", True, None),
        (Refuse(500, body="<html>oh"), "server_error", True, "mine answered 500."),
        (Refuse(503, body="try later"), "server_error", True, "mine answered 503: try later"),
        (Refuse(529), "server_error", True, None),
        (Refuse(400, code="context_length_exceeded"), "context_overflow", False, None),
        (Refuse(400, message="This model's maximum context length is 10 tokens"), "context_overflow", False, None),
        (Refuse(400, message="the request exceeds the available context size"), "context_overflow", False, None),
        (Refuse(422, message="prompt is too long: 9 tokens > 8"), "context_overflow", False, None),
        (Refuse(413, message="input length and max_tokens exceed it"), "context_overflow", False, None),
        (Refuse(400, message="bad temperature"), "bad_request", False, "mine answered 400: bad temperature"),
        (Refuse(400, body='{"detail": [{"loc": "x"}]}'), "bad_request", False, 'mine answered 400: [{"loc":"x"}]'),
        (Refuse(400, body='[{"error": {"message": "one"}}]'), "bad_request", False, "mine answered 400: one"),
        (Refuse(400, body='{"error": "flat"}'), "bad_request", False, "mine answered 400: flat"),
        (Refuse(301), "bad_request", False, None),
        (Refuse(200, body='{"error": {"message": "slow", "code": 429}}'), "rate_limited", True, None),
        (
            Refuse(200, body='{"id": "whole answer"}'),
            "bad_request",
            False,
            "mine answered 200: no event stream. It sent application/json; is URL the base_url of a chat API?",
        ),
    ],
)
async def test_a_refusal_says_what_it_means(
    endpoint: ScriptedEndpoint, refuse: Refuse, code: str, retryable: bool, message: str | None
) -> None:
    model = OpenAIChatModel(provider="mine", name="m", base_url=endpoint.base_url, api_key=KEY)
    endpoint.add([refuse])
    error = await error_of(model)
    await model.aclose()
    assert (error.code, error.retryable, error.retry_after_s) == (code, retryable, None)
    if message is not None:
        assert error.message == message.replace("URL", endpoint.base_url)
    assert error.title


async def test_retry_after_is_passed_on(endpoint: ScriptedEndpoint, model: OpenAIChatModel) -> None:
    endpoint.add([Refuse(429, retry_after="7")], [Refuse(503, retry_after="1.5")])
    assert (await error_of(model)).retry_after_s == 7.0
    assert (await error_of(model)).retry_after_s == 1.5


async def test_a_refusal_without_a_key_says_that_none_is_set(endpoint: ScriptedEndpoint) -> None:
    endpoint.add([Refuse(401, message="who are you?")])
    model = OpenAIChatModel(provider="mine", name="m", base_url=endpoint.base_url)
    error = await error_of(model)
    await model.aclose()
    assert (
        error.message
        == "mine answered 401: who are you? No API key is set. Run `longboat connect`, or set providers.mine.api_key."
    )


async def test_an_endless_error_body_is_not_read_to_its_end(endpoint: ScriptedEndpoint, model: OpenAIChatModel) -> None:
    endpoint.add([Refuse(400, body="x" * 10_000_000)])
    assert len((await error_of(model)).message) < 600


# Not reaching it at all


async def test_nobody_listening_is_retryable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    url = f"http://user:{KEY}@127.0.0.1:{port}/v1"
    model = OpenAIChatModel(provider="mine", name="m", base_url=url, api_key=KEY)
    error = await error_of(model)
    await model.aclose()
    assert (error.code, error.retryable) == ("unreachable", True)
    assert error.message.startswith(f"mine at http://127.0.0.1:{port}/v1 cannot be reached: ")


async def test_a_connection_closed_without_an_answer_is_retryable() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    model = OpenAIChatModel(provider="mine", name="m", base_url=f"http://127.0.0.1:{port}", api_key=KEY)
    error = await error_of(model)
    await model.aclose()
    server.close()
    assert (error.code, error.retryable) == ("unreachable", True)


@pytest.mark.parametrize("asked_before", [False, True], ids=["the first request", "a later one"])
async def test_no_file_descriptor_left_is_retryable(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel, asked_before: bool
) -> None:
    if asked_before:
        endpoint.add([Break(drop=True)])  # so that no connection is kept
        await error_of(model)
    with none_left():
        error = await error_of(model)
    assert (error.code, error.retryable) == ("unreachable", True)
    assert await events_of(model), "it goes on as soon as there is one"


async def test_a_model_closed_while_it_is_asked_again_opens_anew(
    endpoint: ScriptedEndpoint, model: OpenAIChatModel
) -> None:
    await events_of(model)
    answers = await asyncio.gather(model.aclose(), events_of(model))
    assert isinstance(answers[1][-1], Finished)


@pytest.mark.parametrize("api_key", [f"{KEY}\nx", f"{KEY}…"])
async def test_a_key_that_http_cannot_carry_is_told_but_not_shown(endpoint: ScriptedEndpoint, api_key: str) -> None:
    model = OpenAIChatModel(provider="mine", name="m", base_url=endpoint.base_url, api_key=api_key)
    error = await error_of(model)
    await model.aclose()
    assert (error.code, error.retryable) == ("bad_request", False)


@pytest.mark.parametrize("base_url", ["127.0.0.1:9/v1", "ftp://127.0.0.1:9", "http://127.0.0.1:port"])
async def test_a_base_url_that_is_none_is_told(base_url: str) -> None:
    model = OpenAIChatModel(provider="mine", name="m", base_url=base_url, api_key=KEY)
    error = await error_of(model)
    await model.aclose()
    assert (error.code, error.retryable) == ("bad_request", False)


async def test_a_key_with_a_line_end_from_a_file_still_works(endpoint: ScriptedEndpoint) -> None:
    model = OpenAIChatModel(provider="mine", name="m", base_url=endpoint.base_url, api_key=f"{KEY}\n")
    await events_of(model)
    await model.aclose()
    assert endpoint.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_many_streams_share_one_model(endpoint: ScriptedEndpoint, model: OpenAIChatModel) -> None:
    endpoint.add(words("one two"), repeat=True)
    answers = await asyncio.gather(*(events_of(model) for _ in range(20)))
    assert answers == [[TextDelta("one"), TextDelta(" two"), Finished(StopReason.END_TURN, USED)]] * 20


async def test_a_session_goes_on_where_anthropic_was() -> None:
    """A6: foreign reasoning stays away, foreign call ids are made fit, and the call and its result still belong
    together."""
    transcript = (
        message(Role.USER, TextPart(text="hi")),
        message(
            Role.ASSISTANT,
            ReasoningPart(text="Hm.", signature="signed elsewhere"),
            ToolCallPart(id="toolu_01A09q90qw90lq917835lq9", name="ls", input="{}", finished=True),
            ToolCallPart(id="x" * 64, name="ls", input="{}", finished=True),
        ),
        message(
            Role.TOOL,
            ToolResultPart(tool_call_id="toolu_01A09q90qw90lq917835lq9", content="a"),
            ToolResultPart(tool_call_id="x" * 64, content="b"),
        ),
        message(Role.USER, TextPart(text="Go on.")),
    )
    async with ScriptedEndpoint() as endpoint:
        model = OpenAIChatModel(provider="p", name="m", base_url=endpoint.base_url)
        async with model.stream(ModelRequest(system="", messages=transcript)) as events:
            assert [event async for event in answer_events(events)][-1] == Finished(StopReason.END_TURN, USED)
        await model.aclose()
    body = endpoint.requests[0].body
    assert "signed elsewhere" not in str(body)
    asked = [call["id"] for call in body["messages"][1]["tool_calls"]]
    assert asked == [result["tool_call_id"] for result in body["messages"][2:4]]
    assert asked[0] == "toolu_01A09q90qw90lq917835lq9"
    assert len(asked[1]) <= 40


async def test_a_model_gets_nothing_that_it_cannot_bear() -> None:
    """A6: no images, no tools, no effort where it has none."""
    picture = FilePart(name="p.png", media_type="image/png", data="QQ==")
    tool = ToolSpec(name="ls", description="", schema={"type": "object"})
    request = ModelRequest(
        system="", messages=(message(Role.USER, TextPart(text="see"), picture),), tools=(tool,), effort="high"
    )
    async with ScriptedEndpoint() as endpoint:
        able = OpenAIChatModel(provider="p", name="m", base_url=endpoint.base_url)
        nothing = Abilities(images=False, tools=False, effort=False)
        unable = OpenAIChatModel(provider="p", name="m", base_url=endpoint.base_url, abilities=nothing)
        for model in (able, unable):
            async with model.stream(request) as events:
                _ = [event async for event in answer_events(events)]
            await model.aclose()
    first, second = (exchange.body for exchange in endpoint.requests)
    assert {"tools", "reasoning_effort"} <= set(first)
    assert not {"tools", "reasoning_effort"} & set(second)
    assert second["messages"] == [
        {"role": "user", "content": "see\n\n[The image p.png is attached, but this model cannot see images.]"}
    ]
