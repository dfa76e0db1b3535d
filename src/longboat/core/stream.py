"""A message while it streams: where text goes, what a delta contains, and how deltas become a message again.

Pure. The same rules build a message from a model's stream, and rebuild it from the log after a crash.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal

import msgspec

from longboat.errors import ModelError
from longboat.wire.models import Message, MessageDelta, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from longboat.wire.tools import ToolTraits

MAX_PARTS = 256
"""Limit for one answer. Each new part sends the whole message again, so the cost is the number of parts times the
length."""


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs replaced, as a careless provider or tool sends them: UTF-8 has none."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


Kind = Literal["text", "reasoning", "tool_call"]
Streamed = TextPart | ReasoningPart | ToolCallPart


@dataclass(slots=True)
class _Growing:
    """One streamed part. Text is kept in pieces: joining at every delta would cost the square of its length."""

    kind: Kind
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    call_id: str = ""
    name: str = ""
    traits: ToolTraits | None = None
    signature: str | None = None

    def part(self) -> Part:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]  # the shapes of a message share the text that they have in common
        text = self.pieces[0] if self.pieces else ""
        match self.kind:
            case "text":
                return TextPart(text=text)
            case "reasoning":
                return ReasoningPart(text=text, signature=self.signature)
            case "tool_call":
                return ToolCallPart(id=self.call_id, name=self.name, input=text, traits=self.traits)


class Draft:
    """An assistant message being written. Its methods return what clients must be sent.

    A part starts empty: first the whole message in its new shape, if it has one, then the text as a delta.
    """

    def __init__(self, message: Message, *, taken: Collection[str] = ()) -> None:
        """`taken`: ids of calls that the conversation has already."""
        self._message = message
        self._taken = taken
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

    def start_call(self, index: int, call_id: str, name: str, traits: ToolTraits | None = None) -> Message:
        """`traits` of the tool; None if there is no tool of that name."""
        shape = self._begin(_Growing("tool_call", call_id=self._fresh(call_id), name=name, traits=traits))
        self._calls[index] = len(self._parts) - 1
        return shape

    def _fresh(self, call_id: str) -> str:
        """Some servers count from 0 in every answer; a result must name one call, and other providers insist on it."""
        known = {part.call_id for part in self._parts}.union(self._taken)
        names = (call_id, *(f"{call_id}-{number}" for number in range(2, len(known) + 3)))
        return next(name for name in names if name not in known)

    def add_input(self, index: int, text: str) -> MessageDelta:
        return self._grow(self._calls[index], text)

    def withdraw(self) -> None:
        """Forget everything that was streamed: the request is retried (T7)."""
        self._parts.clear()
        self._calls.clear()

    def message(self) -> Message:
        return msgspec.structs.replace(self._message, parts=tuple(growing.part() for growing in self._parts))

    def _add_to_last(self, kind: Kind, text: str, *, fresh: bool = False) -> tuple[Message | None, MessageDelta]:
        shape = None
        if fresh or not self._parts or self._parts[-1].kind != kind:
            shape = self._begin(_Growing(kind))
        return shape, self._grow(len(self._parts) - 1, text)

    def _begin(self, growing: _Growing) -> Message:
        if len(self._parts) == MAX_PARTS:
            # No model that works does this. An error is plain: merging parts would move text past tool calls and
            # signed thoughts, which cannot be merged themselves, and would show an answer that no one gave.
            raise ModelError(
                f"It has more than {MAX_PARTS} parts (text, thoughts and tool calls in turns). The parts so far are "
                "kept. Ask for less at once, or choose another model.",
                title="The model's answer has too many parts",
                code="too_many_parts",
            )
        self._parts.append(growing)
        return self.message()

    def _grow(self, index: int, text: str) -> MessageDelta:
        text = encodable(text)
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


def reshape(old: Message, new: Message, deltas: Sequence[MessageDelta]) -> Message | None:
    """What to tell instead of the old message, so that these deltas make the new one of it; None if they cannot.

    It has the new shape and the old text: the new message need not be told any more.
    """
    if [type(part) for part in new.parts[: len(old.parts)]] != [type(part) for part in old.parts]:
        return None
    parts = [
        _with_text(part, _text_of(before) if before else "") if isinstance(part, Streamed) else part
        for part, before in zip_longest(new.parts, old.parts)
    ]
    shape = msgspec.structs.replace(new, parts=tuple(parts))
    return shape if extend(shape, deltas) == new else None


def _text_of(part: Part) -> str:
    match part:
        case TextPart() | ReasoningPart():
            return part.text
        case ToolCallPart():
            return part.input
        case ToolResultPart():
            return part.content
        case _:
            raise ValueError(f"a part of type {type(part).__name__} does not stream")


def _with_text(part: Part, text: str) -> Part:
    if isinstance(part, ToolCallPart):
        return msgspec.structs.replace(part, input=text)
    if isinstance(part, ToolResultPart):
        return msgspec.structs.replace(part, content=text)
    return msgspec.structs.replace(part, text=text)
