"""A diff with a cursor: its line can be commented on, its hunk undone."""

from typing import ClassVar

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from longboat.tui.panels.diff import DiffView
from longboat.tui.panels.diff_rows import Kind, Row

_CURSOR = Style(reverse=True)


class ReviewView(DiffView):
    """↑ and ↓ move the cursor by line, n and p by hunk."""

    class Switched(Message):
        """The diff is side by side now, or no longer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "cursor(1)", "Next line", show=False),
        Binding("up", "cursor(-1)", "Previous line", show=False),
        Binding("n", "hunk(1)", "Next hunk"),
        Binding("p", "hunk(-1)", "Previous hunk"),
    ]

    def __init__(self, diff: str, path: str, *, split: bool = False) -> None:
        super().__init__(diff, path, split=split)
        self._cursor = 0

    @property
    def hunk(self) -> int | None:
        """The number of the hunk at the cursor, from 0; None if there is none."""
        heads = [place for place, row in enumerate(self._lines()) if row.kind is Kind.HUNK and place <= self._cursor]
        return len(heads) - 1 if heads else None

    @property
    def line(self) -> int | None:
        """The line number in the new file at the cursor, or in the old one for a deleted line; None for other rows."""
        row = self._lines()[self._cursor]
        return row.old if row.new is None else row.new

    def show(self, diff: str, path: str) -> None:
        self._cursor = 0
        super().show(diff, path)

    def move_to_hunk(self, number: int) -> None:
        """Put the cursor on the header of a hunk, or of the last one if there are fewer."""
        heads = self._heads()
        if heads:
            self._move(heads[min(number, len(heads) - 1)])

    def action_split(self) -> None:
        number = self.hunk
        super().action_split()
        self._cursor = 0
        if number:
            self.move_to_hunk(number)
        self.post_message(self.Switched())

    def action_cursor(self, step: int) -> None:
        self._move(self._cursor + step)

    def action_hunk(self, step: int) -> None:
        places = [place for place in self._heads() if (place - self._cursor) * step > 0]
        if places:
            self._move(places[0] if step > 0 else places[-1])

    def _heads(self) -> list[int]:
        return [place for place, row in enumerate(self._lines()) if row.kind is Kind.HUNK]

    def _lines(self) -> list[Row]:
        """What each drawn line shows; of two sides, the new one."""
        if not self.is_split:
            return list(self._rows.rows)
        return [row for old, new in self._sides if (row := new or old) is not None]

    def _move(self, place: int) -> None:
        self._cursor = max(0, min(place, len(self._lines()) - 1))
        top, height = int(self.scroll_offset.y), max(1, self.scrollable_content_region.height)
        if not top <= self._cursor < top + height:
            self.scroll_to(y=max(0, self._cursor - height // 3), animate=False)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        is_cursor = self.scroll_offset.y + y == self._cursor
        return Strip([*strip]).apply_style(_CURSOR) if is_cursor and self.has_focus else strip
