"""Hunks of a text's change: shown as git takes them, undone in any selection, merged with another change."""

import random
import subprocess
from itertools import chain, combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longboat.tools.files.hunks import hunks_between, merge_lines, render_hunk, split_lines, undo_hunks
from longboat.tools.files.text import decode, diff, merge

words = st.lists(st.sampled_from(["a", "b", "c", "d", "", "\r", "é", "x y"]), max_size=40)


def text_of(lines: list[str], *, ended: bool) -> str:
    return "\n".join(lines) + ("\n" if ended and lines else "")


texts = st.builds(text_of, words, ended=st.booleans())


def edited(chance: random.Random, lines: list[str]) -> list[str]:
    """A text with some places changed: lines replaced, inserted and removed."""
    made = list(lines)
    for _ in range(chance.randint(1, 6)):
        at = chance.randint(0, len(made))
        made[at : at + chance.randint(0, 2)] = [f"new {chance.random()}" for _ in range(chance.randint(0, 2))]
    return made


def subsets(count: int) -> list[set[int]]:
    numbers = range(count)
    return [set(each) for each in chain.from_iterable(combinations(numbers, size) for size in range(count + 1))]


def patched(directory: Path, before: str, patch: str) -> str:
    """What git makes of it."""
    (directory / "f").write_bytes(before.encode())
    subprocess.run(["git", "apply", "--unidiff-zero", "-"], cwd=directory, input=patch.encode(), check=True)
    return (directory / "f").read_bytes().decode()


@given(texts, texts)
def test_undoing_no_hunk_is_the_new_text_and_all_is_the_old_one(before: str, after: str) -> None:
    old, new = split_lines(before), split_lines(after)
    hunks = hunks_between(old, new)
    assert "".join(undo_hunks(old, new, hunks, ())) == after
    assert "".join(undo_hunks(old, new, hunks, range(len(hunks)))) == before
    assert "".join(old) == before


@pytest.mark.parametrize("seed", range(12))
def test_undoing_any_selection_is_what_git_makes_of_the_hunks_that_are_left(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    lines = [f"line {number}" for number in range(80)]
    ends = chance.choice(["\n", "\r\n"])
    before = ends.join(lines) + ends * chance.randint(0, 1)
    after = ends.join(edited(chance, lines)) + ends * chance.randint(0, 1)
    old, new = split_lines(before), split_lines(after)
    hunks = hunks_between(old, new)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    for undone in subsets(len(hunks))[:40]:
        left = [render_hunk(hunk, old, new) for number, hunk in enumerate(hunks) if number not in undone]
        made = "".join(undo_hunks(old, new, hunks, undone))
        if left:
            assert made == patched(tmp_path, before, "--- a/f\n+++ b/f\n" + "".join(left))
        else:
            assert made == before


@given(texts, texts)
def test_what_only_one_side_changed_is_that_side(base: str, side: str) -> None:
    lines, changed = split_lines(base), split_lines(side)
    for prefer_ours in (True, False):
        assert merge_lines(lines, changed, lines, prefer_ours=prefer_ours) == changed
        assert merge_lines(lines, lines, changed, prefer_ours=prefer_ours) == changed
        assert merge_lines(lines, changed, changed, prefer_ours=prefer_ours) == changed


@given(texts, texts, texts)
def test_a_merge_does_not_depend_on_which_side_is_called_ours(base: str, one: str, other: str) -> None:
    texts = [split_lines(each) for each in (base, one, other)]
    assert merge_lines(*texts, prefer_ours=True) == merge_lines(texts[0], texts[2], texts[1], prefer_ours=False)


def test_changes_in_different_places_are_both_there() -> None:
    base = [f"{number}\n" for number in range(10)]
    ours = ["first\n", *base[1:]]
    theirs = [*base[:5], "inserted\n", *base[5:8], *base[9:]]
    assert merge_lines(base, ours, theirs, prefer_ours=False) == ["first\n", *theirs[1:]]


@pytest.mark.parametrize(("prefer_ours", "taken"), [(True, "ours\n"), (False, "theirs\n")])
def test_where_both_changed_one_line_the_preferred_side_is_taken(prefer_ours: bool, taken: str) -> None:
    assert merge_lines(["a\n", "b\n"], ["a\n", "ours\n"], ["a\n", "theirs\n"], prefer_ours=prefer_ours) == [
        "a\n",
        taken,
    ]


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        (b"a\n", None, b"a\n", None),
        (None, b"a\n", None, b"a\n"),
        (b"a\n", None, b"b\n", b"b\n"),
        (b"\0a", b"\0b", b"\0c", b"\0c"),
        (b"a\nb\nc\nd\n", b"A\nb\nc\nd\n", b"a\nb\nc\nD\n", b"A\nb\nc\nD\n"),
        (b"a\r\nb\r\nc\r\nd\r\n", b"A\r\nb\r\nc\r\nd\r\n", b"a\r\nb\r\nc\r\nD\r\n", b"A\r\nb\r\nc\r\nD\r\n"),
    ],
)
def test_contents_are_merged_if_they_are_text(
    base: bytes | None, ours: bytes | None, theirs: bytes | None, merged: bytes | None
) -> None:
    assert merge(base, ours, theirs, prefer_ours=False) == merged


def test_utf_16_is_merged_by_its_characters() -> None:
    base, ours, theirs = (text.encode("utf-16") for text in ("a\nĊ\nc\nd\n", "A\nĊ\nc\nd\n", "a\nĊ\nc\nD\n"))
    merged = merge(base, ours, theirs, prefer_ours=False)
    assert merged is not None
    assert decode(merged).content == "A\nĊ\nc\nD\n"


def test_a_rewrite_too_large_to_compare_is_one_hunk(tmp_path: Path) -> None:
    before = "".join(f"old {number}\n" for number in range(3_000))
    after = "".join(f"new {number}\n" for number in range(3_000))
    assert diff(before, after, "f").count("@@ -") == 1
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    assert patched(tmp_path, before, diff(before, after, "f")) == after
