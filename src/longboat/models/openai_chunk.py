"""One chunk of the OpenAI chat stream. Pure.

Owns which fields count, and how much a server may depart from their types: what an answer consists of must be readable,
what is said about it (usage, progress) may be missing. Must not know what chunks mean together.
"""

from collections.abc import Iterable
from math import isfinite
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class ToolCall(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Delta(msgspec.Struct, gc=False):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    """OpenRouter's form: pieces with signatures, which it wants back as they came."""
    tool_calls: list[ToolCall] | None = None


class Choice(msgspec.Struct, gc=False):
    delta: Delta | None = None
    message: Delta | None = None
    """What a server sends that does not stream; a few stream pieces under this name."""
    finish_reason: str | None = None


class InputDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class CountedUsage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: InputDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    """DeepSeek's word for them."""
    cost: float | None = None

    @property
    def cached(self) -> int:
        details = self.prompt_tokens_details
        return (details.cached_tokens if details else None) or self.prompt_cache_hit_tokens or 0


class PromptProgress(msgspec.Struct, gc=False):
    total: int
    cache: int = 0
    processed: int = 0


class Chunk(msgspec.Struct, gc=False):
    choices: list[Choice] | None = None
    usage: CountedUsage | None = None
    error: Any = None
    prompt_progress: PromptProgress | None = None


decode_chunk = msgspec.json.Decoder(Chunk).decode
"""Every chunk of nearly all servers can be read by this, and fast."""


def decode_loosely(data: bytes) -> Chunk | None:
    """The chunk without what is beside the answer and cannot be read; None if the answer itself cannot be."""
    try:
        value = msgspec.json.decode(data, type=dict[str, Any])
        choices = msgspec.convert(value.get("choices"), list[dict[str, Any]] | None)
        return Chunk(
            choices=None if choices is None else [_read_choice(choice) for choice in choices],
            usage=_read_usage(value.get("usage")),
            error=value.get("error"),
            prompt_progress=_converted(value.get("prompt_progress"), PromptProgress),
        )
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def error_in(data: bytes) -> Any:
    """The error in what is no chunk, from vLLM or Cloudflare; None if there is none."""
    try:
        value = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value if value.get("object") == "error" or value.get("errors") else None


def _read_choice(choice: dict[str, Any]) -> Choice:
    delta = msgspec.convert(choice.get("delta"), dict[str, Any] | None)
    message = msgspec.convert(choice.get("message"), dict[str, Any] | None) if delta is None else None
    return Choice(
        delta=None if delta is None else _read_delta(delta),
        message=None if message is None else _read_delta(message),
        finish_reason=_converted(choice.get("finish_reason"), str),
    )


def _read_delta(delta: dict[str, Any]) -> Delta:
    text, thought = _read_content(delta.get("content"))
    return Delta(
        content=text,
        refusal=_converted(delta.get("refusal"), str),
        reasoning_content=_converted(delta.get("reasoning_content"), str) or thought,
        reasoning=_converted(delta.get("reasoning"), str),
        reasoning_details=_converted(delta.get("reasoning_details"), list[dict[str, Any]]),
        tool_calls=_read_calls(delta.get("tool_calls")),
    )


def _read_calls(calls: Any) -> list[ToolCall] | None:
    """The calls; text-generation-inference sends one without a list around it, others number them in the id."""
    found = msgspec.convert([calls] if isinstance(calls, dict) else calls, list[dict[str, Any]] | None)
    for call in found or ():
        if isinstance(call.get("id"), int):
            call["id"] = str(call["id"])
    return msgspec.convert(found, list[ToolCall] | None, strict=False)


def _read_content(content: Any) -> tuple[str | None, str | None]:
    """The text and the reasoning of content, which Mistral and some proxies send as a list of parts."""
    if not isinstance(content, list):
        return msgspec.convert(content, str | None), None
    thoughts = [_text_of(part.get("thinking")) for part in content if isinstance(part, dict)]
    return _text_of(content), "".join(thoughts) or None


def _text_of(parts: Any) -> str:
    if not isinstance(parts, list):
        return parts if isinstance(parts, str) else ""
    return "".join(_texts(parts))


def _texts(parts: Iterable[Any]) -> Iterable[str]:
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield text


def _read_usage(value: Any) -> CountedUsage | None:
    if not isinstance(value, dict):
        return None
    cost = value.get("cost")
    cost = _converted(cost.get("total_cost") if isinstance(cost, dict) else cost, float)
    return CountedUsage(
        prompt_tokens=_converted(value.get("prompt_tokens"), int),
        completion_tokens=_converted(value.get("completion_tokens"), int),
        prompt_tokens_details=_converted(value.get("prompt_tokens_details"), InputDetails),
        prompt_cache_hit_tokens=_converted(value.get("prompt_cache_hit_tokens"), int),
        cost=cost if cost is not None and isfinite(cost) else None,
    )


def _converted(value: Any, kind: type[T]) -> T | None:
    """The value as this kind, also from text as in `"0.1"` and from 3.0 for 3; None if it is neither."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        return None
