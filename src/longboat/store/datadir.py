"""The data directory: made private, and held by one server at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longboat.errors import DataDirError
from longboat.regular import opener

STORE_NAME = "longboat.db"
SIDE_FILES = ("-wal", "-shm")
"""What SQLite keeps beside the database while it is open, by the ending of the name."""


class OpenFiles:
    """Tells whether the paths of the open database still lead to the files that were opened.

    By device and inode: what somebody deleted, moved or replaced is found out, and no inode is used again while a file
    is open. No descriptors of our own: closing one would drop the locks that SQLite holds on the file.
    """

    def __init__(self, path: Path) -> None:
        names = (str(path), *(f"{path}{end}" for end in SIDE_FILES))
        self._known = [(name, os.stat(name)) for name in names]

    def are_in_place(self) -> bool:
        try:
            for name, known in self._known:
                found = os.stat(name)
                if found.st_ino != known.st_ino or found.st_dev != known.st_dev:
                    return False
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            pass  # it cannot be looked at now, which does not mean that it is gone
        return True


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
