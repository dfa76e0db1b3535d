"""Finds text in the messages of a session. Pure; must not know widgets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from longboat.wire.models import Message, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from longboat.wire.plain import fold_case, plain_line

MOST = 200
"""The most messages that are listed."""
AROUND = 40
"""Characters shown before the match."""
SHOWN = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A message with the text, and the first line in it that has it."""

    message_id: str
    """The message to show: for the result of a tool, the one that has the call."""
    label: str
    """Our own word for what it is."""
    before: str
    match: str
    after: str


def find(messages: Sequence[Message], text: str) -> list[Hit]:
    """The messages with this text, newest first."""
    wanted = fold_case(" ".join(text.split()))
    if not wanted:
        return []
    calls = {
        (message.run_id, part.id): message.id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCallPart)
    }
    found: list[Hit] = []
    for message in reversed(messages):
        for hit in _hits(message, wanted, calls):
            found.append(hit)
            if len(found) == MOST:
                return found
    return found


def _hits(message: Message, wanted: str, calls: dict[tuple[str, str], str]) -> Iterator[Hit]:
    """At most one match per text, and per result of a tool."""
    for part in message.parts:
        label, text = _text_in(message, part)
        shown_in = message.id
        if isinstance(part, ToolResultPart):
            shown_in = calls.get((message.run_id, part.tool_call_id), "")
        if shown_in and (cut := _cut(text, wanted)) is not None:
            yield Hit(message_id=shown_in, label=label, before=cut[0], match=cut[1], after=cut[2])


def _text_in(message: Message, part: Part) -> tuple[str, str]:
    match part:
        case TextPart(text=text):
            return "you" if message.role is Role.USER else "agent", text
        case ReasoningPart(text=text):
            return "thought", text
        case ToolCallPart(input=text):
            return "tool", text
        case ToolResultPart(content=text):
            return "output", text
    return "", ""


def _cut(text: str, wanted: str) -> tuple[str, str, str] | None:
    """The text around the first match, on one line."""
    if wanted.partition(" ")[0] not in fold_case(text):  # as most: no need to make lines of it
        return None
    for row in text.splitlines():
        shown = plain_line(row)
        folded = fold_case(shown)
        at = folded.find(wanted)
        if at >= 0:
            # Folding may change the length of a few letters; then the mark is a little off.
            start = max(0, at - AROUND)
            lead = ("…" if start else "") + shown[start:at]
            return lead, shown[at : at + len(wanted)], shown[at + len(wanted) : start + SHOWN]
    return None
