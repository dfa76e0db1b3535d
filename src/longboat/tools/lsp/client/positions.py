"""Positions in a text: from a line and a symbol, as models give them, to UTF-16 units for servers, and back. Pure.

For a server a line ends at LF, CRLF or a single CR; for people and models only at LF, as in `view`.
"""

import re
from bisect import bisect_right
from urllib.parse import unquote, urlsplit

from longboat.tools.context import ToolError
from longboat.tools.files.text import line_at, lines_of
from longboat.tools.lsp.client.shapes import Position, TextEdit

NEARBY = 3
"""Lines around the one given in which a symbol is looked for: a file shifts while a model thinks."""
MAX_TRIED = 5
"""Places of a symbol that a server is asked about."""
_LISTED = 8
_LINE_END = re.compile(r"\r\n|\n|\r")


class Lines:
    """A text and where its lines begin."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(end.end() for end in _LINE_END.finditer(text))]

    def position(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset) - 1
        return Position(line=line, character=_units(self._text[self._starts[line] : offset]))

    def offset(self, position: Position) -> int:
        """Where a position is; one past the end of its line is at its end, as the protocol says."""
        if position.line >= len(self._starts):
            return len(self._text)
        start = self._starts[position.line]
        stop = self._starts[position.line + 1] if position.line + 1 < len(self._starts) else len(self._text)
        line = self._text[start:stop].rstrip("\r\n")
        if line.isascii():
            return start + min(position.character, len(line))
        units = line.encode("utf-16-le", "surrogatepass")[: 2 * position.character]
        return start + len(units.decode("utf-16-le", "ignore"))


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def apply(text: str, edits: list[TextEdit]) -> str:
    """The text with all edits made, each as seen from the text before. Raises ValueError where they overlap."""
    lines = Lines(text)
    spans = [(lines.offset(edit.range.start), lines.offset(edit.range.end), edit.new_text) for edit in edits]
    parts, done = [], 0
    for start, end, new in sorted(spans, key=lambda span: span[:2]):
        if start < done or end < start:
            raise ValueError("the edits overlap")
        parts += [text[done:start], new]
        done = end
    return "".join([*parts, text[done:]])


def find(text: str, symbol: str, line: int | None, shown: str) -> list[int]:
    """Where `symbol` may be: on the line or near it; without a line, its first places in the file.

    Several, because one of them may be in a string or a comment. Of a dotted name it is the last part that is meant. A
    ToolError says where else the symbol is.
    """
    symbol = symbol.strip()
    if not symbol:
        raise ToolError("symbol is empty. Pass the name as it is in the file.")
    last = symbol.replace("::", ".").replace("->", ".").rpartition(".")[2].strip() or symbol
    shift = len(symbol) - len(last)
    found = [offset + shift for offset in _occurrences(text, symbol)] or _occurrences(text, last)
    if not found:
        raise ToolError(f"{symbol!r} is not in {shown}. Pass the name as it is in the file, or use grep.")
    if line is None:
        return found[:MAX_TRIED]
    lines = [line_at(text, offset) for offset in found]
    nearest = min(lines, key=lambda number: abs(number - line))
    if abs(nearest - line) > NEARBY:
        raise ToolError(_elsewhere(text, symbol, line, shown, lines))
    return [offset for offset, number in zip(found, lines, strict=True) if number == nearest][:MAX_TRIED]


def _occurrences(text: str, symbol: str) -> list[int]:
    before = r"(?<!\w)" if symbol[0].isalnum() or symbol[0] == "_" else ""
    after = r"(?!\w)" if symbol[-1].isalnum() or symbol[-1] == "_" else ""
    return [found.start() for found in re.finditer(before + re.escape(symbol) + after, text)]


def _elsewhere(text: str, symbol: str, line: int, shown: str, found: list[int]) -> str:
    numbers = list(dict.fromkeys(found))
    places = ", ".join(map(str, numbers[:_LISTED])) + (", …" if len(numbers) > _LISTED else "")
    lines = lines_of(text)
    there = f", which reads {lines[line - 1].strip()[:120]!r}" if line <= len(lines) else f" ({len(lines)} lines long)"
    return f"{symbol!r} is not on line {line} of {shown}{there}. It is on: {places}."


def path_of(uri: str) -> str | None:
    """The path of a file URI; None if it is not a local file."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return unquote(parts.path, errors="surrogateescape")
