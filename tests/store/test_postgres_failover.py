"""A PostgreSQL that fails over to its standby: which host is asked, what survives, what is noticed (G4, G5, G10)."""

import asyncio
import signal
import socket
import tempfile
from collections.abc import Iterator

import asyncpg
import pytest
from bench import AT, entry, unit
from postgres import shared_server
from replication import Pair, open_pair

from longboat.errors import DataDirError, StoreUnavailable
from longboat.store.changes import add_workspace
from longboat.store.postgres import connections
from longboat.store.postgres.connections import connect, hosts_of
from longboat.store.postgres.nodes import Nodes, TakenLease
from longboat.store.postgres.store import PostgresStore, open_postgres
from longboat.store.protocol import Unit
from longboat.store.records import WorkspaceRecord


@pytest.fixture
def pair() -> Iterator[Pair]:
    with open_pair() as opened:
        yield opened


def fail_over(pair: Pair) -> None:
    """The primary is gone for good."""
    pair.primary.stop(signal.SIGQUIT)
    pair.standby.promote()


async def own(store: PostgresStore) -> TakenLease:
    """Become the owner of a workspace."""
    nodes = Nodes(store.borrow, "a", instance=store.instance, lease_s=30)
    claim = await nodes.acquire("w")
    assert claim is not None
    store.hold("w", epoch=claim.epoch, number=claim.number, first_seq=claim.first_seq)
    return claim


async def add_place(store: PostgresStore) -> None:
    place = WorkspaceRecord(workspace_id="w", home="", path="/w", created_at=AT)
    await store.submit(Unit(workspace_id="", writes=[add_workspace(place)]))


# Which host


@pytest.mark.parametrize(
    ("dsn", "environ", "hosts"),
    [
        ("postgresql://u@a/d", {}, []),
        ("postgresql:///d", {}, []),
        ("postgresql://u:p%40w@a,b:6000/d", {}, [("a", 5432), ("b", 6000)]),
        ("postgresql://a:1,[::1]:2,[::2]/d", {}, [("a", 1), ("::1", 2), ("::2", 5432)]),
        ("postgresql://u@/d?host=/x,/y&port=1,2", {}, [("/x", 1), ("/y", 2)]),
        ("postgresql:///d", {"PGHOST": "a,b", "PGPORT": "7"}, [("a", 7), ("b", 7)]),
    ],
)
def test_an_address_may_name_several_hosts(dsn: str, environ: dict[str, str], hosts: list[tuple[str, int]]) -> None:
    assert hosts_of(dsn, environ) == [{"host": name, "port": port} for name, port in hosts]


async def test_a_host_that_does_not_answer_costs_only_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is cut off neither answers nor refuses."""
    monkeypatch.setattr(connections, "CONNECT_S", 4.0)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as silent:
        silent.bind(f"{folder}/.s.PGSQL.5432")
        silent.listen()
        dsn = f"postgresql://postgres@/postgres?host={folder},{shared_server().sockets}"
        opened = await connect(dsn, pooled=False)
        assert await opened.fetchval("SELECT 1") == 1
        await opened.close()


async def test_the_primary_is_found_wherever_it_stands_and_a_standby_alone_is_refused(pair: Pair) -> None:
    backwards = f"postgresql://postgres@/postgres?host={pair.standby.sockets},{pair.primary.sockets}"
    async with open_postgres(backwards, node="a") as store:
        await add_place(store)
    with pytest.raises(DataDirError, match="does not accept writes") as refused:
        async with open_postgres(pair.standby.dsn(), node="a"):
            pass
    assert refused.value.code == "store_read_only"


# What survives


async def test_g10_a_node_goes_on_at_the_standby_by_itself(pair: Pair) -> None:
    async with open_postgres(pair.dsn, node="a") as store:
        await add_place(store)
        claim = await own(store)
        await store.submit(unit(entries=[entry("before")]))
        await asyncio.to_thread(pair.wait_until_copied)
        await asyncio.to_thread(fail_over, pair)
        await store.submit(unit(entries=[entry("after")]))
        assert await store.reads.newest_event("w") == 2
        assert await store.reads.has_event("w", number=2, epoch=claim.epoch), "the lease is still its own"


async def test_g4_what_an_asynchronous_standby_did_not_have_is_noticed_by_the_epoch(pair: Pair) -> None:
    lost: list[str] = []
    async with open_postgres(pair.dsn, node="a") as store:
        store.when_lost(lost.append)
        await add_place(store)
        old = await own(store)
        await store.submit(unit(entries=[entry("both have it")]))
        await asyncio.to_thread(pair.wait_until_copied)
        await asyncio.to_thread(pair.standby.stop)
        await store.submit(unit(entries=[entry("seen by clients")]))
        await asyncio.to_thread(pair.primary.stop, signal.SIGQUIT)
        await asyncio.to_thread(pair.standby.start)
        await asyncio.to_thread(pair.standby.promote)
        with pytest.raises(StoreUnavailable):
            await store.submit(unit(entries=[entry("to a lease that is over")]))
        assert lost == ["w"]
        new = await own(store)
        await store.submit(unit(entries=[entry("another second event")]))
        assert (new.number, await store.reads.newest_event("w")) == (1, 2)
        assert await store.reads.has_event("w", number=1, epoch=old.epoch), "who stopped here goes on"
        assert not await store.reads.has_event("w", number=2, epoch=old.epoch), "who saw the lost one does not"


async def test_epochs_of_a_lost_history_do_not_come_again(pair: Pair) -> None:
    """Not even if the standby has never heard of them."""
    async with open_postgres(pair.dsn, node="a") as store:
        await add_place(store)
        await asyncio.to_thread(pair.wait_until_copied)
        await asyncio.to_thread(pair.standby.stop)
        nodes = Nodes(store.borrow, "a", instance=store.instance, lease_s=30)
        epochs = set()
        for _ in range(40):  # PostgreSQL counts 32 in advance
            claim = await nodes.acquire("w")
            assert claim is not None
            epochs.add(claim.epoch)
        await asyncio.to_thread(pair.primary.stop, signal.SIGQUIT)
        await asyncio.to_thread(pair.standby.start)
        await asyncio.to_thread(pair.standby.promote)
        for _ in range(40):
            claim = await nodes.acquire("w")
            assert claim is not None
            assert claim.epoch not in epochs


async def test_g5_a_commit_that_waits_for_its_standby_is_answered_when_it_is_known(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the answer comes too late for its connection: it must not be refused now and be accepted later."""
    await asyncio.to_thread(pair.replicate_synchronously)
    async with open_postgres(pair.dsn, node="a") as store:
        await add_place(store)
        await own(store)
        monkeypatch.setattr(connections, "COMMAND_S", 0.5)
        store._writer._drop_connection(OSError("so that the next one has this limit"))
        await store.submit(unit(entries=[entry("on both")]))
        await asyncio.to_thread(pair.standby.stop)
        accepting = store.submit(unit(entries=[entry("on one, so far")]))
        await asked_again(pair, accepting)
        assert not accepting.done()
        await asyncio.to_thread(pair.standby.start)
        await accepting
        await asyncio.to_thread(fail_over, pair)
        assert await store.reads.newest_event("w") == 2


async def asked_again(pair: Pair, accepting: "asyncio.Future[None]") -> None:
    """The commit waits for the standby, and its writer asks about it on another connection."""
    client = await asyncpg.connect(pair.primary.dsn())
    query = """
        SELECT pid FROM pg_stat_activity
        WHERE wait_event = 'SyncRep' OR (query LIKE '%pg_terminate_backend(pid, %' AND pid != pg_backend_pid())
    """
    waiting: set[int] = set()
    while len(waiting) < 2 and not accepting.done():
        waiting |= {row["pid"] for row in await client.fetch(query)}
    await client.close()
