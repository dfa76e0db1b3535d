"""Locations from servers as lines for a model: `path:line: text`. Reads only files of the workspace."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from longboat.tools.context import ToolError
from longboat.tools.files.paths import display_path
from longboat.tools.files.text import lines_of
from longboat.tools.lsp.client.file_text import read_text
from longboat.tools.lsp.client.positions import path_of
from longboat.tools.lsp.client.shapes import Location, Locations, Range
from longboat.tools.lsp.client.wording import count_of, plain_text

MAX_LINE = 200
FEW_LINES = 6


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Located:
    """Lines count from zero; `last` is the last line of the symbol, which may be longer than its name."""

    path: Path
    line: int
    last: int


def parse_locations(said: Locations) -> list[Located]:
    """The files and lines an answer names, each once, in the server's order."""
    places = said if isinstance(said, list) else [said] if said is not None else []
    return list(dict.fromkeys(found for place in places if (found := locate(place)) is not None))


def locate(place: Location) -> Located | None:
    uri = place.target_uri or place.uri
    name = place.target_selection_range or place.range
    path = path_of(uri) if uri is not None else None
    if path is None or name is None:
        return None
    whole: Range = place.target_range or name
    return Located(path=Path(os.path.realpath(path)), line=name.start.line, last=max(name.start.line, whole.end.line))


def format_locations(places: list[Located], workspace: Path, *, most: int) -> str:
    """One line for each place, sorted by file. Blocking."""
    lines_in = lru_cache(maxsize=8)(_lines)
    rows = []
    for place in sorted(places)[:most]:
        text = _text_at(lines_in(place.path, workspace), place.line)
        rows.append(f"{display_path(workspace, place.path)}:{place.line + 1}{f': {text}' if text else ''}")
    rest = len(places) - most
    return "\n".join([*rows, f"… and {rest} more"] if rest > 0 else rows)


def excerpts(places: list[Located], workspace: Path, *, most: int, most_lines: int) -> str:
    """Each place with the lines there, numbered. Blocking."""
    parts = []
    for place in places[:most]:
        # Some servers name the whole definition, others its name alone: then a few lines are better than one.
        stop = min(place.last + 1, place.line + most_lines) if place.last > place.line else place.line + FEW_LINES
        lines = _lines(place.path, workspace)[place.line : stop]
        text = [f"{number:>6}\t{line[:MAX_LINE]}" for number, line in enumerate(lines, start=place.line + 1)]
        if lines and place.last >= stop:
            text.append(f"        … to line {place.last + 1}")
        parts.append("\n".join([f"{display_path(workspace, place.path)}:{place.line + 1}", *text]))
    if len(places) > most:
        parts.append(f"… and {count_of(len(places) - most, 'more place')}")
    return "\n\n".join(parts)


def _text_at(lines: tuple[str, ...], number: int) -> str:
    return plain_text(lines[number], MAX_LINE) if number < len(lines) else ""


def _lines(path: Path, workspace: Path) -> tuple[str, ...]:
    # What lies outside is named only: to read it takes a permission, which `view` asks for.
    if not path.is_relative_to(workspace):
        return ()
    try:
        return tuple(lines_of(read_text(path)))
    except ToolError:
        return ()
