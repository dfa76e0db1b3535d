"""Prints an answer at a terminal as formatted Markdown while it streams, wrapped between words.

A block (a paragraph, a list, a table) is drawn again as it grows, within the lines that are still on the screen; a
finished block is never touched. Must not know where the text comes from. Rich is imported with the first text.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, TextIO

import click

from longboat.cli.console import columns, safe

if TYPE_CHECKING:
    from rich.console import Console

MAX_PARSED = 20_000
"""Characters parsed at a time. A longer block is drawn in parts."""
NARROWEST = 20


class Writer(Protocol):
    """Where the text of an answer goes."""

    @property
    def column(self) -> int:
        """Where the cursor is; 0 at the start of a line."""

    def write(self, text: str) -> None:
        """Add text that just arrived."""

    def close(self) -> None:
        """End the line or block that is open, so that something else can be printed below."""


def writer_for(out: TextIO, environ: Mapping[str, str] = os.environ) -> Writer:
    """The writer for a terminal: one that cannot move its cursor gets the text as it is."""
    return RawText(out) if is_dumb(environ) else Markdown(out)


def is_dumb(environ: Mapping[str, str]) -> bool:
    """Whether the terminal cannot move its cursor."""
    return environ.get("TERM", "dumb") in ("dumb", "")


class RawText:
    """The text as the model wrote it."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._open = False

    @property
    def column(self) -> int:
        return int(self._open)  # such a terminal is never asked to go back there

    def write(self, text: str) -> None:
        self._out.write(safe(text))
        self._open = not text.endswith("\n")

    def close(self) -> None:
        if self._open:
            self._out.write("\n")
            self._out.flush()
            self._open = False


class Markdown:
    """Formatted text. `_text` is what belongs to the open block, `_lines` is how it was drawn."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._console: Console | None = None
        self._text = ""
        self._lines: list[str] = []
        self._printed = False
        """Whether a block of this answer stands above: the next one leaves a blank line."""

    @property
    def column(self) -> int:
        return columns(click.unstyle(self._lines[-1])) if self._lines else 0

    def write(self, text: str) -> None:
        self._text += safe(text)
        for block in self._finished():
            self._draw(block)
            self._finish()
        if self._text.strip():
            self._draw(self._text)

    def _finished(self) -> Iterator[str]:
        """Take the blocks off the text that cannot grow any more."""
        while True:
            *blocks, rest = _blocks(self._text[:MAX_PARSED])
            yield from blocks
            behind = self._text[MAX_PARSED:]
            if behind and not blocks:  # one block that is too long: its next part is drawn by itself
                yield rest
                rest = _open_fence(rest)
            self._text = rest + behind
            if not behind:
                return

    def close(self) -> None:
        self._finish()
        self._text, self._printed = _open_fence(self._text), False

    def _finish(self) -> None:
        if self._lines:
            self._out.write("\n")
            self._out.flush()
            self._lines, self._printed = [], True

    def _draw(self, text: str) -> None:
        """Draw the open block. Lines that have not changed, and those that have left the screen, stay."""
        width, rows = shutil.get_terminal_size()
        lines = self._rendered(text, max(NARROWEST, width - 1))  # a full line would wrap in some terminals
        if not self._lines:
            self._out.write(("\n" if self._printed else "") + "\n".join(lines))
        elif _continues(self._lines, lines):
            last = len(self._lines) - 1
            self._out.write("\n".join([lines[last][len(self._lines[last]) :], *lines[last + 1 :]]))
        else:
            self._redraw(lines, rows)
        self._lines = lines

    def _redraw(self, lines: list[str], rows: int) -> None:
        above = len(self._lines) - max(1, rows - 1)  # lines that cannot be reached any more
        kept = min(max(_common(self._lines, lines), above), len(self._lines) - 1, len(lines) - 1)
        up = len(self._lines) - 1 - kept
        self._out.write((f"\x1b[{up}A" if up else "") + "\r\x1b[J" + "\n".join(lines[kept:]))

    def _rendered(self, text: str, width: int) -> list[str]:
        from rich.console import Console

        from longboat.cli.rich_markdown import Formatted

        if self._console is None:
            self._console = Console(file=self._out, force_terminal=True, highlight=False, soft_wrap=False)
        self._console.width = width
        with self._console.capture() as drawn:
            self._console.print(Formatted(text), end="")
        return [line.rstrip(" ") for line in drawn.get().strip("\n").split("\n")]


def _continues(before: list[str], after: list[str]) -> bool:
    """Whether text was only added at the end."""
    last = len(before) - 1
    return len(after) > last and after[:last] == before[:last] and after[last].startswith(before[last])


def _common(before: list[str], after: list[str]) -> int:
    """How many leading lines are the same."""
    same = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        same += 1
    return same


def _open_fence(text: str) -> str:
    """The line that opened a block of code which is not closed yet: what comes next belongs to it."""
    fences = [line for line in text.splitlines() if line.lstrip().startswith("```")]
    return f"{fences[-1]}\n" if len(fences) % 2 else ""


def _blocks(text: str) -> list[str]:
    """The text as blocks of Markdown; the last one may still grow."""
    from longboat.cli.rich_markdown import block_lines

    starts = block_lines(text)[1:] if "\n" in text else []
    lines = text.splitlines(keepends=True)
    return ["".join(lines[start:end]) for start, end in zip([0, *starts], [*starts, len(lines)], strict=True)]
