"""Who owns a workspace (G3): single statements by the database's clock, and a fence in every commit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import pytest
from bench import AT, entry, new_session, unit
from postgres import database_of

from longboat.errors import DataDirError, OwnerLost
from longboat.store.changes import add_workspace
from longboat.store.postgres import connection
from longboat.store.postgres.nodes import Nodes
from longboat.store.postgres.store import PostgresStore, open_postgres
from longboat.store.protocol import Unit
from longboat.store.records import WorkspaceRecord

LEASE_S = 30.0
EXPIRE = "UPDATE leases SET until = clock_timestamp() - interval '1 second'"


@dataclass
class Peer:
    store: PostgresStore
    nodes: Nodes
    lost: list[str] = field(default_factory=list)

    async def own(self, workspace_id: str = "w") -> int:
        claim = await self.nodes.claim(workspace_id)
        assert claim is not None
        self.store.hold(workspace_id, epoch=claim.epoch, number=claim.number, first_seq=claim.first_seq)
        return claim.epoch

    async def say(self, *names: str) -> None:
        await self.store.submit(unit(entries=[entry(*names)]))


@pytest.fixture
def dsn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    made = database_of(tmp_path)
    monkeypatch.setitem(connection.SERVER_SETTINGS, "lock_timeout", "30000")  # here nodes do wait for each other
    return made


@pytest.fixture
async def peers(dsn: str) -> AsyncIterator[tuple[Peer, Peer]]:
    async with AsyncExitStack() as stack:
        found = []
        for name in ("a", "b"):
            store = await stack.enter_async_context(open_postgres(dsn, node=name))
            peer = Peer(store, Nodes(store.borrow, name, lease_s=LEASE_S))
            store.when_lost(peer.lost.append)
            await peer.nodes.register(disk=name, url=f"http://{name}", version="1", secret="s", started_at=AT)
            found.append(peer)
        shared = WorkspaceRecord(workspace_id="w", home="", path="/w", created_at=AT)
        await found[0].store.submit(Unit(workspace_id="", writes=[add_workspace(shared)]))
        yield found[0], found[1]


async def expire(dsn: str) -> None:
    """As if the lease were over."""
    client = await asyncpg.connect(dsn)
    await client.execute(EXPIRE)
    await client.close()


async def test_of_two_that_claim_at_once_one_becomes_the_owner(peers: tuple[Peer, Peer]) -> None:
    for _ in range(20):
        claims = await asyncio.gather(*(peer.nodes.claim("w") for peer in peers))
        assert sorted(claim is not None for claim in claims) == [False, True]
        for peer, claim in zip(peers, claims, strict=True):
            if claim is not None:
                await peer.nodes.release("w", claim.epoch)


async def test_numbers_and_seqs_go_on_with_the_next_owner(peers: tuple[Peer, Peer], dsn: str) -> None:
    """G4: without a gap, a repeat, or a step back."""
    a, b = peers
    heard: list[int] = []
    for peer in peers:
        peer.store.listen("w", lambda published: heard.extend(n for e in published for n in range(e.first, e.last + 1)))
    seqs, epochs = [], []
    for peer in (a, b, a, b):
        epochs.append(await peer.own())
        await peer.say("x", "y")
        seqs += [peer.store.next_seq(), peer.store.next_seq()]
        await expire(dsn)
    assert heard == [1, 2, 3, 4, 5, 6, 7, 8]
    assert seqs == sorted(set(seqs))
    assert epochs == sorted(set(epochs))


async def test_a_former_owner_writes_nothing_and_notices(peers: tuple[Peer, Peer], dsn: str) -> None:
    a, b = peers
    await a.own()
    await a.store.submit(unit(new_session("s")))
    await expire(dsn)
    await b.own()
    with pytest.raises(OwnerLost):
        await a.say("late")
    assert a.lost == ["w"]
    with pytest.raises(OwnerLost):
        await a.say("still")
    await b.say("mine")
    assert await b.store.reads.newest_event("w") == 1


async def test_losing_one_workspace_costs_the_others_of_the_batch_nothing(peers: tuple[Peer, Peer], dsn: str) -> None:
    a, b = peers
    other = WorkspaceRecord(workspace_id="v", home="", path="/v", created_at=AT)
    await a.store.submit(Unit(workspace_id="", writes=[add_workspace(other)]))
    await a.own("w")
    await a.own("v")
    await expire(dsn)
    await b.own("w")
    units = [unit(entries=[entry("w")]), Unit(workspace_id="v", entries=[entry("v")]), unit(entries=[entry("w")])]
    outcomes = await asyncio.gather(*(a.store.submit(each) for each in units), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [OwnerLost, type(None), OwnerLost]
    assert (await a.store.reads.newest_event("v"), await a.store.reads.newest_event("w")) == (1, 0)


async def test_a_claim_waits_for_the_commit_of_the_owner(peers: tuple[Peer, Peer], dsn: str) -> None:
    """The lease is over, but a transaction of the owner is not: what it commits is the past of the next owner."""
    a, b = peers
    epoch = await a.own()
    client = await asyncpg.connect(dsn)
    await client.execute("BEGIN")
    await client.execute("SELECT check_leases($1, $2)", ["w"], [epoch])
    await client.execute(EXPIRE)
    claiming = asyncio.ensure_future(b.nodes.claim("w"))
    await wait_until_blocked(dsn)
    assert not claiming.done()
    await client.execute("COMMIT")
    assert await claiming is not None
    await client.close()


async def wait_until_blocked(dsn: str) -> None:
    """Some connection waits for a lock of another one."""
    client = await asyncpg.connect(dsn)
    while not await client.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
        pass
    await client.close()


async def test_a_renewal_does_not_revive_what_another_has_taken(peers: tuple[Peer, Peer], dsn: str) -> None:
    a, b = peers
    epoch = await a.own()
    assert (await a.nodes.confirm({"w": epoch})).kept == {"w"}
    await expire(dsn)
    assert (await a.nodes.confirm({"w": epoch})).kept == {"w"}, "nobody else has come"
    await expire(dsn)
    await b.own()
    assert (await a.nodes.confirm({"w": epoch})).kept == set()


async def test_a_running_home_is_preferred(peers: tuple[Peer, Peer], dsn: str) -> None:
    a, b = peers
    pinned = WorkspaceRecord(workspace_id="p", home="a", path="/p", created_at=AT)
    await a.store.submit(Unit(workspace_id="", writes=[add_workspace(pinned)]))
    assert await b.nodes.claim("p") is None
    await a.nodes.sign_off()
    claim = await b.nodes.claim("p")
    assert claim is not None
    assert claim.home == "a"
    assert await b.nodes.returned(["p"]) == []
    await a.nodes.register(disk="a", url="http://a", version="1", secret="s", started_at=AT)
    assert await b.nodes.returned(["p"]) == ["p"]
    assert await a.nodes.claim("p") is None, "it is handed over in order"
    await b.nodes.release("p", claim.epoch)
    assert await a.nodes.claim("p") is not None


async def test_two_machines_cannot_use_one_name(peers: tuple[Peer, Peer]) -> None:
    with pytest.raises(DataDirError) as refused:
        await peers[0].nodes.register(disk="other", url="", version="1", secret="s", started_at=AT)
    assert refused.value.code == "node_name_taken"
    with pytest.raises(DataDirError) as refused:
        await peers[0].nodes.register(disk="a", url="", version="1", secret="another", started_at=AT)
    assert refused.value.code == "wrong_cluster_secret"
