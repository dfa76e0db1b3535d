"""The dialog that searches the messages of a session, also those that have not been read yet."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from textual import on, work
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from longboat.errors import LongboatError
from longboat.tui.dialogs.fields import Field
from longboat.tui.dialogs.frame import ListDialog, keys_line
from longboat.tui.finding import MOST, Hit
from longboat.tui.panels.looks import FAINT
from longboat.tui.textual_fixes import Listing
from longboat.wire.plain import plain_line

Search = Callable[[str], Sequence[Hit]]
"""Finds the text in what was read so far, newest first."""
ReadOlder = Callable[[], Awaitable[bool]]
"""Reads an older page; False if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMessage:
    message_id: str


class FindDialog(ListDialog[FoundMessage]):
    """Searches as you type. Older messages are read in the background while it is open."""

    HEADING = "Search this session"
    DEFAULT_CSS = """
    FindDialog {
        #count { height: 1; color: $text-muted; }
    }
    """

    def __init__(self, search: Search, read_older: ReadOlder, *, text: str = "") -> None:
        super().__init__()
        self._search = search
        self._read_older = read_older
        self._text = text
        self._reading = True
        self._hits: Sequence[Hit] = ()

    def body(self) -> list[Widget]:
        return [
            Field(plain_line(self._text), placeholder="Text to find", id="text"),
            Listing(id="hits", markup=False),
            Static("", id="count", markup=False),
            keys_line(("↑↓", "move"), ("enter", "show"), ("esc", "close")),
        ]

    def on_mount(self) -> None:
        self.query_one("#text").focus()
        self._read()

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        try:
            while await self._read_older():
                self._draw(keep=True)
        except LongboatError as error:
            self.complain(plain_line(str(error)))
        self._reading = False
        self._draw(keep=True)

    @on(Input.Changed)
    def _changed(self) -> None:
        self._draw(keep=False)

    def _draw(self, *, keep: bool) -> None:
        """Search again; `keep`: leave the highlight where it is, because older messages only come below."""
        if not self.is_open:
            return
        text, place = self.query_one("#text", Input).value, self.listing.highlighted
        hits = self._search(text)
        if not keep or hits != self._hits:
            self._hits = hits
            self.listing.set_options([Option(_row(hit)) for hit in hits])
            if hits:
                self.listing.highlighted = min(place or 0, len(hits) - 1) if keep else 0
        self.query_one("#count", Static).update(self._count(text))

    def _count(self, text: str) -> str:
        reading = "reading older messages…" if self._reading else ""
        if not text.strip():
            return reading
        many = "+" if len(self._hits) == MOST else ""
        count = f"{len(self._hits)}{many} match{'es' * (len(self._hits) != 1)}" if self._hits else "No matches."
        return " · ".join(filter(None, (count, reading)))

    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    def _taken(self) -> None:
        at = self.listing.highlighted
        if at is not None and at < len(self._hits):
            self.end(FoundMessage(message_id=self._hits[at].message_id))


def _row(hit: Hit) -> Content:
    return Content.assemble((f"{hit.label:<7} ", FAINT), hit.before, (hit.match, "bold $text-accent"), hit.after)
