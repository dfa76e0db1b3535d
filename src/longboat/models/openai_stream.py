"""Decodes the OpenAI chat stream: bytes in, events out. Pure; must not know HTTP.

Every chunk of every answer passes through here, so it decodes only the fields it needs and keeps the common case, one
piece of text, on the shortest path.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from longboat.core.history import is_object
from longboat.errors import ModelError
from longboat.models.catalogue import Counted, Tariff
from longboat.models.openai_chunk import (
    Choice,
    Chunk,
    CountedUsage,
    Delta,
    Function,
    PromptProgress,
    ToolCall,
    decode_chunk,
    decode_loosely,
    error_in,
)
from longboat.models.openai_reasoning import ReasoningReader, ThinkTags
from longboat.models.openai_refusal import (
    Addressee,
    Complaint,
    broken_answer,
    read_body,
    read_value,
    refusal,
    status_in_stream,
)
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
    **dict.fromkeys(("length", "max_tokens", "model_length", "model_context_window_exceeded"), StopReason.MAX_TOKENS),
    **dict.fromkeys(
        ("content_filter", "safety", "recitation", "prohibited_content", "sensitive"), StopReason.CONTENT_FILTER
    ),
}
"""In OpenAI's words, and those of Mistral, Google and Z.ai. All others end a whole answer."""
_GIVEN_UP = frozenset(("error", "insufficient_system_resource", "network_error", "abort"))
"""The server ended the answer before the model did: OpenRouter, DeepSeek, Z.ai, SGLang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    index: int
    """Ours, in order of appearance."""
    call_id: str
    """The server's, or empty if it gave none."""
    wire_index: int | None
    name: str
    arguments: list[str] = field(default_factory=list)
    """As they came."""

    @property
    def is_whole(self) -> bool:
        """Whether its arguments are complete."""
        return bool(self.arguments) and self.arguments[-1].rstrip().endswith("}") and is_object("".join(self.arguments))


def _begins_another(call: _Call, function: Function) -> bool:
    """Whether a piece with the id or index of this call begins a new one: some servers give all calls the same."""
    if not function.name:
        return False
    return function.name != call.name or (bool(function.arguments) and call.is_whole)


class StreamReader:
    """Feed it chunks; it returns the completed events. `finish` returns the last one, or raises."""

    def __init__(self, to: Addressee, *, tariff: Tariff | None = None, in_thought: bool = False) -> None:
        """`tariff` prices the tokens if the server reports no cost. `in_thought`: the model is known to begin with
        thoughts that no tag opens."""
        self._to = to
        self._tariff = tariff
        self._rest = bytearray()
        """The beginning of a line whose end has not come."""
        self._calls: list[_Call] = []
        self._think = ThinkTags(begun=in_thought)
        self._in_thought = in_thought
        self._reasoning = ReasoningReader()
        self._reason: str | None = None
        self._counted = CountedUsage()
        """The newest count: some servers send one with every chunk."""
        self._quarters_read = 0
        self._has_deltas = False
        """Messages beside and after deltas repeat what they said; without any, they are all there is."""
        self.answered = False
        """The server said how the answer ended, or `[DONE]`: it is whole, though usage may still come."""
        self.done = False
        """The server said `[DONE]`: nothing more comes."""

    def feed(self, piece: bytes) -> Iterator[ModelEvent]:
        for line in self._lines(piece):
            if not line.startswith(b"data:") or self.done:
                if line.startswith(b"error:") and not self.answered:  # older versions of llama.cpp
                    raise self._error(read_body(line[6:]))
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
        yield from self._think.take_back() if self._is_all_answer(self._reason) else self._think.finish()
        yield from self._reasoning.end()
        yield Finished(self._stop_reason(self._reason), self._usage(), self._cached_tokens)

    @property
    def begins_in_thought(self) -> bool | None:
        """Whether the model began with thoughts that no tag opened; None if this answer does not tell."""
        if self._think.closed_without_opening:
            return True
        return False if self._in_thought and self._is_all_answer(self._reason) else None

    def _is_all_answer(self, reason: str | None) -> bool:
        """Whether what seemed to be thoughts was the answer: nothing else came, and it was not cut off."""
        return reason is not None and self._think.is_unfinished and self._stop_reason(reason) is StopReason.END_TURN

    def broken(self, what: str) -> ModelError:
        return broken_answer(self._to, what)

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
        error = chunk.error or (chunk.choices is None and error_in(data))
        if error:
            raise self._error(read_value(error))
        if chunk.usage is not None:
            self._counted = chunk.usage
        if chunk.prompt_progress is not None:
            yield from self._reading(chunk.prompt_progress)
        if chunk.choices:
            choice = chunk.choices[0]
            self._has_deltas = self._has_deltas or choice.delta is not None
            yield from self._choice(choice, choice.delta if self._has_deltas else choice.message)

    def _reading(self, progress: PromptProgress) -> Iterator[ModelEvent]:
        """Every quarter of a prompt that takes a while."""
        fresh = progress.total - progress.cache
        quarters = 4 * (progress.processed - progress.cache) // fresh if fresh >= LONG_PROMPT else 0
        if self._quarters_read < quarters < 4:
            self._quarters_read = quarters
            yield Progress(f"Reading the prompt ({fresh:,} new tokens): {25 * quarters} %.")

    def _chunk(self, data: bytes) -> Chunk:
        try:
            return decode_chunk(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            text = data.strip()
            if text == b"[DONE]":
                self.answered = self.done = True
            elif (chunk := decode_loosely(text)) is not None:
                return chunk
            elif text:
                raise self.broken(f"sent a chunk that cannot be read ({error})") from None
            return Chunk()

    def _choice(self, choice: Choice, delta: Delta | None) -> Iterator[ModelEvent]:
        if delta is not None:
            if delta.reasoning_content or delta.reasoning or delta.reasoning_details:
                self._think.leave_to_server()
                yield from self._reasoning.read(delta.reasoning_content, delta.reasoning, delta.reasoning_details)
            if text := delta.content or delta.refusal:
                if self._reasoning.open:
                    yield from self._reasoning.end()
                if self._think.is_plain_text(text):
                    yield TextDelta(text)
                else:
                    yield from self._think.read(text)
            if delta.tool_calls:
                yield from self._think.finish()
                yield from self._reasoning.end()
                for piece in delta.tool_calls:
                    yield from self._tool_call(piece)
        if choice.finish_reason:
            if choice.finish_reason in _GIVEN_UP:
                what = f"the model failed before the answer was complete ({choice.finish_reason})"
                raise self._error(Complaint(message=what))
            self._reason = choice.finish_reason
            self.answered = True

    def _tool_call(self, piece: ToolCall) -> Iterator[ModelEvent]:
        function = piece.function or Function()
        call = self._open_call(piece, function)
        if call is None or _begins_another(call, function):
            if not function.name:
                raise self.broken("sent a tool call without a name")
            call = _Call(index=len(self._calls), call_id=piece.id or "", wire_index=piece.index, name=function.name)
            self._calls.append(call)
            yield ToolCallStart(call.index, call.call_id or f"call_{new_id()}", function.name)
        arguments = function.arguments
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        if arguments:
            call.arguments.append(arguments)
            yield ToolCallDelta(call.index, arguments)

    def _open_call(self, piece: ToolCall, function: Function) -> _Call | None:
        """The call that a piece continues, unless `_begins_another`. None if it begins one.

        Servers differ: some repeat the id with every piece, some leave out the index, and some send each call whole,
        all of them with index 0. An id, where there is one, decides; then the index; then whether it has a name.
        """
        if piece.id:
            known = next((call for call in reversed(self._calls) if call.call_id == piece.id), None)
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
        if usage == CountedUsage():
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
        if known := _STOP_REASONS.get(reason.partition(":")[0].lower()):  # Google adds why: "content_filter: SAFETY"
            return known
        return StopReason.TOOL_USE if self._calls else StopReason.END_TURN

    def _error(self, complaint: Complaint) -> ModelError:
        return refusal(status_in_stream(complaint), complaint, self._to)
