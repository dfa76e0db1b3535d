"""Files that were changed long ago, and at another time, without waiting for either."""

import os
import time
from pathlib import Path

from longboat.context import stamps


class LaterClock:
    """Shows everything on the disk as changed long ago. Stands in for `time` in `longboat.context.stamps`."""

    @staticmethod
    def time_ns() -> int:
        return time.time_ns() + 10 * stamps.FRESH_NS


def changed(path: Path) -> None:
    """Changed at another time than before, however coarse the file system's clock is."""
    os.utime(path, ns=(1, 1))
