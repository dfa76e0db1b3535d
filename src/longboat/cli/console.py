"""How things are printed: tables, times, JSON, and text from models made safe for a terminal."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import click
import msgspec

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def safe(text: str) -> str:
    """Text without control characters: what a model wrote must not move the cursor or set the clipboard."""
    return _CONTROL.sub("", text)


def one_line(text: str, width: int) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(safe(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as what is in them; the last is never padded."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head) - 1)]
    for number, row in enumerate([head, *rows]):
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        line = "  ".join([*padded, row[-1]]).rstrip()
        click.secho(line, bold=number == 0)


def json_line(value: object) -> None:
    click.echo(msgspec.json.encode(value))


def json_page(value: object) -> None:
    """Indented, for a person or a file."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def ago(instant: str) -> str:
    """How long ago an RFC 3339 instant was, in one unit."""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(instant)).total_seconds()
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds / size)} {unit} ago"
    return "just now" if seconds < 10 else f"{int(seconds)} s ago"


def notice(text: str) -> None:
    """Something a person may want to know while waiting; never mixed with the answer."""
    click.secho(text, err=True, dim=True)
