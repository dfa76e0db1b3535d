"""`python -m benchmarks [ROW …]`: measure, print the table and, when all rows were measured, write it to README.md."""

import argparse
import os
import platform
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import psutil

from benchmarks.harness import Row

ROWS = (
    "prompt",
    "first_byte",
    "latency",
    "rate",
    "fanout",
    "cancel",
    "queue",
    "concurrent",
    "start",
    "memory",
    "help",
    "search",
    "calls",
    "wall",
    "output",
    "texts",
    "terminal",
    "page",
    "inbox",
    "found",
    "review",
    "postgres",
    "door",
    "takeover",
    "nodes",
    "lists",
)
README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- results -->\n", "<!-- end of results -->"
HEAD = "| work | floor | Longboat | ratio, median | ratio, spread | must reach | reached |\n|" + "---|" * 7


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure Longboat against its floors.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"some of: {', '.join(ROWS)}; none: all of them")
    wanted: list[str] = parser.parse_args().rows
    if unknown := set(wanted) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    # Every exit unwinds the stack, and with it the processes that were started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    load = os.getloadavg()[0]
    rows = [row for name in wanted or ROWS for row in _measure(name)]
    table = "\n".join([HEAD, *(row.markdown() for row in rows)])
    print(f"\n{table}")
    if not wanted:
        _write(table, load)
    return 0 if all(row.passed for row in rows) else 1


def _measure(name: str) -> list[Row]:
    print(f"{name} …", end=" ", file=sys.stderr, flush=True)
    start = time.monotonic()
    measure: Callable[[], list[Row]] = import_module(f"benchmarks.rows.{name}").measure
    rows = measure()
    scores = ", ".join(row.score for row in rows)
    print(f"{scores} ({time.monotonic() - start:.0f} s)", file=sys.stderr, flush=True)
    return rows


def _write(table: str, load: float) -> None:
    text = README.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{BEGIN}{_circumstances(load)}\n\n{table}\n{END}{after}")


def _circumstances(load: float) -> str:
    memory_gb = psutil.virtual_memory().total / 2**30
    machine = f"{psutil.cpu_count()} cores ({_processor()}), {memory_gb:.0f} GB, {platform.platform(terse=True)}"
    how = f"`python -m benchmarks`, CPython {platform.python_version()}, {machine}"
    return f"{datetime.now(UTC):%Y-%m-%d}, {how}; load average before the start: {load:.1f}."


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    sys.exit(main())
