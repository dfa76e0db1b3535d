"""Runs ripgrep as a child process, or `searcher.py` if it is not installed. Does not know the tools.

Nothing from a model can become an option: patterns are the value of `--regexp=`, paths come after `--`, and globs are
passed only if they are plain. `kill` ends it at once when the call is canceled.
"""

import asyncio
import os
import re
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import longboat
from longboat.tools.context import ToolError
from longboat.tools.search.globs import Globs

TIME_S = 60.0
"""How long one search may take; what it found until then is shown."""
MAX_OUTPUT = 64 * 2**20
MAX_FILESIZE = "64M"
"""Larger files are searched only when they are named."""

_ALWAYS = ("--no-config", "--no-messages", "--no-require-git", "--no-ignore-global", "--color=never", "--glob=!.git")
_START_SEARCHER = (
    "import sys; sys.path.append(sys.argv.pop(1)); from longboat.tools.search.searcher import main; main()"
)
_PLAIN_NAME = re.compile(r"[\w.*+-]+")


class SearchContext(Protocol):
    @property
    def environ(self) -> Mapping[str, str]:
        """The environment for the child process."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    content: bytes
    stopped: str = ""
    """Why the output was cut off, if it was."""


def visible(*, everything: bool, globs: Globs | None) -> list[str]:
    """Options for what is looked at. They may let through more than `globs` do: match their paths afterwards."""
    options = ["--hidden", "--no-ignore"] if everything else ["--hidden"] if globs and globs.dotted else []
    names = globs.names if globs else []
    # `--glob` would override .gitignore; a file type does not, but it knows names only.
    if names and all(_PLAIN_NAME.fullmatch(name) and name.strip("*") for name in names):
        options += [*(f"--type-add=wanted:{name}" for name in names), "--type=wanted"]
    return options


async def ask(context: SearchContext, directory: Path, *options: str, path: str = "", mark: bytes, most: int) -> Output:
    """What it writes when it is asked about `path` in `directory`, until `mark` was written more than `most` times."""
    arguments = [*_engine(context), *_ALWAYS, *options, "--", f"./{path}"]
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments, cwd=directory, env=dict(context.environ), stdin=DEVNULL, stdout=PIPE, stderr=PIPE, limit=2**20
        )
    except OSError as error:
        raise ToolError(f"The search could not be started: {error.strerror or error}.") from None
    try:
        return await _read(process, mark, most)
    finally:
        await _end(process)


def _engine(context: SearchContext) -> list[str]:
    found = shutil.which("rg", path=context.environ.get("PATH", os.defpath))
    # A relative entry in PATH would run what lies in the workspace.
    if found and os.path.isabs(found):
        return [found]
    # -E and -P keep the modules of the workspace out.
    return [sys.executable, "-E", "-P", "-c", _START_SEARCHER, str(Path(longboat.__file__).parents[1])]


async def _read(process: Process, mark: bytes, most: int) -> Output:
    assert process.stdout is not None
    assert process.stderr is not None
    parts: list[bytes] = []
    marks = size = 0
    try:
        async with asyncio.timeout(TIME_S):
            while part := await process.stdout.read(2**20):
                parts.append(part)
                marks += part.count(mark)
                size += len(part)
                if marks > most or size > MAX_OUTPUT:
                    return Output(content=b"".join(parts), stopped=f"more than {most:,} results")
            complaint = await process.stderr.read(4_096)
    except TimeoutError:
        return Output(content=b"".join(parts), stopped=f"it took more than {TIME_S:.0f} s")
    if complaint and not parts:
        raise ToolError(f"The search failed: {complaint.decode(errors='replace').strip()}")
    return Output(content=b"".join(parts))


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        # Read to the end: a pipe that is left full keeps its transport open.
        while await pipe.read(2**20):
            pass
    await process.wait()
