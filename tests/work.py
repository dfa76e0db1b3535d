"""How much work a call does: counted, not timed, so that the number is the same on every machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(work: Callable[[], object]) -> int:
    """How many lines of Python it runs. What C does in one line is not seen: `benchmarks/rows/texts.py` times that."""
    count = 0

    def on_line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return on_line

    before = sys.gettrace()
    sys.settrace(on_line)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def check_proportion(work: Callable[[int], object], size: int, *, times: int = 4) -> None:
    """A text of `times` the size may take `times` the steps, and half as many again; never the square."""
    work(size)  # so that caches are filled
    short, long = steps(lambda: work(size)), steps(lambda: work(size * times))
    assert long <= 1.5 * times * short, f"{times} times the size took {long / short:.1f} times the steps"
