"""Parses a unified diff into rows with their line numbers in the old and the new file, and puts comments between them.
Pure; bounded."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from rich.cells import cell_len

from longboat.wire.plain import plain, plain_line

MAX_ROWS = 20_000
MAX_COLUMNS = 1_000

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_HEADERS = ("--- ", "+++ ", "diff ", "index ", "similarity ", "dissimilarity ", "GIT binary patch")


class Kind(Enum):
    HUNK = auto()
    CONTEXT = auto()
    ADDED = auto()
    DELETED = auto()
    NOTE = auto()
    """A remark on the file: binary, a new mode, no newline at the end."""
    COMMENT = auto()
    """A person's comment on the row above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    kind: Kind
    text: str
    old: int | None = None
    """The line number in the old file."""
    new: int | None = None
    hunk: int = -1
    old_at: int = 0
    """The index among the hunk's old lines."""
    new_at: int = 0
    comment: int | None = None
    """The number of the comment that this row shows."""

    @property
    def sign(self) -> str:
        return {Kind.ADDED: "+", Kind.DELETED: "-"}.get(self.kind, " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    rows: tuple[Row, ...]
    additions: int
    deletions: int

    def widest(self) -> int:
        """The widest row in columns: some characters take two."""
        return max((cell_len(row.text) for row in self.rows), default=0)

    def last_number(self) -> int:
        return max((max(row.old or 0, row.new or 0) for row in self.rows), default=0)

    def sides(self) -> Iterator[tuple[Row | None, Row | None]]:
        """Pairs of old and new rows: deleted lines next to the lines that replaced them."""
        deleted: list[Row] = []
        added: list[Row] = []
        for row in self.rows:
            if row.kind is Kind.DELETED and not added:
                deleted.append(row)
            elif row.kind is Kind.ADDED:
                added.append(row)
            else:
                yield from _beside(deleted, added)
                deleted, added = ([row], []) if row.kind is Kind.DELETED else ([], [])
                if row.kind is not Kind.DELETED:
                    yield row, row
        yield from _beside(deleted, added)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    number: int
    row: Row
    """What it is about. The diff may have changed since."""
    text: str


def with_comments(rows: Rows, comments: Iterable[Comment]) -> Rows:
    """The rows with each comment below its row, or above all of them if there is no such row any more."""
    below: dict[int, list[Row]] = {}
    for each in comments:
        place = _place_of(each.row, rows.rows)
        line = each.row.old if each.row.new is None else each.row.new
        where = f"line {line}: " if place < 0 and line is not None else ""
        text = _cut(f"╰ {where}{plain_line(each.text)}")
        below.setdefault(place, []).append(Row(kind=Kind.COMMENT, text=text, comment=each.number))
    found = [*below.get(-1, [])]
    for place, row in enumerate(rows.rows):
        found += [row, *below.get(place, [])]
    return replace(rows, rows=tuple(found))


def _place_of(meant: Row, rows: Sequence[Row]) -> int:
    """The place of the nearest row with the same text: undoing a hunk moves those below it. -1 if there is none."""
    same = [at for at, row in enumerate(rows) if (row.kind, row.text) == (meant.kind, meant.text)]
    return min(same, key=lambda at: abs(_line(rows[at]) - _line(meant)), default=-1)


def _line(row: Row) -> int:
    return row.new or row.old or 0


def _beside(deleted: list[Row], added: list[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    for number in range(max(len(deleted), len(added))):
        yield (
            deleted[number] if number < len(deleted) else None,
            added[number] if number < len(added) else None,
        )


@dataclass(slots=True)
class _Hunk:
    """The parser's position in a hunk."""

    number: int = -1
    old: int = 0
    new: int = 0
    old_left: int = 0
    new_left: int = 0
    old_at: int = 0
    new_at: int = 0

    def row(self, line: str) -> Row | None:
        """The row for the next line of the hunk; None if the line is not part of it."""
        sign, text = line[:1] or " ", line[1:]
        if sign not in " +-" or not (self.old_left or self.new_left):
            return None
        kind = {"+": Kind.ADDED, "-": Kind.DELETED, " ": Kind.CONTEXT}[sign]
        is_old, is_new = kind is not Kind.ADDED, kind is not Kind.DELETED
        row = Row(
            kind=kind,
            text=_cut(text),
            old=self.old if is_old else None,
            new=self.new if is_new else None,
            hunk=self.number,
            old_at=self.old_at,
            new_at=self.new_at,
        )
        self.old, self.old_at, self.old_left = self.old + is_old, self.old_at + is_old, self.old_left - is_old
        self.new, self.new_at, self.new_left = self.new + is_new, self.new_at + is_new, self.new_left - is_new
        return row


def read_rows(diff: str) -> Rows:
    """The rows of a unified diff: at most MAX_ROWS, then one that says how many more there are."""
    lines = diff.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    rows: list[Row] = []
    for taken, row in _rows(lines):
        if len(rows) == MAX_ROWS:
            rows.append(Row(kind=Kind.NOTE, text=f"… {len(lines) - taken:,} more lines not shown"))
            break
        rows.append(row)
    return Rows(
        rows=tuple(rows),
        additions=sum(row.kind is Kind.ADDED for row in rows),
        deletions=sum(row.kind is Kind.DELETED for row in rows),
    )


def _rows(lines: list[str]) -> Iterator[tuple[int, Row]]:
    hunk = _Hunk()
    for taken, line in enumerate(lines):
        if (row := hunk.row(line)) is not None:
            yield taken, row
        elif found := _HUNK.match(line):
            old, old_lines, new, new_lines = (int(number) if number else 1 for number in found.groups())
            hunk = _Hunk(number=hunk.number + 1, old=old, new=new, old_left=old_lines, new_left=new_lines)
            yield taken, Row(kind=Kind.HUNK, text=_cut(line))
        elif line.strip() and not line.startswith(_HEADERS):
            yield taken, Row(kind=Kind.NOTE, text=_cut(line.removeprefix("\\ ")))


def _cut(text: str) -> str:
    # A carriage return at the end of a line is normal in some files and needs no warning.
    clean = plain(text[: MAX_COLUMNS + 1].removesuffix("\r"))
    return clean if len(clean) <= MAX_COLUMNS else clean[:MAX_COLUMNS] + "…"
