"""The data directory: made private, and held by one server at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longboat.errors import DataDirError
from longboat.regular import opener

STORE_NAME = "longboat.db"


@contextmanager
def hold_data_dir(path: Path) -> Iterator[Path]:
    """Hold the directory with a lock file that names our pid; the kernel drops the lock whenever we end."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = opener(str(path / "lock"), os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise DataDirError(
            f"Cannot use the data directory {path}: {error.strerror}. Choose another with --data-dir."
        ) from error
    try:
        _take(lock, path)
        yield path
    finally:
        os.close(lock)


def _take(lock: int, path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pid = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
        raise DataDirError(
            f"Another server (pid {pid}) uses {path}: attach to it with `longboat run`, stop it with `longboat stop`, "
            "or choose another directory with --data-dir.",
            code="data_dir_in_use",
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
