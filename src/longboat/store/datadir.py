"""The data directory: private, and locked by one server at a time."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longboat.errors import DataDirError
from longboat.regular_files import opener

STORE_NAME = "longboat.db"
LOCK_NAME = "lock"
"""Its first line is the pid of the server, its second one where the sessions are, if they are in PostgreSQL."""
SIDE_FILES = ("-wal", "-shm")
"""What SQLite keeps beside the database while it is open, by the ending of the name."""
SIDE_FILES_EVERY_S = 1.0
"""How often these are looked at. Looking at a file that is being written makes its next sync slower (by 40 µs on ext4:
the kernel then keeps its times exactly); the database itself is written at checkpoints only."""


class OpenFiles:
    """Checks whether the paths of the open database still lead to the files that were opened.

    Compares device and inode, so deleted, moved or replaced files are detected; an inode is not reused while a file is
    open. It opens no descriptors itself: closing one would drop the locks that SQLite holds on the file.
    """

    def __init__(self, path: Path) -> None:
        self._database = _stat_of(str(path))
        self._side_files = [_stat_of(f"{path}{end}") for end in SIDE_FILES]
        self._looked_at = time.monotonic()

    def are_in_place(self) -> bool:
        if not _is_in_place(*self._database):
            return False
        now = time.monotonic()
        if now - self._looked_at < SIDE_FILES_EVERY_S:
            return True
        self._looked_at = now
        return all(_is_in_place(*each) for each in self._side_files)


def _stat_of(name: str) -> tuple[str, os.stat_result]:
    return name, os.stat(name)


def _is_in_place(name: str, known: os.stat_result) -> bool:
    try:
        found = os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # it cannot be looked at now, which does not mean that it is gone
    return found.st_ino == known.st_ino and found.st_dev == known.st_dev


SERVER_ADVICE = (
    "Attach to it with `longboat run`, stop it with `longboat stop`, or choose another directory with --data-dir."
)


@contextmanager
def hold_data_dir(path: Path, *, advice: str = SERVER_ADVICE) -> Iterator[Path]:
    """Hold the directory with a lock file that names our pid; the kernel drops the lock whenever we end.

    `advice`: what a person can do if another server holds it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = opener(str(path / LOCK_NAME), os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise DataDirError(
            f"Cannot use the data directory {path}: {error.strerror}. Choose another with --data-dir."
        ) from error
    try:
        _take(lock, path, advice)
        yield path
    finally:
        os.close(lock)


def _take(lock: int, path: Path, advice: str) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pid = _read(lock)[0].strip() or "unknown"
        raise DataDirError(f"Another server (pid {pid}) is using {path}. {advice}", code="data_dir_in_use") from None
    _write(lock, address=_read(lock)[1])


def note_store(path: Path, address: str) -> None:
    """For commands that look at the directory: the server that holds it has its sessions there, or here if empty."""
    if noted_store(path) == address:
        return
    lock = opener(str(path / LOCK_NAME), os.O_RDWR)
    try:
        _write(lock, address=address)
    finally:
        os.close(lock)


def noted_store(path: Path) -> str:
    """The address of the PostgreSQL database that the last server of the directory used; empty: none."""
    try:
        lock = opener(str(path / LOCK_NAME), os.O_RDONLY)
    except OSError:
        return ""
    try:
        return _read(lock)[1]
    finally:
        os.close(lock)


def _read(lock: int) -> tuple[str, str]:
    pid, _, address = os.pread(lock, 4096, 0).decode(errors="replace").partition("\n")
    return pid, address.strip()


def _write(lock: int, *, address: str) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n{address}\n".encode() if address else f"{os.getpid()}\n".encode(), 0)
