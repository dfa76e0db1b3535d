"""A server of the next release migrates the database while others use it (G11)."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from bench import AT, entry, unit
from postgres import new_database

from longboat.errors import DataDirError, OwnerLost
from longboat.store.changes import add_workspace
from longboat.store.postgres import schema
from longboat.store.postgres.nodes import Nodes
from longboat.store.postgres.store import open_postgres
from longboat.store.protocol import Row, Unit
from longboat.store.queries import Reader
from longboat.store.records import WorkspaceRecord

_WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


_TAKES_AWAY = re.compile(r"\b(DROP|RENAME|TRUNCATE|ALTER COLUMN|ADD CONSTRAINT)\b|\bADD COLUMN (?!.*DEFAULT).*NOT NULL")
"""What no server that knows nothing of it can live with."""


@asynccontextmanager
async def admin_of(dsn: str) -> AsyncIterator[Any]:
    client = await asyncpg.connect(dsn)
    try:
        yield client
    finally:
        await client.close()


async def until_one_waits(admin: Any) -> None:
    """Until somebody waits for a lock. No event tells."""
    while not await admin.fetchval(_WAITS):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def release_next(monkeypatch: pytest.MonkeyPatch, sql: str, *, floor: int = 1) -> int:
    """From now on, servers that start are of the next release. Its schema."""
    number = schema.newest_known() + 1
    made = (*schema.migrations(), schema.Migration(number=number, floor=floor, sql=sql))
    monkeypatch.setattr(schema, "migrations", lambda: made)
    return number


async def find_sessions(reader: Reader) -> list[Row]:
    """By a query whose columns are those of its table."""
    return await reader.fetch("check_sessions", after=0, limit=9)


def test_g11_a_migration_that_leaves_older_servers_working_only_adds() -> None:
    for migration in schema.migrations():
        found = [line for line in migration.sql.splitlines() if _TAKES_AWAY.search(line)]
        assert migration.floor == migration.number or found == [], f"{migration.number}: {found}"


async def test_g11_every_read_goes_on_after_a_newer_node_has_added_a_column() -> None:
    """PostgreSQL refuses a prepared statement whose result has other columns by now."""
    async with new_database() as dsn, open_postgres(dsn, node="a") as store, admin_of(dsn) as admin:
        assert await store.read(find_sessions) == []
        await admin.execute("ALTER TABLE sessions ADD COLUMN later TEXT NOT NULL DEFAULT ''")
        assert await store.read(find_sessions) == []


async def test_g11_a_migration_and_a_commit_that_wait_for_each_other_the_migration_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has the first table and wants the second; the commit of another server has the second and wants the first."""
    told = asyncio.Queue[str]()

    async def start() -> None:
        async with open_postgres(dsn, node="b", on_wait=told.put_nowait):
            pass

    async with new_database() as dsn, admin_of(dsn) as commit, admin_of(dsn) as admin:
        async with open_postgres(dsn, node="a"):
            pass
        number = release_next(monkeypatch, "ALTER TABLE runs ADD later BIGINT; ALTER TABLE events ADD later BIGINT;")
        async with commit.transaction():
            await commit.execute("LOCK TABLE events IN ROW EXCLUSIVE MODE")
            started = asyncio.ensure_future(start())
            await until_one_waits(admin)
            await commit.execute("LOCK TABLE runs IN ROW EXCLUSIVE MODE")
            assert "is locked" in await told.get()
        await started
        assert await admin.fetchval("SELECT max(number) FROM longboat_schema") == number


async def join(admin: Any, name: str, *, known: int) -> None:
    """As a node that knows this schema joins, or renews."""
    await admin.execute(
        "INSERT INTO nodes (name, disk, url, version, secret, started_at, leaving, until, known_schema)"
        " VALUES ($1, $1, $1, '0.9', '', '', false, clock_timestamp() + interval '1 minute', $2)",
        name,
        known,
    )


async def test_g11_a_migration_does_not_lock_out_nodes_that_are_running_or_join_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one that has the name of the node that migrates has ended."""
    async with new_database() as dsn, admin_of(dsn) as lock, admin_of(dsn) as admin:
        async with open_postgres(dsn, node="a"):
            pass
        number = release_next(monkeypatch, "ALTER TABLE runs ADD COLUMN later BIGINT", floor=schema.newest_known() + 1)
        monkeypatch.setattr(schema, "LOCK_MS", 30_000)
        await join(admin, "a", known=number - 1)
        async with lock.transaction():
            await lock.execute("LOCK TABLE runs IN ACCESS SHARE MODE")
            opening = asyncio.ensure_future(refusal(dsn))
            await until_one_waits(admin)
            await join(admin, "late", known=number - 1)
        assert await opening == await refusal(dsn) == ("nodes_too_old", True)
        assert await admin.fetchval("SELECT max(number) FROM longboat_schema") == number - 1
        await admin.execute("UPDATE nodes SET known_schema = $1 WHERE name = 'late'", number)
        async with open_postgres(dsn, node="a"):
            assert await admin.fetchval("SELECT max(number) FROM longboat_schema") == number


async def refusal(dsn: str) -> tuple[str, bool]:
    """The code, and whether it names the node."""
    with pytest.raises(DataDirError) as refused:
        async with open_postgres(dsn, node="a"):
            pass
    return refused.value.code, "late (0.9)" in refused.value.message


async def test_g11_a_node_that_was_cut_off_while_the_floor_was_raised_commits_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody else has become the owner since. Its lease is over, and it does not know that yet."""
    async with new_database() as dsn, admin_of(dsn) as admin, open_postgres(dsn, node="a") as store:
        nodes = Nodes(store.borrow, "a", instance=store.instance, lease_s=60)
        await nodes.register(disk="a", url="http://a", version="1", secret="s", token="t", started_at=AT)
        shared = WorkspaceRecord(workspace_id="w", home="", path="/w", created_at=AT)
        await store.submit(Unit(workspace_id="", writes=[add_workspace(shared)]))
        lease = await nodes.acquire("w")
        assert lease is not None
        store.hold("w", epoch=lease.epoch, number=lease.number, first_seq=lease.first_seq)
        await store.submit(unit(entries=[entry("before")]))
        await admin.execute("UPDATE nodes SET until = clock_timestamp()")
        release_next(monkeypatch, "SELECT 1", floor=schema.newest_known() + 1)
        async with open_postgres(dsn, node="b"):
            with pytest.raises(OwnerLost):
                await store.submit(unit(entries=[entry("after")]))
            confirmed = await nodes.confirm({"w": lease.epoch})
            assert (confirmed.kept, confirmed.floor) == (frozenset(), schema.newest_known())
