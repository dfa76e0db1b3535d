"""Replaces text in text: exactly, or line by line ignoring whitespace if that is unambiguous. Pure.

A file with CRLF line endings is searched as if they were LF, because that is how models see it. Everything outside the
replacement keeps its bytes, and new lines get the line ending of those around them.
"""

import difflib
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from longboat.tools.context import ToolError
from longboat.tools.files.text import crlf_positions, line_at, newline_of

MAX_SHOWN = 10
MAX_COMPARED = 20_000
"""Lines among which the nearest to a missing one are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    content: str
    count: int
    lines: tuple[int, ...]
    """Where the replaced text began, in the content before: of the first few."""
    tolerant: bool = False
    """The text was found only with whitespace left out of account."""

    @property
    def remark(self) -> str:
        where = f"line {self.lines[0]}" if len(self.lines) == 1 else f"lines {_format_lines(self.lines)}"
        if self.tolerant:
            return f"at {where}: whitespace differed from old_text, so new_text was indented to match the file"
        return f"at {where}"


def replace(content: str, old: str, new: str, *, every: bool = False) -> Replaced:
    """`content` with `old` replaced by `new`. Raises ToolError if `old` is not there, or there more than once."""
    if not old:
        raise ToolError("old_text is empty. Pass the text to replace, or use write for a whole file.")
    pairs = crlf_positions(content)
    if pairs:
        old, new = _with_unix_line_ends(old), _with_unix_line_ends(new)
    if old == new:
        raise ToolError("old_text and new_text are the same: nothing to change.")
    flat = _with_unix_line_ends(content) if pairs else content
    places, tolerant = _find_occurrences(flat, old, every=every), False
    if not places:
        places, new = _found_by_lines(flat, old, new)
        tolerant = True
    replaced = _spliced(content, places, new, pairs)
    if replaced == content:
        raise ToolError("The file already has new_text: nothing to change.")
    lines = tuple(line_at(flat, start) for start, _ in places[: MAX_SHOWN + 1])
    return Replaced(content=replaced, count=len(places), lines=lines, tolerant=tolerant)


def _with_unix_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n")


def _find_occurrences(flat: str, old: str, *, every: bool) -> list[tuple[int, int]]:
    if every:
        return [(found.start(), found.end()) for found in re.finditer(re.escape(old), flat)]
    first = flat.find(old)
    if first < 0:
        return []
    # The next may overlap with the first: "aa" is in "aaa" twice.
    if flat.find(old, first + 1) >= 0:
        starts = [found.start() for found in re.finditer(f"(?={re.escape(old)})", flat)]
        raise _ambiguous(flat, starts)
    return [(first, first + len(old))]


def _ambiguous(flat: str, starts: list[int]) -> ToolError:
    where = _format_lines(line_at(flat, start) for start in starts[: MAX_SHOWN + 1])
    return ToolError(
        f"old_text occurs {len(starts)} times (lines {where}). Add surrounding lines to make it unique, "
        "or set replace_all."
    )


def _format_lines(lines: Iterable[int]) -> str:
    numbers = [str(line) for line in lines]
    more = ", …" if len(numbers) > MAX_SHOWN else ""
    return ", ".join(numbers[:MAX_SHOWN]) + more


def _spliced(content: str, places: list[tuple[int, int]], new: str, pairs: list[int]) -> str:
    """`places` are positions with each CRLF as one character; `pairs` are those of the CRLFs."""
    pieces, done = [], 0
    usual = newline_of(content)
    for start, end in places:
        begin = start + bisect_left(pairs, start)
        stop = end + bisect_left(pairs, end)
        taken = content[begin:stop]
        newline = newline_of(taken) if "\n" in taken else usual
        pieces += [content[done:begin], new.replace("\n", newline) if pairs else new]
        done = stop
    return "".join([*pieces, content[done:]])


# Line by line ---------------------------------------------------------------------------------------------------------


def _found_by_lines(flat: str, old: str, new: str) -> tuple[list[tuple[int, int]], str]:
    """The one place where the lines are those of `old` but for whitespace, and `new` indented as that place is."""
    wanted = old.removesuffix("\n").split("\n")
    keys = [_key(line) for line in wanted]
    lines = flat.split("\n")
    starts = _starts(lines, keys) if any(keys) else []
    if not starts:
        raise ToolError(_not_found(lines, old, wanted))
    if len(starts) > 1:
        where = _format_lines(start + 1 for start in starts)
        raise ToolError(
            f"old_text is not in the file exactly; ignoring whitespace, it occurs {len(starts)} times "
            f"(lines {where}). Copy the text exactly from the file, with surrounding lines."
        )
    first = starts[0]
    matched = lines[first : first + len(wanted)]
    begin = sum(len(line) + 1 for line in lines[:first])
    end = begin + sum(len(line) + 1 for line in matched)
    # The last line's end belongs to it only if it was asked for and is there.
    end = end - 1 if not old.endswith("\n") or end > len(flat) else end
    return [(begin, end)], _indented(new, wanted, matched)


def _key(line: str) -> str:
    return " ".join(line.split())


def _starts(lines: list[str], keys: list[str]) -> list[int]:
    have = [_key(line) for line in lines]
    last = len(have) - len(keys)
    return [at for at in range(last + 1) if have[at] == keys[0] and have[at : at + len(keys)] == keys]


def _indented(new: str, wanted: list[str], matched: list[str]) -> str:
    """`new` with each indentation changed as that of `wanted` is changed in `matched`."""
    known = {_indent(asked): _indent(found) for asked, found in zip(wanted, matched, strict=True) if asked.strip()}
    return "\n".join(
        _moved(_indent(line), known) + line[len(_indent(line)) :] if line.strip() else line for line in new.split("\n")
    )


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _moved(indent: str, known: dict[str, str]) -> str:
    shorter = [asked for asked in known if indent.startswith(asked)]
    if shorter:
        asked = max(shorter, key=len)
        return known[asked] + indent[len(asked) :]
    for asked, found in known.items():
        missing = asked[len(indent) :]
        if asked.startswith(indent) and found.endswith(missing):
            return found.removesuffix(missing)
    return indent


def _not_found(lines: list[str], old: str, wanted: list[str]) -> str:
    if all(re.match(r"\s*\d+\t", line) for line in wanted if line.strip()):
        return "old_text is not in the file. Leave out the line numbers that view puts before each line."
    asked = next((line.strip() for line in wanted if line.strip()), "")
    near = _nearest(lines, asked)
    if not near:
        return "old_text is not in the file, nor anything similar. View the file and copy the text exactly."
    listed = "\n".join(f"{number:>6}\t{lines[number - 1][:200]}" for number in near)
    return f"old_text is not in the file. Lines like its first line:\n{listed}\nCopy the text exactly from the file."


def _nearest(lines: list[str], asked: str) -> list[int]:
    """The numbers of up to three lines that are most like `asked`."""
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(asked[:200])
    likely = []
    for number, line in enumerate(lines[:MAX_COMPARED], start=1):
        matcher.set_seq1(line.strip()[:200])
        if matcher.real_quick_ratio() > 0.6 and (ratio := matcher.quick_ratio()) > 0.6:
            likely.append((-ratio, number))
    # The true ratio takes long: it is for the few that can win.
    scored = []
    for _, number in sorted(likely)[:50]:
        matcher.set_seq1(lines[number - 1].strip()[:200])
        scored.append((-matcher.ratio(), number))
    return sorted(number for ratio, number in sorted(scored)[:3] if -ratio > 0.6)
