"""A file's diff, drawn line by line as it is scrolled: unified or side by side."""

from functools import lru_cache
from typing import ClassVar

from pygments.lexers import get_lexer_for_filename
from pygments.token import Token
from pygments.util import ClassNotFound
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.content import Content
from textual.geometry import Size
from textual.highlight import HighlightTheme, highlight
from textual.scroll_view import ScrollView
from textual.strip import Strip

from longboat.tui.panels.diff_rows import Kind, Row, Rows, read_rows
from longboat.tui.panels.looks import FAINT
from longboat.wire.plain import plain_line

SPLIT_WIDTH = 100
"""The columns needed for side by side."""
_WHOLE = (Kind.HUNK, Kind.NOTE, Kind.COMMENT)
"""Rows without line numbers, as wide as the diff."""
_BLOCK = 100
"""Lines highlighted at a time: enough for a lexer, and a huge hunk costs no more than its visible part."""

_CLASSES = {
    Kind.ADDED: "diff--added",
    Kind.DELETED: "diff--deleted",
    Kind.HUNK: "diff--hunk",
    Kind.NOTE: "diff--note",
    Kind.COMMENT: "diff--comment",
    Kind.CONTEXT: "diff--context",
}


class _Colours(HighlightTheme):
    """Few colours, all from the theme: the background shows what was added."""

    STYLES = {  # noqa: RUF012
        Token.Comment: f"{FAINT} italic",
        Token.Keyword: "$text-accent",
        Token.Literal.Number: "$text-warning",
        Token.Literal.String: "$text-secondary",
        Token.Name.Builtin: "$text-primary",
        Token.Name.Class: "$text-primary",
        Token.Name.Decorator: "$text-primary",
        Token.Name.Function: "$text-primary",
        Token.Name.Tag: "$text-primary",
        Token.Operator.Word: "$text-accent",
    }


@lru_cache(maxsize=256)
def language_of(path: str) -> str:
    """The Pygments language for a file name."""
    try:
        lexer = get_lexer_for_filename(path)
    except ClassNotFound:
        return "text"
    return lexer.aliases[0] if lexer.aliases else "text"


class DiffView(ScrollView, can_focus=True):
    """Shows a unified diff. `s` toggles side by side if there is room."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("s", "split", "Side by side")]
    COMPONENT_CLASSES: ClassVar[set[str]] = {*_CLASSES.values(), "diff--number"}
    DEFAULT_CSS = """
    DiffView {
        height: auto;
        max-height: 100%;
        background: $surface;
        color: $foreground;
        overflow-y: auto;
        overflow-x: auto;
        & > .diff--added { background: $success 20%; }
        & > .diff--deleted { background: $error 20%; }
        & > .diff--hunk { color: $text-primary; background: $primary 15%; }
        & > .diff--note { color: $text-muted; text-style: italic; }
        & > .diff--comment { color: $text-accent; text-style: bold; }
        & > .diff--number { color: $text-muted; }
        &:focus { background-tint: $foreground 4%; }
        /* With sixteen colours there are no light backgrounds: colour the text instead. */
        &:ansi > .diff--added { background: $surface; color: $text-success; }
        &:ansi > .diff--deleted { background: $surface; color: $text-error; }
        &:ansi > .diff--hunk { background: $surface; }
    }
    """

    def __init__(
        self, diff: str, path: str, *, split: bool = False, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._wants_split = split
        self._blocks: LRUCache[tuple[int, bool, int], list[Content]] = LRUCache(64)
        self._take(diff, path)

    @property
    def rows(self) -> Rows:
        return self._rows

    @property
    def is_split(self) -> bool:
        """Whether the diff is shown side by side now: it has to be requested, and there has to be room."""
        return self._wants_split and self.size.width >= SPLIT_WIDTH

    def show(self, diff: str, path: str) -> None:
        self._take(diff, path)
        self.scroll_home(animate=False)
        self._measure()

    def _take(self, diff: str, path: str) -> None:
        self._language = language_of(plain_line(path))
        rows = read_rows(diff)
        if not rows.rows:
            rows = Rows(rows=(Row(kind=Kind.NOTE, text="No lines to show."),), additions=0, deletions=0)
        self._draw_rows(rows)

    def _draw_rows(self, rows: Rows) -> None:
        self._rows = rows
        self._sides = tuple(rows.sides())
        self._texts = _texts_of(rows)
        self._digits = max(3, len(str(rows.last_number())))
        self._blocks.clear()

    def on_mount(self) -> None:
        self._measure()

    def on_resize(self, event: events.Resize) -> None:
        self._measure()

    def notify_style_update(self) -> None:
        """Redraw the same lines in another theme's colours."""
        self._blocks.clear()
        super().notify_style_update()

    def action_split(self) -> None:
        self._wants_split = not self._wants_split
        if self._wants_split and not self.is_split:
            self._wants_split = False
            self.notify(f"Side by side needs {SPLIT_WIDTH} columns.", markup=False)
        self._measure()

    def _measure(self) -> None:
        if self.is_split:
            half = self.size.width // 2
            over = self._rows.widest() - (half - self._digits - 3)
            self.virtual_size = Size(self.size.width + max(0, over), len(self._sides))
        else:
            self.virtual_size = Size(2 * self._digits + 4 + self._rows.widest(), len(self._rows.rows))
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._sides) if self._wants_split and width >= SPLIT_WIDTH else len(self._rows.rows)

    def render_line(self, y: int) -> Strip:
        shift, top = self.scroll_offset
        width = self.size.width
        place = top + y
        # Not the virtual size: a line may be drawn before the new width is measured.
        if place >= len(self._sides if self.is_split else self._rows.rows):
            return Strip.blank(width, self.rich_style)
        if not self.is_split:
            row = self._rows.rows[place]
            return self._render_row(row, row.new is not None, width, shift, (row.old, row.new))
        old, new = self._sides[place]
        if old is not None and old.kind in _WHOLE:
            return self._render_row(old, False, width, shift, ())
        half = width // 2
        left = self._render_row(old, False, half, shift, (old.old if old else None,))
        right = self._render_row(new, True, width - half, shift, (new.new if new else None,))
        return Strip.join([left, right])

    def _render_row(
        self, row: Row | None, is_new: bool, width: int, shift: int, numbers: tuple[int | None, ...]
    ) -> Strip:
        """A row of `width` columns. Numbers and sign stay in place; the text scrolls sideways."""
        if row is None:
            return Strip.blank(width, self.get_visual_style("diff--number").rich_style)
        style = self.get_visual_style(_CLASSES[row.kind])
        if row.kind in _WHOLE:
            return Strip([Segment(row.text, style.rich_style)]).crop_extend(shift, shift + width, style.rich_style)
        gutter = "".join(f"{'' if number is None else number:>{self._digits}} " for number in numbers)
        faint = self.get_visual_style(_CLASSES[row.kind], "diff--number")
        head = Strip([Segment(gutter, faint.rich_style), Segment(f"{row.sign} ", style.rich_style)])
        coloured = self._coloured(row, is_new).render(style, end="", parse_style=self.app.stylesheet.parse_style)
        text = Strip([Segment(piece, look.rich_style) for piece, look in coloured])
        room = max(0, width - head.cell_length)
        return Strip.join([head, text.crop_extend(shift, shift + room, style.rich_style)]).crop(0, width)

    def _coloured(self, row: Row, is_new: bool) -> Content:
        place = row.new_at if is_new else row.old_at
        key = (row.hunk, is_new, place // _BLOCK)
        block = self._blocks.get(key)
        if block is None:
            start = key[2] * _BLOCK
            lines = self._texts[row.hunk, is_new][start : start + _BLOCK]
            coloured = highlight("\n".join(lines), language=self._language, theme=_Colours).split(
                "\n", allow_blank=True
            )
            # Show the original line if a lexer does not return it unchanged.
            block = [
                colour if colour.plain == line else Content(line)
                for line, colour in zip(lines, [*coloured, *[Content("")] * len(lines)], strict=False)
            ]
            self._blocks[key] = block
        return block[place % _BLOCK]


def _texts_of(rows: Rows) -> dict[tuple[int, bool], list[str]]:
    """The lines of each hunk by side, as input for a lexer."""
    texts: dict[tuple[int, bool], list[str]] = {}
    for row in rows.rows:
        if row.old is not None:
            texts.setdefault((row.hunk, False), []).append(row.text)
        if row.new is not None:
            texts.setdefault((row.hunk, True), []).append(row.text)
    return texts
