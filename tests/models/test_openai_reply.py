"""Servers that do not stream, or say that they do not: answers in one document, wrong content types, odd streams."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest
from model_events import answer_events
from website import Reply, open_site

from longboat.core.tool import ToolSpec
from longboat.errors import ModelError
from longboat.models.openai_chat import OpenAIChatModel
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
from longboat.models.tool_modes.memory import ToolMemory
from longboat.models.tool_modes.model import ToolModel
from longboat.testing import Refuse, Say
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.wire.models import Message, Role, TextPart, Usage

PROMPT = ModelRequest(
    system="",
    messages=(
        Message(id="i", session_id="s", run_id="r", seq=1, role=Role.USER, parts=(TextPart(text="hi"),), created_at=""),
    ),
)
HELLO = [TextDelta("Hello"), Finished(StopReason.END_TURN)]
SIGNED = ReasoningDelta("", '{"field":"reasoning_content"}')


def whole(finish_reason: str | None = "stop", usage: Any = None, **message: Any) -> bytes:
    """A completion as servers answer that do not stream, indented as some send it."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    document = {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def event(value: Any) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def streamed(finish_reason: str | None = None, **choice: Any) -> bytes:
    return event({"choices": [{**choice, "finish_reason": finish_reason}]})


def reply(body: bytes, kind: str | None = "application/json", *, status: str = "200 OK", length: int = -1) -> bytes:
    """`length`: what the head says of the body, if that is wrong."""
    told = f"content-type: {kind}\r\n" if kind is not None else ""
    size = length if length >= 0 else len(body)
    return f"HTTP/1.1 {status}\r\n{told}content-length: {size}\r\nconnection: close\r\n\r\n".encode() + body


def in_pieces(*pieces: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """A reply that the reader gets in these pieces; it ends with the connection."""

    async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return send


@asynccontextmanager
async def serving(answer: Reply, **settings: Any) -> AsyncIterator[OpenAIChatModel]:
    async with open_site("127.0.0.1") as site:
        site.replies["/v1/chat/completions"] = answer
        model = OpenAIChatModel(provider="mine", name="m", base_url=f"{site.url}/v1", **settings)
        try:
            yield model
        finally:
            await model.aclose()


def each(names: str | tuple[str, ...], cases: dict[str, Any]) -> pytest.MarkDecorator:
    """A test for each case, with the case's name in its own."""
    return pytest.mark.parametrize(names, cases.values(), ids=cases.keys())


async def ask(model: Model, request: ModelRequest = PROMPT) -> list[ModelEvent]:
    async with model.stream(request) as events:
        return [event async for event in answer_events(events)]


async def events_of(answer: Reply, **settings: Any) -> list[ModelEvent]:
    async with serving(answer, **settings) as model:
        return await ask(model)


async def error_of(answer: Reply, **settings: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await events_of(answer, **settings)
    return caught.value


# One document


def calls(*functions: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    return [{"id": f"id{n}", "type": "function", **fields, "function": each} for n, each in enumerate(functions)]


USED = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}, "cost": 0.5}

COUNTED = Usage(input_tokens=9, output_tokens=4, cost=0.5)


@each(
    ("body", "expected"),
    {
        "text and usage": (
            whole(content="Hé ☃", usage=USED),
            [TextDelta("Hé ☃"), Finished(StopReason.END_TURN, COUNTED, cached_tokens=5)],
        ),
        "reasoning": (
            whole(reasoning_content="Hm.", content="Yes."),
            [ReasoningDelta("Hm."), SIGNED, TextDelta("Yes."), Finished(StopReason.END_TURN)],
        ),
        "reasoning by another name": (
            whole(reasoning="Hm.", content="Yes."),
            [
                ReasoningDelta("Hm."),
                ReasoningDelta("", '{"field":"reasoning"}'),
                TextDelta("Yes."),
                Finished(StopReason.END_TURN),
            ],
        ),
        "reasoning in tags": (
            whole(content="<think>\nHm.\n</think>\n\nYes."),
            [ReasoningDelta("Hm."), TextDelta("Yes."), Finished(StopReason.END_TURN)],
        ),
        "reasoning whose tag is only closed": (
            whole(content="Hm.\n</think>\n\nYes."),
            [ReasoningDelta("Hm."), TextDelta("Yes."), Finished(StopReason.END_TURN)],
        ),
        "tool calls": (
            whole("tool_calls", content=None, tool_calls=calls(
                {"name": "look", "arguments": '{"at":1}'}, {"name": "ls", "arguments": {"path": "."}}
            )),
            [
                ToolCallStart(0, "id0", "look"),
                ToolCallDelta(0, '{"at":1}'),
                ToolCallStart(1, "id1", "ls"),
                ToolCallDelta(1, '{"path":"."}'),
                Finished(StopReason.TOOL_USE),
            ],
        ),
        "the same call twice with one id": (
            whole(tool_calls=calls(*[{"name": "ls", "arguments": "{}"}] * 2, id="x")),
            [
                ToolCallStart(0, "x", "ls"),
                ToolCallDelta(0, "{}"),
                ToolCallStart(1, "x", "ls"),
                ToolCallDelta(1, "{}"),
                Finished(StopReason.TOOL_USE),
            ],
        ),
        "a call without arguments": (
            whole(tool_calls=calls({"name": "ls", "arguments": None})),
            [ToolCallStart(0, "id0", "ls"), Finished(StopReason.TOOL_USE)],
        ),
        "a refusal": (
            whole(content=None, refusal="I will not."),
            [TextDelta("I will not."), Finished(StopReason.END_TURN)],
        ),
        "content in parts": (
            whole(content=[{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]),
            HELLO,
        ),
        "the limit": (whole("length", content="Hel"), [TextDelta("Hel"), Finished(StopReason.MAX_TOKENS)]),
        "the filter": (whole("content_filter", content=""), [Finished(StopReason.CONTENT_FILTER)]),
        "Google's filter": (
            b'{"choices":[{"index":0,"finish_reason":"content_filter"}]}',
            [Finished(StopReason.CONTENT_FILTER)],
        ),
        "no reason": (whole(None, content="Hello"), HELLO),
        "an error that is none": (whole(content="Hello").replace(b"{", b'{"error": null,', 1), HELLO),
        "one chunk of a stream": (b'{"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}', HELLO),
    },
)  # fmt: skip
async def test_an_answer_in_one_document_is_read_like_a_stream(body: bytes, expected: list[ModelEvent]) -> None:
    assert await events_of(reply(body)) == expected


@each(
    "answer",
    {
        "a charset": reply(whole(content="Hello"), "application/json; charset=utf-8"),
        "text": reply(whole(content="Hello"), "text/plain"),
        "a page": reply(whole(content="Hello"), "text/html"),
        "a stream": reply(whole(content="Hello"), "text/event-stream"),
        "another kind": reply(whole(content="Hello"), "application/vnd.api+json"),
        "no kind": reply(whole(content="Hello"), None),
        "created": reply(whole(content="Hello"), status="201 Created"),
        "blank lines first": reply(b"\n \r\n" + whole(content="Hello")),
        "a byte order mark": reply(b"\xef\xbb\xbf" + whole(content="Hello")),
        "in small pieces": in_pieces(*(bytes([each]) for each in whole(content="Hello"))),
    },
)
async def test_a_document_is_known_by_its_beginning_not_by_its_type(answer: Reply) -> None:
    assert await events_of(answer) == HELLO


STREAM = streamed(delta={"content": "Hello"}) + streamed("stop", delta={}) + b"data: [DONE]\n\n"


@each(
    "answer",
    {
        "JSON": reply(STREAM),
        "a page": reply(STREAM, "text/html; charset=utf-8"),
        "text": reply(STREAM, "text/plain"),
        "no kind": reply(STREAM, None),
        "created": reply(STREAM, "text/event-stream", status="201 Created"),
        "a comment first": reply(b": OPENROUTER PROCESSING\n\n" + STREAM),
        "an event's name first": reply(b"event: message\n" + STREAM),
        "an event's id first": reply(b"id:1\n" + STREAM),
        "blank lines first": reply(b"\r\n\r\n" + STREAM),
        "a byte order mark": reply(b"\xef\xbb\xbf" + STREAM),
        "in small pieces": in_pieces(*(bytes([each]) for each in STREAM)),
    },
)
async def test_a_stream_is_known_by_its_beginning_not_by_its_type(answer: Reply) -> None:
    assert await events_of(answer) == HELLO


async def test_a_long_document_in_small_pieces_is_read_to_its_end() -> None:
    text = "word " * 100_000
    body = whole(content=text)
    pieces = (body[at : at + 10_000] for at in range(0, len(body), 10_000))
    assert await events_of(in_pieces(*pieces)) == [TextDelta(text), Finished(StopReason.END_TURN)]


async def test_after_a_document_the_connection_serves_the_next_request() -> None:
    async with ScriptedEndpoint() as endpoint:
        endpoint.add(*[[Refuse(200, body=whole(content="Hello").decode())]] * 2)
        model = OpenAIChatModel(provider="mine", name="m", base_url=endpoint.base_url)
        assert [await ask(model), await ask(model)] == [HELLO, HELLO]
        await model.aclose()
    assert len({exchange.peer for exchange in endpoint.requests}) == 1


async def test_that_a_model_begins_with_thoughts_is_learned_from_a_document_too() -> None:
    async with serving(reply(whole(content="Hm.\n</think>\n\nYes."))) as model:
        first = await ask(model)
        assert await ask(model) == first == [ReasoningDelta("Hm."), TextDelta("Yes."), Finished(StopReason.END_TURN)]


# No answer


NOT_HERE = "no event stream. It sent KIND; is http://127.0.0.1:"


@each(
    ("body", "kind", "code", "said"),
    {
        "an error": (b'{"error": {"message": "slow", "code": 429}}', "application/json", "rate_limited", "slow"),
        "an error beside choices": (
            b'{"error": "bad", "choices": [{"message": {}}]}',
            "application/json",
            "bad_request",
            "no event stream. bad",
        ),
        "an error as text": (b'{"error": "bad"}', "text/plain", "bad_request", "no event stream. bad"),
        "an error that is no stream": (b'{"error": "bad"}', "text/event-stream", "bad_request", "no event stream. bad"),
        "a list of errors": (b'[{"error": {"message": "bad"}}]', "application/json", "bad_request", "bad"),
        "vLLM's error": (
            b'{"object": "error", "message": "slow", "code": 429}', "application/json", "rate_limited", "slow"
        ),
        "another document": (b'{"id": "whole"}', "application/json", "bad_request", NOT_HERE),
        "no choice": (b'{"choices": []}', "application/json", "bad_request", NOT_HERE),
        "no message": (
            b'{"choices": [{"text": "Hello", "finish_reason": "stop"}]}', "application/json", "bad_request", NOT_HERE
        ),
        "choices of another kind": (b'{"choices": {"a": 1}}', "application/json", "bad_request", NOT_HERE),
        "a word": (b'"hello"', "application/json", "bad_request", "no event stream. hello"),
        "nothing": (b"", "application/json", "bad_request", NOT_HERE),
        "a page": (b"<!doctype html><p>Hello", "text/html", "bad_request", NOT_HERE),
        "a page without a type": (b"\n<html>", None, "bad_request", "no event stream. It sent None"),
        "no JSON": (b"{error: bad}", "application/json", "bad_request", "no event stream. {error: bad}"),
        "words": (b"internal error", "application/json", "bad_request", "no event stream. internal error"),
    },
)  # fmt: skip
async def test_what_is_no_answer_is_an_error_that_says_so(body: bytes, kind: str | None, code: str, said: str) -> None:
    async with serving(reply(body, kind)) as model:
        with pytest.raises(ModelError) as caught:
            await ask(model)
        assert caught.value.code == code
        assert said.replace("KIND", str(kind)) in caught.value.message


async def test_a_field_that_a_document_refuses_is_left_out() -> None:
    async with ScriptedEndpoint() as endpoint:
        refused = '{"error": {"message": "Unknown parameter: stream_options", "code": 400}}'
        endpoint.add([Refuse(200, body=refused)], [Say("Hello")])
        model = OpenAIChatModel(provider="mine", name="m", base_url=endpoint.base_url)
        assert (await ask(model))[0] == TextDelta("Hello")
        await model.aclose()
    assert ["stream_options" in exchange.body for exchange in endpoint.requests] == [True, False]


async def test_a_page_without_end_is_not_read_to_its_end() -> None:
    assert (await error_of(reply(b"<p>" * 5_000_000, "text/html"))).code == "bad_request"


# What breaks off


@each(
    ("answer", "said"),
    {
        "the connection": (
            reply(whole(content="Hello")[:-40], length=1000),
            "mine dropped the connection before the answer was complete (",
        ),
        "the connection, at once": (
            reply(b"", length=1000),
            "mine dropped the connection before the answer was complete (",
        ),
        "the document": (in_pieces(whole(content="Hello")[:-40]), "mine sent an answer that cannot be read ("),
        "the document, early": (in_pieces(b'{"id": "chat'), "mine sent an answer that cannot be read ("),
        "not UTF-8": (
            reply(whole(content="Hello").replace(b"ll", b"\xff")),
            "mine sent an answer that cannot be read (",
        ),
        "no text": (reply(whole(content=3)), "mine sent a chunk that cannot be read ("),
        "a nameless call": (reply(whole(tool_calls=calls({}))), "mine sent a tool call without a name."),
    },
)
async def test_a_document_that_is_broken_is_asked_for_again(answer: Reply, said: str) -> None:
    error = await error_of(answer)
    assert (error.code, error.retryable) == ("stream_broken", True)
    assert error.message.startswith(said)


async def test_a_document_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longboat.models.openai_reply.MAX_DOCUMENT", 100)
    error = await error_of(reply(whole(content="x" * 200)))
    assert (error.code, error.message) == ("stream_broken", "mine sent an answer that is too long.")


@each(
    ("begun", "advice"),
    {
        "before the first byte": (b"", "If it needs longer to begin, set first_token_s of m."),
        "in the document": (b'{"choices":', "If it needs longer between two pieces, set idle_s of m."),
        "in its beginning": (b" ", "If it needs longer between two pieces, set idle_s of m."),
    },
)
async def test_a_document_has_the_same_time_as_a_stream(begun: bytes, advice: str) -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(begun, length=1000))
        while await reader.read(65536):
            pass

    error = await error_of(hang, first_token_s=0.1, idle_s=0.1)
    assert (error.code, error.message) == ("timeout", f"mine sent nothing for 0.1 s. {advice}")


async def test_a_cancel_while_a_document_comes_closes_the_connection() -> None:
    begun, left = asyncio.Event(), asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(b'{"choices":', length=1000))
        await writer.drain()
        begun.set()
        while await reader.read(65536):
            pass
        left.set()

    async with serving(hang) as model:
        asking = asyncio.create_task(ask(model))
        await begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await left.wait()


@pytest.mark.parametrize(
    "document",
    [
        b'{"choices":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"choices":[{"message":' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}]}",
        b'{"error":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"choices":[{"finish_reason":{},"message":{"content":"\\ud800"}}]}',
        b'{"choices":[{"finish_reason":7,"message":{"tool_calls":[7]}}],"usage":7}',
        b'{"choices":[null]}',
    ],
)
async def test_a_strange_document_is_read_or_refused(document: bytes) -> None:
    with suppress(ModelError):
        await events_of(reply(document))


# Odd streams


@each(
    ("data", "expected"),
    {
        "whole in one event": (event(msgspec.json.decode(whole(content="Hello"))), HELLO),
        "piece by piece": (
            streamed(message={"content": "Hel"}) + streamed("stop", message={"content": "lo"}),
            [TextDelta("Hel"), TextDelta("lo"), Finished(StopReason.END_TURN)],
        ),
        "Perplexity and text-generation-webui: beside the delta": (
            streamed(delta={"content": "Hello"}, message={"content": "Hello"})
            + streamed("stop", delta={"content": ""}, message={"content": "Hello"}),
            HELLO,
        ),
        "again after the deltas": (
            streamed(delta={"content": "Hello"}) + streamed("stop", message={"content": "Hello"}),
            HELLO,
        ),
        "unreadable beside the delta": (streamed("stop", delta={"content": "Hello"}, message=3), HELLO),
    },
)
async def test_a_stream_of_messages_is_read(data: bytes, expected: list[ModelEvent]) -> None:
    assert await events_of(reply(data, "text/event-stream")) == expected


# Modes of tools

LS = ToolSpec(name="ls", description="List a directory.", schema={"type": "object", "properties": {}})
STEP = '{"thought": "Look.", "calls": [{"tool": "ls", "args": {}}]}'


async def test_a_step_in_one_document_is_carried_out(tmp_path: Any) -> None:
    async with ScriptedEndpoint() as endpoint:
        endpoint.add([Refuse(400, "m does not support tools")], [Refuse(200, body=whole(content=STEP).decode())])
        chat = OpenAIChatModel(provider="mine", name="m", base_url=endpoint.base_url)
        model = ToolModel(chat, ToolMemory(tmp_path, address="here", model="m"))
        events = await ask(model, ModelRequest(system="", messages=PROMPT.messages, tools=(LS,)))
        await chat.aclose()
    assert "response_format" in endpoint.requests[1].body
    assert [event.name for event in events if isinstance(event, ToolCallStart)] == ["ls"]
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "Look."
    assert isinstance(events[-1], Finished)
    assert events[-1].reason is StopReason.TOOL_USE
