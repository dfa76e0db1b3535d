"""`view`: read a file or a range of its lines, and note the read (A3)."""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.permissions.verdict import Need
from longboat.tools.context import ToolContext, ToolError, parse
from longboat.tools.files.file_io import MAX_BYTES, open_file
from longboat.tools.files.images import picture
from longboat.tools.files.paths import Target, resolve, unreadable
from longboat.tools.files.text import SNIFFED, NotText, binary_kind, decode, image_kind, lines_of
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.wire.models import Image
from longboat.wire.tools import Draw, Effect, Governs, SubAgents, ToolTraits

MAX_LINES = 2_000
MAX_SHOWN = 50_000
"""Characters a call shows."""
MAX_LINE = 2_000
"""Characters of one line."""
MAX_SKIPPED = 4 * 2**30
"""Bytes read to find a line."""
BLOCK = 2**20


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file, absolute or relative to the workspace.")]
    offset: Annotated[int, Meta(ge=1, description="The first line to show, counted from 1.")] = 1
    limit: Annotated[int, Meta(ge=1, le=MAX_LINES, description="How many lines to show.")] = MAX_LINES


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    shown: str
    content: bytes | None
    """The whole file, if it is small enough to be edited."""
    images: tuple[Image, ...] = ()


class ViewTool:
    spec = spec_of(
        "view",
        Input,
        ToolTraits(
            effect=Effect.READS,
            path="path",
            heading=("path",),
            governs=Governs.READING,
            sub_agents=SubAgents.ALL,
            side_by_side=True,
            quick=True,
            draw=Draw.FILE,
        ),
        brief="Read a file.",
        brief_fields=("offset",),
        cues=r"read|show|open|view|cat|look at|explain|what is in|contents?",
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted = parse("view", call.arguments, Input)
        target = await asyncio.to_thread(resolve, context.directory, wanted.path)
        title = f"Read {target.shown}"
        await context.permit(
            Need(tool="view", action="read", argument=target.shown, paths=(str(target.path),), title=title)
        )
        seen = await asyncio.to_thread(_look, target, wanted)
        if seen.content is not None:
            await context.note_read(target.path, seen.content)
        return ToolResult(content=seen.shown, images=seen.images)


def _look(target: Target, wanted: Input) -> _Seen:
    with os.fdopen(open_file(target), "rb") as file:
        try:
            size = os.fstat(file.fileno()).st_size
            content = file.read(SNIFFED if size > MAX_BYTES else MAX_BYTES + 1)
            if kind := image_kind(content):
                return _picture(f"{target.shown} is a {kind} of {size:,} bytes", content, size)
            if max(size, len(content)) > MAX_BYTES:
                return _Seen(shown=_range(target, wanted, file, content[:SNIFFED]), content=None)
        except OSError as error:
            raise unreadable(target, error) from None
    return _Seen(shown=_whole(target, wanted, content), content=content)


def _picture(what: str, content: bytes, size: int) -> _Seen:
    found = picture(content, size)
    if isinstance(found, str):
        return _Seen(shown=f"{what}: {found}.", content=None)
    return _Seen(shown=f"{what}.", content=None, images=(found,))


def _whole(target: Target, wanted: Input, content: bytes) -> str:
    try:
        text = decode(content)
    except NotText as error:
        raise _refused(target, error.kind, len(content)) from None
    lines = lines_of(text.content)
    if not lines:
        return f"({target.shown} is empty.)"
    if wanted.offset > len(lines):
        raise ToolError(f"{target.shown} has {len(lines)} lines; offset {wanted.offset} is past the end.")
    shown = _numbered(lines[wanted.offset - 1 :], wanted)
    last = wanted.offset + len(shown) - 1
    notes = [text.remark] if text.remark else []
    if last < len(lines):
        notes.append(f"Lines {wanted.offset}–{last} of {len(lines)}. Continue with offset={last + 1}.")
    return _add_notes(shown, notes)


def _range(target: Target, wanted: Input, file: BufferedReader, head: bytes) -> str:
    """The lines asked for of a file too large to be held."""
    size = os.fstat(file.fileno()).st_size
    if kind := binary_kind(head):
        raise _refused(target, kind, size)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ToolError(f"{target.shown} is UTF-16 and {size:,} bytes long. Convert it to UTF-8 with iconv first.")
    file.seek(0)
    found = _skip_lines(file, wanted.offset - 1)
    if found is not None:
        raise ToolError(f"{target.shown} has {found} lines; offset {wanted.offset} is past the end.")
    # One more than can be shown, to see whether there is one.
    lines = [line.decode("utf-8", "replace").rstrip("\r\n") for line in islice(_cut_lines(file), wanted.limit + 1)]
    shown = _numbered(lines, wanted)
    notes = [f"The file has {size:,} bytes, which is too large to edit here."]
    if len(shown) < len(lines):
        notes.append(f"There are more lines. Continue with offset={wanted.offset + len(shown)}.")
    return _add_notes(shown, notes)


def _skip_lines(file: BufferedReader, count: int) -> int | None:
    """Put `file` behind its first `count` lines; if it has no line there, say how many it has."""
    left = count
    while left:
        if file.tell() > MAX_SKIPPED:
            raise ToolError(f"That line is more than {MAX_SKIPPED >> 30} GB into the file. Use bash with sed or tail.")
        block = file.read(BLOCK)
        if not block:
            return count - left
        ends = block.count(b"\n")
        if ends < left:
            left -= ends
            continue
        at = -1
        for _ in range(left):
            at = block.index(b"\n", at + 1)
        file.seek(at + 1 - len(block), os.SEEK_CUR)
        left = 0
    return None if file.peek(1) else count


def _cut_lines(file: BufferedReader) -> Iterator[bytes]:
    """The lines of `file`; of a very long one, its beginning."""
    while line := file.readline(4 * MAX_LINE + 4):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(BLOCK)
        yield line


def _numbered(lines: list[str], wanted: Input) -> list[str]:
    shown: list[str] = []
    room = MAX_SHOWN
    for number, line in enumerate(lines[: wanted.limit], start=wanted.offset):
        cut = line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}… (the line is longer)"
        room -= len(cut) + 8
        if room < 0 and shown:
            break
        shown.append(f"{number:>6}\t{cut}")
    return shown


def _add_notes(shown: list[str], notes: list[str]) -> str:
    return "\n".join([*shown, "", f"({' '.join(notes)})"] if notes else shown)


def _refused(target: Target, kind: str, size: int) -> ToolError:
    return ToolError(f"{target.shown} is not a text file ({kind}, {size:,} bytes). Use bash with a suitable program.")
