"""What the providers' wires demand of a transcript, checked on the very bodies that our adapters send.

OpenAI's chat wire by its encoder; Anthropic's by the general adapter, from a real request at a loopback door.
"""

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from longboat.core.history import for_model
from longboat.core.tool import ToolSpec
from longboat.errors import ModelError
from longboat.models.openai_request import encode_request
from longboat.models.protocol import ModelRequest, Sent
from longboat.models.pydantic_adapter import Endpoint, PydanticModel
from longboat.wire.ids import new_id
from longboat.wire.models import Message, Role, TextPart

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CALL_ID = re.compile(r"[A-Za-z0-9_-]+")
_REFUSAL = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": "only looking"}})


async def check_wires(messages: Sequence[Message], *, summary_seq: int, tools: Iterable[ToolSpec] = ()) -> None:
    """The next prompt after this transcript is one that both wires take (T3)."""
    assert messages
    last = messages[-1]
    prompt = Message(
        id=new_id(),
        session_id=last.session_id,
        run_id="next",
        seq=last.seq + 1,
        role=Role.USER,
        parts=(TextPart(text="and now?"),),
        created_at=last.created_at,
    )
    history = for_model([*messages, prompt], summary_seq)
    request = ModelRequest(system="You are the agent of a test.", messages=history, tools=tuple(tools))
    check_openai(json.loads(encode_request(request, model="m")))
    check_anthropic(await _sent_to_anthropic(request))


def check_openai(body: dict[str, Any]) -> None:
    """Every call is answered by the very next messages; nobody says nothing; no two prompts in a row."""
    _check_tools(tool["function"]["name"] for tool in body.get("tools", ()))
    waiting: list[str] = []
    seen: set[str] = set()
    before = ""
    for message in body["messages"]:
        role = message["role"]
        if role == "tool":
            waiting.remove(message["tool_call_id"])
            assert isinstance(message["content"], str)
        else:
            assert not waiting, f"calls without a result: {waiting}"
            assert role != before or role == "assistant", f"two of {role} in a row"
            assert message.get("content") or message.get("tool_calls"), "an empty message"
            waiting = [_openai_call(call, seen) for call in message.get("tool_calls", ())]
        before = role
    assert not waiting
    assert before in ("user", "tool")


def _openai_call(call: dict[str, Any], seen: set[str]) -> str:
    assert call["id"]
    assert call["id"] not in seen, "an id is used twice"
    seen.add(call["id"])
    assert _NAME.fullmatch(call["function"]["name"])
    assert isinstance(json.loads(call["function"]["arguments"]), dict)
    return str(call["id"])


def check_anthropic(body: dict[str, Any]) -> None:
    """The user begins and has the last word; each tool_use has its tool_result first thing in the next turn.

    Messages of one role in a row are one turn: the wire joins them.
    """
    _check_tools(tool["name"] for tool in body.get("tools", ()))
    messages = body["messages"]
    assert (messages[0]["role"], messages[-1]["role"]) == ("user", "user")
    assert {message["role"] for message in messages} <= {"user", "assistant"}
    waiting: list[str] = []
    seen: set[str] = set()
    for _, turn in itertools.groupby(messages, key=lambda message: message["role"]):
        blocks = [block for message in turn for block in _blocks(message["content"])]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert sorted(results) == sorted(waiting), "calls and results do not match"
        assert [block["type"] for block in blocks[: len(results)]] == ["tool_result"] * len(results)
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for call_id in waiting:
            assert _CALL_ID.fullmatch(call_id)
            assert call_id not in seen, "an id is used twice"
            seen.add(call_id)


def _blocks(content: Any) -> list[dict[str, Any]]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    assert blocks, "an empty message"
    for block in blocks:
        if block["type"] == "text":
            assert block["text"].strip(), "a text without a word"
        if block["type"] == "tool_use":
            assert isinstance(block["input"], dict)
        if block["type"] == "tool_result" and block.get("is_error"):
            assert block["content"], "an error without a word"
    return blocks


def _check_tools(names: Iterable[str]) -> None:
    known = list(names)
    assert len(known) == len(set(known))
    for name in known:
        assert _NAME.fullmatch(name), name


async def _sent_to_anthropic(request: ModelRequest) -> dict[str, Any]:
    async with _listener() as (url, bodies):
        endpoint = Endpoint(provider="mine", name="claude-sonnet-5-5", api="anthropic", api_key="sk", base_url=url)
        model = PydanticModel(endpoint, context_window=200_000)
        with suppress(ModelError):
            async with model.stream(request) as events:
                async for event in events:
                    assert isinstance(event, Sent), "the listener refuses everything"
        await model.aclose()
        (body,) = bodies
        return body


@asynccontextmanager
async def _listener() -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """A door that keeps what is sent to it, and refuses it."""
    bodies: list[dict[str, Any]] = []
    callers: set[asyncio.Task[Any]] = set()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        callers.add(task)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length:")[2].partition("\r\n")[0])
            bodies.append(json.loads(await reader.readexactly(length)))
            fields = f"content-type: application/json\r\ncontent-length: {len(_REFUSAL)}\r\nconnection: close"
            writer.write(f"HTTP/1.1 400 Bad Request\r\n{fields}\r\n\r\n{_REFUSAL}".encode())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", bodies
    finally:
        server.close()
        await asyncio.gather(*callers)
