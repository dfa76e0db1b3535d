"""`grep` and `glob` on 50,000 files, against a bare `rg` that does the same work."""

import asyncio
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.harness import Row, compare, milliseconds, scratch, timed
from longboat.testing.tool_context import CallableTool, OpenToolContext
from longboat.tools.search.glob import GlobTool
from longboat.tools.search.grep import GrepTool

ROUNDS = 9
DIRECTORIES, FILES = 500, 100
WORDS = ("alpha", "beta", "gamma", "import", "return", "class", "self", "value", "index", "result", "config", "parse")


def measure() -> list[Row]:
    if shutil.which("rg") is None:
        print("left out: ripgrep is not installed (apt-get install ripgrep)", file=sys.stderr)
        return []
    with scratch() as path:
        _grow(path)
        return [
            _row(path, "`grep` in 50,000 files", ["-n", "needle_in_hay"], GrepTool(), pattern="needle_in_hay"),
            _row(
                path,
                "`grep` in those of one type",
                ["-n", "-tpy", r"needle_\w+ here$"],
                GrepTool(),
                pattern=r"needle_\w+ here$",
                include="*.py",
            ),
            _row(
                path,
                "`glob` of 50,000 files, newest first",
                ["--files", "-tpy", "--sortr=modified"],
                GlobTool(),
                pattern="**/*.py",
            ),
        ]


def _row(path: Path, work: str, floor: list[str], tool: CallableTool, **arguments: Any) -> Row:
    context = OpenToolContext(path)

    def bare() -> None:
        subprocess.run(["rg", *floor, "./"], cwd=path, check=True, stdout=subprocess.PIPE)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:

        def ours() -> None:
            runner.run(context.use(tool, **arguments))

        rounds = [(timed(bare), timed(ours)) for _ in range(ROUNDS + 1)][1:]
    return compare(work, rounds, milliseconds, at_most=2)


def _grow(path: Path) -> None:
    """A repository of small text files of several types, one in a hundred with what is searched for."""
    chance = random.Random(1)
    (path / ".git").mkdir()
    (path / ".gitignore").write_text("*.log\nbuild/\n/dist\n")
    for directory in range(DIRECTORIES):
        place = path / f"package{directory % 25}" / f"module{directory}"
        place.mkdir(parents=True)
        for number in range(FILES):
            lines = [" ".join(chance.choices(WORDS, k=8)) for _ in range(40)]
            if chance.random() < 0.01:
                lines[20] = "needle_in_hay here"
            suffix = chance.choice(["py", "py", "ts", "md", "json", "log"])
            (place / f"file{number}.{suffix}").write_text("\n".join(lines) + "\n")
