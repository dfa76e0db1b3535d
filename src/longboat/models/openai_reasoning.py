"""Reasoning on the OpenAI chat wire: how it arrives, and in which form the server wants it back. Pure.

Servers send it as `reasoning_content` (DeepSeek, vLLM, llama.cpp), as `reasoning` (Groq, OpenRouter), as signed pieces
in `reasoning_details` (OpenRouter), or inside `<think>` tags in the text. Except for the last, some servers refuse the
results of tool calls unless the reasoning that led to them comes back in the same form.
"""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from longboat.models.protocol import ModelEvent, ReasoningDelta, TextDelta

_OPENING = ("<think>", "<thinking>")
_CLOSING = {"<think>": "</think>", "<thinking>": "</thinking>"}


class ReasoningForm(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the server sent its reasoning. Kept as the signature of the reasoning's part."""

    field: Literal["reasoning_content", "reasoning"]
    details: tuple[dict[str, Any], ...] = ()


_decode_form = msgspec.json.Decoder(ReasoningForm).decode


def read_form(signature: str | None) -> ReasoningForm | None:
    """The form that a signature holds; None if there is none, or it is the signature of another wire."""
    if signature is None or not signature.startswith("{"):
        return None
    try:
        return _decode_form(signature)
    except msgspec.DecodeError:
        return None


class ReasoningReader:
    """Reads the reasoning of one answer; `end` signs it with its form."""

    def __init__(self) -> None:
        self._field: Literal["reasoning_content", "reasoning"] | None = None
        self._details: list[dict[str, Any]] = []

    @property
    def open(self) -> bool:
        return self._field is not None

    def read(
        self, content: str | None, reasoning: str | None, details: list[dict[str, Any]] | None
    ) -> Iterator[ModelEvent]:
        self._field = "reasoning_content" if content else "reasoning"
        for piece in details or ():
            self._add(piece)
        yield ReasoningDelta(content or reasoning or "")

    def end(self) -> Iterator[ModelEvent]:
        """Call it when something else follows."""
        if self._field is not None:
            form = ReasoningForm(self._field, tuple(self._details))
            self._field, self._details = None, []
            yield ReasoningDelta("", msgspec.json.encode(form).decode())

    def _add(self, piece: dict[str, Any]) -> None:
        """A piece that continues the last one of its index and type is joined to it."""
        last = self._details[-1] if self._details else None
        if last is None or (last.get("index"), last.get("type")) != (piece.get("index"), piece.get("type")):
            self._details.append(dict(piece))
            return
        for key, value in piece.items():
            grows = key in ("text", "summary", "data") and isinstance(value, str) and isinstance(last.get(key), str)
            if grows:
                last[key] += value
            elif value is not None:
                last[key] = value


class ThinkTags:
    """Takes a `<think>` block at the beginning of the text for what it is. Later ones are the answer's own text."""

    def __init__(self) -> None:
        self.decided = False
        """All that follows is the answer."""
        self._held = ""
        """What may be a tag, or the beginning of one."""
        self._closing = ""
        """The tag that ends the block, while one is open."""
        self._closed = False
        """The block has ended; what follows begins with blank space that belongs to nothing."""

    def read(self, text: str) -> Iterator[ModelEvent]:
        """The events for a piece of text, as long as it is not `decided`."""
        self._held += text
        if not self._closing and not self._closed:
            yield from self._look_for_opening()
        if self._closing:
            yield from self._look_for_closing()
        if self._closed:
            self._held = self._held.lstrip()
            if self._held:
                yield from self.finish()

    def finish(self) -> Iterator[ModelEvent]:
        """Whatever is still held back."""
        held, self._held, self.decided = self._held, "", True
        if held:
            yield ReasoningDelta(held) if self._closing else TextDelta(held)

    def _look_for_opening(self) -> Iterator[ModelEvent]:
        begun = self._held.lstrip()
        tag = next((tag for tag in _OPENING if begun.startswith(tag)), None)
        if tag is not None:
            self._closing, self._held = _CLOSING[tag], begun[len(tag) :].lstrip("\n")
        elif not any(tag.startswith(begun) for tag in _OPENING):
            yield from self.finish()

    def _look_for_closing(self) -> Iterator[ModelEvent]:
        thought, found, rest = self._held.partition(self._closing)
        if found:
            self._closed, self._held, self._closing = True, rest, ""
            if thought.rstrip():
                yield ReasoningDelta(thought.rstrip())
            return
        keep = next(n for n in range(len(self._closing) - 1, -1, -1) if self._held.endswith(self._closing[:n]))
        said, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        if said:
            yield ReasoningDelta(said)
