"""`grep`: lines that match a regular expression, in a file or in a tree."""

import asyncio
import os
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from longboat.permissions.verdict import Need
from longboat.tools.context import ToolContext, ToolError, parse
from longboat.tools.files.file_io import open_file
from longboat.tools.files.paths import Target, printable, resolve
from longboat.tools.files.text import SNIFFED, binary_kind
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.tools.search import matches
from longboat.tools.search.globs import Globs, compiled
from longboat.tools.search.ripgrep import MAX_FILESIZE, Output, ask, visible
from longboat.wire.tools import Draw, Effect, Lists, SubAgents, ToolTraits

MAX_MATCHES = 5_000
"""Matching lines, or files, that are gathered."""

_MODES = {
    "content": ("--json",),
    "files": ("--files-with-matches", "--null"),
    "count": ("--count", "--null", "--with-filename"),
}
_MARKS = {"content": b'{"type":"match"', "files": b"\0", "count": b"\0"}


_HINT = "Set all to include hidden and ignored files."


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pattern: Annotated[str, Meta(description="The regular expression. A match never spans lines.")]
    path: Annotated[str, Meta(description="The directory or file, absolute or relative to the workspace.")] = "."
    include: Annotated[str | None, Meta(description="Only files whose path matches this glob.")] = None
    mode: Annotated[Literal["content", "files", "count"], Meta(description="What to show.")] = "content"
    context: Annotated[int, Meta(ge=0, le=20, description="Lines to show around each match.")] = 0
    ignore_case: Annotated[bool, Meta(description="Ignore case.")] = False
    literal: Annotated[bool, Meta(description="The pattern is plain text, not a regular expression.")] = False
    all: Annotated[bool, Meta(description="Include hidden and git-ignored files.")] = False


class GrepTool:
    spec = spec_of(
        "grep",
        Input,
        ToolTraits(
            effect=Effect.READS,
            path="path",
            heading=("pattern", "path"),
            lists=Lists.CONTENTS,
            sub_agents=SubAgents.ALL,
            side_by_side=True,
            quick=True,
            draw=Draw.QUIET,
        ),
        brief="Search the files for a pattern.",
        brief_fields=("path",),
        cues=r"grep|search|find|where is",
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted = parse("grep", call.arguments, Input)
        _check_pattern(wanted.pattern)
        globs = compiled(wanted.include, hidden=wanted.all) if wanted.include is not None else None
        target = await asyncio.to_thread(resolve, context.directory, wanted.path)
        title = f"Search {target.shown} for {printable(wanted.pattern)}"
        await context.permit(
            Need(tool="grep", action="read", argument=target.shown, paths=(str(target.path),), title=title)
        )
        if await asyncio.to_thread(target.path.is_dir):
            output = await self._ask(context, wanted, target.path, _in_tree(wanted, globs))
            found = await self._show(context, wanted, target.path, globs, output)
            return found or ToolResult(content="No match." if wanted.all else f"No match. {_HINT}")
        await asyncio.to_thread(_check_text, target)
        # Named by a person or found before: neither its size nor an odd byte in it keeps it from being searched.
        output = await self._ask(context, wanted, target.path.parent, ["--text"], target.path.name)
        found = await self._show(context, wanted, target.path.parent, None, output)
        return found or ToolResult(content=f"No match in {target.shown}.")

    async def _ask(
        self, context: ToolContext, wanted: Input, directory: Path, options: list[str], path: str = ""
    ) -> Output:
        switches = [
            *_MODES[wanted.mode],
            *(["--ignore-case"] if wanted.ignore_case else []),
            *(["--fixed-strings"] if wanted.literal else []),
            *([f"--context={wanted.context}"] if wanted.context and wanted.mode == "content" else []),
        ]
        options = [*switches, "--crlf", *options, f"--regexp={wanted.pattern}"]
        return await ask(context, directory, *options, path=path, mark=_MARKS[wanted.mode], most=MAX_MATCHES)

    async def _show(
        self, context: ToolContext, wanted: Input, base: Path, globs: Globs | None, output: Output
    ) -> ToolResult | None:
        scope = matches.SearchScope(workspace=context.directory, base=base, globs=globs, hidden=context.hidden())
        render = {"content": matches.content, "files": matches.files, "count": matches.counts}[wanted.mode]
        text = await asyncio.to_thread(render, output.content, scope)
        if output.stopped:
            text += f"\n\n(The search stopped early: {output.stopped}. Use a narrower pattern, path or include.)"
        return ToolResult(content=text) if text else None


def _check_pattern(pattern: str) -> None:
    if not pattern:
        raise ToolError("The pattern is empty. Pass a regular expression.")
    if "\0" in pattern or "\n" in pattern:
        raise ToolError("The pattern contains a line break or NUL, but a match never spans lines. Search for one line.")
    try:
        os.fsencode(pattern)
    except UnicodeEncodeError:
        raise ToolError("The pattern contains half of a surrogate pair, which no file can contain.") from None


def _in_tree(wanted: Input, globs: Globs | None) -> list[str]:
    return [*visible(everything=wanted.all, globs=globs), f"--max-filesize={MAX_FILESIZE}"]


def _check_text(target: Target) -> None:
    with os.fdopen(open_file(target), "rb") as file:
        if kind := binary_kind(file.read(SNIFFED)):
            raise ToolError(f"{target.shown} is not a text file ({kind}), so it was not searched.")
