"""The named queries of SQLite, and a reader that answers by them, also from rows that are damaged on disk."""

import sqlite3
from functools import cache
from typing import Any

from longboat.store import queries
from longboat.store.protocol import Row
from longboat.store.queries import Query


@cache
def load_queries() -> dict[str, Query]:
    return queries.load_queries("longboat.store.sqlite")


class SqliteReader:
    """Named queries on one connection, for the length of one transaction."""

    def __init__(self, connection: sqlite3.Connection, queries: dict[str, str]) -> None:
        self._connection = connection
        self._queries = queries

    async def fetch(self, query: str, **params: Any) -> list[Row]:
        """Never waits: see `longboat.store.queries.Reader`."""
        return self.rows(query, **params)

    def rows(self, query: str, **params: Any) -> list[Row]:
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
