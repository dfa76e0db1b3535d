"""Checking a SQLite store: the file itself, what its rows refer to, and our own rules.

Only reads, through a connection of its own, so a server may go on working meanwhile.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from longboat.errors import DataDirError
from longboat.store.datadir import STORE_NAME
from longboat.store.migrations import migrations
from longboat.store.protocol import Problem, Report
from longboat.store.queries import load_queries
from longboat.store.reading import SqliteReader

MAX_PROBLEMS = 100
POLL_S = 0.05


def database_of(path: Path) -> Path:
    """The database of a data directory, or a backup file itself."""
    file = path / STORE_NAME if path.is_dir() else path
    if not file.is_file():
        raise DataDirError(f"There is no database at {file}.", code="no_database")
    return file


def check_deeply(file: Path) -> Report:
    """Everything that can be checked, however long it takes."""
    with closing(open_for_reading(file)) as connection:
        problems = [*_file_problems(connection, "integrity_check"), *_references(connection)]
        if schema_of(connection) == newest_schema():
            reader = SqliteReader(connection, _queries())
            problems += islice(_violations(reader), MAX_PROBLEMS)
        return _report(file, connection, problems)


def check_quickly(file: Path, *, limit_s: float, give_up: threading.Event | None = None) -> Report:
    """Whether the file is whole, within the time, or until somebody gives up."""
    with closing(open_for_reading(file)) as connection:
        try:
            with _bounded(connection, limit_s, give_up or threading.Event()):
                problems = list(_file_problems(connection, "quick_check"))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            return Report(file=str(file), size=size_of(file), schema=0, counts={}, problems=(), complete=False)
        return _report(file, connection, problems)


def open_for_reading(file: Path) -> sqlite3.Connection:
    """One view of the store, however long it is looked at."""
    connection = sqlite3.connect(
        f"file:{quote(str(file.absolute()))}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("BEGIN")
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as error:
        connection.close()
        raise DataDirError(f"{file} cannot be read as a Longboat database: {error}.", code="no_database") from error
    return connection


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
    (row,) = SqliteReader(connection, _queries()).fetch("check_counts")
    return {name: row[name] for name in row.keys()}  # noqa: SIM118 - a row is no mapping: it iterates over values


def _queries() -> dict[str, str]:
    return {name: query.sql for name, query in load_queries().items()}


def _report(file: Path, connection: sqlite3.Connection, problems: list[Problem]) -> Report:
    try:
        schema, counts = schema_of(connection), counts_of(connection)
    except sqlite3.DatabaseError as error:
        schema, counts = 0, {}
        problems.append(Problem(kind="file", detail=str(error)))
    if not schema and not problems:
        problems.append(Problem(kind="file", detail="it is empty, or not a Longboat database"))
    elif schema > newest_schema():
        detail = f"it was written by a newer Longboat (schema {schema}; this one knows {newest_schema()})"
        problems.append(Problem(kind="file", detail=detail))
    found = tuple(dict.fromkeys(problems))[:MAX_PROBLEMS]
    return Report(file=str(file), size=size_of(file), schema=schema, counts=counts, problems=found)


def _file_problems(connection: sqlite3.Connection, pragma: str) -> Iterator[Problem]:
    """What SQLite itself finds."""
    try:
        for (said,) in connection.execute(f"PRAGMA {pragma}({MAX_PROBLEMS})"):
            for line in said.splitlines():
                if line != "ok" and not line.startswith("***"):
                    yield Problem(kind="file", detail=line)
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            raise
        yield Problem(kind="file", detail=str(error))


def _references(connection: sqlite3.Connection) -> Iterator[Problem]:
    try:
        for table, rowid, parent, _ in islice(connection.execute("PRAGMA foreign_key_check"), MAX_PROBLEMS):
            yield Problem(kind="reference", detail=f"row {rowid} of {table} refers to nothing in {parent}")
    except sqlite3.DatabaseError as error:
        yield Problem(kind="file", detail=str(error))


def _violations(reader: SqliteReader) -> Iterator[Problem]:
    from longboat.store.invariants import find_violations  # here: a server that starts does not need them

    try:
        yield from find_violations(reader)
    except sqlite3.DatabaseError as error:
        yield Problem(kind="file", detail=str(error))


@contextmanager
def _bounded(connection: sqlite3.Connection, limit_s: float, give_up: threading.Event) -> Iterator[None]:
    """Interrupts what the connection does when the time is over. A progress handler would not do: SQLite calls none
    while it checks a table."""
    done = threading.Event()
    end = time.monotonic() + limit_s

    def watch() -> None:
        while not done.wait(POLL_S):
            if give_up.is_set() or time.monotonic() >= end:
                connection.interrupt()

    watching = threading.Thread(target=watch, name="store-check-limit", daemon=True)
    watching.start()
    try:
        yield
    finally:
        done.set()
        watching.join()
