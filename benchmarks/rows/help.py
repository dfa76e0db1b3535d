"""`longboat --help`, as it is installed, against a Python that does nothing."""

import subprocess
import sys
from pathlib import Path

from benchmarks.harness import Row, compare, milliseconds, timed

ROUNDS = 15


def measure() -> list[Row]:
    bare = [sys.executable, "-c", "pass"]
    ours = [str(Path(sys.executable).with_name("longboat")), "--help"]

    def both() -> tuple[float, float]:
        return timed(lambda: _run(bare)), timed(lambda: _run(ours))

    both()
    rounds = [both() for _ in range(ROUNDS)]
    return [compare("`longboat --help`", rounds, milliseconds, at_most=8)]


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
