"""Lays out a block of Markdown as rows of a given width. Pure; must not know widgets.

A row knows which line of the text it shows and from which character, so that copied text has no line breaks that come
only from wrapping.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from markdown_it.token import Token
from textual.content import Content, Span
from textual.highlight import highlight
from textual.style import Style

NOTHING = Content("")
BULLETS = "•◦▪"
BAR = Content.styled("▌ ", "$text-muted")
CODE = "on $surface-lighten-1"
HEADINGS = {"h1": "bold underline $markdown-h1-color", "h2": "bold $markdown-h2-color"}
HEADING = "bold $markdown-h3-color"
INLINE = {"em_open": "italic", "strong_open": "bold", "s_open": "strike"}
MAX_COLORED = 20_000
"""Longer code, in characters, is not highlighted: it would be highlighted again each time it grows."""
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,40}")


class Row(NamedTuple):
    lead: Content
    """Decoration before the text: indentation, a bullet, the bar of a quotation."""
    content: Content
    line: int
    """The line of the block that this row belongs to."""
    at: int
    """The index in that line of the row's first character."""
    fill: str = ""
    """The style of the whole row."""


def rows_of(tokens: Sequence[Token], width: int) -> list[Row]:
    layout = _Layout(width)
    for token in tokens:
        layout.take(token)
    return layout.rows


def plain_rows(text: str, width: int) -> list[Row]:
    """Rows for plain text."""
    layout = _Layout(width)
    for line in text.split("\n"):
        layout.put(Content(line), fold=True)
    return layout.rows


class _Layout:
    def __init__(self, width: int) -> None:
        self.rows: list[Row] = []
        self._width = max(width, 4)
        self._line = 0
        self._gap = False
        self._style = ""
        self._leads: list[tuple[Content, Content]] = []
        """Decorations for the next row and for the rows after it, from outside in."""
        self._lists: list[int | None] = []
        """The next number of each open list; None for bullets."""
        self._table: list[list[tuple[Content, str]]] | None = None
        self._align = ""

    def take(self, token: Token) -> None:
        match token.type:
            case "inline":
                self._take_text(inline(token))
            case "heading_open":
                self._style = HEADINGS.get(token.tag, HEADING)
            case "heading_close" | "paragraph_close":
                self._style = ""
                self._gap = self._gap or not token.hidden
            case "fence" | "code_block":
                self._take_code(token.content, token.info)
            case "hr":
                self.put(Content.styled("─" * self._inner, "$text-muted"))
                self._gap = True
            case _ if token.type.startswith(("th_", "td_", "tr_", "table_")):
                self._take_table(token)
            case _:
                self._take_container(token)

    def _take_container(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open":
                self._lists.append(None)
            case "ordered_list_open":
                self._lists.append(int(token.attrs.get("start", 1)))
            case "list_item_open":
                mark = Content(self._mark())
                self._leads.append((mark, Content(" " * mark.cell_length)))
            case "blockquote_open":
                self._leads.append((BAR, BAR))
            case "list_item_close" | "blockquote_close":
                self._leads.pop()
                self._gap = self._gap or token.type == "blockquote_close"
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
                self._gap = self._gap or not self._lists

    def _mark(self) -> str:
        number = self._lists[-1]
        if number is None:
            return BULLETS[(len(self._lists) - 1) % len(BULLETS)] + " "
        self._lists[-1] = number + 1
        return f"{number}. "

    def _take_text(self, text: Content) -> None:
        if self._table is not None:
            self._table[-1].append((text, self._align))
            return
        styled = text.stylize_before(self._style) if self._style else text
        for line in styled.split("\n", allow_blank=True):
            self.put(line)

    def _take_code(self, code: str, info: str) -> None:
        for line in _colored(code.rstrip("\n"), info.strip().partition(" ")[0]).split("\n", allow_blank=True):
            self.put(line, fold=True, fill=CODE)
        self._gap = True

    # -- rows

    @property
    def _inner(self) -> int:
        return max(self._width - sum(lead.cell_length for lead, _ in self._leads), self._width // 2)

    def put(self, text: Content, *, fold: bool = False, fill: str = "") -> None:
        """Add a line of text; `fold`: break it at the row's end instead of between words."""
        inner = self._inner
        if self._gap and self.rows:
            self._put(NOTHING, 0)
            self._line += 1
        self._gap = False
        pieces = [text] if text.cell_length <= inner else text.fold(inner) if fold else text.wrap(inner)
        at, whole = 0, text.plain
        for piece in pieces:
            self._put(piece, at, fill, first=True)
            at += len(piece)
            while not fold and at < len(whole) and whole[at] == " ":
                at += 1  # skip the space at which it was wrapped
        self._line += 1

    def _put(self, text: Content, at: int, fill: str = "", *, first: bool = False) -> None:
        lead = NOTHING.join([lead for lead, _ in self._leads] if first else [rest for _, rest in self._leads])
        if first:
            self._leads = [(rest, rest) for _, rest in self._leads]
        lead = lead if lead.cell_length <= self._width // 2 else lead.truncate(self._width // 2)
        self.rows.append(Row(lead, text, self._line, at, fill))

    # -- tables

    def _take_table(self, token: Token) -> None:
        match token.type:
            case "table_open":
                self._table = []
            case "tr_open" if self._table is not None:
                self._table.append([])
            case "th_open" | "td_open":
                self._align = str(token.attrs.get("style", "")).partition(":")[2]
            case "table_close" if self._table is not None:
                cells, self._table = self._table, None
                for line in _table_lines(cells, self._inner):
                    self.put(line, fold=True)
                self._gap = True


def inline(token: Token) -> Content:
    """The styled text of a paragraph. Raw HTML is shown as text."""
    pieces: list[str] = []
    spans: list[Span] = []
    opened: list[tuple[int, tuple[str | Style, ...]]] = []
    length = 0
    for child in token.children or ():
        text = _text_in(child)
        if child.type in ("code_inline", "image"):
            style = _link(str(child.attrs.get("src", ""))) if child.type == "image" else ("$text-accent on $boost",)
            spans += [Span(length, length + len(text), each) for each in style]
        elif child.type.endswith("_open"):
            opened.append((length, _link(str(child.attrs.get("href", ""))) if child.tag == "a" else _styles(child)))
        elif child.type.endswith("_close") and opened:
            start, style = opened.pop()
            spans += [Span(start, length, each) for each in style]
        pieces.append(text)
        length += len(text)
    return Content("".join(pieces), spans=sorted(spans, key=lambda span: span.start))


def _text_in(token: Token) -> str:
    match token.type:
        case "softbreak":
            return " "
        case "hardbreak":
            return "\n"
        case "image":
            return f"[{token.content or token.attrs.get('src', '')}]"
        case "code_inline":
            return token.content.replace("\n", " ")
    return re.sub(r"\s+", " ", token.content)


def _styles(token: Token) -> tuple[str, ...]:
    return (INLINE.get(token.type, ""),)


def _link(href: str) -> tuple[str | Style, ...]:
    return ("underline $text-accent", Style.from_meta({"@click": f"link({href!r})"}))


def _colored(code: str, language: str) -> Content:
    if not language or len(code) > MAX_COLORED or not _LANGUAGE.fullmatch(language):
        return Content(code)
    return highlight(code, language=language)


def _table_lines(rows: Sequence[Sequence[tuple[Content, str]]], width: int) -> Iterable[Content]:
    natural = [max(cell.cell_length for cell, _ in column) for column in zip(*rows, strict=False)]
    if not natural:
        return
    widths = _fitted(natural, width - 3 * (len(natural) - 1))
    bar = Content.styled(" │ ", "$text-muted")
    for number, row in enumerate(rows):
        cells = [
            [_aligned(piece, wide, align) for piece in cell.wrap(wide)]
            for (cell, align), wide in zip(row, widths, strict=False)
        ]
        blanks = [Content(" " * wide) for wide in widths]
        for pieces in zip_longest(*cells):
            line = bar.join(blank if piece is None else piece for piece, blank in zip(pieces, blanks, strict=True))
            yield line.stylize("bold") if number == 0 else line
        if number == 0:
            yield Content.styled("─┼─".join("─" * wide for wide in widths), "$text-muted")


def _fitted(natural: Sequence[int], total: int) -> list[int]:
    """The column widths that fit into `total`; the widest columns shrink first."""
    cap = max(natural)
    while cap > 4 and sum(min(wide, cap) for wide in natural) > total:
        cap -= 1
    return [max(1, min(wide, cap)) for wide in natural]


def _aligned(text: Content, width: int, align: str) -> Content:
    free = max(0, width - text.cell_length)
    left = {"right": free, "center": free // 2}.get(align, 0)
    return text.pad(left, free - left)
