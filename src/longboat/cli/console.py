"""Prints tables, times, JSON, and text from models made safe for a terminal."""

import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import accumulate

import click
import msgspec

from longboat.wire.plain import mark_hidden

LEAST_FIRST = 14
LEAST_LAST = 16
"""How wide the first column of a table, an id, and the last one, a text, should stay on a narrow terminal."""


def safe(text: str) -> str:
    """Untrusted text without terminal control characters. Tabs stay: they align from where the text is printed."""
    return mark_hidden(text)


def terminal_line(text: str, width: int) -> str:
    """A line of output with its indentation, cut to `width` columns."""
    return _cut(safe(text.expandtabs(4)).rstrip(), width)


def one_line(text: str, width: int | None = None) -> str:
    """The text on one line, cut to `width` columns."""
    line = " ".join(safe(text).split())
    return line if width is None else _cut(line, width)


def _cut(line: str, width: int) -> str:
    if line.isascii() or columns(line) == len(line):
        return line if len(line) <= width else line[: width - 1] + "…"
    return line if columns(line) <= width else _narrowed(line, width - 1) + "…"


def columns(text: str) -> int:
    """The number of terminal columns the text takes. Some characters take two and some none, so a line cut by
    characters could wrap."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _narrowed(line: str, width: int) -> str:
    for place, used in enumerate(accumulate(map(_columns_of, line))):
        if used > width:
            return line[:place]
    return line


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, spare: Sequence[str] = ()) -> None:
    """Print a table. Columns fit their content; only on a terminal are lines cut to its width. `spare`: the headings of
    columns that a narrow terminal leaves out, the first one first."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for number, line in enumerate(table_lines([head, *rows], width, spare)):
        click.secho(line, bold=number == 0)


def table_lines(rows: Sequence[Sequence[str]], width: int | None, spare: Sequence[str] = ()) -> Iterator[str]:
    by_column = list(zip(*rows, strict=True))
    if width is not None:
        by_column = _without_spare(by_column, width, spare)
    widths = list(map(_width_of, by_column))
    if width is not None:
        widths = _fitted(widths, width)
    for row in zip(*by_column, strict=True):
        cells = [_cut(cell, wide) for cell, wide in zip(row, widths, strict=True)]
        padded = (cell + " " * (wide - columns(cell)) for cell, wide in zip(cells, widths, strict=True))
        line = "  ".join(padded).rstrip()
        yield line if width is None else _cut(line, width)


def _width_of(column: Sequence[str]) -> int:
    return max(map(columns, column))


def _without_spare(by_column: Sequence[tuple[str, ...]], total: int, spare: Sequence[str]) -> list[tuple[str, ...]]:
    """The columns that stay: as many as leave the first and the last one enough to be of use."""
    kept = list(by_column)
    for name in spare:
        first, *middle, last = map(_width_of, kept)
        if min(first, LEAST_FIRST) + sum(middle) + min(last, LEAST_LAST) + 2 * (len(kept) - 1) <= total:
            break
        kept = [column for column in kept if column[0] != name]
    return kept


def _fitted(widths: Sequence[int], total: int) -> list[int]:
    """The widths that fit into `total`: shorten the last column first, then the first, an id that stays usable."""
    fitted = list(widths)
    excess = sum(widths) + 2 * (len(widths) - 1) - total
    for column, least in ((-1, LEAST_LAST), (0, LEAST_FIRST), (-1, 1)):
        cut = max(0, min(excess, fitted[column] - least))
        fitted[column] -= cut
        excess -= cut
    return fitted


def json_line(value: object) -> None:
    click.echo(msgspec.json.encode(value))


def json_page(value: object) -> None:
    """Print indented JSON, for a person or a file."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def ago(instant: str) -> str:
    """How long ago an RFC 3339 instant was, in one unit."""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(instant)).total_seconds()
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds / size)} {unit} ago"
    return "just now" if seconds < 10 else f"{int(seconds)} s ago"


def elapsed(start: str, end: str | None) -> str:
    """The time between two RFC 3339 instants, or since the first."""
    until = datetime.now(UTC) if end is None else datetime.fromisoformat(end)
    seconds = max(0.0, (until - datetime.fromisoformat(start)).total_seconds())
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{int(seconds)} s"
    minutes = int(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def since(instant: str) -> str:
    """An RFC 3339 instant in local time: the time today, else the date."""
    local = datetime.fromisoformat(instant).astimezone()
    is_today = local.date() == datetime.now().astimezone().date()
    return f"{local:%H:%M}" if is_today else f"{local:%b %-d}"


def notice(text: str) -> None:
    """Print a remark on stderr, so that it never mixes with the answer."""
    click.secho(text, err=True, dim=True)
