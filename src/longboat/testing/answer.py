"""One answer on the OpenAI chat wire: script items turned into stream chunks or one document, refusals and faults.

Must not know which script is played or who asks.
"""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import lru_cache
from typing import Any

import msgspec

from longboat.models.protocol import StopReason
from longboat.testing.script import (
    Break,
    CallTool,
    Delay,
    Fail,
    Hang,
    HttpStep,
    Pause,
    Raw,
    Refuse,
    Say,
    Stop,
    Think,
    Use,
    wait_for,
)

_FINISH_REASONS = {
    StopReason.END_TURN: "stop",
    StopReason.TOOL_USE: "tool_calls",
    StopReason.MAX_TOKENS: "length",
    StopReason.CONTENT_FILTER: "content_filter",
}
_DONE = b"data: [DONE]\n\n"


class Dropped(Exception):
    """The script drops the connection: the server returns without ending the answer."""


class Answer:
    """The response to one request. It starts with the first thing it sends, so a script may also wait before that."""

    def __init__(
        self,
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
        *,
        model: str,
        number: int,
        streams: bool = True,
    ) -> None:
        self._send = send
        self._whole: dict[str, Any] | None = None if streams else {"role": "assistant", "content": None}
        """The message so far, if it is sent in one document at the end."""
        self._model = model
        self._number = number
        self._started = False
        self._calls = 0
        self._usage = Use(input_tokens=1, output_tokens=1)

    async def play(self, step: HttpStep) -> None:
        for item in step:
            match item:
                case Stop():
                    return await self._finish(item.reason)
                case Refuse():
                    return await self._refuse(item)
                case Fail(error=error):
                    body = {"error": {"message": error.message, "code": error.code}}
                    if self._whole is not None:
                        return await self._send_document(500, msgspec.json.encode(body))
                    return await self._write(_event(body), more=False)
                case Break():
                    return await self._break(item)
                case _:
                    await self._item(item)
        return await self._finish(StopReason.TOOL_USE if self._calls else StopReason.END_TURN)

    async def send_all(self, pieces: Iterable[bytes]) -> None:
        """Send what was encoded before, and end."""
        for piece in pieces:
            await self._write(piece)
        await self._write(b"", more=False)

    async def _item(self, item: Say | Think | CallTool | Raw | Use | Pause | Delay | Hang) -> None:
        match item:
            case Say(text=text):
                await self._delta({"content": text})
            case Think(text=text):
                await self._delta({"reasoning_content": text})
            case CallTool():
                await self._call(item)
            case Raw(text=text):
                await self._write(text.encode())
            case Use():
                self._usage = item
            case _:
                await wait_for(item)

    async def _break(self, item: Break) -> None:
        await self._write(b"", more=item.drop)
        if item.drop:
            raise Dropped

    async def _call(self, item: CallTool) -> None:
        """As OpenAI does: the name first, then the arguments, here in two pieces."""
        index, text = self._calls, item.input
        self._calls += 1
        call_id = item.call_id or f"call_{self._number}_{index}"
        if self._whole is not None:
            call = {"id": call_id, "type": "function", "function": {"name": item.name, "arguments": text}}
            self._whole.setdefault("tool_calls", []).append(call)
            return
        function = {"name": item.name, "arguments": ""}
        await self._delta({"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]})
        for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
            await self._delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})

    async def _finish(self, reason: StopReason) -> None:
        usage = {
            "prompt_tokens": self._usage.input_tokens,
            "completion_tokens": self._usage.output_tokens,
            "total_tokens": self._usage.input_tokens + self._usage.output_tokens,
            **({} if self._usage.cost is None else {"cost": self._usage.cost}),
        }
        if self._whole is not None:
            choice = {"index": 0, "message": self._whole, "finish_reason": _FINISH_REASONS[reason]}
            document = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": self._model}
            body = msgspec.json.encode({**document, "choices": [choice], "usage": usage})
            return await self._send_document(200, body)
        end = _chunk({}, self._model, _FINISH_REASONS[reason])
        return await self._write(_event(end) + _event({"choices": [], "usage": usage}) + _DONE, more=False)

    async def _refuse(self, item: Refuse) -> None:
        body = item.body
        if body is None:
            error = {"message": item.message, "type": "scripted_error", "code": item.code}
            body = msgspec.json.encode({"error": error}).decode()
        extra = [] if item.retry_after is None else [(b"retry-after", item.retry_after.encode())]
        await self._send_document(item.status, body.encode(), *extra)

    async def _send_document(self, status: int, body: bytes, *extra: tuple[bytes, bytes]) -> None:
        headers = [(b"content-type", b"application/json"), *extra]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def _delta(self, delta: dict[str, Any]) -> None:
        if self._whole is not None:
            for name, text in delta.items():
                self._whole[name] = (self._whole.get(name) or "") + text
            return
        await self._write(_event(_chunk(delta, self._model, None)))

    async def _write(self, data: bytes, *, more: bool = True) -> None:
        if not self._started:
            self._started = True
            headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


def _chunk(delta: dict[str, Any], model: str, finish_reason: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": [choice]}


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


@lru_cache(maxsize=8)
def burst(count: int, batch: int) -> tuple[bytes, ...]:
    """An answer of `count` chunks of text, `batch` of them in one write, encoded once for all who ask."""
    events = [_event(_chunk({"content": f"word{number % 1000} "}, "burst", None)) for number in range(count)]
    size = max(1, batch)
    pieces = [b"".join(events[start : start + size]) for start in range(0, count, size)]
    usage = {"prompt_tokens": 1, "completion_tokens": count}
    end = _event(_chunk({}, "burst", "stop")) + _event({"choices": [], "usage": usage}) + _DONE
    return (*pieces, end)
