"""`ls` as a command of `bash`, behind the read-only wall and without it."""

import asyncio
from functools import partial
from pathlib import Path

import uvloop

from benchmarks.harness import Row, compare, milliseconds, scratch, timed
from longboat.testing.tool_context import OpenToolContext
from longboat.tools.process.bash import BashTool
from longboat.tools.process.jobs import Jobs

ROUNDS, COMMANDS = 15, 20


def measure() -> list[Row]:
    with scratch() as path, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        (path / "work").mkdir()
        jobs = runner.run(_jobs(path / "scratch"))
        bash = BashTool(jobs)
        kits = [OpenToolContext(path / "work", harmless=harmless) for harmless in (False, True)]

        async def some(context: OpenToolContext) -> None:
            for _ in range(COMMANDS):
                await context.use(bash, command="ls")

        rounds = [tuple(timed(partial(runner.run, some(context))) for context in kits) for _ in range(ROUNDS + 1)][1:]
        runner.run(jobs.aclose())
    each = [(free / COMMANDS, walled / COMMANDS) for free, walled in rounds]
    return [compare("`bash: ls` behind the read-only wall, floor: without it", each, milliseconds, at_most=1.2)]


async def _jobs(scratch: Path) -> Jobs:
    return Jobs(scratch)
