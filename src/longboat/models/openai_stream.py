"""Decodes the OpenAI chat stream: bytes in, events out. Pure; must not know HTTP.

Every chunk of every answer passes through here, so it decodes only the fields it needs and keeps the common case, one
piece of text, on the shortest path.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from longboat.errors import ModelError
from longboat.models.catalogue import Counted, Tariff
from longboat.models.openai_reasoning import ReasoningReader, ThinkTags
from longboat.models.openai_refusal import Addressee, read_value, refusal, status_in_stream
from longboat.models.protocol import (
    Finished,
    ModelEvent,
    Progress,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from longboat.wire.ids import new_id
from longboat.wire.models import Usage

MAX_LINE = 8 * 1024 * 1024
"""A longer line cannot be the answer of a chat model."""
LONG_PROMPT = 1_000
"""In tokens. While a server reads a longer prompt, people see its progress, if the server reports it."""

_STOP_REASONS = {
    "length": StopReason.MAX_TOKENS,
    "max_tokens": StopReason.MAX_TOKENS,
    "content_filter": StopReason.CONTENT_FILTER,
}


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _ToolCall(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    """OpenRouter's form: pieces with signatures, which it wants back as they came."""
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _InputDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _InputDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    """DeepSeek's word for them."""
    cost: float | None = None

    @property
    def cached(self) -> int:
        details = self.prompt_tokens_details
        return (details.cached_tokens if details else None) or self.prompt_cache_hit_tokens or 0


class _PromptProgress(msgspec.Struct, gc=False):
    total: int
    cache: int = 0
    processed: int = 0


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None
    prompt_progress: _PromptProgress | None = None


_decode = msgspec.json.Decoder(_Chunk).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    index: int
    """Ours, in order of appearance."""
    call_id: str
    """The server's, or empty if it gave none."""
    wire_index: int | None


class StreamReader:
    """Feed it chunks; it returns the completed events. `finish` returns the last one, or raises."""

    def __init__(self, to: Addressee, *, tariff: Tariff | None = None) -> None:
        """`tariff` prices the tokens if the server reports no cost."""
        self._to = to
        self._tariff = tariff
        self._rest = bytearray()
        """The beginning of a line whose end has not come."""
        self._calls: list[_Call] = []
        self._think = ThinkTags()
        self._reasoning = ReasoningReader()
        self._reason: str | None = None
        self._counted = _Usage()
        """The newest count: some servers send one with every chunk."""
        self._quarters_read = 0
        self.answered = False
        """The server said how the answer ended, or `[DONE]`: it is whole, though usage may still come."""
        self.done = False
        """The server said `[DONE]`: nothing more comes."""

    def feed(self, piece: bytes) -> Iterator[ModelEvent]:
        for line in self._lines(piece):
            if not line.startswith(b"data:") or self.done:
                continue
            try:
                yield from self._read(line[5:])
            except RecursionError:
                raise self.broken("sent a chunk that is nested too deeply") from None

    def finish(self) -> Iterator[ModelEvent]:
        """Call it when the stream has ended."""
        if self._reason is None:
            yield from self.feed(b"\n")  # the last line may lack its end
        if self._reason is None:
            raise self.broken("ended the stream before the answer was complete, without a finish_reason")
        yield from self._think.finish()
        yield from self._reasoning.end()
        yield Finished(self._stop_reason(self._reason), self._usage(), self._cached_tokens)

    def broken(self, what: str) -> ModelError:
        """The stream can no longer be used; another attempt may succeed."""
        return ModelError(
            f"{self._to.provider} {what}.", title="The model's answer broke off", code="stream_broken", retryable=True
        )

    def _lines(self, piece: bytes) -> list[bytes]:
        """The lines that became whole. Each byte is copied a fixed number of times, however small the pieces are."""
        lines: list[bytes] = []
        if b"\n" in piece:
            *lines, piece = (bytes(self._rest) + piece).split(b"\n")
            self._rest.clear()
        self._rest += piece
        if len(self._rest) > MAX_LINE:
            raise self.broken("sent a line that is too long")
        return lines

    def _read(self, data: bytes) -> Iterator[ModelEvent]:
        chunk = self._chunk(data)
        if chunk.error:
            raise self._error(chunk.error)
        if chunk.usage is not None:
            self._counted = chunk.usage
        if chunk.prompt_progress is not None:
            yield from self._reading(chunk.prompt_progress)
        if chunk.choices:
            yield from self._choice(chunk.choices[0])

    def _reading(self, progress: _PromptProgress) -> Iterator[ModelEvent]:
        """Every quarter of a prompt that takes a while."""
        fresh = progress.total - progress.cache
        quarters = 4 * (progress.processed - progress.cache) // fresh if fresh >= LONG_PROMPT else 0
        if self._quarters_read < quarters < 4:
            self._quarters_read = quarters
            yield Progress(f"Reading the prompt ({fresh:,} new tokens): {25 * quarters} %.")

    def _chunk(self, data: bytes) -> _Chunk:
        try:
            return _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            text = data.strip()
            if text == b"[DONE]":
                self.answered = self.done = True
            elif text:
                raise self.broken(f"sent a chunk that cannot be read ({error})") from None
            return _Chunk()

    def _choice(self, choice: _Choice) -> Iterator[ModelEvent]:
        delta = choice.delta
        if delta is not None:
            if delta.reasoning_content or delta.reasoning or delta.reasoning_details:
                yield from self._reasoning.read(delta.reasoning_content, delta.reasoning, delta.reasoning_details)
            if text := delta.content or delta.refusal:
                if self._reasoning.open:
                    yield from self._reasoning.end()
                if self._think.decided:
                    yield TextDelta(text)
                else:
                    yield from self._think.read(text)
            if delta.tool_calls:
                yield from self._think.finish()
                yield from self._reasoning.end()
                for piece in delta.tool_calls:
                    yield from self._tool_call(piece)
        if choice.finish_reason:
            if choice.finish_reason == "error":
                raise self._error({"message": "the model failed before the answer was complete"})
            self._reason = choice.finish_reason
            self.answered = True

    def _tool_call(self, piece: _ToolCall) -> Iterator[ModelEvent]:
        function = piece.function or _Function()
        call = self._open_call(piece, function)
        if call is None:
            if not function.name:
                raise self.broken("sent a tool call without a name")
            call = _Call(index=len(self._calls), call_id=piece.id or "", wire_index=piece.index)
            self._calls.append(call)
            yield ToolCallStart(call.index, call.call_id or f"call_{new_id()}", function.name)
        arguments = function.arguments
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        if arguments:
            yield ToolCallDelta(call.index, arguments)

    def _open_call(self, piece: _ToolCall, function: _Function) -> _Call | None:
        """The call that a piece continues, or None if it begins one.

        Servers differ: some repeat the id with every piece, some leave out the index, and some send each call whole,
        all of them with index 0. An id, where there is one, decides; then the index; then whether it has a name.
        """
        if piece.id:
            known = next((call for call in self._calls if call.call_id == piece.id), None)
            if known is not None or function.name:
                return known
        if piece.index is not None:
            return next((call for call in reversed(self._calls) if call.wire_index == piece.index), None)
        return self._calls[-1] if self._calls and not function.name else None

    @property
    def _cached_tokens(self) -> int:
        return min(max(self._counted.cached, 0), max(self._counted.prompt_tokens or 0, 0))

    def _usage(self) -> Usage:
        usage = self._counted
        if usage == _Usage():
            return Usage()
        counted = Counted(
            input_tokens=max(usage.prompt_tokens or 0, 0),
            output_tokens=max(usage.completion_tokens or 0, 0),
            cache_read_tokens=self._cached_tokens,
        )
        cost = usage.cost
        if cost is None:
            cost = self._tariff(counted) if self._tariff is not None else None
        return Usage(input_tokens=counted.input_tokens, output_tokens=counted.output_tokens, cost=cost)

    def _stop_reason(self, reason: str) -> StopReason:
        # Some servers say "stop" after tool calls, and a few say "tool_calls" after none: what came decides.
        if reason in _STOP_REASONS:
            return _STOP_REASONS[reason]
        return StopReason.TOOL_USE if self._calls else StopReason.END_TURN

    def _error(self, value: Any) -> ModelError:
        complaint = read_value(value)
        return refusal(status_in_stream(complaint), complaint, self._to)
