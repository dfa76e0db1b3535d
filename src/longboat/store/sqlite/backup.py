"""Backups of a SQLite store: one file, made while a server is running, and restored while none is.

Owns the order of steps: a backup is verified before it gets its name, and during a restore there is always a complete
database in place.
"""

import os
import shlex
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from itertools import chain, count
from pathlib import Path
from tempfile import mkstemp

import msgspec

from longboat.errors import DataDirError
from longboat.store.datadir import SIDE_FILES, STORE_NAME, hold_data_dir
from longboat.store.protocol import Report
from longboat.store.sqlite.check import (
    check_deeply,
    describe_error,
    is_damage,
    newest_schema,
    open_for_reading,
    schema_of,
)

STEP_PAGES = 1000
VERIFY_S = 3600.0
"""Copies are checked to the end; this only keeps a broken disk from holding us for ever."""

Progress = Callable[[int, int], None]
"""Pages done, pages in all."""


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore did."""

    report: Report
    """Of the database that is now in place."""
    kept: str | None
    """Where the one is that was there before."""


def back_up(source: Path, target: Path, *, replace: bool = False, progress: Progress = lambda *_: None) -> Report:
    """Copy a store into one file, as it is at this moment, even while it is being written.

    A copy that is damaged as a file is refused. Rows that cannot be read, and the like, are in the report: a backup
    of a store with one bad row is better than none.
    """
    _check_target(target, source, replace=replace)
    copy = _new_file(target)
    try:
        _copy(source, copy, progress)
        report = _checked(copy, source)
        _check_target(target, source, replace=replace)
        _put(copy, target)
    except BaseException:
        _remove(copy)
        raise
    return msgspec.structs.replace(report, file=str(target))


def restore(backup: Path, data_dir: Path, *, progress: Progress = lambda *_: None) -> Restored:
    """Put a backup in the place of a data directory's database, which is kept beside it. No server may use it."""
    with hold_data_dir(data_dir, advice="Stop the server first: `longboat stop`."):
        database = data_dir / STORE_NAME
        if _is_part_of(database, backup):
            raise DataDirError(f"{backup} is the database itself. Name a backup to restore.", code="backup_damaged")
        copy = _new_file(database)
        try:
            _copy(backup, copy, progress)
            report = _checked(copy, backup)
            _begin_new_epoch(copy, backup)
            kept = _set_aside(database)
            _put(copy, database)
        except BaseException:
            _remove(copy)
            raise
        report = msgspec.structs.replace(report, file=str(database))
        return Restored(report=report, kept=None if kept is None else str(kept))


def _check_target(target: Path, source: Path, *, replace: bool) -> None:
    """Refuse to overwrite what the user may need."""
    if _is_part_of(source, target):
        raise DataDirError(f"{target} is the database itself. Choose another file.", code="backup_exists")
    if target.is_dir():
        raise DataDirError(f"{target} is a directory. Name a file in it.", code="backup_exists")
    if target.exists() and not replace:
        raise DataDirError(f"{target} exists. Choose another name, or overwrite it with --force.", code="backup_exists")
    if (log := Path(f"{target}-wal")).exists():
        raise DataDirError(f"{target} is a database in use ({log} exists). Choose another file.", code="backup_exists")
    if not target.parent.is_dir():
        raise DataDirError(f"The directory {target.parent} does not exist. Create it first.", code="backup_failed")


def _is_part_of(database: Path, file: Path) -> bool:
    """Whether a file is the database or one of its side files, by any name."""
    real = database.resolve()  # SQLite keeps the side files beside the file that a link leads to
    parts = [Path(f"{path}{end}") for path in (database, real) for end in ("", *SIDE_FILES)]
    return any(_is_same(part, file) for part in parts)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one.resolve() == other.resolve()


def _new_file(target: Path) -> Path:
    """A private file beside the target, so that it can be renamed to it."""
    try:
        descriptor, name = mkstemp(prefix=f"{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise DataDirError(f"Cannot write in {target.parent}: {error.strerror}.", code="backup_failed") from error
    os.close(descriptor)
    return Path(name)


def _copy(source: Path, copy: Path, progress: Progress) -> None:
    """Copies within one transaction: later writes to the source neither appear nor restart the copy."""
    try:
        with closing(open_for_reading(source)) as reading, closing(sqlite3.connect(copy)) as writing:
            reading.backup(
                writing, pages=STEP_PAGES, sleep=0, progress=lambda _, left, total: progress(total - left, total)
            )
            writing.execute("PRAGMA journal_mode = DELETE")  # all of it in one file
    except sqlite3.Error as error:
        if is_damage(error):
            raise _damaged(source, describe_error(error)) from error
        raise DataDirError(f"Cannot copy {source}: {error}.", code="backup_failed") from error


def _checked(copy: Path, original: Path) -> Report:
    report = check_deeply(copy, limit_s=VERIFY_S)
    for problem in report.problems:
        if problem.kind == "file":
            raise _damaged(original, problem.detail)
    return report


def _damaged(file: Path, detail: str) -> DataDirError:
    command = f"longboat store check {shlex.quote(str(file))}"
    return DataDirError(
        f"{file} is damaged ({detail.removesuffix('.')}). `{command}` shows all problems.", code="backup_damaged"
    )


def _begin_new_epoch(copy: Path, backup: Path) -> None:
    """Clients may hold cursors of events that the backup does not have. By an epoch that was never used they are told
    from those that will be written from now on. Migrations are left to the server."""
    try:
        with closing(sqlite3.connect(copy)) as connection, connection:
            if not 0 < schema_of(connection) <= newest_schema():
                raise _damaged(backup, "its schema is unknown")
            connection.execute("UPDATE meta SET value = max(value + 1, ?) WHERE key = 'epoch'", (int(time.time()),))
    except sqlite3.Error as error:
        raise _damaged(backup, str(error)) from error


def _set_aside(database: Path) -> Path | None:
    """Keep the present database under another name, byte for byte. It stays in place too, until the new one replaces
    it; its write-ahead log does not, which would be read as part of the new one."""
    kept = _free_name(database)
    log, kept_log = Path(f"{database}-wal"), Path(f"{kept}-wal")
    for path, other in ((database, kept), (log, kept_log)):
        if path.exists() and path.stat().st_size:
            _also_as(path, other)
    _sync(database.parent)
    for end in SIDE_FILES:
        Path(f"{database}{end}").unlink(missing_ok=True)
    return kept if kept.exists() else None


def _also_as(path: Path, other: Path) -> None:
    try:
        os.link(path, other)
    except OSError:  # not every file system has links
        shutil.copy2(path, other)
        _sync(other)


def _free_name(database: Path) -> Path:
    name = f"{database.name}.before-restore-{time.strftime('%Y%m%d-%H%M%S')}"
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(path for path in map(database.with_name, names) if not path.exists())


def _put(copy: Path, target: Path) -> None:
    """On disk first, then under its name."""
    _sync(copy)
    os.replace(copy, target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(copy: Path) -> None:
    for end in ("", "-journal", *SIDE_FILES):
        Path(f"{copy}{end}").unlink(missing_ok=True)
