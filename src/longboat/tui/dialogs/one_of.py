"""A choice between a few words on one line, with arrow keys or the mouse, readable without colour."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from longboat.tui.panels.looks import FAINT


class OneOf(Static, can_focus=True):
    """A label and the words to choose from, all our own text."""

    @dataclass
    class Changed(Message):
        index: int

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", show=False),
        Binding("right,space", "step(1)", show=False),
    ]
    DEFAULT_CSS = """
    OneOf {
        height: auto;
        &:focus { background: $block-cursor-blurred-background; }
    }
    """

    def __init__(self, label: str, words: Sequence[str], *, index: int = 0, id: str | None = None) -> None:
        super().__init__("", markup=False, id=id)
        self._label = label
        self._words = words
        self._index = index
        self._draw()

    @property
    def index(self) -> int:
        return self._index

    def rename(self, words: Sequence[str]) -> None:
        """Show other words for the same choices."""
        self._words = words
        self._draw()

    def action_step(self, step: int) -> None:
        self._take((self._index + step) % len(self._words))

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        start = len(self._label)
        for index, word in enumerate(self._words):
            start += 4 + len(word) + 2
            if at is not None and at.y == 0 and at.x < start:
                self._take(index)
                return

    def _take(self, index: int) -> None:
        if index != self._index:
            self._index = index
            self._draw()
            self.post_message(self.Changed(index=index))

    def _draw(self) -> None:
        parts: list[tuple[str, str] | str] = [(self._label, FAINT)]
        for index, word in enumerate(self._words):
            chosen = index == self._index
            parts += [(f"({'•' if chosen else ' '}) {word}", "bold $text-accent" if chosen else ""), "  "]
        self.update(Content.assemble(*parts))
