"""A message while it streams: where text goes, what a delta says, and how deltas make a message again.

Pure. The same rules build a message from a model's stream, and rebuild it from the log after a crash.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from longboat.wire.models import Message, MessageDelta, Part, ReasoningPart, TextPart, ToolCallPart


def sayable(text: str) -> str:
    """The text with halves of surrogate pairs replaced, as a careless provider or tool sends them: UTF-8 has none."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


Kind = Literal["text", "reasoning", "tool_call"]


@dataclass(slots=True)
class _Growing:
    """One streamed part. Text is kept in pieces: joining at every delta would cost the square of its length."""

    kind: Kind
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    call_id: str = ""
    name: str = ""
    signature: str | None = None

    def part(self) -> Part:
        text = "".join(self.pieces)
        match self.kind:
            case "text":
                return TextPart(text=text)
            case "reasoning":
                return ReasoningPart(text=text, signature=self.signature)
            case "tool_call":
                return ToolCallPart(id=self.call_id, name=self.name, input=text)


class Draft:
    """An assistant message being written. What it returns is what clients must hear.

    A part starts empty: first the whole message in its new shape, if it has one, then the text as a delta.
    """

    def __init__(self, message: Message) -> None:
        self._message = message
        self._parts: list[_Growing] = []
        self._calls: dict[int, int] = {}

    @property
    def empty(self) -> bool:
        return not self._parts

    def add_text(self, text: str) -> tuple[Message | None, MessageDelta]:
        return self._add_to_last("text", text)

    def add_reasoning(self, text: str, signature: str | None) -> tuple[Message | None, MessageDelta]:
        """A signature ends its part: what comes after it is another thought."""
        signed = bool(self._parts) and self._parts[-1].signature is not None
        grown = self._add_to_last("reasoning", text, fresh=signed)
        if signature is not None:
            self._parts[-1].signature = signature
        return grown

    def start_call(self, index: int, call_id: str, name: str) -> Message:
        self._calls[index] = len(self._parts)
        self._parts.append(_Growing("tool_call", call_id=call_id, name=name))
        return self.message()

    def add_input(self, index: int, text: str) -> MessageDelta:
        return self._grow(self._calls[index], text)

    def withdraw(self) -> None:
        """Forget all that was streamed: the request is tried again (T7)."""
        self._parts.clear()
        self._calls.clear()

    def message(self) -> Message:
        return msgspec.structs.replace(self._message, parts=tuple(growing.part() for growing in self._parts))

    def _add_to_last(self, kind: Kind, text: str, *, fresh: bool = False) -> tuple[Message | None, MessageDelta]:
        shape = None
        if fresh or not self._parts or self._parts[-1].kind != kind:
            self._parts.append(_Growing(kind))
            shape = self.message()
        return shape, self._grow(len(self._parts) - 1, text)

    def _grow(self, index: int, text: str) -> MessageDelta:
        text = sayable(text)
        growing = self._parts[index]
        delta = MessageDelta(
            message_id=self._message.id,
            session_id=self._message.session_id,
            run_id=self._message.run_id,
            part=index,
            offset=growing.length,
            text=text,
        )
        growing.pieces.append(text)
        growing.length += len(text)
        return delta


def extend(message: Message, deltas: Iterable[MessageDelta]) -> Message:
    """The message after these deltas. A repeat is dropped; a gap would be a defect of the log and raises."""
    texts: dict[int, list[str]] = {}
    lengths: dict[int, int] = {}
    for delta in deltas:
        if delta.part not in texts:
            texts[delta.part] = [_text_of(message.parts[delta.part])]
            lengths[delta.part] = len(texts[delta.part][0])
        known = lengths[delta.part] - delta.offset
        if known < 0:
            raise ValueError(f"message {message.id} part {delta.part}: {-known} characters are missing")
        added = delta.text[known:]
        texts[delta.part].append(added)
        lengths[delta.part] += len(added)
    parts = tuple(
        _with_text(part, "".join(texts[index])) if index in texts else part for index, part in enumerate(message.parts)
    )
    return msgspec.structs.replace(message, parts=parts)


def _text_of(part: Part) -> str:
    match part:
        case TextPart() | ReasoningPart():
            return part.text
        case ToolCallPart():
            return part.input
        case _:
            raise ValueError(f"a part of type {type(part).__name__} does not stream")


def _with_text(part: Part, text: str) -> Part:
    if isinstance(part, ToolCallPart):
        return msgspec.structs.replace(part, input=text)
    return msgspec.structs.replace(part, text=text)
