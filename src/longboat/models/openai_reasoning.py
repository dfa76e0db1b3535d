"""Reasoning on the OpenAI chat wire: how it arrives, and in which form the server wants it back. Pure.

Servers send it as `reasoning_content` (DeepSeek, vLLM, llama.cpp), as `reasoning` (Groq, OpenRouter), as signed pieces
in `reasoning_details` (OpenRouter), or inside `<think>` tags in the text. Except for the last, some servers refuse the
results of tool calls unless the reasoning that led to them comes back in the same form.
"""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from longboat.models.protocol import ModelEvent, Notice, ReasoningDelta, TextDelta

_OPENING = ("<think>", "<thinking>")
_UNOPENED = "</think>"
"""The closing tag of reasoning that has no opening tag."""
_QUOTES_BEFORE = tuple("`'\"“‘«([{<*_~|")
_QUOTES_AFTER = tuple("`'\"”’»)]}<*_~|,.;:!?")
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
        """End the reasoning: something else follows."""
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
    """Takes a `<think>` block at the beginning of the text for what it is. Later ones are the answer's own text.

    The templates of some models (Qwen3-Thinking, DeepSeek) write the opening tag into the prompt. If the server does
    not put it back, the answer begins with thoughts, and only `</think>` tells; the text before it is then withdrawn.
    """

    def __init__(self, *, begun: bool = False) -> None:
        """`begun`: the model's earlier answers began with reasoning, without an opening tag."""
        self.decided = False
        """Whether everything that follows is the answer."""
        self.closed_without_opening = False
        """Whether there was a closing tag without an opening one."""
        self._begun = begun
        self._held = ""
        """Text held back because it may be a tag, or the beginning of one."""
        self._closing = ""
        """The tag that ends the block, while one is open."""
        self._closed = False
        """Whether the block has just ended: blank space that follows belongs to nothing."""
        self._watching = False
        """Whether the text is shown as the answer, but may turn out to be reasoning."""
        self._apart = False
        self._said: list[str] = []
        """The text that may have to be sent again as something else."""
        self._unsure = ""
        """The end of that text, not shown yet: what follows the tag decides what it is."""

    def is_plain_text(self, text: str) -> bool:
        """Whether the piece is the answer's text, as it is: the common case, and fast. All others are for `read`."""
        if self._watching and ">" not in text and not self._unsure:
            self._said.append(text)
            return True
        return self.decided

    def read(self, text: str) -> Iterator[ModelEvent]:
        """The events for a piece of text that is not plain."""
        if self._watching:
            yield from self._look_for_unopened(text)
        else:
            self._held += text
            if not self._closing and not self._closed:
                yield from self._look_for_opening()
            if self._closing:
                yield from self._look_for_closing()
        if self._closed:
            self._held = self._held.lstrip()
            if self._held:
                yield from self.finish()

    def leave_to_server(self) -> None:
        """Note that the server sends reasoning apart from the text: no tag is missing."""
        self._apart = True
        if not self._closing:
            self._begun = False

    def finish(self) -> Iterator[ModelEvent]:
        """The events for what is still held back."""
        held, self._held, self.decided, self._watching = self._unsure + self._held, "", True, False
        if held:
            yield ReasoningDelta(held) if self._closing else TextDelta(held)

    @property
    def is_unfinished(self) -> bool:
        """Whether the answer was taken for reasoning from its beginning, and nothing has ended it."""
        return self._begun and bool(self._closing) and not self._closed

    def take_back(self) -> Iterator[ModelEvent]:
        """Show the whole text again as the answer, which it was after all."""
        said, self._held, self.decided = "".join(self._said) + self._held, "", True
        if self._said:
            yield Notice("This was the answer, not reasoning.", withdraw=True)
        if said:
            yield TextDelta(said)

    def _look_for_opening(self) -> Iterator[ModelEvent]:
        begun = self._held.lstrip()
        tag = next((tag for tag in _OPENING if begun.startswith(tag)), None)
        if tag is not None:
            self._begun = False
            self._closing, self._held = _CLOSING[tag], begun[len(tag) :].lstrip("\n")
        elif not any(tag.startswith(begun) for tag in _OPENING):
            if self._begun:
                self._closing = _UNOPENED
            elif self._apart:
                yield from self.finish()
            else:
                self._watching, text, self._held = True, self._held, ""
                yield from self._look_for_unopened(text)

    def _look_for_closing(self) -> Iterator[ModelEvent]:
        thought, found, rest = self._held.partition(self._closing)
        if found:
            self._closed, self._held, self._closing, self.closed_without_opening = True, rest, "", self._begun
            if thought.rstrip():
                yield ReasoningDelta(thought.rstrip())
            return
        keep = next(n for n in range(len(self._closing) - 1, -1, -1) if self._held.endswith(self._closing[:n]))
        said, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        if said:
            if self._begun:
                self._said.append(said)
            yield ReasoningDelta(said)

    def _look_for_unopened(self, text: str) -> Iterator[ModelEvent]:
        self._said.append(text)
        self._unsure, text = "", self._unsure + text
        if _UNOPENED not in "".join(self._said[-len(_UNOPENED) - 1 :]):
            yield TextDelta(text)
            return
        thought, _, rest = "".join(self._said).partition(_UNOPENED)
        if not rest:
            self._unsure = text
            return
        self._watching = False
        if not _may_end(thought, rest):
            self.decided = True
            yield TextDelta(text)
            return
        self._closed, self._held, self.closed_without_opening = True, rest, True
        if "".join(self._said) != text:
            yield Notice("This was the model's reasoning, not its answer.", withdraw=True)
        if thought.strip():
            yield ReasoningDelta(thought.strip())


def _may_end(thought: str, rest: str) -> bool:
    """Whether a closing tag between these texts is one: it is none where an answer quotes it, or names it among its
    words."""
    if any(tag in thought for tag in _OPENING) or thought.count("```") % 2 == 1:
        return False
    if thought.endswith("\n"):
        return not thought.rstrip().endswith(":")  # as in "They end with this line:"
    if thought.endswith((" ", "\t")):
        return rest.startswith("\n")
    return not thought.endswith(_QUOTES_BEFORE) and not rest.startswith(_QUOTES_AFTER)
