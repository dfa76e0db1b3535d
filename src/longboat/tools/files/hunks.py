"""Hunks of a change of text: find them, show them, undo some of them, and merge two changes of one text. Pure.

Texts are lists of lines with their ends, as `split_lines` gives them; a last line without an end is a different line.
"""

import difflib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

CONTEXT = 3
"""Unchanged lines shown around a change."""
MAX_COMPARED = 4_000_000
"""Lines before times lines after: the time of difflib grows with it. Beyond, all between the first and the last
difference is one change."""

Lines = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Lines that differ: `old_start` to `old_end` of the old text became `new_start` to `new_end` of the new one."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk(Block):
    """Neighboring blocks with the unchanged lines around them."""

    blocks: tuple[Block, ...]

    @property
    def additions(self) -> int:
        return sum(block.new_end - block.new_start for block in self.blocks)

    @property
    def deletions(self) -> int:
        return sum(block.old_end - block.old_start for block in self.blocks)


def split_lines(content: str) -> list[str]:
    """The lines with their ends. Only LF ends a line."""
    lines = [f"{line}\n" for line in content.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines


def blocks_between(old: Lines, new: Lines) -> list[Block]:
    """What differs, in order; equal lines lie between any two blocks."""
    start, stop = _common(old, new)
    # With some context, so that a change at the edge is aligned as in the middle of a text.
    first, rest = max(start - CONTEXT, 0), max(stop - CONTEXT, 0)
    before, after = old[first : len(old) - rest], new[first : len(new) - rest]
    if len(before) * len(after) > MAX_COMPARED:
        return [Block(old_start=start, old_end=len(old) - stop, new_start=start, new_end=len(new) - stop)]
    return [
        Block(old_start=first + i1, old_end=first + i2, new_start=first + j1, new_end=first + j2)
        for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after).get_opcodes()
        if kind != "equal"
    ]


def _common(old: Lines, new: Lines) -> tuple[int, int]:
    """How many lines agree at the beginning, and how many of the others at the end."""
    shorter = min(len(old), len(new))
    start = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    stop = next((index for index in range(shorter - start) if old[-1 - index] != new[-1 - index]), shorter - start)
    return start, stop


def hunks_between(old: Lines, new: Lines) -> list[Hunk]:
    """The hunks as a unified diff has them."""
    groups: list[list[Block]] = []
    for block in blocks_between(old, new):
        if groups and block.old_start - groups[-1][-1].old_end <= 2 * CONTEXT:
            groups[-1].append(block)
        else:
            groups.append([block])
    return [_hunk_of(group, len(old), len(new)) for group in groups]


def _hunk_of(blocks: Sequence[Block], old_length: int, new_length: int) -> Hunk:
    first, last = blocks[0], blocks[-1]
    before = min(CONTEXT, first.old_start, first.new_start)
    after = min(CONTEXT, old_length - last.old_end, new_length - last.new_end)
    return Hunk(
        old_start=first.old_start - before,
        old_end=last.old_end + after,
        new_start=first.new_start - before,
        new_end=last.new_end + after,
        blocks=tuple(blocks),
    )


def render_hunk(hunk: Hunk, old: Lines, new: Lines) -> str:
    """The hunk as `patch` and `git apply` take it."""
    numbers = _range(hunk.old_start, hunk.old_end), _range(hunk.new_start, hunk.new_end)
    return "".join(["@@ -{} +{} @@\n".format(*numbers), *_signed_lines(hunk, old, new)])


def _signed_lines(hunk: Hunk, old: Lines, new: Lines) -> Iterator[str]:
    at = hunk.old_start
    for block in hunk.blocks:
        yield from (_signed(" ", line) for line in old[at : block.old_start])
        yield from (_signed("-", line) for line in old[block.old_start : block.old_end])
        yield from (_signed("+", line) for line in new[block.new_start : block.new_end])
        at = block.old_end
    yield from (_signed(" ", line) for line in old[at : hunk.old_end])


def _signed(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _range(start: int, end: int) -> str:
    """Lines as the header of a hunk counts them: from 1, and an empty range stands after the line before it."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def undo_hunks(old: Lines, new: Lines, hunks: Sequence[Hunk], undone: Collection[int]) -> list[str]:
    """The new text with the hunks of these numbers, from 0, as they were in the old one."""
    lines: list[str] = []
    at = 0
    for number, hunk in enumerate(hunks):
        for block in hunk.blocks:
            lines += new[at : block.new_start]
            is_undone = number in undone
            lines += old[block.old_start : block.old_end] if is_undone else new[block.new_start : block.new_end]
            at = block.new_end
    return [*lines, *new[at:]]


def merge_lines(base: Lines, ours: Lines, theirs: Lines, *, prefer_ours: bool) -> list[str]:
    """Both changes of `base`. Where they overlap and differ, one side's lines are taken."""
    sides = _Side(ours, blocks_between(base, ours)), _Side(theirs, blocks_between(base, theirs))
    lines: list[str] = []
    at = 0
    for start, end in _clusters(*(side.blocks for side in sides)):
        lines += base[at:start]
        texts = [side.between(start, end) for side in sides]
        changed = [text for text, side in zip(texts, sides, strict=True) if side.touches(start, end)]
        lines += changed[0] if len(changed) == 1 else texts[0 if prefer_ours else 1]
        at = end
    return [*lines, *base[at:]]


@dataclass(frozen=True, slots=True)
class _Side:
    lines: Lines
    blocks: Sequence[Block]

    def touches(self, start: int, end: int) -> bool:
        return any(_is_within(block, start, end) for block in self.blocks)

    def between(self, start: int, end: int) -> list[str]:
        """What this side has in place of these lines of the base."""
        shift = sum(_growth(block) for block in self.blocks if block.old_end <= start and block.old_start < start)
        grown = sum(_growth(block) for block in self.blocks if _is_within(block, start, end))
        return list(self.lines[start + shift : end + shift + grown])


def _growth(block: Block) -> int:
    return (block.new_end - block.new_start) - (block.old_end - block.old_start)


def _is_within(block: Block, start: int, end: int) -> bool:
    """Lines inserted right after the part are none of it."""
    return start <= block.old_start and block.old_end <= end and (block.old_start < end or start == end)


def _clusters(ours: Sequence[Block], theirs: Sequence[Block]) -> list[tuple[int, int]]:
    """The parts of the base that either side changed; changes that overlap are one part."""
    clusters: list[tuple[int, int]] = []
    for start, end in sorted((block.old_start, block.old_end) for block in (*ours, *theirs)):
        if clusters and (start < clusters[-1][1] or start == clusters[-1][0]):
            clusters[-1] = clusters[-1][0], max(end, clusters[-1][1])
        else:
            clusters.append((start, end))
    return clusters
