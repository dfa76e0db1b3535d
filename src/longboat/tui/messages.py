"""Widgets for messages: prompts, answers with their parts, collapsed reasoning, and how a turn ended.

Each can be given a newer version of its message and updates only what changed. Must not know the stream or the window.
"""

from collections.abc import Callable
from dataclasses import dataclass

from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.message import Message as TextualMessage
from textual.widget import Widget
from textual.widgets import Static

from longboat.tui.content import content, line, one_line
from longboat.tui.prose import Prose
from longboat.tui.toolcard import ToolCard
from longboat.wire.models import (
    FilePart,
    FinishPart,
    FinishReason,
    Message,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from longboat.wire.plain import plain

FOLDED_LINES = 30
"""Lines shown of a long prompt until it is clicked."""

CardKey = tuple[str, str]
"""The ids of a run and a tool call."""


@dataclass(slots=True)
class Folding:
    """Whether tool calls and reasoning start expanded."""

    expanded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageContext:
    """What a message's widgets need beyond the message itself."""

    cards: dict[CardKey, ToolCard]
    results: dict[CardKey, ToolResultPart]
    remarks: dict[CardKey, str]
    """Remarks on calls, such as who allowed them."""
    folding: Folding
    by: Callable[[str], str]
    """Who sent a run and whether it steered a turn."""
    other: Callable[[str], str]
    """The person behind a client; empty for our own."""


@dataclass
class MessageClicked(TextualMessage):
    """A click on a message, not on one of its parts that expand."""

    view: "MessageView"


class Thought(Static):
    """Reasoning, collapsed to one line until it is clicked."""

    DEFAULT_CSS = """
    Thought { height: auto; margin: 0 0 1 2; color: $text-muted; text-style: italic; &:hover { background: $boost; } }
    """

    def __init__(self, text: str, *, expanded: bool = False) -> None:
        super().__init__(markup=False)
        self._text = text
        self._open = expanded
        self._draw()

    def show(self, text: str) -> None:
        if text != self._text:
            self._text = text
            self._draw()

    def on_click(self, event: Click) -> None:
        event.stop()
        self.toggle()

    def toggle(self) -> None:
        self.set_expanded(expanded=not self._open)

    def set_expanded(self, *, expanded: bool) -> None:
        self._open = expanded
        self._draw()

    def _draw(self) -> None:
        rows = self._text.strip().splitlines()
        if self._open:
            self.update(Content("▾ Reasoning\n") + content(self._text.strip()))
        else:
            last = one_line(rows[-1], 60) if rows else ""
            self.update(Content(f"▸ Reasoning ({len(rows)} line{'s' if len(rows) != 1 else ''}) {last}"))


class Note(Static):
    """A line about what happened: the end of a run, a notice, an error."""

    DEFAULT_CSS = """
    Note { height: auto; margin: 0 0 1 2; color: $text-muted; }
    Note.-error { color: $text-error; }
    Note.-warning { color: $text-warning; }
    """

    def __init__(self, text: Content | str, kind: str = "") -> None:
        super().__init__(
            content(text) if isinstance(text, str) else text, markup=False, classes=f"-{kind}" * bool(kind)
        )


ENDS = {
    FinishReason.CANCELED: ("■ Canceled", "warning"),
    FinishReason.ERROR: ("✗ Failed", "error"),
    FinishReason.INTERRUPTED: ("✗ Interrupted: the server stopped. Send another prompt to continue", "error"),
    FinishReason.MAX_TOKENS: ("✗ Cut off: the answer reached the model's length limit. Ask it to continue", "warning"),
    FinishReason.CONTENT_FILTER: ("✗ Stopped by the provider's content filter", "warning"),
    FinishReason.LIMIT: ("✗ Stopped at a limit", "warning"),
}


def end_note(finish: FinishPart, other: Callable[[str], str]) -> Note | None:
    """A note on how a turn ended, if it did not end normally; `other` names the person who canceled it, unless that is
    the reader."""
    if finish.reason not in ENDS:
        return None
    text, kind = ENDS[finish.reason]
    if finish.reason is FinishReason.CANCELED:
        client = finish.detail.removeprefix("by ")
        return Note(content(f"{text} by {other(client) or 'you'}." if client else f"{text}."), kind)
    if finish.reason is FinishReason.INTERRUPTED:  # the server's own text says the same
        return Note(f"{text}.", kind)
    title, detail = finish.title.strip(), finish.detail.strip()
    if finish.reason in (FinishReason.ERROR, FinishReason.LIMIT) and title:
        text = f"✗ {title}"  # the title says what happened
    elif title:
        detail = f"{title}: {detail}" if detail else title
    return Note(f"{text}: {detail}" if detail else f"{text}.", kind)


class PromptView(Static):
    """A person's prompt."""

    DEFAULT_CSS = """
    PromptView {
        height: auto; margin: 0 0 1 0; padding: 0 1; background: $boost; border-left: outer $primary;
        &.-selected { background: $primary 20%; border-left: outer $accent; }
    }
    """

    def __init__(self, message: Message, around: MessageContext) -> None:
        super().__init__(markup=False)
        self.message = message
        self._around = around
        self._open = False
        self._draw()

    def show(self, message: Message) -> None:
        self.message = message
        self._draw()

    def on_click(self) -> None:
        self._open = not self._open
        self._draw()
        self.post_message(MessageClicked(self))

    def _draw(self) -> None:
        parts = self.message.parts
        rows = plain("\n".join(part.text for part in parts if isinstance(part, TextPart))).splitlines()
        hidden = 0 if self._open else max(0, len(rows) - FOLDED_LINES)
        shown = [Content("\n".join(rows[:FOLDED_LINES] if hidden else rows))]
        if hidden:
            shown.append(Content.styled(f"… {hidden} more lines", "dim"))
        shown += [line(f"⊕ {part.name}", "$text-accent", width=80) for part in parts if isinstance(part, FilePart)]
        if by := self._around.by(self.message.run_id):
            shown.append(line(by, "italic $text-muted", width=80))
        self.update(Content("\n").join(shown))


class AnswerView(Vertical):
    """The model's answer: a widget for each part."""

    DEFAULT_CSS = """
    AnswerView { height: auto; &.-selected { background: $primary 20%; } }
    """

    def __init__(self, message: Message, around: MessageContext) -> None:
        self._around = around
        self._parts: list[tuple[type[Part], Widget | None]] = []
        self.message = message
        super().__init__(*self._new(message, 0))

    def show(self, message: Message) -> None:
        self.message = message
        same = self._same(message)
        for _, widget in self._parts[same:]:
            if widget is not None:
                widget.remove()
        del self._parts[same:]
        for part, (_, widget) in zip(message.parts, self._parts, strict=False):
            _update(widget, part)
        if added := self._new(message, same):
            self.mount_all(added)

    def on_click(self) -> None:
        self.post_message(MessageClicked(self))

    def leave(self) -> None:
        """Forget the cards of this message, which is no longer shown."""
        for key in self._keys():
            self._around.cards.pop(key, None)

    def _keys(self) -> list[CardKey]:
        return [(self.message.run_id, part.id) for part in self.message.parts if isinstance(part, ToolCallPart)]

    def _same(self, message: Message) -> int:
        """How many leading parts are unchanged or have only grown."""
        same = 0
        for part, (kind, _) in zip(message.parts, self._parts, strict=False):
            if type(part) is not kind:
                break
            same += 1
        return same

    def _new(self, message: Message, start: int) -> list[Widget]:
        made = [(type(part), self._widget(message, part)) for part in message.parts[start:]]
        self._parts += made
        return [widget for _, widget in made if widget is not None]

    def _widget(self, message: Message, part: Part) -> Widget | None:
        match part:
            case TextPart(text=text):
                return Prose(text) if not message.summary else Thought(f"Summary so far\n{text}")
            case ReasoningPart(text=text):
                return Thought(text, expanded=self._around.folding.expanded)
            case ToolCallPart():
                key = (message.run_id, part.id)
                result, remark = self._around.results.get(key), self._around.remarks.get(key, "")
                card = ToolCard(part, result, remark, expanded=self._around.folding.expanded)
                self._around.cards[key] = card
                return card
            case FinishPart():
                return end_note(part, self._around.other)
        return None


def _update(widget: Widget | None, part: Part) -> None:
    match widget, part:
        case (Prose() | Thought(), TextPart(text=text) | ReasoningPart(text=text)):
            widget.show(text)
        case ToolCard(), ToolCallPart():
            widget.show_call(part)


MessageView = PromptView | AnswerView


def view_of(message: Message, around: MessageContext) -> MessageView | None:
    """The widget for a message; None for tool results, which are shown in the cards of their calls."""
    match message.role:
        case Role.USER:
            return PromptView(message, around)
        case Role.ASSISTANT:
            return AnswerView(message, around)
    return None
