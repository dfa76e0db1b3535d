"""What undo reckons with: counts of lines in bounded time, and changes of which a crash left only the intention."""

import functools
import random
from pathlib import Path

import pytest

from longboat.runtime.session.file_history import _counts
from longboat.runtime.session.undo import _settle_changes
from longboat.store.records import FileChangeRecord
from work import steps


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        (b"", b"a\nb\n", (2, 0)),
        (b"a\nb\n", b"", (0, 2)),
        (b"a\nb\nc\n", b"a\nB\nc\n", (1, 1)),
        (b"a\nb\n", b"b\na\n", (1, 1)),
        (b"a\na\na\n", b"a\na\n", (0, 1)),
        (b"a\nb\n", b"a\nb\n", (0, 0)),
        (b"x\n" * 50_000, b"x\n" * 50_000 + b"y\n", (1, 0)),
    ],
)
def test_added_and_removed_lines_are_counted(before: bytes, after: bytes, counts: tuple[int, int]) -> None:
    assert _counts(before, after) == counts


def test_a_large_rewrite_with_many_equal_lines_is_counted_in_few_steps() -> None:
    """difflib takes half a minute for it."""
    chance = random.Random(1)
    lines = [b"%d" % (number % 100) for number in range(64_000)]
    before, after = chance.sample(lines, 64_000), [*chance.sample(lines, 64_000), b"new"]
    counts = functools.partial(_counts, b"\n".join(before), b"\n".join(after))
    assert counts() == (1, 0)
    assert steps(counts) < 10 * len(lines)


def change(path: Path, before: bytes | None, after: bytes | None, pending: str | None = None) -> FileChangeRecord:
    return FileChangeRecord(session_id="s", run_id="r", path=str(path), before=before, after=after, pending=pending)


@pytest.mark.parametrize(
    ("rows", "content", "settled"),
    [
        ([(b"1", b"2", "k")], b"1", "change_forget"),
        ([(b"1", b"2", "k")], b"2", "change_made"),
        ([(b"1", b"2", "k")], b"by hand", "change_made"),
        ([(None, b"2", "k")], None, "change_forget"),
        ([(None, b"2", "k")], b"2", "change_made"),
        ([(None, b"", "k")], b"", "change_made"),
        ([(b"1", b"2", "k"), (b"1", b"3", None)], b"3", "change_forget"),
        ([(b"1", b"2", "k"), (b"2", b"3", None)], b"3", "change_made"),
    ],
)
def test_the_next_change_or_the_file_tells_what_became_of_an_expected_one(
    tmp_path: Path, rows: list[tuple[bytes | None, bytes | None, str | None]], content: bytes | None, settled: str
) -> None:
    """A4: a run that goes on after a crash may change the same file again."""
    path = tmp_path.resolve() / "a.txt"
    if content is not None:
        path.write_bytes(content)
    (write,) = _settle_changes([change(path, *each) for each in rows])
    assert (write.query, write.params) == (settled, {"pending": "k"})
