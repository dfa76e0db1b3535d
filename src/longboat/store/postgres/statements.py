"""What is sent to PostgreSQL and what comes back: named queries, and what its errors mean.

Must not know the store's tables.
"""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import asyncpg

from longboat.errors import StoreUnavailable
from longboat.store import queries
from longboat.store.protocol import Row, UniqueViolated, WriteMissed

FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""Everything that a connection raises because of the database."""
LOST = (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.InternalClientError, asyncpg.PostgresConnectionError)
"""What a connection raises that is gone, or not to be used any more."""
_LOST_STATES = ("08", "57P")
"""The same as PostgreSQL says it: connection errors, and a server that stops or is not yet up."""

LEASE_LOST = "LB001"
"""What `check_leases` of the schema raises."""
WRONG_ROWS = "LB002"
"""What a write raises that changed another number of rows than it must."""


_TEMPORARY_STATES = ("08", "40P01", "53", "55P03", "57P")
"""What PostgreSQL says that stops or is not yet up, has too many connections, or in which others hold a lock."""


def is_temporary(error: BaseException) -> bool:
    """Whether a database that cannot be opened may be there in a moment, without anybody's help: it is not reachable or
    not yet up. A wrong password, name or certificate stays wrong."""
    if isinstance(error, ssl.SSLError | PermissionError) or "rejected SSL upgrade" in str(error):
        return False
    state = getattr(error, "sqlstate", None) or ""
    is_connection = isinstance(error, OSError | TimeoutError) or type(error) is asyncpg.InterfaceError
    return is_connection or state.startswith(_TEMPORARY_STATES)


def is_lost(error: BaseException) -> bool:
    state = getattr(error, "sqlstate", None) or ""
    return isinstance(error, LOST) or state.startswith(_LOST_STATES)


def may_read_again(error: BaseException | None) -> bool:
    """Whether to repeat a read that failed with this: the pool may have kept a connection that is long gone, or
    statements from before another node added a column."""
    return isinstance(error, asyncpg.InvalidCachedStatementError) or (error is not None and is_lost(error))


def translate_error(error: Exception) -> Exception:
    """What a statement raised, as the store's protocol has it. What is none of the database's stays as it is."""
    match error:
        case asyncpg.UniqueViolationError():
            return UniqueViolated(f"{error.constraint_name}: {error}")
        case asyncpg.IntegrityConstraintViolationError():
            return WriteMissed(str(error))
        case asyncpg.PostgresError(sqlstate=code) if code == WRONG_ROWS:
            return WriteMissed(str(error))
    return unavailable(error) if isinstance(error, FAILURES) else error


def unavailable(error: Exception) -> StoreUnavailable:
    why = str(error) or type(error).__name__
    return StoreUnavailable(f"The database cannot be used: {why}. Nothing was accepted. Check PostgreSQL, then resend.")


# Named queries

_PARAMETER = re.compile(r"(?<!:):(?!:)([a-z]\w*)")


@dataclass(frozen=True, slots=True)
class Statement:
    """A query in PostgreSQL's own words: parameters have numbers."""

    sql: str
    names: tuple[str, ...]
    numbered: bool

    def arguments(self, params: Mapping[str, Any]) -> list[Any]:
        return [params[name] for name in self.names]


@cache
def load_statements() -> dict[str, Statement]:
    return {
        name: compile_query(query.sql, numbered=query.numbered)
        for name, query in queries.load_queries("longboat.store.postgres").items()
    }


def compile_query(sql: str, *, numbered: bool = False) -> Statement:
    names: list[str] = []

    def place(found: re.Match[str]) -> str:
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    return Statement(_PARAMETER.sub(place, sql).rstrip(";"), tuple(names), numbered)


class PostgresReader:
    """Named queries on one connection, for the length of one transaction: see `longboat.store.queries.Reader`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch(self, query: str, **params: Any) -> list[Row]:
        statement = load_statements()[query]
        rows: list[Row] = await self._connection.fetch(statement.sql, *statement.arguments(params))
        return rows
