"""Connections to PostgreSQL: how they are opened, what is refused, and how text and errors are translated.

Must not know the store's tables, beyond the migrations.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import asyncpg

from longboat.errors import DataDirError, StoreUnavailable
from longboat.store import queries
from longboat.store.protocol import Row, UniqueViolated, WriteMissed

OLDEST = 14
"""The oldest major version of PostgreSQL that is supported."""
CONNECT_S = 5.0
COMMAND_S = 15.0
"""No statement of ours takes longer, unless the server stands still."""
SERVER_SETTINGS = {
    "application_name": "longboat",
    "lock_timeout": "5000",
    "idle_in_transaction_session_timeout": "2500",  # below any lease: a stopped owner holds up no claim
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
MIGRATIONS_LOCK = 0x6C6F6E67

FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""Everything that a connection raises because of the database."""
LOST = (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.InternalClientError, asyncpg.PostgresConnectionError)
"""What a connection raises that is gone, or not to be used any more."""
_LOST_STATES = ("08", "57P")
"""The same as PostgreSQL says it: connection errors, and a server that stops or is not yet up."""


def is_lost(error: BaseException) -> bool:
    state = getattr(error, "sqlstate", None) or ""
    return isinstance(error, LOST) or state.startswith(_LOST_STATES)


def translate_error(error: Exception) -> Exception:
    """What a statement raised, as the store's protocol has it. What is none of the database's stays as it is."""
    match error:
        case asyncpg.UniqueViolationError():
            return UniqueViolated(f"{error.constraint_name}: {error}")
        case asyncpg.IntegrityConstraintViolationError():
            return WriteMissed(str(error))
    return unavailable(error) if isinstance(error, FAILURES) else error


def unavailable(error: Exception) -> StoreUnavailable:
    why = str(error) or type(error).__name__
    return StoreUnavailable(f"The database cannot be used: {why}. Nothing was accepted. Check PostgreSQL, then resend.")


async def connect(dsn: str) -> "asyncpg.Connection[asyncpg.Record]":
    connection = await asyncpg.connect(
        dsn, timeout=CONNECT_S, command_timeout=COMMAND_S, server_settings=SERVER_SETTINGS
    )
    await prepare(connection)
    if await connection.fetchval("SELECT current_setting('synchronous_commit')") == "off":
        await connection.execute("SET synchronous_commit = on")  # durable units say so by not switching it off
    return connection


async def prepare(connection: Any) -> None:
    """Make a new connection ours."""
    await connection.set_type_codec(
        "text", schema="pg_catalog", encoder=_encode_text, decoder=_decode_text, format="binary"
    )


# PostgreSQL's text has no NUL, and a prompt may. It is stored behind a private character that nobody writes.
_ESCAPE = "\U0010fffd"


def _encode_text(text: str) -> bytes:
    if "\0" in text or _ESCAPE in text:
        text = text.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")
    return text.encode()


def _decode_text(data: Any) -> str:
    text = bytes(data).decode()
    if _ESCAPE in text:
        text = text.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE)
    return text


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


# Migrations


def migrations() -> list[tuple[int, str]]:
    """Number and SQL of each, in order."""
    folder = resources.files("longboat.store.postgres").joinpath("migrations")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [(int(f.name[:4]), f.read_text("utf-8")) for f in files]


async def migrate(connection: Any) -> int:
    """Bring the store up to date; the number of the newest migration. Refuses what cannot hold a store."""
    await _check_server(connection)
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATIONS_LOCK)
        await connection.execute("CREATE TABLE IF NOT EXISTS longboat_schema (number BIGINT PRIMARY KEY)")
        version: int = await connection.fetchval("SELECT coalesce(max(number), 0) FROM longboat_schema")
        newest = migrations()[-1][0]
        if version > newest:
            raise DataDirError(
                f"The database was written by a newer Longboat (schema {version}; this version supports {newest}). "
                "Upgrade Longboat, or name another database with --store.",
                code="store_newer",
            )
        for number, sql in migrations():
            if number > version:
                await connection.execute(sql)
                await connection.execute("INSERT INTO longboat_schema VALUES ($1)", number)
    return newest


async def _check_server(connection: Any) -> None:
    found = connection.get_server_version()
    if found.major < OLDEST:
        raise DataDirError(
            f"PostgreSQL {found.major} is too old: Longboat needs {OLDEST} or newer. Upgrade it, or name another "
            "server with --store.",
            code="store_too_old",
        )
    facts = await connection.fetchrow(
        "SELECT current_schema() AS schema, current_user AS name, current_setting('server_encoding') AS encoding,"
        " coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create"
    )
    if facts["encoding"] != "UTF8":
        raise DataDirError(
            f"The database's encoding is {facts['encoding']}, and Longboat needs UTF8. Create one with "
            "`createdb --encoding UTF8 --template template0 NAME`.",
            code="store_encoding",
        )
    if not facts["may_create"]:
        schema = facts["schema"] or "public"
        raise DataDirError(
            f"The user {facts['name']} may not create tables in the schema {schema}. Its owner can allow it: "
            f"GRANT CREATE, USAGE ON SCHEMA {schema} TO {facts['name']};",
            code="store_no_rights",
        )
