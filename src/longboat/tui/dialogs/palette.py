"""The dialog for choosing one of many entries by typing a part of it: commands, themes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from longboat.tui.dialogs.fields import Field
from longboat.tui.dialogs.frame import ListDialog, keys_line
from longboat.tui.panels.looks import FAINT
from longboat.tui.textual_fixes import Listing
from longboat.wire.plain import fold_case, plain_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the list. The title and the description may contain untrusted text."""

    id: str
    title: str
    description: str = ""
    keys: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    id: str


class Palette(ListDialog[Picked]):
    """The best match first; one line each, with its keys on the right."""

    HEADING = "Commands"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+p", "later", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Palette {
        & > .box { max-height: 30; }
        #entries { scrollbar-gutter: stable; }
    }
    """

    def __init__(self, entries: Sequence[Entry], *, heading: str = HEADING, current: str = "") -> None:
        """`heading` is our own text. `current`: the id of the entry to highlight first."""
        super().__init__()
        self.HEADING = heading
        self._entries = entries
        self._current = current
        self._fitting: list[Entry] = []

    def body(self) -> list[Widget]:
        return [
            Field(placeholder="Type to search", id="find"),
            Listing(id="entries", markup=False),
            keys_line(("↑↓", "move"), ("enter", "select"), ("esc", "close")),
        ]

    def on_mount(self) -> None:
        self.query_one("#find").focus()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.when_laid_out(self._draw)  # the width is known by then

    @on(Input.Changed)
    def _changed(self) -> None:
        self._current = ""
        self._draw()

    def _draw(self) -> None:
        typed = self.query_one("#find", Input).value.strip()
        self._fitting = matching(self._entries, typed)
        width = self.listing.scrollable_content_region.width
        rows = [Option(_row(entry, width)) for entry in self._fitting]
        self.listing.set_options(rows or [Option("Nothing found.", disabled=True)])
        if rows:
            ids = [entry.id for entry in self._fitting]
            self.listing.highlighted = ids.index(self._current) if self._current in ids else 0

    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    def _taken(self) -> None:
        at = self.listing.highlighted
        if at is not None and at < len(self._fitting):
            self.end(Picked(id=self._fitting[at].id))


def matching(entries: Sequence[Entry], typed: str) -> list[Entry]:
    """The entries that fit what was typed, the best match first."""
    typed = fold_case(typed)
    scores = [(_score(entry, typed), entry) for entry in entries]
    return [entry for score, entry in sorted(scores, key=lambda each: -each[0]) if score > 0]


def _score(entry: Entry, typed: str) -> float:
    """The letters in this order in the title, better together and at its start; else every word in the description.
    Takes time in proportion to the text, which may be hostile."""
    title, place, jumps = fold_case(entry.title), -1, 0
    if typed in title:
        return 4 - title.index(typed) / len(title) if typed else 1
    for letter in typed:
        found = title.find(letter, place + 1)
        if found < 0:
            description = fold_case(entry.description)
            return 0.5 if all(word in description for word in typed.split()) else 0
        jumps += found != place + 1
        place = found
    return 1 + 1 / jumps


def _row(entry: Entry, width: int) -> Content:
    """Title, description and keys on one line. The description is cut first."""
    title, description = plain_line(entry.title), plain_line(entry.description)
    room = width - cell_len(title) - cell_len(entry.keys) - 4
    if room < 8:
        description = ""
    elif cell_len(description) > room:
        description = description[: room - 1] + "…"  # a wide character more is cut by the list
    gap = " " * max(2, width - cell_len(title) - cell_len(description) - cell_len(entry.keys) - 2)
    return Content.assemble((title, "bold"), "  ", (description, FAINT), gap, (entry.keys, "$text-accent"))
