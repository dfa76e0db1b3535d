"""pydantic-ai's stream as our events. Import it through `pydantic_adapter.py` only: the library is heavy."""

from collections.abc import Iterator

from pydantic_ai import exceptions as theirs
from pydantic_ai import messages as pai
from pydantic_ai.usage import RequestUsage

from longboat.models.catalogue import Counted, Tariff
from longboat.models.protocol import ModelEvent, ReasoningDelta, StopReason, TextDelta, ToolCallDelta, ToolCallStart
from longboat.models.pydantic_request import pack
from longboat.wire import models as wire


class Translation:
    """Converts one response's events into ours: calls get numbers, a signature waits until its reasoning has ended."""

    def __init__(self) -> None:
        self._calls: dict[int, int] = {}
        self._sent: dict[str, str] = {}
        self._call_ids: list[str] = []
        self._reasoning_id: str | None = None
        self._signature: str | None = None

    def feed(self, event: pai.ModelResponseStreamEvent) -> Iterator[ModelEvent]:
        match event:
            case pai.PartStartEvent(part=pai.ThinkingPart() as part):
                yield from self._reasoning_start(part)
            case pai.PartStartEvent(part=pai.TextPart() as part):
                yield from self._sign()
                yield from _text(part.content)
            case pai.PartStartEvent(part=pai.ToolCallPart() as part) if event.index not in self._calls:
                yield from self._sign()
                yield from self._call_start(event.index, part)
            case pai.PartDeltaEvent(delta=pai.ThinkingPartDelta() as delta):
                if delta.content_delta:
                    yield ReasoningDelta(delta.content_delta)
                self._signature = delta.signature_delta or self._signature
            case pai.PartDeltaEvent(delta=pai.TextPartDelta() as delta):
                yield from _text(delta.content_delta)
            case pai.PartDeltaEvent(delta=pai.ToolCallPartDelta(args_delta=str(args))):
                yield from self._arguments(self._calls[event.index], args)

    def finish(self, final: pai.ModelResponse) -> Iterator[ModelEvent]:
        """What the stream did not spell out: arguments that came as an object, and the last signature."""
        for part in final.parts:
            if isinstance(part, pai.ToolCallPart) and part.tool_call_id in self._sent:
                whole, sent = part.args_as_json_str(), self._sent[part.tool_call_id]
                if whole.startswith(sent):
                    yield from self._arguments(self._call_ids.index(part.tool_call_id), whole[len(sent) :])
        yield from self._sign()

    def _reasoning_start(self, part: pai.ThinkingPart) -> Iterator[ModelEvent]:
        same = part.id is not None and part.id == self._reasoning_id
        if not same:
            yield from self._sign()
        text = f"\n\n{part.content}" if same else part.content
        self._reasoning_id = part.id
        self._signature = part.signature or self._signature
        if text:
            yield ReasoningDelta(text)

    def _sign(self) -> Iterator[ModelEvent]:
        if self._signature:
            yield ReasoningDelta("", pack(self._reasoning_id, self._signature))
        self._signature = self._reasoning_id = None

    def _call_start(self, part_index: int, part: pai.ToolCallPart) -> Iterator[ModelEvent]:
        if secret := (part.provider_details or {}).get("thought_signature"):
            # Gemini signs the call itself and takes the signature back on empty reasoning before it.
            yield ReasoningDelta("", secret)
        index = self._calls[part_index] = len(self._call_ids)
        self._call_ids.append(part.tool_call_id)
        self._sent[part.tool_call_id] = ""
        yield ToolCallStart(index, part.tool_call_id, part.tool_name)
        if isinstance(part.args, str):
            yield from self._arguments(index, part.args)

    def _arguments(self, index: int, text: str) -> Iterator[ModelEvent]:
        if text:
            self._sent[self._call_ids[index]] += text
            yield ToolCallDelta(index, text)


def _text(text: str) -> Iterator[ModelEvent]:
    if text:
        yield TextDelta(text)


def stop_reason(final: pai.ModelResponse) -> StopReason:
    match final.finish_reason:
        case "length":
            return StopReason.MAX_TOKENS
        case "content_filter":
            return StopReason.CONTENT_FILTER
        case "error":
            raise theirs.UnexpectedModelBehavior("The model stopped with an error.")
        case None if "finish_reason" not in (final.provider_details or {}):
            raise theirs.ModelAPIError(final.model_name or "", "The stream ended before the answer was complete.")
    called = any(isinstance(part, pai.ToolCallPart) for part in final.parts)
    return StopReason.TOOL_USE if called else StopReason.END_TURN


def usage(final: pai.ModelResponse, tariff: Tariff | None) -> wire.Usage:
    """`tariff`: the configured price, if there is one; else the library's."""
    used = final.usage
    cost = _listed_cost(final) if tariff is None else tariff(_counted(used))
    return wire.Usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens, cost=cost)


def _counted(used: RequestUsage) -> Counted:
    return Counted(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
    )


def _listed_cost(final: pai.ModelResponse) -> float | None:
    try:
        return float(final.cost().total_price)
    except (LookupError, ValueError):
        return None
