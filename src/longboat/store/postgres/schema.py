"""The schema of the store in PostgreSQL: its migrations, and which servers and databases are refused."""

import re
from dataclasses import dataclass
from importlib import resources
from typing import Any

from longboat.errors import DataDirError

OLDEST = 14
"""The oldest major version of PostgreSQL that is supported."""
MIGRATIONS_LOCK = 0x6C6F6E67
MIGRATE_S = 3600.0
"""A migration may rewrite every row."""

_FLOOR = re.compile(r"^-- floor: (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    number: int
    floor: int
    """The oldest schema that a server may know and still use the store after this migration: one that only adds leaves
    the servers of the last release working (G11)."""
    sql: str


def migrations() -> list[Migration]:
    """All of them, in order."""
    folder = resources.files("longboat.store.postgres").joinpath("migrations")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [_read_migration(int(f.name[:4]), f.read_text("utf-8")) for f in files]


def _read_migration(number: int, sql: str) -> Migration:
    named = _FLOOR.search(sql)
    return Migration(number=number, floor=int(named[1]) if named else number, sql=sql)


async def migrate(connection: Any) -> int:
    """Bring the store up to date; the number of the newest migration. Refuses what cannot hold a store."""
    await _check_server(connection)
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATIONS_LOCK)
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS longboat_schema (number BIGINT PRIMARY KEY, floor BIGINT NOT NULL)"
        )
        found = await connection.fetchrow(
            "SELECT coalesce(max(number), 0) AS version, coalesce(max(floor), 0) AS floor FROM longboat_schema"
        )
        version: int = found["version"]
        newest = migrations()[-1].number
        if newest < found["floor"]:
            raise DataDirError(
                f"A newer Longboat has changed the database (schema {version}), and servers of this version (schema "
                f"{newest}) can no longer use it. Upgrade Longboat, or name another database with --store.",
                code="store_newer",
            )
        await connection.execute("SET LOCAL statement_timeout = 0")
        for migration in migrations():
            if migration.number > version:
                await connection.execute(migration.sql, timeout=MIGRATE_S)
                await connection.execute(
                    "INSERT INTO longboat_schema VALUES ($1, $2)", migration.number, migration.floor
                )
    return max(version, newest)


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
        " coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create,"
        " has_database_privilege(current_database(), 'TEMPORARY') AS may_create_temporary, current_database() AS base"
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
    if not facts["may_create_temporary"]:
        raise DataDirError(
            f"The user {facts['name']} may not create temporary functions in the database {facts['base']}. Its owner "
            f"can allow it: GRANT TEMPORARY ON DATABASE {facts['base']} TO {facts['name']};",
            code="store_no_rights",
        )
