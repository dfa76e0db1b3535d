"""Named queries, read from a dialect's `.sql` file: `-- name:` and a purpose line above each. A reader answers by
them, also from rows that are damaged on disk."""

import re
import sqlite3
from dataclasses import dataclass
from importlib import resources
from typing import Any

from longboat.store.protocol import Row

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Query:
    """`numbered`: it needs `:number`, the newest event number of its unit, which only the writer knows."""

    name: str
    purpose: str
    sql: str
    numbered: bool


def parse_queries(text: str) -> dict[str, Query]:
    pieces = _NAME.split(text)[1:]
    return {name: _parse(name, body) for name, body in zip(pieces[::2], pieces[1::2], strict=True)}


def _parse(name: str, body: str) -> Query:
    first, _, sql = body.strip().partition("\n")
    if not first.startswith("-- "):
        raise ValueError(f"query {name} has no purpose line")
    return Query(name, first.removeprefix("-- "), sql.strip(), ":number" in sql)


def load_queries() -> dict[str, Query]:
    return parse_queries(resources.files("longboat.store.sqlite").joinpath("queries.sql").read_text("utf-8"))


class SqliteReader:
    """Named queries on one connection, for the length of one transaction."""

    def __init__(self, connection: sqlite3.Connection, queries: dict[str, str]) -> None:
        self._connection = connection
        self._queries = queries

    def fetch(self, query: str, **params: Any) -> list[Row]:
        sql = self._queries[query]
        try:
            return self._connection.execute(sql, params).fetchall()
        except sqlite3.OperationalError as error:
            if not str(error).startswith("Could not decode to UTF-8"):
                raise
        # One damaged text must not hide the other rows. Only now, because each text then costs a call.
        self._connection.text_factory = text_or_bytes
        try:
            return self._connection.execute(sql, params).fetchall()
        finally:
            self._connection.text_factory = str


def text_or_bytes(raw: bytes) -> str | bytes:
    """Text as it is on disk; bytes if it was damaged, which no shape takes for text."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw
