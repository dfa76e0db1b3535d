"""`glob`: files whose path matches a pattern, newest first."""

import asyncio
import heapq
import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.permissions.verdict import Need
from longboat.tools.context import ToolContext, parse
from longboat.tools.files.paths import directory_of, display_path, printable, resolve
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.tools.search.globs import Globs, compiled, split
from longboat.tools.search.ripgrep import Output, ask, visible
from longboat.wire.tools import Draw, Effect, Lists, SubAgents, ToolTraits

MAX_SHOWN = 200
MAX_FILES = 500_000
"""Files that are looked at."""


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pattern: Annotated[str, Meta(description="The glob pattern, such as *.py or src/**/*.{ts,tsx}.")]
    path: Annotated[str, Meta(description="The directory to search, absolute or relative to the workspace.")] = "."
    all: Annotated[bool, Meta(description="Include hidden and git-ignored files.")] = False


class GlobTool:
    spec = spec_of(
        "glob",
        Input,
        ToolTraits(
            effect=Effect.READS,
            path="path",
            heading=("pattern", "path"),
            lists=Lists.NAMES,
            sub_agents=SubAgents.ALL,
            side_by_side=True,
            quick=True,
            draw=Draw.QUIET,
        ),
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted = parse("glob", call.arguments, Input)
        # `src/**/*.py` is a search in src: nothing else need be looked at, and a path outside is seen as such.
        above, pattern = split(wanted.pattern)
        globs = compiled(pattern, anchored=bool(above), hidden=wanted.all)
        place = (above or ".") if wanted.path == "." else os.path.join(wanted.path, above)
        target = await asyncio.to_thread(resolve, context.directory, place)
        title = f"Find {printable(pattern)} in {target.shown}"
        await context.permit(
            Need(tool="glob", action="read", argument=target.shown, paths=(str(target.path),), title=title)
        )
        directory = await asyncio.to_thread(directory_of, target)
        options = visible(everything=wanted.all, globs=globs)
        output = await ask(context, directory, "--files", "--null", *options, mark=b"\0", most=MAX_FILES)
        return ToolResult(content=await asyncio.to_thread(_format_files, context, directory, globs, output))


def _format_files(context: ToolContext, directory: Path, globs: Globs, output: Output) -> str:
    hidden = context.hidden()
    found = [each for each in _dated(directory, globs, output) if not hidden(f"{directory}/{each[1]}")]
    lines = [display_path(context.directory, directory / path) for _, path in heapq.nsmallest(MAX_SHOWN, found)]
    if not lines:
        lines = ["No file matches. Set all to include hidden and ignored files."]
    if len(found) > MAX_SHOWN:
        lines += ["", f"(The {MAX_SHOWN} newest of {len(found):,} files. Use a narrower pattern to see others.)"]
    if output.stopped:
        lines += ["", f"(The search stopped early: {output.stopped}. Use a narrower path.)"]
    return "\n".join(lines)


def _dated(directory: Path, globs: Globs, output: Output) -> list[tuple[int, str]]:
    """The paths that match, each with a number that is lower the newer it is."""
    *names, _ = os.fsdecode(output.content).split("\0")
    base = f"{directory}/"
    dated = []
    for name in names:
        if globs.match(path := name.removeprefix("./")):
            with suppress(OSError):  # gone since
                dated.append((-os.lstat(base + path).st_mtime_ns, path))
    return dated
