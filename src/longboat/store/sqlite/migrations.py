"""Numbered migrations. They only go forward; a store of a newer version is refused."""

import sqlite3
from importlib import resources

from longboat.errors import DataDirError


def migrations() -> list[tuple[int, str]]:
    """Number and SQL of each, in order."""
    folder = resources.files("longboat.store.sqlite").joinpath("migrations")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [(int(f.name[:4]), f.read_text("utf-8")) for f in files]


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the store up to date, each migration in its own transaction."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    known = migrations()
    newest = known[-1][0]
    if version > newest:
        raise DataDirError(
            f"{path} was written by a newer Longboat (schema {version}; this version supports {newest}). "
            "Upgrade Longboat, or choose another directory with --data-dir.",
            code="data_dir_newer",
        )
    for number, sql in known:
        if number > version:
            connection.executescript(f"BEGIN IMMEDIATE;\n{sql}\nPRAGMA user_version = {number};\nCOMMIT;")
