"""The general adapter against real loopback servers that speak Anthropic's and OpenAI's streaming wires."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from descriptors import none_left
from model_events import answer_events

from longboat.core.tool import ToolSpec
from longboat.errors import ModelError
from longboat.models.protocol import (
    Abilities,
    Finished,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from longboat.models.pydantic_adapter import Endpoint, ProviderApi, PydanticModel
from longboat.wire.models import (
    FilePart,
    Image,
    Message,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)

KEY = "sk-secret-of-the-user"


# --- a server that says what the test wants -------------------------------------------------------------------------


@dataclass(kw_only=True)
class Reply:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    frames: Iterable[bytes] = ()
    """The body, or its server-sent events."""
    ends: str = "whole"
    """`whole`; `early`: the body ends properly but too soon; `cut`: the connection drops; `hangs` until it is left."""


@dataclass
class Script:
    url: str
    replies: list[Reply] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client left a reply that hangs."""
    connections: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self.connections.add(connection)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")[1:]
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.headers.append(headers)
                self.bodies.append(json.loads(body))
                if not await self._reply(self.replies.pop(0), reader, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def _reply(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        kind = "text/event-stream" if reply.status == 200 else "application/json"
        head = {"content-type": kind, "transfer-encoding": "chunked"} | reply.headers
        fields = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        writer.write(f"HTTP/1.1 {reply.status} Status\r\n{fields}\r\n".encode())
        for frame in reply.frames:
            writer.write(b"%x\r\n%b\r\n" % (len(frame), frame))
            await writer.drain()
        if reply.ends == "cut":
            return False
        if reply.ends == "hangs":
            await reader.read()
            self.left.set()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


@asynccontextmanager
async def scripted(*replies: Reply) -> AsyncIterator[Script]:
    script = Script("", list(replies))
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    script.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield script
    finally:
        server.close()
        await asyncio.gather(*script.connections)


@asynccontextmanager
async def model_at(url: str, api: ProviderApi, name: str, **more: Any) -> AsyncIterator[PydanticModel]:
    endpoint = Endpoint(provider="mine", name=name, api=api, api_key=KEY, base_url=url, **more)
    model = PydanticModel(endpoint, context_window=1000)
    try:
        yield model
    finally:
        await model.aclose()


async def ask(script: Script, api: ProviderApi, request: ModelRequest | None = None) -> list[ModelEvent]:
    name, path = {"anthropic": ("claude-sonnet-5-5", ""), "openai": ("gpt-6.1-sol", "/v1")}[api]
    async with model_at(script.url + path, api, name) as model, model.stream(request or prompt("hi")) as events:
        return [event async for event in answer_events(events)]


async def refusal(api: ProviderApi, *replies: Reply) -> ModelError:
    async with scripted(*replies) as script:
        with pytest.raises(ModelError) as caught:
            await ask(script, api)
        assert len(script.bodies) == 1, "the SDK retried by itself"
    return caught.value


# --- the wires -------------------------------------------------------------------------------------------------------


def sse(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def anthropic(*blocks: tuple[dict[str, Any], list[dict[str, Any]]], stop: str = "end_turn") -> list[bytes]:
    """A whole answer: each block is (content_block, deltas)."""
    usage = {"input_tokens": 1000, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "content": []}
    start = message | {"stop_reason": None, "stop_sequence": None, "usage": usage}
    frames = [sse({"type": "message_start", "message": start})]
    for index, (block, deltas) in enumerate(blocks):
        frames.append(sse({"type": "content_block_start", "index": index, "content_block": block}))
        frames += [sse({"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas]
        frames.append(sse({"type": "content_block_stop", "index": index}))
    ending = {"stop_reason": stop, "stop_sequence": None}
    frames.append(sse({"type": "message_delta", "delta": ending, "usage": {"output_tokens": 100}}))
    frames.append(sse({"type": "message_stop"}))
    return frames


def spoken(*texts: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return {"type": "text", "text": ""}, [{"type": "text_delta", "text": text} for text in texts]


def thought(text: str, signature: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    deltas = [{"type": "thinking_delta", "thinking": text}, {"type": "signature_delta", "signature": signature}]
    return {"type": "thinking", "thinking": "", "signature": ""}, deltas


def called(call_id: str, name: str, *pieces: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}, deltas


def openai(*events: dict[str, Any], output: list[dict[str, Any]]) -> list[bytes]:
    """A whole answer on the Responses wire."""
    response = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-6.1-sol",
        "parallel_tool_calls": True,
    }
    response |= {"tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None, "metadata": {}}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100} | details
    all_events = [
        {"type": "response.created", "response": response | {"status": "in_progress", "output": []}},
        *events,
        {
            "type": "response.completed",
            "response": response | {"status": "completed", "output": output, "usage": usage},
        },
    ]
    return [sse(event | {"sequence_number": number}) for number, event in enumerate(all_events)]


def openai_text(text: str) -> list[bytes]:
    item = {"id": "m_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    place = {"item_id": "m_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": []}
    return openai(
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **place, "part": part},
        {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        output=[],
    )


def message(role: Role, *parts: Part, provider: str | None = None, model: str | None = None) -> Message:
    return Message(
        id="m",
        session_id="s",
        run_id="r",
        seq=1,
        role=role,
        parts=parts,
        provider=provider,
        model=model,
        created_at="2026-01-01",
    )


def prompt(text: str) -> ModelRequest:
    return ModelRequest(system="Be brief.", messages=(message(Role.USER, TextPart(text=text)),))


# --- answers ---------------------------------------------------------------------------------------------------------


async def test_an_anthropic_answer_streams_as_text_with_usage_and_cost():
    async with scripted(Reply(frames=anthropic(spoken("Hel", "lo")))) as script:
        events = await ask(script, "anthropic")
    finished = events.pop()
    assert events == [TextDelta("Hel"), TextDelta("lo")]
    assert isinstance(finished, Finished)
    assert finished.reason is StopReason.END_TURN
    # 1000 tokens in at $2 and 100 out at $10 per million.
    assert finished.usage == Usage(input_tokens=1000, output_tokens=100, cost=pytest.approx(0.003))
    assert script.headers[0]["authorization"] == f"Bearer {KEY}"
    assert script.headers[0]["x-api-key"] == KEY


async def test_anthropic_reasoning_comes_with_its_signature_and_tool_calls_in_pieces():
    answer = anthropic(
        thought("Hm.", "signed"),
        spoken("Looking."),
        called("c1", "view", '{"path"', ':"a"}'),
        called("c2", "ls"),
        stop="tool_use",
    )
    async with scripted(Reply(frames=answer)) as script:
        events = await ask(script, "anthropic")
    assert events[:-1] == [
        ReasoningDelta("Hm."),
        ReasoningDelta("", "signed"),
        TextDelta("Looking."),
        ToolCallStart(0, "c1", "view"),
        ToolCallDelta(0, '{"path"'),
        ToolCallDelta(0, ':"a"}'),
        ToolCallStart(1, "c2", "ls"),
        ToolCallDelta(1, "{}"),
    ]
    assert isinstance(events[-1], Finished)
    assert events[-1].reason is StopReason.TOOL_USE


@pytest.mark.parametrize(
    ("stop", "reason"), [("max_tokens", StopReason.MAX_TOKENS), ("refusal", StopReason.CONTENT_FILTER)]
)
async def test_why_an_answer_stopped_is_told(stop: str, reason: StopReason):
    async with scripted(Reply(frames=anthropic(spoken("Well"), stop=stop))) as script:
        events = await ask(script, "anthropic")
    assert isinstance(events[-1], Finished)
    assert events[-1].reason is reason


async def test_a_transcript_arrives_at_anthropic_whole():
    request = ModelRequest(
        system="Be brief.",
        tools=(ToolSpec(name="view", description="Reads.", schema={"type": "object", "properties": {}}),),
        max_output_tokens=77,
        messages=(
            message(
                Role.USER,
                TextPart(text="See:"),
                FilePart(name="a.txt", media_type="text/plain", text="inside"),
                FilePart(name="p.png", media_type="image/png", data="iVBORw0KGgo="),
            ),
            message(
                Role.ASSISTANT,
                ReasoningPart(text="Hm.", signature="signed"),
                ReasoningPart(text="unsigned"),
                TextPart(text=""),
                ToolCallPart(id="c1", name="view", input='{"path":"a"}', finished=True),
                provider="mine",
            ),
            message(Role.TOOL, ToolResultPart(tool_call_id="c1", content="no such file", is_error=True)),
            message(Role.ASSISTANT, ReasoningPart(text="theirs", signature="foreign"), provider="other"),
            message(Role.USER, TextPart(text="Go on.")),
        ),
    )
    async with scripted(Reply(frames=anthropic(spoken("Ok")))) as script:
        await ask(script, "anthropic", request)
    body = script.bodies[0]
    assert body["max_tokens"] == 77
    assert [tool["name"] for tool in body["tools"]] == ["view"]
    assert "Be brief." in json.dumps(body["system"])
    said = [block for turn in body["messages"] for block in turn["content"]]
    for block in said:
        block.pop("cache_control", None)
    assert said[:2] == [
        {"type": "text", "text": "See:"},
        {"type": "text", "text": '<file name="a.txt">\ninside\n</file>'},
    ]
    assert said[2]["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    assert said[3:5] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "signed"},
        {"type": "tool_use", "id": "c1", "name": "view", "input": {"path": "a"}},
    ]
    assert (said[5]["type"], said[5]["tool_use_id"], said[5]["is_error"]) == ("tool_result", "c1", True)
    assert "no such file" in json.dumps(said[5]["content"])
    assert said[6:] == [{"type": "text", "text": "Go on."}]


async def test_a_command_that_failed_has_a_result_and_no_error():
    """A red test run is what the model asked for."""
    calls = [ToolCallPart(id=name, name="bash", input="{}", finished=True) for name in ("ran", "denied")]
    results = [
        ToolResultPart(tool_call_id="ran", content="1 failed", is_error=True, command_failed=True),
        ToolResultPart(tool_call_id="denied", content="Denied.", is_error=True),
    ]
    messages = (
        message(Role.USER, TextPart(text="Test it.")),
        message(Role.ASSISTANT, *calls),
        message(Role.TOOL, *results),
    )
    body = await body_of("anthropic", ModelRequest(system="", messages=messages))
    blocks = [block for turn in body["messages"] for block in turn["content"] if block["type"] == "tool_result"]
    assert [(block["tool_use_id"], block["is_error"]) for block in blocks] == [("ran", False), ("denied", True)]
    assert "1 failed" in json.dumps(blocks[0]["content"])


@pytest.mark.parametrize("arguments", ['{"pa', '{"a":' * 5000 + "1" + "}" * 5000], ids=["cut off", "too deep"])
async def test_a_tool_call_that_no_provider_takes_is_sent_as_an_empty_object(arguments: str):
    """T3: the transcript is always one that the next request accepts, also after a cancel."""
    request = ModelRequest(
        system="",
        messages=(
            message(Role.USER, TextPart(text="hi")),
            message(Role.ASSISTANT, ToolCallPart(id="c1", name="view", input=arguments)),
            message(Role.TOOL, ToolResultPart(tool_call_id="c1", content="canceled", is_error=True)),
        ),
    )
    async with scripted(Reply(frames=anthropic(spoken("Ok")))) as script:
        await ask(script, "anthropic", request)
    assert script.bodies[0]["messages"][1]["content"][0]["input"] == {}


async def test_an_openai_answer_streams_and_is_not_stored_there():
    async with scripted(Reply(frames=openai_text("Hello"))) as script:
        events = await ask(script, "openai")
    assert events[0] == TextDelta("Hello")
    assert isinstance(events[-1], Finished)
    assert events[-1].reason is StopReason.END_TURN
    assert events[-1].usage == Usage(input_tokens=1000, output_tokens=100, cost=pytest.approx(0.003))
    assert script.bodies[0]["store"] is False
    assert script.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_openai_reasoning_goes_back_encrypted_and_under_its_id():
    reasoning = {"id": "rs_1", "type": "reasoning", "summary": []}
    signed = reasoning | {"encrypted_content": "sealed", "summary": [{"type": "summary_text", "text": "Hm."}]}
    call = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "view", "status": "in_progress"}
    place = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    frames = openai(
        {"type": "response.output_item.added", "output_index": 0, "item": reasoning},
        {"type": "response.reasoning_summary_part.added", **place, "part": {"type": "summary_text", "text": ""}},
        {"type": "response.reasoning_summary_text.delta", **place, "delta": "Hm."},
        {"type": "response.output_item.done", "output_index": 0, "item": signed},
        {"type": "response.output_item.added", "output_index": 1, "item": call | {"arguments": ""}},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 1, "delta": '{"a":1}'},
        {"type": "response.output_item.done", "output_index": 1, "item": call | {"arguments": '{"a":1}'}},
        output=[],
    )
    async with scripted(Reply(frames=frames), Reply(frames=openai_text("Done"))) as script:
        events = await ask(script, "openai")
        signature = next(event.signature for event in events if isinstance(event, ReasoningDelta) and event.signature)
        assert events[:-1] == [
            ReasoningDelta("Hm."),
            ReasoningDelta("", signature),
            ToolCallStart(0, "c1", "view"),
            ToolCallDelta(0, '{"a":1}'),
        ]
        assert isinstance(events[-1], Finished)
        assert events[-1].reason is StopReason.TOOL_USE
        thinking = ReasoningPart(text="Hm.", signature=signature)
        calling = ToolCallPart(id="c1", name="view", input='{"a":1}', finished=True)
        again = ModelRequest(
            system="",
            messages=(
                message(Role.USER, TextPart(text="hi")),
                message(Role.ASSISTANT, thinking, calling, provider="mine"),
                message(Role.TOOL, ToolResultPart(tool_call_id="c1", content="ok")),
            ),
        )
        await ask(script, "openai", again)
    items = {item.get("type"): item for item in script.bodies[1]["input"]}
    assert (items["reasoning"]["id"], items["reasoning"]["encrypted_content"]) == ("rs_1", "sealed")
    assert (items["function_call"]["call_id"], items["function_call"]["arguments"]) == ("c1", '{"a":1}')
    assert items["function_call_output"]["output"] == "ok"


def data(event: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(event)}\n\n".encode()


async def test_a_gemini_call_comes_with_the_signature_that_gemini_wants_back():
    call = {"functionCall": {"name": "view", "args": {"path": "a"}, "id": "c1"}, "thoughtSignature": "c2lnbmVk"}
    frames = [
        data({"candidates": [{"content": {"role": "model", "parts": [{"text": "Looking."}]}, "index": 0}]}),
        data(
            {
                "candidates": [{"content": {"role": "model", "parts": [call]}, "finishReason": "STOP", "index": 0}],
                "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12},
            }
        ),
    ]
    whole = data({"candidates": [{"content": {"role": "model", "parts": [{"text": "Ok"}]}, "finishReason": "STOP"}]})
    async with (
        scripted(Reply(frames=frames), Reply(frames=[whole])) as script,
        model_at(script.url, "google", "gemini-4-argon") as model,
    ):
        async with model.stream(prompt("hi")) as stream:
            events = [event async for event in answer_events(stream)]
        assert events[:-1] == [
            TextDelta("Looking."),
            ReasoningDelta("", "c2lnbmVk"),
            ToolCallStart(0, "c1", "view"),
            ToolCallDelta(0, '{"path":"a"}'),
        ]
        assert isinstance(events[-1], Finished)
        assert events[-1].reason is StopReason.TOOL_USE
        again = ModelRequest(
            system="",
            messages=(
                message(Role.USER, TextPart(text="hi")),
                message(
                    Role.ASSISTANT,
                    ReasoningPart(text="", signature="c2lnbmVk"),
                    ToolCallPart(id="c1", name="view", input='{"path":"a"}', finished=True),
                    provider="mine",
                ),
                message(Role.TOOL, ToolResultPart(tool_call_id="c1", content="ok")),
            ),
        )
        async with model.stream(again) as stream:
            assert TextDelta("Ok") in [event async for event in answer_events(stream)]
    sent = script.bodies[1]["contents"][1]["parts"]
    assert [part["thoughtSignature"] for part in sent if "functionCall" in part] == ["c2lnbmVk"]


async def test_a_mistral_answer_streams():
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "mistral-large-latest"}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    frames = [
        data(chunk | {"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": None}]}),
        data(chunk | {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}], "usage": usage}),
        b"data: [DONE]\n\n",
    ]
    async with (
        scripted(Reply(frames=frames)) as script,
        model_at(script.url, "mistral", "mistral-large-latest") as model,
        model.stream(prompt("hi")) as stream,
    ):
        events = [event async for event in answer_events(stream)]
    assert events[0] == TextDelta("Hello")
    assert isinstance(events[-1], Finished)
    assert (events[-1].reason, events[-1].usage.input_tokens) == (StopReason.END_TURN, 10)


# --- leaving and breaking --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["anthropic", "openai"])
async def test_a_cancel_in_mid_stream_closes_the_connection(api: ProviderApi):
    whole = anthropic(spoken("Hello")) if api == "anthropic" else openai_text("Hello")
    first_words = whole[:3] if api == "anthropic" else whole[:4]
    heard = asyncio.Event()

    async with scripted(Reply(frames=first_words, ends="hangs")) as script:

        async def turn() -> None:
            name, path = ("claude-sonnet-5-5", "") if api == "anthropic" else ("gpt-6.1-sol", "/v1")
            async with model_at(script.url + path, api, name) as model, model.stream(prompt("hi")) as events:
                async for event in answer_events(events):
                    assert event == TextDelta("Hello")
                    heard.set()

        task = asyncio.create_task(turn())
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await script.left.wait()


async def test_leaving_early_closes_the_connection():
    async with (
        scripted(Reply(frames=anthropic(spoken("Hello"))[:3], ends="hangs")) as script,
        model_at(script.url, "anthropic", "claude-sonnet-5-5") as model,
    ):
        async with model.stream(prompt("hi")) as events:
            assert await anext(answer_events(events)) == TextDelta("Hello")
        await script.left.wait()


@pytest.mark.parametrize("ends", ["early", "cut"])
@pytest.mark.parametrize("api", ["anthropic", "openai"])
async def test_a_stream_that_ends_too_soon_is_broken_and_may_be_retried(api: ProviderApi, ends: str):
    """T7"""
    frames = anthropic(spoken("Hello"))[:3] if api == "anthropic" else openai_text("Hello")[:4]
    error = await refusal(api, Reply(frames=frames, ends=ends))
    assert (error.code, error.retryable) == ("stream_broken", True)


async def test_an_error_inside_the_stream_counts_like_one_before_it():
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    error = await refusal("anthropic", Reply(frames=[*anthropic(spoken("Hel"))[:3], sse(overloaded)]))
    assert (error.code, error.retryable) == ("server_error", True)
    assert "Overloaded" in error.message


@pytest.mark.parametrize("api", ["anthropic", "openai"])
async def test_a_server_that_does_not_begin_in_time_is_retryable(api: ProviderApi):
    """As with the chat adapter: the limit is the model's, and the error says how to change it."""
    name, path = {"anthropic": ("claude-sonnet-5-5", ""), "openai": ("gpt-6.1-sol", "/v1")}[api]
    async with scripted(Reply(ends="hangs")) as script:
        async with model_at(script.url + path, api, name, first_token_s=0.1) as model:
            with pytest.raises(ModelError) as caught:
                async with model.stream(prompt("hi")) as events:
                    _ = [event async for event in events]
        await script.left.wait()
    assert (caught.value.code, caught.value.retryable) == ("timeout", True)
    assert caught.value.message == (
        f"mine sent nothing for 0.1 s. If it needs longer to begin, set first_token_s of {name}."
    )


async def test_a_server_that_stops_in_mid_answer_is_not_told_to_begin_earlier():
    frames = anthropic(spoken("Ok"))[:3]
    async with (
        scripted(Reply(frames=frames, ends="hangs")) as script,
        model_at(script.url, "anthropic", "claude-sonnet-5-5", idle_s=0.1) as model,
    ):
        with pytest.raises(ModelError) as caught:
            async with model.stream(prompt("hi")) as events:
                _ = [event async for event in events]
    assert caught.value.code == "timeout"
    assert caught.value.message == (
        "mine sent nothing for 0.1 s. If it needs longer between two pieces, set idle_s of claude-sonnet-5-5."
    )


async def test_a_server_that_is_not_there_is_unreachable():
    async with scripted() as script:
        gone = script.url
    async with model_at(gone, "anthropic", "claude-sonnet-5-5") as model:
        with pytest.raises(ModelError) as caught:
            async with model.stream(prompt("hi")) as events:
                assert not [event async for event in answer_events(events)], "nobody answered"
    assert (caught.value.code, caught.value.retryable) == ("unreachable", True)


@pytest.mark.parametrize("api", ["anthropic", "openai", "google", "mistral"])
@pytest.mark.parametrize(
    ("url", "key"), [("http://127.0.0.1:port", KEY), ("http://127.0.0.1:9\0", KEY), ("http://127.0.0.1:9", f"{KEY}…")]
)
async def test_settings_that_http_cannot_carry_are_told_but_not_shown(api: ProviderApi, url: str, key: str):
    model = PydanticModel(Endpoint(provider="mine", name="m", api=api, api_key=key, base_url=url), context_window=1000)
    with pytest.raises(ModelError) as caught:
        async with model.stream(prompt("hi")) as events:
            assert [event async for event in answer_events(events)]
    await model.aclose()
    assert KEY not in caught.value.message


@pytest.mark.parametrize("asked_before", [False, True], ids=["the first request", "a later one"])
async def test_no_file_descriptor_left_is_retryable(asked_before: bool):
    answer = Reply(frames=anthropic(spoken("Ok")), headers={"connection": "close"})
    async with scripted(answer, answer) as script, model_at(script.url, "anthropic", "claude-sonnet-5-5") as model:
        if asked_before:
            async with model.stream(prompt("hi")) as events:
                assert [event async for event in answer_events(events)]
        with none_left(), pytest.raises(ModelError) as caught:
            async with model.stream(prompt("hi")) as events:
                assert not [event async for event in answer_events(events)], "nobody answered"
        assert (caught.value.code, caught.value.retryable) == ("unreachable", True)
        async with model.stream(prompt("hi")) as events:
            assert [event async for event in answer_events(events)], "it goes on as soon as there is one"


# --- refusals --------------------------------------------------------------------------------------------------------


def anthropic_error(status: int, kind: str, text: str, **headers: str) -> Reply:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": text}}).encode()
    return Reply(status=status, headers=headers, frames=[body])


def openai_error(status: int, code: str, text: str) -> Reply:
    body = json.dumps({"error": {"message": text, "type": "error", "code": code, "param": None}}).encode()
    return Reply(status=status, frames=[body])


ANTHROPIC_REFUSALS = [
    (401, "authentication_error", "invalid x-api-key", "auth", False),
    (403, "permission_error", "not yours", "auth", False),
    (404, "not_found_error", "model: claude-sonnet-5-5", "model_not_found", False),
    (400, "invalid_request_error", "messages: wrong", "bad_request", False),
    (400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum", "context_overflow", False),
    (400, "invalid_request_error", "Your credit balance is too low to access the API", "quota", False),
    (429, "rate_limit_error", "slow down", "rate_limited", True),
    (500, "api_error", "oops", "server_error", True),
    (529, "overloaded_error", "busy", "server_error", True),
]
OPENAI_REFUSALS = [
    (401, "invalid_api_key", "wrong key", "auth", False),
    (404, "model_not_found", "no such model", "model_not_found", False),
    (400, "context_length_exceeded", "too long", "context_overflow", False),
    (429, "insufficient_quota", "pay first", "quota", False),
    (429, "rate_limit_exceeded", "slow down", "rate_limited", True),
    (503, "server_error", "later", "server_error", True),
]


@pytest.mark.parametrize(("status", "kind", "text", "code", "retryable"), ANTHROPIC_REFUSALS)
async def test_a_refusal_by_anthropic_has_our_code(status: int, kind: str, text: str, code: str, retryable: bool):
    error = await refusal("anthropic", anthropic_error(status, kind, text))
    assert (error.code, error.retryable) == (code, retryable)
    assert text in error.message


@pytest.mark.parametrize(("status", "kind", "text", "code", "retryable"), OPENAI_REFUSALS)
async def test_a_refusal_by_openai_has_our_code(status: int, kind: str, text: str, code: str, retryable: bool):
    error = await refusal("openai", openai_error(status, kind, text))
    assert (error.code, error.retryable) == (code, retryable)
    assert text in error.message


async def test_a_429_tells_how_long_to_wait():
    error = await refusal("anthropic", anthropic_error(429, "rate_limit_error", "slow", **{"retry-after": "7"}))
    assert error.retry_after_s == 7.0


async def test_a_key_that_the_provider_echoes_is_hidden():
    error = await refusal("anthropic", anthropic_error(401, "authentication_error", f"Incorrect key: {KEY}"))
    assert KEY not in error.message
    assert error.__cause__ is None
    endpoint = Endpoint(provider="mine", name="m", api="openai", api_key=KEY, headers={"x-own": KEY})
    assert KEY not in repr(endpoint)


async def test_headers_of_the_configuration_are_sent_and_hidden_in_errors():
    async with (
        scripted(anthropic_error(400, "invalid_request_error", "bad value tenant-7")) as script,
        model_at(script.url, "anthropic", "claude-sonnet-5-5", headers={"x-tenant": "tenant-7"}) as model,
    ):
        with pytest.raises(ModelError, match=r"bad value \*\*\*"):
            async with model.stream(prompt("hi")) as events:
                assert not [event async for event in answer_events(events)], "refused"
    assert script.headers[0]["x-tenant"] == "tenant-7"


# --- effort, images, schemas (A6) ------------------------------------------------------------------------------------


async def body_of(api: ProviderApi, request: ModelRequest, **more: Any) -> dict[str, Any]:
    name, path = {"anthropic": ("claude-sonnet-5-5", ""), "openai": ("gpt-6.1-sol", "/v1")}[api]
    frames = anthropic(spoken("Ok")) if api == "anthropic" else openai_text("Ok")
    async with scripted(Reply(frames=frames)) as script:
        abilities = more.pop("abilities", Abilities())
        endpoint = Endpoint(provider="mine", name=name, api=api, api_key=KEY, base_url=script.url + path, **more)
        model = PydanticModel(endpoint, context_window=1000, abilities=abilities)
        async with model.stream(request) as events:
            _ = [event async for event in answer_events(events)]
        await model.aclose()
    return script.bodies[0]


def efforts(body: dict[str, Any]) -> list[Any]:
    return [body.get("output_config", {}).get("effort"), body.get("reasoning", {}).get("effort")]


@pytest.mark.parametrize("api", ["anthropic", "openai"])
async def test_the_effort_goes_out_in_the_providers_own_way(api: ProviderApi):
    """A6"""
    asked = replace(prompt("hi"), effort="low")
    assert "low" in efforts(await body_of(api, asked))
    assert "low" in efforts(await body_of(api, asked, effort="high"))
    assert "high" in efforts(await body_of(api, prompt("hi"), effort="high"))
    without = await body_of(api, asked, effort="high", abilities=Abilities(effort=False))
    assert efforts(without) == [None, None]


SEEN = (
    message(Role.USER, TextPart(text="look"), FilePart(name="p.png", media_type="image/png", data="iVBORw0KGgo=")),
    message(Role.ASSISTANT, ToolCallPart(id="c1", name="view", input="{}", finished=True)),
    message(
        Role.TOOL,
        ToolResultPart(
            tool_call_id="c1", content="a PNG image", images=(Image(media_type="image/png", data="iVBORw0KGgo="),)
        ),
    ),
)


async def test_anthropic_sees_the_image_inside_the_tool_result():
    """A6"""
    body = await body_of("anthropic", ModelRequest(system="", messages=SEEN))
    (result,) = (block for turn in body["messages"] for block in turn["content"] if block["type"] == "tool_result")
    text, image = result["content"]
    assert (text["text"], image["source"]["media_type"], image["source"]["data"]) == (
        "a PNG image",
        "image/png",
        "iVBORw0KGgo=",
    )


@pytest.mark.parametrize("api", ["anthropic", "openai"])
async def test_a_model_that_sees_no_images_is_told_of_them(api: ProviderApi):
    """A6: a text instead of a failure."""
    request = ModelRequest(system="", messages=SEEN)
    assert json.dumps(await body_of(api, request)).count("iVBORw0KGgo=") == 2
    body = json.dumps(await body_of(api, request, abilities=Abilities(images=False)))
    assert "iVBORw0KGgo=" not in body
    assert "The image p.png is attached, but this model cannot see images." in body
    assert "It is not shown: this model cannot see images." in body


@pytest.mark.parametrize("api", ["anthropic", "openai"])
async def test_a_schema_is_given_to_providers_that_hold_to_one(api: ProviderApi):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    body = await body_of(api, replace(prompt("hi"), schema=schema))
    assert '"a"' in json.dumps([body.get("output_config"), body.get("text"), body.get("output_format")])
    free = await body_of(api, replace(prompt("hi"), schema=schema), json_schema=False)
    assert '"a"' not in json.dumps(free)
    listed = await body_of(api, replace(prompt("hi"), schema={"type": "array"}))
    assert "array" not in json.dumps(listed)


# --- a session that changes its model --------------------------------------------------------------------------------


FOREIGN = (
    message(Role.USER, TextPart(text="hi")),
    message(
        Role.ASSISTANT,
        ReasoningPart(text="Hm.", signature='{"id": "rs_1", "signature": "theirs"}'),
        ToolCallPart(id="functions.ls:0", name="ls", input="{}", finished=True),
        provider="other",
        model="kimi",
    ),
    message(Role.TOOL, ToolResultPart(tool_call_id="functions.ls:0", content="a.txt")),
    message(
        Role.ASSISTANT,
        ReasoningPart(text="Older.", signature="of the other model"),
        TextPart(text="One file."),
        provider="mine",
        model="claude-opus-4-8",
    ),
    message(Role.USER, TextPart(text="Go on.")),
)


async def test_anthropic_goes_on_where_another_model_was():
    """A6: reasoning that it did not sign stays away, and a call's id is one it takes."""
    body = await body_of("anthropic", ModelRequest(system="", messages=FOREIGN))
    blocks = [block for turn in body["messages"] for block in turn["content"]]
    assert [block["type"] for block in blocks] == ["text", "tool_use", "tool_result", "text", "text"]
    assert blocks[1]["id"] == blocks[2]["tool_use_id"]
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", blocks[1]["id"])


async def test_openai_goes_on_where_another_model_was():
    """A6"""
    body = await body_of("openai", ModelRequest(system="", messages=FOREIGN))
    calls = [item for item in body["input"] if item.get("type", "").startswith("function_call")]
    assert [item["type"] for item in calls] == ["function_call", "function_call_output"]
    assert calls[0]["call_id"] == calls[1]["call_id"]
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", calls[0]["call_id"])
    assert "theirs" not in json.dumps(body)
    assert "of the other model" not in json.dumps(body)
