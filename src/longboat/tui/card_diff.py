"""Draws a diff inside a tool card: line numbers and a background for each line, as in the changes dialog. Pure."""

from collections.abc import Iterator

from textual.content import Content

from longboat.tui.panels.diff_rows import Kind, Row, read_rows
from longboat.tui.panels.looks import FAINT

NARROW = 60
"""With fewer columns there is one line number per row instead of two."""
_STYLES = {
    Kind.ADDED: "on $success 20%",
    Kind.DELETED: "on $error 20%",
    Kind.HUNK: "$text-primary on $primary 15%",
    Kind.NOTE: f"{FAINT} italic",
    Kind.CONTEXT: "",
}
_ANSI = {Kind.ADDED: "$text-success", Kind.DELETED: "$text-error", Kind.HUNK: "$text-primary"}
"""With sixteen colours there are no light backgrounds."""


def diff_lines(diff: str, *, width: int, most: int, whole: bool = False, ansi: bool = False) -> list[Content]:
    """The first lines of a diff, each at most `width` columns wide. `whole`: long lines are folded instead of cut."""
    rows = read_rows(diff)
    digits = max(3, len(str(rows.last_number())))
    styles = _ANSI if ansi else _STYLES
    lines: list[Content] = []
    for row in rows.rows[:most]:
        head = _gutter(row, digits, narrow=width < NARROW)
        for number, piece in enumerate(_pieces(row.text, width - len(head), whole=whole)):
            lead = head if number == 0 else " " * len(head)
            text = Content.assemble((lead, FAINT), piece)
            pad = max(0, width - text.cell_length)
            lines.append(text.pad_right(pad).stylize_before(styles.get(row.kind, "")))
    if len(rows.rows) > most:
        lines.append(Content.styled(f"… {len(rows.rows) - most} more lines", FAINT))
    return lines


def _gutter(row: Row, digits: int, *, narrow: bool) -> str:
    if row.kind in (Kind.HUNK, Kind.NOTE):
        return ""
    numbers = (row.new if row.new is not None else row.old,) if narrow else (row.old, row.new)
    return "".join(f"{'' if number is None else number:>{digits}} " for number in numbers) + f"{row.sign} "


def _pieces(text: str, width: int, *, whole: bool) -> Iterator[Content]:
    line, width = Content(text), max(8, width)
    if line.cell_length <= width:
        yield line
    elif whole:
        yield from line.fold(width)
    else:
        yield line.truncate(width, ellipsis=True)
