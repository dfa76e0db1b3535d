"""A command that prints 500 MB: how fast it is read, and how late other work on the loop gets its turn meanwhile."""

import asyncio
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path

import uvloop

from benchmarks.harness import Row, scratch
from longboat.testing.tool_context import OpenToolContext
from longboat.tools.process.bash import BashTool
from longboat.tools.process.jobs import Jobs

ROUNDS, MEGABYTES = 3, 500
AT_LEAST_MB_S, AT_MOST_MS = 50, 10
KINDS = {
    "`yes | head -c 500M`": "yes | head -c 500000000",
    "500 MB of a log with colors": r"yes $'\e[32mok\e[0m tests/test.py::test_it passed in 0.1 s' | head -c 500000000",
}
EVERY_S = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    rate: float
    """Megabytes a second."""
    late_ms: float


def measure() -> list[Row]:
    return [row for work, command in KINDS.items() for row in _rows(work, command)]


def _rows(work: str, command: str) -> list[Row]:
    with scratch() as path, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        rounds = [(runner.run(_bare(command, path)), runner.run(_ours(command, path))) for _ in range(ROUNDS)]
    ratios = sorted(ours.rate / floor.rate for floor, ours in rounds)
    rate = statistics.median(ours.rate for _, ours in rounds)
    later = sorted(ours.late_ms - floor.late_ms for floor, ours in rounds)
    return [
        Row(
            work=f"{work}, read; floor: a reader that throws it away",
            floor=f"{statistics.median(floor.rate for floor, _ in rounds):,.0f} MB/s",
            longboat=f"{rate:,.0f} MB/s",
            score=f"{statistics.median(ratios):.2f}×",
            spread=f"{ratios[0]:.2f}–{ratios[-1]:.2f}",
            bound=f"≥ {AT_LEAST_MB_S} MB/s",
            passed=rate >= AT_LEAST_MB_S,
        ),
        Row(
            work="the same: how late other work on the loop gets its turn, p99; floor: the reader is another process",
            floor=f"{statistics.median(floor.late_ms for floor, _ in rounds):.1f} ms",
            longboat=f"{statistics.median(ours.late_ms for _, ours in rounds):.1f} ms",
            score=f"{statistics.median(later):+.1f} ms",
            spread=f"{later[0]:+.1f} to {later[-1]:+.1f}",
            bound=f"≤ +{AT_MOST_MS} ms",
            passed=statistics.median(later) <= AT_MOST_MS,
        ),
    ]


async def _bare(command: str, path: Path) -> Figures:
    read_all = "import os\nwhile os.read(0, 65536): pass"
    pipeline = f"{{ {command}; }} | {sys.executable} -IS -c {shlex.quote(read_all)}"
    return await _measured(asyncio.to_thread(subprocess.run, ["bash", "-c", pipeline], cwd=path, check=True))


async def _ours(command: str, path: Path) -> Figures:
    jobs, context = Jobs(path / "scratch"), OpenToolContext(path)
    await context.use(BashTool(jobs), command="true")  # starts the supervisor
    figures = await _measured(context.use(BashTool(jobs), command=command, wait_s=600))
    await jobs.aclose()
    return figures


async def _measured(work: Awaitable[object]) -> Figures:
    delays: list[float] = []
    ticking = asyncio.create_task(_tick(delays))
    start = time.perf_counter()
    await work
    seconds = time.perf_counter() - start
    ticking.cancel()
    return Figures(rate=MEGABYTES / seconds, late_ms=statistics.quantiles(delays, n=100)[-1] * 1000)


async def _tick(delays: list[float]) -> None:
    while True:
        start = time.perf_counter()
        await asyncio.sleep(EVERY_S)
        delays.append(time.perf_counter() - start - EVERY_S)
