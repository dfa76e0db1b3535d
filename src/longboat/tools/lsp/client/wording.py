"""Answers of servers as text for a model: short, limited, one line each. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from longboat.tools.lsp.client.diagnostics_store import ERROR, is_error, is_serious
from longboat.tools.lsp.client.shapes import Diagnostic

MAX_MESSAGE = 300
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

Shown = Callable[[Path], str]
Said = Mapping[Path, Sequence[Diagnostic]]


def plain_text(text: str, limit: int = MAX_MESSAGE) -> str:
    """One line without control characters."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    line = _CONTROL.sub("", "; ".join(line for line in lines if line))
    return line if len(line) <= limit else f"{line[:limit]}…"


def diagnostic_lines(said: Said, shown: Shown, *, most: int) -> list[str]:
    """Errors before warnings, then by file and line, up to a maximum."""
    found = [(path, item) for path, items in said.items() for item in items if is_serious(item)]
    found.sort(key=lambda each: (not is_error(each[1]), str(each[0]), each[1].range.start.line))
    lines = list(dict.fromkeys(_diagnostic_line(item, shown(path)) for path, item in found))
    rest = [f"… and {len(lines) - most} more"] if len(lines) > most else []
    return lines[:most] + rest


def _diagnostic_line(item: Diagnostic, name: str) -> str:
    start = item.range.start
    kind = "error" if is_error(item) else "warning"
    code = f" [{plain_text(str(item.code), 60)}]" if item.code not in (None, "") else ""
    return f"{name}:{start.line + 1}:{start.character + 1}: {kind}: {plain_text(item.message)}{code}"


def summary(said: Said) -> str:
    """How many errors and warnings there are, as in `2 errors, 1 warning`."""
    serious = [item for items in said.values() for item in items if is_serious(item)]
    errors = sum((item.severity or ERROR) == ERROR for item in serious)
    counted = [count_of(errors, "error"), count_of(len(serious) - errors, "warning")]
    return ", ".join(each for each in counted if not each.startswith("0")) or "no errors or warnings"


def count_of(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def join_names(names: Iterable[str]) -> str:
    return " and ".join(names)
