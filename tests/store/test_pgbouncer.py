"""The store through a real pgbouncer: in transaction pooling no session is ours, in session pooling one is."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest
from bench import AT, entry, new_session, unit
from pgbouncer import needs_pgbouncer, open_pgbouncer
from postgres import database_of, shared_server

from longboat.errors import DataDirError
from longboat.store.changes import add_workspace
from longboat.store.datadir import STORE_NAME
from longboat.store.postgres import connections, locking
from longboat.store.postgres.connections import connect, is_pooled
from longboat.store.postgres.copying import copy_sqlite
from longboat.store.postgres.nodes import Nodes
from longboat.store.postgres.store import PostgresStore, open_postgres
from longboat.store.protocol import Unit
from longboat.store.records import WorkspaceRecord
from longboat.store.sqlite.store import open_sqlite

pytestmark = needs_pgbouncer
FEW = 3
"""Sessions for all: fewer than one store alone would use."""


@pytest.fixture
def dsn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    made = database_of(tmp_path)
    monkeypatch.setitem(connections.SERVER_SETTINGS, "lock_timeout", "30000")  # here nodes do wait for each other
    return made


@pytest.fixture
def pooler(dsn: str) -> Iterator[str]:
    """In transaction mode."""
    with open_pgbouncer(shared_server(), urlsplit(dsn).path[1:], mode="transaction", sessions=FEW) as address:
        yield address


@pytest.fixture
def sessions(dsn: str) -> Iterator[str]:
    """In session mode."""
    with open_pgbouncer(shared_server(), urlsplit(dsn).path[1:], mode="session", sessions=40) as address:
        yield address


async def test_a_pooler_is_known_as_one(dsn: str, pooler: str, sessions: str) -> None:
    assert [await is_pooled(each) for each in (dsn, pooler, sessions)] == [False, True, True]


async def test_nodes_share_few_sessions_and_leave_nothing_in_them(dsn: str, pooler: str) -> None:
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(open_postgres(pooler, node=name)) for name in ("a", "b", "c")]
        await asyncio.gather(*(work(store, store._node) for store in stores))
        for store in stores:
            assert await store.reads.newest_event(store._node) == 40
        admin = await asyncpg.connect(dsn)
        used = await admin.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()"
        )
        assert used <= FEW
        await admin.close()
        left = await connect(pooler, pooled=True)
        async with left.transaction():
            assert await left.fetchval("SELECT count(*) FROM pg_prepared_statements") == 0
            assert await left.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0
        assert await left.fetchval("SELECT current_setting('lock_timeout')") == "0"
        await left.close()


async def work(store: PostgresStore, workspace_id: str) -> None:
    """Everything at once: claims, units, deltas, reads and a search."""
    nodes = Nodes(store.borrow, workspace_id, instance=store.instance, lease_s=30)
    await nodes.register(
        disk=workspace_id, url=f"http://{workspace_id}", version="1", secret="s", token="t", started_at=AT
    )
    place = WorkspaceRecord(workspace_id=workspace_id, home=workspace_id, path="/w", created_at=AT)
    await store.submit(Unit(workspace_id="", writes=[add_workspace(place)]))
    claim = await nodes.acquire(workspace_id)
    assert claim is not None
    store.hold(workspace_id, epoch=claim.epoch, number=claim.number, first_seq=claim.first_seq)
    for _ in range(20):
        said = [Unit(workspace_id=workspace_id, entries=[entry("x")], durable=half) for half in (True, False)]
        reading = store.reads.newest_event(workspace_id), nodes.find(workspace_id), nodes.confirm({})
        await asyncio.gather(*(store.submit(each) for each in said), *reading)
    await store.reads.search("nothing", workspace_id=None, before=None, limit=5)


async def test_a_server_of_its_own_needs_a_session(dsn: str, pooler: str) -> None:
    with pytest.raises(DataDirError, match="pool_mode = session") as refused:
        async with open_postgres(pooler):
            pass
    assert refused.value.code == "store_pooled"


async def test_in_session_pooling_a_server_has_the_database_to_itself(
    dsn: str, sessions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "LOCK_S", 0)
    async with open_postgres(sessions) as store:
        place = WorkspaceRecord(workspace_id="w", home="", path="/w", created_at=AT)
        await store.submit(unit(add_workspace(place), new_session("s"), entries=[entry("x")]))
        assert await store.reads.newest_event("w") == 1
        for address, node in ((dsn, ""), (sessions, ""), (sessions, "a"), (dsn, "a")):
            with pytest.raises(DataDirError) as refused:
                async with open_postgres(address, node=node):
                    pass
            assert refused.value.code == "store_in_use"


async def test_nodes_behind_a_pooler_and_a_server_of_its_own_exclude_each_other(
    dsn: str, pooler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes without a session hold no lock between two transactions, and are known by their leases."""
    async with open_postgres(pooler, node="a") as store:
        nodes = Nodes(store.borrow, "a", instance=store.instance, lease_s=30)
        await nodes.register(disk="a", url="http://a", version="1", secret="s", token="t", started_at=AT)
        with pytest.raises(DataDirError, match=r"Nodes of a cluster use the store .*: a\. Stop them first"):
            async with open_postgres(dsn):
                pass
        await nodes.sign_off([])
    async with open_postgres(dsn):  # waits for what the pooler has not ended yet
        monkeypatch.setattr(locking, "LOCK_S", 0)
        with pytest.raises(DataDirError, match="Another Longboat server uses the store"):
            async with open_postgres(pooler, node="a"):
                pass


async def test_a_store_is_copied_to_postgresql_itself_only(pooler: str, tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / STORE_NAME):
        pass
    with pytest.raises(DataDirError, match="Name PostgreSQL's own address") as refused:
        await copy_sqlite(tmp_path, pooler)
    assert refused.value.code == "store_pooled"
