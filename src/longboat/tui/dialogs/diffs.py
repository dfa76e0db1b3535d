"""The dialog of a session's or a run's changes, file by file."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from longboat.tui.dialogs.frame import Dialog, keys_line
from longboat.tui.panels.diff import DiffView
from longboat.tui.panels.looks import FAINT
from longboat.wire.listings import DiffPage, FileDiff
from longboat.wire.plain import plain_line


class DiffDialog(Dialog[None]):
    """n and p switch files; s shows old and new side by side."""

    HEADING = "Changes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n,tab", "file(1)", "Next file", priority=True),
        Binding("p,shift+tab", "file(-1)", "Previous file", priority=True),
        Binding("q", "later", show=False),
    ]
    DEFAULT_CSS = """
    DiffDialog {
        & > .box { width: 100%; max-width: 100%; height: 100%; max-height: 100%; padding: 0; }
        DiffView { height: 1fr; }
        #name { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    def __init__(self, page: DiffPage, *, split: bool = False) -> None:
        super().__init__()
        self._page = page
        self._split = split
        self._at = 0

    def body(self) -> list[Widget]:
        first = self._page.items[0] if self._page.items else None
        return [
            Static("", id="name", markup=False),
            DiffView(first.diff if first else "", first.path if first else "", split=self._split),
            keys_line(("n p", "file"), ("s", "side by side"), ("←↑↓→", "scroll"), ("esc", "close")),
        ]

    def on_mount(self) -> None:
        self.query_one(DiffView).focus()
        self.query_one("#name", Static).update(self._headline())

    def action_file(self, step: int) -> None:
        if not self._page.items:
            return
        self._at = (self._at + step) % len(self._page.items)
        self.query_one(DiffView).show(self._page.items[self._at].diff, self._page.items[self._at].path)
        self.query_one("#name", Static).update(self._headline())

    def _headline(self) -> Content:
        if not self._page.items:
            return Content("No files changed.")
        more = "" if self._page.complete else "+"
        return _told(self._page.items[self._at], f"{self._at + 1}/{len(self._page.items)}{more}")


def _told(file: FileDiff, place: str) -> Content:
    return Content.assemble(
        (f"{place} ", FAINT),
        (plain_line(file.path), "bold"),
        f" {file.change.value} ",
        (f"+{file.additions}", "$text-success"),
        " ",
        (f"-{file.deletions}", "$text-error"),
        ("" if file.complete else " (truncated)", "$text-warning"),
    )
