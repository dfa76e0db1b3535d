"""The schema of the store in PostgreSQL: its migrations, and which servers and databases are refused.

Nodes of the last release go on working while a node of this one migrates (G11). So a migration waits for no lock for
long, because everyone else would wait behind it; it ends with the node that asked for it; and it does not lock out
nodes that are running.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import asyncpg

from longboat.errors import DataDirError

OLDEST = 14
"""The oldest major version of PostgreSQL that is supported."""
MIGRATIONS_LOCK = 0x6C6F6E67
MIGRATE_S = 3600.0
"""A migration may rewrite every row."""
LOCK_MS = 900
"""How long a migration waits for each lock before it makes room and is tried again. Shorter than the time after which
PostgreSQL looks for deadlocks: the migration gives way, and no commit of another node."""
GONE_MS = 1000
"""How often a migration looks whether its node is still there. Otherwise it would go on, and keep its locks."""
KNOWN_SINCE = 11
"""The first schema in which nodes say what they know."""

_FLOOR = re.compile(r"^-- floor: (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    number: int
    floor: int
    """The oldest schema that a server may know and still use the store after this migration: one that only adds leaves
    the servers of the last release working (G11)."""
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the database says of its schema; 0: it is new."""

    version: int
    floor: int


@cache
def migrations() -> tuple[Migration, ...]:
    """All of them, in order. Read once: an upgrade may replace the files while the server runs."""
    folder = resources.files("longboat.store.postgres").joinpath("migrations")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return tuple(_read_migration(int(f.name[:4]), f.read_text("utf-8")) for f in files)


def _read_migration(number: int, sql: str) -> Migration:
    named = _FLOOR.search(sql)
    return Migration(number=number, floor=int(named[1]) if named else number, sql=sql)


def newest_known() -> int:
    """The newest schema that this server knows."""
    return migrations()[-1].number


async def migrate(connection: Any, *, node: str = "") -> int:
    """Bring the store up to date; the number of the newest migration. Refuses what cannot hold a store. `node`: the
    name of the node that asks for it."""
    await _check_server(connection)
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATIONS_LOCK)
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS longboat_schema (number BIGINT PRIMARY KEY, floor BIGINT NOT NULL)"
        )
        found = await check_floor(connection)
        missing = [migration for migration in migrations() if migration.number > found.version]
        if missing:
            raised = missing[-1].floor if missing[-1].floor > found.floor and found.version else None
            if raised is not None:
                await _check_nodes(connection, node, found.version, raised)
            await _apply(connection, missing)
            if raised is not None:
                await connection.execute("LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE")  # nobody joins meanwhile
                await _check_nodes(connection, node, newest_known(), raised)
                await connection.execute(_LOCK_OUT, raised)
    return max(found.version, newest_known())


async def check_floor(connection: Any) -> Found:
    """Refuse a database that servers of this version can no longer use."""
    row = await connection.fetchrow(
        "SELECT coalesce(max(number), 0) AS version, coalesce(max(floor), 0) AS floor FROM longboat_schema"
    )
    found = Found(**row)
    if newest_known() < found.floor:
        raise DataDirError(
            f"A newer Longboat has changed the database (schema {found.version}), and servers of this version (schema "
            f"{newest_known()}) can no longer use it. Upgrade Longboat, or name another database with --store.",
            code="store_newer",
        )
    return found


async def _apply(connection: Any, missing: list[Migration]) -> None:
    await connection.execute(f"SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = {LOCK_MS}")
    with suppress(asyncpg.PostgresError):  # not every system can tell
        async with connection.transaction():
            await connection.execute(f"SET LOCAL client_connection_check_interval = {GONE_MS}")
    for migration in missing:
        await connection.execute(migration.sql, timeout=MIGRATE_S)
        await connection.execute("INSERT INTO longboat_schema VALUES ($1, $2)", migration.number, migration.floor)


async def _check_nodes(connection: Any, node: str, version: int, raised: int) -> None:
    """Refuse to raise the floor to this if that locks out nodes that are running. The former server of this node's name
    has ended. `version`: the schema of the database now."""
    known = "known_schema" if version >= KNOWN_SINCE else str(version)
    running = f"SELECT name, version FROM nodes WHERE until > clock_timestamp() AND name != $1 AND {known} < $2"
    rows = await connection.fetch(f"{running} ORDER BY name", node, raised)
    if rows:
        names = ", ".join(f"{row['name']} ({row['version']})" for row in rows)
        raise DataDirError(
            f"This version changes the database so that nodes which are running can no longer use it: {names}. Stop "
            "them first, or upgrade all nodes to a release in between. A node that crashed counts until its lease is "
            "over.",
            code="nodes_too_old",
        )


_LOCK_OUT = """
UPDATE leases SET owner = NULL, epoch = (nextval('epochs') << 20) + floor(random() * (1 << 20))::bigint
FROM nodes WHERE nodes.name = leases.owner AND known_schema < $1
"""
"""A node that is paused or cut off may still believe in a lease: with another epoch, it cannot commit any more."""


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
