"""Writes files of the user's own that no one else may read: replaced in one step, by one writer at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longboat.errors import ConfigInvalid
from longboat.regular_files import opener


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Lock the file for a change, so that two changes at the same time cannot overwrite each other."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(file.with_suffix(".lock"), "a", opener=opener) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise ConfigInvalid(f"{file}: cannot be written: {error.strerror}") from None


def write(file: Path, content: str) -> None:
    """Write atomically, readable only by the owner. Call it with the file locked."""
    fresh = new_file(file)
    fresh.unlink(missing_ok=True)  # one that was left behind may be readable for others
    with open(fresh, "w", encoding="utf-8", opener=opener) as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    os.replace(fresh, file)


def new_file(file: Path) -> Path:
    """What is to replace the file. A kill may leave it behind."""
    return file.with_suffix(".new")
