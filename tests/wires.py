"""A loopback server that plays scripts on Anthropic's wire (`…/messages`) and OpenAI's Responses wire (`…/responses`).

`longboat.testing.ScriptedEndpoint` speaks the chat wire; this is for the adapters that go through pydantic-ai.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from longboat.testing import CallTool, Refuse, Say, Think

Item = Say | Think | CallTool | Refuse
Frames = Iterator[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Asked:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Wires:
    steps: list[Sequence[Item]]
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    _callers: set["asyncio.Task[None]"] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._callers.add(task)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            fields = (line.partition(":") for line in head[1:])
            headers = {name.lower(): value.strip() for name, _, value in fields if name}
            body = json.loads(await reader.readexactly(int(headers.get("content-length", "0"))) or b"{}")
            self.asked.append(Asked(path=head[0].split()[1], headers=headers, body=body))
            writer.write(self._answer(self.asked[-1]))
            await writer.drain()
        writer.close()

    def _answer(self, asked: Asked) -> bytes:
        step = self.steps.pop(0)
        match step:
            case [Refuse() as refusal]:
                error = {"type": "refused", "code": refusal.code, "message": refusal.message}
                return _response(refusal.status, "application/json", json.dumps({"error": error}))
        kind = asked.path.partition("?")[0].rpartition("/")[2]
        model, number = str(asked.body.get("model")), len(self.asked)
        play = {"messages": _anthropic, "responses": _responses}.get(kind)
        if play is None:
            return _response(404, "application/json", '{"error": {"message": "no such path"}}')
        frames = (f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n" for frame in play(step, model, number))
        return _response(200, "text/event-stream", "".join(frames))


@asynccontextmanager
async def wires(*steps: Sequence[Item]) -> AsyncIterator[Wires]:
    script = Wires(list(steps))
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    script.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield script
    finally:
        server.close()
        await asyncio.gather(*script._callers)


def _response(status: int, kind: str, body: str) -> bytes:
    head = f"HTTP/1.1 {status} Status\r\ncontent-type: {kind}\r\ncontent-length: {len(body.encode())}\r\n"
    return f"{head}connection: close\r\n\r\n{body}".encode()


def _anthropic(step: Sequence[Item], model: str, number: int) -> Frames:
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": []}
    usage = {"input_tokens": 10, "output_tokens": 1}
    yield {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None, "usage": usage}}
    for index, item in enumerate(step):
        block, deltas = _block(item, f"toolu_{number}_{index}", number)
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = "tool_use" if any(isinstance(item, CallTool) for item in step) else "end_turn"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": 5},
    }
    yield {"type": "message_stop"}


def _block(item: Item, call_id: str, number: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match item:
        case Say(text=text):
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": text}]
        case Think(text=text):
            signature = {"type": "signature_delta", "signature": f"signed-{number}"}
            thinking = {"type": "thinking_delta", "thinking": text}
            return {"type": "thinking", "thinking": "", "signature": ""}, [thinking, signature]
        case CallTool():
            delta = {"type": "input_json_delta", "partial_json": item.input}
            return {"type": "tool_use", "id": item.call_id or call_id, "name": item.name, "input": {}}, [delta]
    raise AssertionError(item)


def _responses(step: Sequence[Item], model: str, number: int) -> Frames:
    base = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": model, "parallel_tool_calls": True}
    base |= {"tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None, "metadata": {}}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15} | details
    events = [{"type": "response.created", "response": base | {"status": "in_progress", "output": []}}]
    for index, item in enumerate(step):
        events += _output(item, index, f"{number}_{index}")
    done = base | {"status": "completed", "output": [], "usage": usage}
    events.append({"type": "response.completed", "response": done})
    for place, event in enumerate(events):
        yield event | {"sequence_number": place}


def _output(item: Item, index: int, tag: str) -> list[dict[str, Any]]:
    at = {"output_index": index}
    added, finished = {"type": "response.output_item.added", **at}, {"type": "response.output_item.done", **at}
    match item:
        case Say(text=text):
            message = {"id": f"m_{tag}", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
            place = {"item_id": f"m_{tag}", **at, "content_index": 0}
            part = {"type": "output_text", "text": "", "annotations": []}
            return [
                added | {"item": message},
                {"type": "response.content_part.added", **place, "part": part},
                {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
                {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
            ]
        case Think(text=text):
            reasoning = {"id": f"rs_{tag}", "type": "reasoning", "summary": []}
            whole = reasoning | {
                "encrypted_content": f"sealed-{tag}",
                "summary": [{"type": "summary_text", "text": text}],
            }
            place = {"item_id": f"rs_{tag}", **at, "summary_index": 0}
            part = {"type": "summary_text", "text": ""}
            return [
                added | {"item": reasoning},
                {"type": "response.reasoning_summary_part.added", **place, "part": part},
                {"type": "response.reasoning_summary_text.delta", **place, "delta": text},
                finished | {"item": whole},
            ]
        case CallTool():
            call = {"id": f"fc_{tag}", "type": "function_call", "call_id": item.call_id or f"call_{tag}"}
            call |= {"name": item.name, "status": "in_progress"}
            arguments = {"type": "response.function_call_arguments.delta", "item_id": f"fc_{tag}", **at}
            return [
                added | {"item": call | {"arguments": ""}},
                arguments | {"delta": item.input},
                finished | {"item": call | {"arguments": item.input}},
            ]
    raise AssertionError(item)
