"""The files on disk that a server watches, and which of them changed since the last look.

Servers rely on the client to report changes of files that they do not have open, and an agent's shell changes many.
Blocking: call it off the event loop.
"""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from enum import IntEnum
from pathlib import Path

from longboat.tools.search.tree import Tree

MAX_FILES = 20_000
MAX_S = 1.0
"""A larger or slower tree is looked at in part."""


class Kind(IntEnum):
    """How a file changed, in the protocol's numbers."""

    CREATED = 1
    CHANGED = 2
    DELETED = 3


class Snapshot:
    def __init__(self, root: Path, file_types: frozenset[str], names: tuple[str, ...]) -> None:
        """`names` are files that matter whatever their type, such as `pyproject.toml`."""
        self._tree = Tree(root=str(root))
        self._file_types = file_types
        self._names = frozenset(names)
        self._seen: dict[str, tuple[int, int]] = {}

    def refresh(self, besides: Iterable[Path] = ()) -> dict[Path, Kind]:
        """What changed since the last call; all that is there, at the first. `besides` are files to look at in any
        case, be they ignored by git or outside the root."""
        before, complete = self._seen, True
        now: dict[str, tuple[int, int]] = {}
        deadline = time.monotonic() + MAX_S
        for path in besides:
            _note(now, str(path))
        for entry in self._tree.files():
            if self._is_ours(entry.name):
                _note(now, entry.path)
            if len(now) >= MAX_FILES or time.monotonic() > deadline:
                complete = False
                break
        changed = {
            path: Kind.CHANGED if path in before else Kind.CREATED for path in now if before.get(path) != now[path]
        }
        gone = {path: Kind.DELETED for path in before if path not in now and not os.path.lexists(path)}
        self._seen = now if complete else {path: mark for path, mark in before.items() if path not in gone} | now
        return {Path(path): kind for path, kind in (changed | gone).items()}

    def newest(self) -> list[Path]:
        """The files that were there at the last look, those that changed last first."""
        return [Path(path) for path in sorted(self._seen, key=lambda path: self._seen[path], reverse=True)]

    def _is_ours(self, name: str) -> bool:
        return os.path.splitext(name)[1].lower() in self._file_types or name in self._names


def _note(seen: dict[str, tuple[int, int]], path: str) -> None:
    with suppress(OSError):
        status = os.stat(path)
        seen[path] = (status.st_mtime_ns, status.st_size)
