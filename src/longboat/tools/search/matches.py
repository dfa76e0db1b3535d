"""ripgrep's output as text for a model: sorted by path, limited. Pure."""

import base64
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from longboat.tools.files.paths import display_path
from longboat.tools.search.globs import Globs

MAX_LINES = 250
"""Matching lines that are shown."""
MAX_FILES = 500
"""Files that are shown."""
MAX_SHOWN = 30_000
"""Characters of an answer."""
MAX_LINE = 400
"""Characters of a line: those around its match."""


class _Data(msgspec.Struct, frozen=True, kw_only=True):
    """Text, or base64 if it is not UTF-8."""

    text: str | None = None
    raw: str | None = msgspec.field(default=None, name="bytes")

    def bytes(self) -> bytes:
        return (self.text or "").encode() if self.raw is None else base64.b64decode(self.raw)

    def string(self) -> str:
        return self.bytes().decode("utf-8", "replace").rstrip("\r\n")


class _Submatch(msgspec.Struct, frozen=True, kw_only=True):
    match: _Data


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of all kinds of events."""

    path: _Data = _Data()
    lines: _Data = _Data()
    line_number: int = 0
    submatches: list[_Submatch] = []
    binary_offset: int | None = None


class _Message(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    data: _Event


_COUNT = re.compile(rb"([^\0]+)\0(\d+)\r?\n")
_DECODER = msgspec.json.Decoder(_Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope:
    """Where to search, what to show, and how paths are shown."""

    workspace: Path
    base: Path
    globs: Globs | None
    hidden: Callable[[str], bool]

    def path_of(self, name: bytes) -> str | None:
        """The path to show, if it is wanted."""
        relative = os.fsdecode(name).removeprefix("./")
        if self.globs is not None and not self.globs.match(relative):
            return None
        path = self.base / relative
        return None if self.hidden(str(path)) else display_path(self.workspace, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    number: int
    text: str
    is_match: bool


def files(output: bytes, scope: SearchScope) -> str:
    *names, _ = output.split(b"\0")
    return _format_lines(sorted(path for name in names if (path := scope.path_of(name)) is not None))


def counts(output: bytes, scope: SearchScope) -> str:
    found = []
    for name, count in _COUNT.findall(output):
        if (path := scope.path_of(name)) is not None:
            found.append((path, int(count)))
    if not found:
        return ""
    total = f"({sum(count for _, count in found):,} matching lines in {len(found):,} files.)"
    return f"{_format_lines([f'{path}: {count}' for path, count in sorted(found)])}\n\n{total}"


def _format_lines(lines: list[str]) -> str:
    if len(lines) > MAX_FILES:
        lines = [*lines[:MAX_FILES], "", f"({MAX_FILES} of {len(lines):,} files: narrow the search to see others.)"]
    return "\n".join(lines)


def content(output: bytes, scope: SearchScope) -> str:
    found = _by_file(output, scope)
    total = sum(line.is_match for lines in found.values() for line in lines)
    parts: list[str] = []
    size = matched = 0
    for path in sorted(found):
        parts.append(f"\n{path}" if parts else path)
        for line, text in _rendered(found[path]):
            if matched == MAX_LINES or size > MAX_SHOWN:
                parts += ["", f"({matched} of {total:,} matching lines in {len(found):,} files: narrow the search.)"]
                return "\n".join(parts)
            matched += line.is_match
            size += len(text)
            parts.append(text)
    return "\n".join(parts)


def _by_file(output: bytes, scope: SearchScope) -> dict[str, list[_Line]]:
    found: dict[str, list[_Line]] = {}
    *messages, _ = output.split(b"\n")
    for message in map(_DECODER.decode, messages):
        event = message.data
        path = scope.path_of(event.path.bytes())
        if path is None:
            continue
        if message.type in ("match", "context"):
            found.setdefault(path, []).append(_line(event, is_match=message.type == "match"))
        elif message.type == "end" and event.binary_offset is not None:
            found.pop(path, None)  # what looked like text turned out to be none
    return found


def _line(event: _Event, *, is_match: bool) -> _Line:
    text = event.lines.string()
    if len(text) > MAX_LINE:
        match = event.submatches[0].match.string() if event.submatches else ""
        start = max(text.find(match) - MAX_LINE // 4, 0)
        end = start + MAX_LINE
        text = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
    return _Line(number=event.line_number, text=text, is_match=is_match)


def _rendered(lines: list[_Line]) -> Iterator[tuple[_Line, str]]:
    """Matches with a colon and what is around them with a dash; a gap is marked where there is something around."""
    with_context = not all(line.is_match for line in lines)
    last = lines[0].number - 1
    for line in lines:
        gap = "--\n" if with_context and line.number > last + 1 else ""
        yield line, f"{gap}{line.number}{':' if line.is_match else '-'}{line.text}"
        last = line.number
