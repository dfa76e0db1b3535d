"""Restores files for undo and redo (A4): all or none, and never over someone else's changes.

Every file is checked before the first one is changed, and again right before it is replaced, under the lock that edits
use too. Must not know turns.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from longboat.errors import OwnerLost
from longboat.tools.context import ToolError
from longboat.tools.files.file_io import REPLACING, open_file, write_new
from longboat.tools.files.paths import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """A file's expected current content and its new content; None means that the file does not exist."""

    path: Path
    now: bytes | None
    then: bytes | None


class Foreign(Exception):
    """These files cannot be restored because someone else has changed them. Nothing was changed."""

    def __init__(self, *paths: Path) -> None:
        super().__init__(*paths)
        self.paths = paths


def put_back(wanted: Sequence[Restore], may_change: Callable[[], bool]) -> None:
    """Raises Foreign, or OSError for a disk that does not take it: then what was put back so far is undone too. Raises
    OwnerLost when this server may no longer change files: what is left to do is the next owner's."""
    foreign = [each.path for each in wanted if not _is_ours(each)]
    if foreign:
        raise Foreign(*foreign)
    done: list[Restore] = []
    try:
        for each in wanted:
            done += _swapped(each, may_change)
    except (Foreign, OSError):
        for each in reversed(done):
            with suppress(Foreign, OSError):  # changed by someone else since: theirs stays
                _swapped(Restore(path=each.path, now=each.then, then=each.now), may_change)
        raise


def tidy(restored: Sequence[Restore], workspace: Path) -> None:
    """Remove the directories that stand empty now because their last file was taken away."""
    for each in restored:
        above = each.path.parent
        while each.then is None and above != workspace and above.is_relative_to(workspace):
            try:
                above.rmdir()
            except OSError:
                break  # something is in it
            above = above.parent


def _swapped(wanted: Restore, may_change: Callable[[], bool]) -> list[Restore]:
    """Put one file back. Returns it, or nothing if it was already so."""
    path, then = wanted.path, wanted.then
    temporary = path.with_name(f".longboat-{token_hex(8)}")
    try:
        if then is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_new(temporary, then, like=path if os.path.lexists(path) else None)
        with REPLACING:
            found = content_of(path, limit=_longest(wanted))
            if found == then:
                return []
            if found != wanted.now:
                raise Foreign(path)
            if not may_change():
                raise OwnerLost
            if then is None:
                path.unlink()
            else:
                os.replace(temporary, path)
            return [wanted]
    except (FileNotFoundError, NotADirectoryError, FileExistsError):
        raise Foreign(path) from None  # it, or a directory on the way to it, was taken away just now
    finally:
        with suppress(OSError):
            temporary.unlink()


def _is_ours(wanted: Restore) -> bool:
    try:
        return content_of(wanted.path, limit=_longest(wanted)) in (wanted.now, wanted.then)
    except Foreign:
        return False


def _longest(wanted: Restore) -> int:
    return max(len(wanted.now or b""), len(wanted.then or b""))


def content_of(path: Path, *, limit: int) -> bytes | None:
    """What is in the file, up to one byte more than `limit`. Raises Foreign for what is no regular file, or no longer
    in its place: a directory on the way became a symlink or a file. Never waits for a pipe or a device."""
    there = path.parent
    while not os.path.lexists(there):
        there = there.parent
    if os.path.realpath(path.parent) != str(path.parent) or not there.is_dir():
        raise Foreign(path)
    if not os.path.lexists(path):
        return None
    target = Target(given=str(path), path=path, shown=str(path), inside=False)
    try:
        with os.fdopen(open_file(target), "rb") as file:
            return file.read(limit + 1)
    except (ToolError, OSError):
        raise Foreign(path) from None
