"""The selected message and what can be done with it: copy, fork, undo, edit. The bar has the focus while it is used.

Must not know the server: a callable does what the person wants.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from longboat.tui.content import one_line
from longboat.tui.messages import MessageView
from longboat.tui.transcript import TranscriptView
from longboat.wire.models import Message, Role, TextPart

SELECTED = "-selected"


class Deed(StrEnum):
    COPY = "copy"
    FORK = "fork"
    UNDO = "undo"
    EDIT = "edit"


_KEYS = {Deed.COPY: "c", Deed.FORK: "f", Deed.UNDO: "u", Deed.EDIT: "e"}
_TOLD = {
    Deed.COPY: "copy",
    Deed.FORK: "fork from here",
    Deed.UNDO: "undo to here",
    Deed.EDIT: "edit and resend",
}


class MessageBar(Static, can_focus=True):
    """Hidden unless a message is selected. A click selects a message and leaves the focus in the prompt: then the
    actions can be clicked. ctrl+↑ selects one and takes the focus: then their keys work."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,ctrl+up", "move(-1)", "Earlier message", show=False),
        Binding("down,ctrl+down", "move(1)", "Later message", show=False),
        *(Binding(_KEYS[deed], f"do('{deed}')", _TOLD[deed], show=False) for deed in Deed),
        Binding("escape", "leave", "Close", show=False),
    ]
    DEFAULT_CSS = """
    MessageBar { display: none; height: auto; max-height: 3; padding: 0 1; background: $panel; }
    """

    def __init__(
        self, view: TranscriptView, *, act: Callable[[Deed, Message], None], leave: Callable[[], object]
    ) -> None:
        """`act` does what the person wants; `leave` gives the focus back to the prompt."""
        super().__init__("", id="message-bar", markup=False)
        self._view = view
        self._act = act
        self._leave = leave
        self._selected: MessageView | None = None

    @property
    def selected(self) -> Message | None:
        known = self._selected is not None and self._selected.is_attached
        return self._selected.message if self._selected is not None and known else None

    def start(self) -> None:
        """Select the newest message, unless one is selected, and take the focus. Other letters go to the prompt."""
        if self.selected is None and (newest := self._view.newest_shown) is not None:
            self.select(newest)
        if self.selected is None:
            self.notify("No messages yet.")
            return
        self.screen.set_focus(self, scroll_visible=False)
        self._draw()

    def select(self, view: MessageView | None) -> None:
        """Mark a message, or none."""
        if self._selected is not None:
            self._selected.remove_class(SELECTED)
        self._selected = view
        self.display = view is not None
        if view is not None:
            view.add_class(SELECTED)
            self._view.bring_into_view(view)
            self._draw()

    def on_focus(self) -> None:
        self._draw()

    def on_blur(self) -> None:
        self.select(None)

    async def action_move(self, step: int) -> None:
        if self._selected is not None:
            view = await self._view.neighbour(self._selected.message.id, step)
            if view is not None:
                self.select(view)

    def action_do(self, deed: str) -> None:
        message = self.selected
        if message is None or Deed(deed) not in deeds_for(message):
            return
        self.action_leave()
        self._act(Deed(deed), message)

    def action_leave(self) -> None:
        self.select(None)
        self._leave()

    def _draw(self) -> None:
        message = self.selected
        if message is None:
            return
        focused = self.screen.focused is self
        parts: list[Content] = [Content.styled("Your prompt" if message.role is Role.USER else "Answer", "bold")]
        for deed in deeds_for(message):
            click = Style.from_meta({"@click": f"do('{deed}')"})
            key = f"{_KEYS[deed]}\N{NO-BREAK SPACE}" if focused else ""
            told = Content.assemble((key, "bold $text-accent"), (_TOLD[deed], "" if focused else "underline"))
            parts.append(told.stylize(click))
        keys = "↑↓ select" if focused else "ctrl+↑ keys"
        parts.append(Content.styled(f"{keys}  esc close", "dim"))
        self.update(Content("  ").join(parts))


def deeds_for(message: Message) -> list[Deed]:
    return [deed for deed in Deed if deed is not Deed.EDIT or message.role is Role.USER]


def text_of(message: Message) -> str:
    return "\n\n".join(part.text for part in message.parts if isinstance(part, TextPart))


def name_of(message: Message, width: int = 60) -> str:
    """A prompt in a few words, for a sentence about it."""
    return f"“{one_line(text_of(message), width)}”"
