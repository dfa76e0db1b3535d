"""Checks a SQLite store: the file itself, the references between rows, and our own rules.

Only reads, through its own connection, so a server may keep running.
"""

import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from longboat.errors import DataDirError
from longboat.store.datadir import STORE_NAME
from longboat.store.protocol import Problem, Report
from longboat.store.sqlite.migrations import migrations
from longboat.store.sqlite.queries import SqliteReader, load_queries

MAX_PROBLEMS = 100
POLL_S = 0.05
NOT_OURS = "Not a Longboat database."

Look = Callable[[sqlite3.Connection], Iterator[Problem]]


def database_of(path: Path) -> Path:
    """The database of a data directory, or a backup file itself."""
    file = path / STORE_NAME if path.is_dir() else path
    if not file.is_file():
        raise DataDirError(f"There is no database at {file}.", code="no_database")
    return file


def check_deeply(file: Path, *, limit_s: float = math.inf) -> Report:
    """Everything that can be checked: the file, references, and every row."""
    return _check(file, _everything, limit_s, threading.Event())


def check_quickly(file: Path, *, limit_s: float, give_up: threading.Event | None = None) -> Report:
    """Whether the file is intact, within the time, or until somebody gives up. Reads no rows."""
    return _check(file, lambda connection: _file_problems(connection, "quick_check"), limit_s, give_up)


def open_for_reading(file: Path) -> sqlite3.Connection:
    """One view of the store, however long it is looked at."""
    if not file.is_file():  # opening a pipe would wait for somebody who writes to it
        raise DataDirError(f"There is no database at {file}.", code="no_database")
    connection = sqlite3.connect(
        f"file:{quote(str(file.absolute()))}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("BEGIN")
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the content of the file is at fault, and not for example its permissions."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def describe_error(error: Exception) -> str:
    """An error that a file caused, for people."""
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
        return NOT_OURS
    return str(error) if isinstance(error, sqlite3.Error) else f"a check stopped early: {error!r}"


def schema_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def newest_schema() -> int:
    return migrations()[-1][0]


def size_of(file: Path) -> int:
    return sum(os.path.getsize(name) for name in (str(file), f"{file}-wal") if os.path.exists(name))


def counts_of(connection: sqlite3.Connection) -> dict[str, int]:
    """How much the store holds; nothing of one with another schema."""
    if schema_of(connection) != newest_schema():
        return {}
    (row,) = SqliteReader(connection, _queries()).rows("check_counts")
    return {name: row[name] for name in row.keys()}  # noqa: SIM118 - a row is no mapping: it iterates over values


def _queries() -> dict[str, str]:
    return {name: query.sql for name, query in load_queries().items()}


def _check(file: Path, look: Look, limit_s: float, give_up: threading.Event | None) -> Report:
    """Run the checks within the time. Whatever the file contains becomes a finding, never an exception."""
    try:
        connection = open_for_reading(file)
    except sqlite3.Error as error:
        if not is_damage(error):
            raise DataDirError(f"{file} cannot be read: {error}.", code="no_database") from error
        problem = Problem(kind="file", detail=describe_error(error))
        return Report(file=str(file), size=size_of(file), schema=0, counts={}, problems=(problem,))
    with closing(connection):
        problems: list[Problem] = []
        try:
            with _limit_time(connection, limit_s, give_up or threading.Event()):
                problems += look(connection)
        except sqlite3.OperationalError:  # interrupted: the checks pass on no other error
            found = tuple(problems)
            return Report(file=str(file), size=size_of(file), schema=0, counts={}, problems=found, complete=False)
        return _report(file, connection, problems)


def _everything(connection: sqlite3.Connection) -> Iterator[Problem]:
    yield from _file_problems(connection, "integrity_check")
    yield from _guarded(_references(connection))
    yield from _guarded(_violations(connection))


def _violations(connection: sqlite3.Connection) -> Iterator[Problem]:
    from longboat.store.sqlite.invariants import invariant_checks  # here: a server that starts does not need them

    if schema_of(connection) == newest_schema():
        for check in invariant_checks(SqliteReader(connection, _queries())):
            yield from islice(_guarded(check), MAX_PROBLEMS)


def _guarded(check: Iterator[Problem]) -> Iterator[Problem]:
    """The findings of a check. What it stumbles over is a finding too: rows may contain anything."""
    try:
        yield from check
    except Exception as error:
        if _is_interruption(error):
            raise
        yield Problem(kind="file" if isinstance(error, sqlite3.Error) else "row", detail=describe_error(error))


def _is_interruption(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT


def _report(file: Path, connection: sqlite3.Connection, problems: list[Problem]) -> Report:
    schema, counts, ours = 0, {}, True
    try:
        schema = schema_of(connection)
        ours = schema > 0 and _is_ours(connection)
        counts = counts_of(connection) if ours else {}
    except (sqlite3.Error, ValueError) as error:
        problems.append(Problem(kind="file", detail=describe_error(error)))
    if not ours:
        problems = [Problem(kind="file", detail=NOT_OURS)]
    elif schema > newest_schema():
        detail = f"it was written by a newer Longboat (schema {schema}; this version supports {newest_schema()})"
        problems.append(Problem(kind="file", detail=detail))
    found = tuple(dict.fromkeys(problems))[:MAX_PROBLEMS]
    return Report(file=str(file), size=size_of(file), schema=schema, counts=counts, problems=found)


def _is_ours(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").fetchone())


def _file_problems(connection: sqlite3.Connection, pragma: str) -> Iterator[Problem]:
    """What SQLite itself finds."""
    return _guarded(_sqlite_findings(connection, pragma))


def _sqlite_findings(connection: sqlite3.Connection, pragma: str) -> Iterator[Problem]:
    for (said,) in connection.execute(f"PRAGMA {pragma}({MAX_PROBLEMS})"):
        for line in said.splitlines():
            if line != "ok" and not line.startswith("***"):
                yield Problem(kind="file", detail=line)


def _references(connection: sqlite3.Connection) -> Iterator[Problem]:
    for table, rowid, parent, _ in islice(connection.execute("PRAGMA foreign_key_check"), MAX_PROBLEMS):
        yield Problem(kind="reference", detail=f"row {rowid} of {table} refers to nothing in {parent}")


@contextmanager
def _limit_time(connection: sqlite3.Connection, limit_s: float, give_up: threading.Event) -> Iterator[None]:
    """Interrupt what the connection does when the time is over. A progress handler would not do: SQLite calls none
    while it checks a table."""
    done = threading.Event()
    end = time.monotonic() + limit_s

    def is_over() -> bool:
        return give_up.is_set() or time.monotonic() >= end

    def watch() -> None:
        while not done.wait(POLL_S):
            if is_over():
                connection.interrupt()

    if is_over():  # before it began: a small file would be done before anyone looks
        raise sqlite3.OperationalError("interrupted")
    watching = threading.Thread(target=watch, name="store-check-limit", daemon=True)
    watching.start()
    try:
        yield
    finally:
        done.set()
        watching.join()
