"""Markdown that grows: finished blocks are laid out once, and only visible rows are drawn.

One widget for the whole text, because Textual does work for every widget whenever something moves. Must not know where
the text comes from.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.segment import Segment
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from longboat.tui.rows import NOTHING, Row, plain_rows, rows_of
from longboat.wire.plain import plain

MAX_LINKED = 6_000
"""Characters parsed at a time: hostile text makes the parser slow, and the app handles no keys meanwhile."""
MAX_PARSED = 30_000
"""The same limit for a longer block, which is parsed without linking bare addresses. A longer one is shown as text."""


@cache
def _parser(linkify: bool) -> MarkdownIt:
    return MarkdownIt("gfm-like", {"html": False, "linkify": linkify})


class Block:
    """A top-level element, such as a paragraph, a list or a table."""

    def __init__(self, tokens: list[Token], text: str = "") -> None:
        self._tokens = tokens
        self._text = text
        self._rows: tuple[int, list[Row]] = (0, [])

    def rows(self, width: int) -> list[Row]:
        if self._rows[0] != width:
            made = rows_of(self._tokens, width) if self._tokens else plain_rows(self._text, width)
            self._rows = (width, made)
        return self._rows[1]


Links = dict[str, dict[str, Any]]
"""The parser's link definitions by name: their targets and their lines."""


class Document:
    """A text as blocks. When it grows, only the text after the last finished block is parsed again."""

    def __init__(self) -> None:
        self.text = ""
        self._finished: list[Block] = []
        self._open: list[Block] = []
        self._start = 0
        """The index in the text at which the open blocks start."""
        self._defined: Links = {}
        """The links defined before the open blocks."""
        self._links: Links = {}
        """All links. The last one may still be incomplete."""

    def show(self, text: str) -> int:
        """Take the whole text. Returns how many leading blocks are unchanged."""
        if not text.startswith(self.text):
            self._begin()
            self._defined = {}
        self.text = text
        same, before = len(self._finished), _targets(self._links)
        self._parse()
        if _targets(self._links) != before:  # earlier blocks may use the new definition
            self._begin()
            self._parse(self._links)
            same = 0
        return same

    def _begin(self) -> None:
        self._finished, self._open, self._start = [], [], 0

    def _parse(self, links: Links | None = None) -> None:
        """Parse with these links, or with those defined so far."""
        while not self._parse_piece(links):
            pass

    def _parse_piece(self, links: Links | None) -> bool:
        """Parse the next piece; True at the end of the text."""
        for size in (MAX_LINKED, MAX_PARSED):
            raw = self.text[self._start : self._start + size]
            last = self._start + size >= len(self.text)
            if not last:
                raw = raw[: raw.rfind("\n") + 1] or raw
            found = {"references": dict(self._defined if links is None else links)}
            blocks = list(_top_level(_parser(size == MAX_LINKED).parse(plain(raw), found)))
            if last or len(blocks) > 1:
                passed = self._take(blocks)
                if links is None:
                    self._links = found["references"]
                    above = {name: link for name, link in self._links.items() if link["map"][1] <= passed}
                    self._defined = above | self._defined
                return last
        self._open = [Block([], plain(self.text[self._start :]))]
        return True

    def _take(self, blocks: list[list[Token]]) -> int:
        """Add blocks; only the last one can still grow. Returns the number of lines before it."""
        self._finished += [Block(tokens) for tokens in blocks[:-1]]
        self._open = [Block(tokens) for tokens in blocks[-1:]]
        lines = blocks[-1][0].map if len(blocks) > 1 else None
        passed = lines[0] if lines else 0
        for _ in range(passed):
            self._start = self.text.index("\n", self._start) + 1
        return passed

    def lines(self, width: int) -> Iterator[list[Row]]:
        for block in (*self._finished, *self._open):
            yield block.rows(width)


def _targets(links: Links) -> dict[str, tuple[str, str]]:
    return {name: (link["href"], link["title"]) for name, link in links.items()}


def _top_level(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    block: list[Token] = []
    for token in tokens:
        block.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield block
            block = []


class Prose(Widget):
    """A Markdown text. Call `show` with the whole text each time it changes."""

    DEFAULT_CSS = """
    Prose { width: 1fr; height: auto; margin: 0 1 1 2; }
    """

    @dataclass
    class LinkClicked(Message):
        href: str

    def __init__(self, text: str) -> None:
        super().__init__()
        self._document = Document()
        self._document.show(text)
        self._rows: list[Row] = []
        """The rows of all blocks, with a blank row between blocks; line numbers count through the whole text."""
        self._blocks: list[int] = []
        """The index of each block's first row."""
        self._width = 0
        self._strips: dict[int, Strip] = {}
        self._drawn_for: object = None

    @property
    def source(self) -> str:
        return self._document.text

    def show(self, text: str) -> None:
        if text == self._document.text:
            return
        same = self._document.show(text)
        height = len(self._rows)
        self._lay_out(same)
        self.refresh(layout=len(self._rows) != height)

    def _lay_out(self, same: int) -> None:
        """Lay out the blocks again, except the first `same` ones."""
        if not self._width:
            return
        start = self._blocks[same] if same < len(self._blocks) else len(self._rows)
        del self._rows[start:], self._blocks[same:]
        for number, rows in enumerate(self._document.lines(self._width)):
            if number >= same:
                self._append(rows)
        self._strips = {y: strip for y, strip in self._strips.items() if y < start}

    def _append(self, rows: list[Row]) -> None:
        self._blocks.append(len(self._rows))
        line = self._rows[-1].line + 1 if self._rows else 0
        if self._rows:
            self._rows.append(Row(NOTHING, NOTHING, line, 0))
            line += 1
        self._rows += [row._replace(line=row.line + line) for row in rows]

    # -- called by Textual

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        if width != self._width:
            self._width = width
            self._rows, self._blocks, self._strips = [], [], {}
            self._lay_out(0)
        return len(self._rows)

    def render_line(self, y: int) -> Strip:
        base, width = self.visual_style, self.size.width
        if self._drawn_for != (base, width, self.text_selection):
            self._drawn_for = (base, width, self.text_selection)
            self._strips = {}
        if y >= len(self._rows):
            return Strip.blank(width, base.rich_style)
        if y not in self._strips:
            self._strips[y] = self._strip(self._rows[y], base, width)
        return self._strips[y]

    def _strip(self, row: Row, base: Style, width: int) -> Strip:
        filled = base + self._get_style(row.fill) if row.fill else base
        content = self._marked(row)
        segments = [
            Segment(text, style.rich_style_with_offset(row.at, row.line))
            for text, style in row.lead.render(base, end="", parse_style=self._get_style)
            if text
        ]
        at = row.at
        for text, style in content.render(filled, end="", parse_style=self._get_style):
            segments.append(Segment(text, (filled + style).rich_style_with_offset(at, row.line)))
            at += len(text)
        return Strip(segments).adjust_cell_length(width, filled.rich_style)

    def _marked(self, row: Row) -> Content:
        """The row with its selected part highlighted."""
        selection = self.text_selection
        span = selection.get_span(row.line) if selection is not None else None
        if span is None:
            return row.content
        start, end = (each - row.at if each >= 0 else len(row.content) for each in span)
        style = Style.from_styles(self.screen.get_component_styles("screen--selection"))
        return row.content.stylize(style, max(0, start), max(0, end)) if end > 0 else row.content

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        lines: list[str] = []
        for row in self._rows:
            if row.line == len(lines):
                lines.append("")
            lines[-1] = lines[-1].ljust(row.at) + row.content.plain
        return selection.extract("\n".join(lines)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips = {}
        self.refresh()

    def notify_style_update(self) -> None:
        self._strips = {}
        super().notify_style_update()

    def action_link(self, href: str) -> None:
        self.post_message(self.LinkClicked(href))
