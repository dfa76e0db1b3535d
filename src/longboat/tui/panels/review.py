"""A diff with a cursor: its line can be commented on, its hunk undone. Shows the comments."""

from collections.abc import Sequence
from itertools import chain
from typing import ClassVar

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from longboat.tui.panels.diff import DiffView
from longboat.tui.panels.diff_rows import Comment, Kind, Row, with_comments

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
        self._uncommented = self._rows

    @property
    def hunk(self) -> int | None:
        """The number of the hunk at the cursor, from 0; None if there is none."""
        heads = [place for place, row in enumerate(self._lines()) if row.kind is Kind.HUNK and place <= self._cursor]
        return len(heads) - 1 if heads else None

    @property
    def row(self) -> Row:
        """The row at the cursor; of a comment, the row that it is about."""
        above = self._lines()[self._cursor :: -1]
        return next((row for row in above if row.kind is not Kind.COMMENT), self._uncommented.rows[0])

    @property
    def line(self) -> int | None:
        """The line number in the new file at the cursor, or in the old one for a deleted line; None for other rows."""
        row = self.row
        return row.old if row.new is None else row.new

    @property
    def line_now(self) -> int:
        """The line of the file as it is now that is at the cursor, or next to it."""
        lines = self._lines()
        near = chain(lines[self._cursor :], lines[self._cursor :: -1])
        return next((row.new for row in near if row.new is not None), 1)

    @property
    def comment(self) -> int | None:
        """The number of the comment at the cursor, or of the first one on its line."""
        found = [row.comment for row in self._lines()[self._cursor : self._cursor + 2]]
        return next((number for number in found if number is not None), None)

    def show(self, diff: str, path: str) -> None:
        self._cursor = 0
        super().show(diff, path)
        self._uncommented = self._rows

    def show_comments(self, comments: Sequence[Comment]) -> None:
        """Show these comments below their lines; the cursor stays at its line."""
        row = self.row
        self._draw_rows(with_comments(self._uncommented, comments))
        self._measure()
        lines = self._lines()
        self._move(next((place for place, each in enumerate(lines) if each is row), 0))

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
