"""Keeps what was read from the disk while nothing that was looked at has changed.

Owns what counts as a change. Must not know what is read.
"""

import os
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
_Stamp = tuple[int, int, int, int, int]

FRESH_NS = 50_000_000
"""What was changed so recently may change once more without a new stamp: file systems round their clocks."""


class Stamps:
    """The files and directories that a reading looked at, as they were before it did. A directory's stamp covers the
    names in it."""

    def __init__(self) -> None:
        self._seen: dict[str, _Stamp | None] = {}

    def look_at(self, path: str | os.PathLike[str]) -> None:
        """Call it before the path is read; it need not exist."""
        name = os.fspath(path)
        if name not in self._seen:
            self._seen[name] = _stamp(name)

    def still_hold(self) -> bool:
        return all(_stamp(path) == stamp for path, stamp in self._seen.items())

    @property
    def are_few(self) -> bool:
        return len(self._seen) <= FEW

    def are_old(self) -> bool:
        limit = time.time_ns() - FRESH_NS
        return all(stamp is None or max(stamp[:2]) < limit for stamp in self._seen.values())


FEW = 64
"""So many files are looked at in less time than it takes to ask another thread."""


class Kept(Generic[T]):
    """The result of `read`, which tells the stamps what it looks at. Safe to use from several threads: at worst it is
    read twice."""

    def __init__(self, read: Callable[[Stamps], T]) -> None:
        self._read = read
        self._kept: tuple[Stamps, T] | None = None

    def peek(self) -> tuple[T] | None:
        """What was read, if nothing has changed since; None if it takes more than a look at a few files to tell."""
        kept = self._kept
        return (kept[1],) if kept is not None and kept[0].are_few and kept[0].still_hold() else None

    def get(self) -> T:
        kept = self._kept
        if kept is None or not kept[0].still_hold():
            stamps = Stamps()
            kept = (stamps, self._read(stamps))
            self._kept = kept if stamps.are_old() else None
        return kept[1]


def _stamp(path: str) -> _Stamp | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev
