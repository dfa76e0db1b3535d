"""The inbox: what waits for an answer and which runs have ended, in all workspaces."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from longboat.tui.dialogs.formatting import ago, now
from longboat.tui.dialogs.frame import ListDialog, keys_line
from longboat.tui.panels.looks import FAINT
from longboat.tui.textual_fixes import Listing
from longboat.wire.inbox import InboxItem, InboxKind
from longboat.wire.plain import plain_line

_KINDS = {
    InboxKind.PERMISSION: ("approve? ", "$text-warning"),
    InboxKind.QUESTION: ("question ", "$text-warning"),
    InboxKind.FAILED: ("failed   ", "$text-error"),
    InboxKind.FINISHED: ("done     ", "$text-success"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerItem:
    """Answer a permission request or a question."""

    item: InboxItem


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenItem:
    """Go to the session of an item."""

    item: InboxItem


@dataclass(frozen=True, slots=True, kw_only=True)
class SeeAll:
    """Mark this item and all older ones as seen."""

    up_to: str


class InboxDialog(ListDialog[AnswerItem | OpenItem | SeeAll]):
    """`show()` updates the list while it is open."""

    HEADING = "Inbox"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "open", "Open the session"),
        Binding("m", "see_all", "Mark all as seen"),
    ]

    def __init__(self, items: Sequence[InboxItem], *, clock: Callable[[], datetime] = now) -> None:
        super().__init__()
        self._items = {item.id: item for item in items}
        self._now = clock

    def body(self) -> list[Widget]:
        return [
            Listing(id="inbox", markup=False),
            keys_line(("enter", "answer or open"), ("o", "open session"), ("m", "mark all as seen"), ("esc", "close")),
        ]

    def on_mount(self) -> None:
        self.listing.focus()
        self._draw()

    @property
    def _chosen(self) -> InboxItem | None:
        option = self.listing.highlighted_option
        return self._items.get(option.id or "") if option is not None else None

    def show(self, items: Sequence[InboxItem]) -> None:
        """Show these items; the highlighted one stays highlighted."""
        chosen = self._chosen if self.is_open else None
        self._items = {item.id: item for item in items}
        if self.is_open:
            self._draw(chosen.id if chosen is not None else None)

    def _draw(self, chosen: str | None = None) -> None:
        listing, at = self.listing, self._now()
        options = [Option(_row(item, at), id=item.id) for item in self._items.values()]
        listing.set_options(options or [Option("Nothing new.", disabled=True)])
        if options:
            listing.highlighted = listing.get_option_index(chosen) if chosen in self._items and chosen else 0

    @on(OptionList.OptionSelected, "#inbox")
    def _selected(self) -> None:
        item = self._chosen
        if item is not None:
            self.end(AnswerItem(item=item) if item.kind.waits else OpenItem(item=item))

    def action_open(self) -> None:
        if self._chosen is not None:
            self.end(OpenItem(item=self._chosen))

    def action_see_all(self) -> None:
        if self._items:
            self.end(SeeAll(up_to=max(self._items, key=int)))


def _row(item: InboxItem, at: datetime) -> Content:
    kind, style = _KINDS[item.kind]
    ask = item.permission.title if item.permission else item.question.text if item.question else ""
    title = plain_line(item.session_title) or plain_line(item.text) or "(untitled)"
    directory = plain_line(item.workspace_path).rstrip("/").rpartition("/")[2]
    return Content.assemble(
        ("  " if item.seen else "● ", "$text-accent"),
        (f"{ago(item.at, at):>7}  ", FAINT),
        (kind, style),
        (plain_line(ask) or title, "" if item.seen else "bold"),
        (f"  {directory}" + (f": {title}" if ask else ""), FAINT),
        (f"  {plain_line(item.error)}" if item.error else "", "$text-error"),
    )
