"""Who owns a workspace (G3): single statements by the database's clock, and a fence in every commit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from bench import AT, entry, new_session, said, unit
from pgbouncer import WAYS, open_way
from postgres import database_of, locked_database

from longboat.errors import DataDirError, OwnerLost, StoreUnavailable
from longboat.store.changes import add_workspace, put_client
from longboat.store.postgres import connections
from longboat.store.postgres.calls import MAX_CALLS
from longboat.store.postgres.nodes import Nodes
from longboat.store.postgres.readers import READERS
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
        claim = await self.nodes.acquire(workspace_id)
        assert claim is not None
        self.store.hold(workspace_id, epoch=claim.epoch, number=claim.number, first_seq=claim.first_seq)
        return claim.epoch

    async def register(self, *, disk: str, url: str = "") -> None:
        await self.nodes.register(
            disk=disk, url=url or f"http://{disk}", version="1", secret="s", token="t", started_at=AT
        )

    async def say(self, *names: str) -> None:
        await self.store.submit(unit(entries=[entry(*names)]))


@asynccontextmanager
async def open_peer(dsn: str, name: str) -> AsyncIterator[Peer]:
    """Connected, but not registered yet."""
    async with open_postgres(dsn, node=name) as store:
        yield Peer(store, Nodes(store.borrow, name, instance=store.instance, lease_s=LEASE_S))


@pytest.fixture
def dsn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    made = database_of(tmp_path)
    monkeypatch.setitem(connections.SERVER_SETTINGS, "lock_timeout", "30000")  # here nodes do wait for each other
    return made


@pytest.fixture(params=WAYS)
async def peers(dsn: str, request: pytest.FixtureRequest) -> AsyncIterator[tuple[Peer, Peer]]:
    """Also through pgbouncer."""
    async with AsyncExitStack() as stack:
        address = stack.enter_context(open_way(request.param, dsn))
        found = []
        for name in ("a", "b"):
            store = await stack.enter_async_context(open_postgres(address, node=name))
            peer = Peer(store, Nodes(store.borrow, name, instance=store.instance, lease_s=LEASE_S))
            store.when_lost(peer.lost.append)
            await peer.register(disk=name)
            found.append(peer)
        shared = WorkspaceRecord(workspace_id="w", home="", path="/w", created_at=AT)
        await found[0].store.submit(Unit(workspace_id="", writes=[add_workspace(shared)]))
        yield found[0], found[1]


async def expire(dsn: str) -> None:
    """As if the lease were over."""
    await run_sql(dsn, EXPIRE)


async def run_sql(dsn: str, statement: str) -> None:
    client = await asyncpg.connect(dsn)
    await client.execute(statement)
    await client.close()


async def test_of_two_that_claim_at_once_one_becomes_the_owner(peers: tuple[Peer, Peer]) -> None:
    for _ in range(20):
        claims = await asyncio.gather(*(peer.nodes.acquire("w") for peer in peers))
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


async def test_g3_what_was_submitted_before_the_workspace_was_lost_is_refused_although_it_is_ours_again(
    peers: tuple[Peer, Peer], dsn: str
) -> None:
    """As a unit that has waited for the database so long that the node lost its lease, and claimed it again."""
    a, _ = peers
    await a.own()
    await expire(dsn)
    claim = await a.nodes.acquire("w")
    assert claim is not None
    late = a.store.submit(unit(entries=[entry("late")]))
    a.store.let_go("w")
    a.store.hold("w", epoch=claim.epoch, number=claim.number, first_seq=claim.first_seq)
    with pytest.raises(OwnerLost):
        await late
    await a.say("mine")
    assert await a.store.reads.newest_event("w") == 1


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
    claiming = asyncio.ensure_future(b.nodes.acquire("w"))
    await wait_until_blocked(dsn)
    assert not claiming.done()
    await client.execute("COMMIT")
    assert await claiming is not None
    await client.close()


@pytest.mark.parametrize("peers", WAYS[:2], indirect=True)  # one that keeps sessions would need more of them
async def test_g3_a_renewal_needs_no_connection_that_waiting_claims_have(peers: tuple[Peer, Peer], dsn: str) -> None:
    """A node opens several workspaces at a time, and each claim waits for the commit of a former owner."""
    a, b = peers
    other = WorkspaceRecord(workspace_id="v", home="", path="/v", created_at=AT)
    await a.store.submit(Unit(workspace_id="", writes=[add_workspace(other)]))
    held = {"v": await a.own("v")}
    epoch = await b.own("w")
    client = await asyncpg.connect(dsn)
    await client.execute("BEGIN")
    await client.execute("SELECT check_leases($1, $2)", ["w"], [epoch])
    claims = [asyncio.ensure_future(a.nodes.acquire("w")) for _ in range(READERS)]
    await wait_until_blocked(dsn)
    try:
        assert (await a.nodes.confirm(held)).kept == {"v"}
        assert not any(claim.done() for claim in claims)
    finally:
        await client.execute("COMMIT")
        await asyncio.gather(*claims)
        await client.close()


async def test_g3_a_lease_that_was_waited_for_has_its_full_length(peers: tuple[Peer, Peer], dsn: str) -> None:
    """It was counted from before the wait, and the node from its next renewal: another could have had it too."""
    a, b = peers
    epoch = await a.own()
    client = await asyncpg.connect(dsn)
    await client.execute("BEGIN")
    await client.execute("SELECT check_leases($1, $2)", ["w"], [epoch])
    await client.execute(EXPIRE)
    claiming = asyncio.ensure_future(b.nodes.acquire("w"))
    await wait_until_blocked(dsn)
    given_at = await client.fetchval("SELECT extract(epoch FROM clock_timestamp())::double precision")
    await client.execute("COMMIT")
    assert await claiming is not None
    found = await b.nodes.find("w")
    assert found is not None
    assert found.until >= given_at + LEASE_S
    await client.close()


async def test_g3_trap_a_claim_that_meets_a_fresh_renewal_takes_nothing(peers: tuple[Peer, Peer], dsn: str) -> None:
    """It saw that the lease was over; before it can write, the owner has renewed (deer-flow #4424)."""
    a, b = peers
    epoch = await a.own()
    await expire(dsn)
    client = await asyncpg.connect(dsn)
    await client.execute("BEGIN")
    await client.execute("UPDATE leases SET until = clock_timestamp() + interval '30 seconds' WHERE epoch = $1", epoch)
    claiming = asyncio.ensure_future(b.nodes.acquire("w"))
    await wait_until_blocked(dsn)
    await client.execute("COMMIT")
    assert await claiming is None
    await a.say("still mine")
    await client.close()


async def test_g3_a_stopped_owner_holds_up_no_claim(
    peers: tuple[Peer, Peer], dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a transaction: the database ends it, well before the lease is over."""
    a, b = peers
    assert int(connections.SERVER_SETTINGS["idle_in_transaction_session_timeout"]) < 3000, "the shortest lease"
    await a.own()
    stopped, going = asyncio.Event(), asyncio.Event()
    real = a.store._writer._connection

    class Stopping:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        async def execute(self, sql: str, *args: Any) -> Any:
            if sql == "COMMIT":
                stopped.set()
                await going.wait()
            return await real.execute(sql, *args)

    monkeypatch.setattr(a.store._writer, "_connection", Stopping())
    many = [put_client("w", f"c{number}", AT) for number in range(MAX_CALLS + 1)]  # more than one message
    late = a.store.submit(unit(*many, entries=[entry("late")]))
    await stopped.wait()
    await expire(dsn)
    await b.own()
    going.set()
    with pytest.raises((StoreUnavailable, OwnerLost)):
        await late
    await b.say("mine")
    assert await b.store.reads.newest_event("w") == 1


async def test_a_lock_of_somebody_else_is_not_waited_for_for_long(
    peers: tuple[Peer, Peer], dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, _ = peers
    await a.own()
    monkeypatch.setitem(connections.SERVER_SETTINGS, "lock_timeout", "20")
    a.store._writer._drop_connection(OSError("so that the next one has this limit"))
    with locked_database(dsn), pytest.raises(StoreUnavailable, match="lock timeout"):
        await a.say("late")
    await a.say("in time")


@pytest.mark.parametrize("peers", WAYS[:1], indirect=True)
async def test_what_a_broken_connection_sent_last_is_not_carried_out_behind_our_back(
    peers: tuple[Peer, Peer], dsn: str
) -> None:
    """L15: the database is still busy with the commit when the line is cut."""
    a, _ = peers
    await a.own()
    await a.store.submit(said("first"))
    real = a.store._writer._connection
    other = await asyncpg.connect(dsn)
    await other.execute("BEGIN; LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")

    class Losing:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        async def execute(self, sql: str, *args: Any) -> Any:
            sending = asyncio.ensure_future(real.execute(sql, *args))
            await wait_until_blocked(dsn)
            sending.add_done_callback(lambda lost: lost.exception())
            raise ConnectionResetError("the line is cut")

    a.store._writer._connection = Losing()
    in_doubt = a.store.submit(said("in doubt"))
    await wait_until_blocked(dsn, but=real.get_server_pid())
    await other.execute("COMMIT")
    await in_doubt
    await a.store.submit(said("after"))
    rows = await other.fetch("SELECT session_id FROM sessions ORDER BY place")
    assert [row["session_id"] for row in rows] == ["first", "in doubt", "after"]
    await other.close()


async def wait_until_blocked(dsn: str, *, but: int = 0) -> None:
    """Some connection waits for a lock of another one. `but`: not this one."""
    client = await asyncpg.connect(dsn)
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid != $1"
    while not await client.fetchval(blocked, but):
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
    assert await b.nodes.acquire("p") is None
    await a.nodes.sign_off([])
    claim = await b.nodes.acquire("p")
    assert claim is not None
    assert claim.home == "a"
    assert await b.nodes.at_home_again(["p"]) == []
    await a.nodes.register(disk="a", url="http://a", version="1", secret="s", token="t", started_at=AT)
    assert await b.nodes.at_home_again(["p"]) == ["p"]
    assert await a.nodes.acquire("p") is None, "it is handed over in order"
    await b.nodes.release("p", claim.epoch)
    assert await a.nodes.acquire("p") is not None


async def test_g3_a_former_server_of_this_name_claims_and_renews_nothing(peers: tuple[Peer, Peer], dsn: str) -> None:
    a, _ = peers
    await a.own()
    async with open_peer(dsn, "a") as successor:
        await run_sql(dsn, "UPDATE nodes SET until = clock_timestamp() WHERE name = 'a'")
        await successor.register(disk="another")
        assert await successor.nodes.acquire("w") is None, "the lease of the former one is not over"
        await expire(dsn)
        await successor.own()
        assert (await a.nodes.confirm({})).instance == successor.store.instance
        assert await a.nodes.acquire("w") is None
        assert await a.nodes.ownerless_workspaces() == []
        await successor.say("x")


async def test_a_server_that_starts_again_has_its_former_leases_at_once(peers: tuple[Peer, Peer], dsn: str) -> None:
    """The lock of the data directory tells that the former one has ended."""
    a, b = peers
    await a.own()
    async with open_peer(dsn, "a") as again:
        await again.register(disk="a")
        assert await b.nodes.acquire("w") is None
        assert await again.nodes.acquire("w") is not None


async def test_two_nodes_cannot_have_one_address(peers: tuple[Peer, Peer]) -> None:
    """As with --host 0.0.0.0 and no --advertise on machines of one name: doors would ask themselves."""
    with pytest.raises(DataDirError) as refused:
        await peers[0].register(disk="a", url="http://b")
    assert refused.value.code == "node_address_taken"


async def test_nodes_that_are_gone_for_long_are_forgotten_unless_they_have_directories(
    peers: tuple[Peer, Peer], dsn: str
) -> None:
    a, b = peers
    for name in ("with", "without"):
        async with open_peer(dsn, name) as peer:
            await peer.register(disk=name)
    pinned = WorkspaceRecord(workspace_id="p", home="with", path="/p", created_at=AT)
    await a.store.submit(Unit(workspace_id="", writes=[add_workspace(pinned)]))
    await run_sql(dsn, "UPDATE nodes SET until = until - interval '8 days' WHERE name LIKE 'with%'")
    await b.register(disk="b")
    assert [each.name for each in await b.nodes.all()] == ["a", "b", "with"]


async def test_l8_seqs_never_step_back_when_a_workspace_is_claimed(peers: tuple[Peer, Peer]) -> None:
    """Newer ones were taken while the claim was on its way."""
    a, _ = peers
    claim = await a.nodes.acquire("w")
    assert claim is not None
    a.store._seqs._blocks.clear()
    a.store._seqs._next = 0
    await a.store._seqs.take()
    newest = a.store.next_seq()
    a.store.hold("w", epoch=claim.epoch, number=claim.number, first_seq=claim.first_seq)
    assert a.store.next_seq() == newest + 1


async def test_two_machines_cannot_use_one_name(peers: tuple[Peer, Peer]) -> None:
    with pytest.raises(DataDirError) as refused:
        await peers[0].nodes.register(disk="other", url="", version="1", secret="s", token="t", started_at=AT)
    assert refused.value.code == "node_name_taken"
    with pytest.raises(DataDirError) as refused:
        await peers[0].nodes.register(disk="a", url="", version="1", secret="another", token="t", started_at=AT)
    assert refused.value.code == "wrong_cluster_secret"


async def test_g2_a_node_with_another_token_is_refused_while_the_others_run(peers: tuple[Peer, Peer], dsn: str) -> None:
    a, b = peers
    again = partial(a.nodes.register, disk="a", url="", version="1", secret="s", started_at=AT)
    with pytest.raises(DataDirError) as refused:
        await again(token="another")
    assert refused.value.code == "wrong_cluster_token"
    await again(token="t")
    await b.nodes.sign_off([])
    await again(token="another")
    connection = await asyncpg.connect(dsn)
    alive = "clock_timestamp() + interval '1 hour'"
    await connection.execute(f"UPDATE nodes SET until = {alive}, token = '' WHERE name = 'b'")
    await connection.close()
    await again(token="another")  # node b has a version that stores none


async def test_g12_what_is_handed_over_only_the_named_node_can_claim(peers: tuple[Peer, Peer], dsn: str) -> None:
    a, b = peers
    epoch = await a.own()
    await a.nodes.release("w", epoch, to="b")
    assert await a.nodes.acquire("w") is None
    claim = await b.nodes.acquire("w")
    assert claim is not None
    await b.nodes.release("w", claim.epoch, to="a")
    await expire(dsn)
    assert await b.nodes.acquire("w") is not None, "a node that does not take it in time loses it"


async def test_g12_nothing_is_handed_over_to_a_node_that_is_leaving_or_unknown(peers: tuple[Peer, Peer]) -> None:
    a, b = peers
    await b.nodes.leave()
    for name in ("b", "nobody"):
        await a.nodes.release("w", await a.own(), to=name)
        found = await a.nodes.find("w")
        assert found is not None
        assert found.owner is None, "anyone can take it"


async def test_g7_a_former_owner_stores_no_policy(peers: tuple[Peer, Peer], dsn: str) -> None:
    a, b = peers
    old = await a.own()
    await a.nodes.note_policy("w", old, resume=True, ready=True)
    await expire(dsn)
    claim = await b.nodes.acquire("w")
    assert claim is not None
    assert claim.resume
    await b.nodes.note_policy("w", claim.epoch, resume=False, ready=True)
    await a.nodes.note_policy("w", old, resume=True, ready=True)
    await expire(dsn)
    again = await a.nodes.acquire("w")
    assert again is not None
    assert not again.resume


@pytest.mark.parametrize(
    ("before", "now", "adopted"),
    [
        ("a", "", True),
        ("left", "", True),
        ("never", "", True),
        ("b", "", False),  # it runs, and says itself that the directory is its own
        ("host", "a", True),
        ("left", "a", False),  # a directory on another disk
        ("b", "a", False),
    ],
)
async def test_g7_a_directory_keeps_its_past_when_it_is_declared_shared_or_its_server_becomes_a_node(
    peers: tuple[Peer, Peer], before: str, now: str, adopted: bool
) -> None:
    """It got a new workspace, and the old one was away for ever."""
    a = peers[0]
    left = Nodes(a.store.borrow, "left", instance="left", lease_s=LEASE_S)
    await left.register(disk="left", url="http://left", version="1", secret="s", token="t", started_at=AT)
    await left.sign_off([])
    old = WorkspaceRecord(workspace_id="old", home=before, path="/p", created_at=AT)
    await a.store.submit(Unit(workspace_id="", writes=[add_workspace(old)]))
    await a.nodes.restore_workspace_of("/p", now, host="host")
    found = await a.store.reads.workspace_at("/p", now)
    assert (found is not None) == adopted


async def test_g8_a_caretaker_opens_a_directory_again_that_is_shared_now(peers: tuple[Peer, Peer]) -> None:
    a, b = peers
    pinned = WorkspaceRecord(workspace_id="p", home="never", path="/p", created_at=AT)
    await a.store.submit(Unit(workspace_id="", writes=[add_workspace(pinned)]))
    assert await b.nodes.acquire("p") is not None
    assert await b.nodes.at_home_again(["p"]) == []
    await a.nodes.restore_workspace_of("/p", "", host="host")
    assert await b.nodes.at_home_again(["p"]) == ["p"]
