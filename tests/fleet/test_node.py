"""What a node does with its leases, and when it gives them up (G3, G10)."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import asyncpg
import psutil
import pytest
from bench import AT
from postgres import database_of

from longboat.config.settings import ServerSection, Settings
from longboat.errors import OwnedElsewhere, OwnerLost, ServerLeaving, StoreLost
from longboat.fleet.node import Node
from longboat.store.changes import add_workspace
from longboat.store.postgres.nodes import Confirmed, Nodes, TakenLease
from longboat.store.postgres.store import open_postgres
from longboat.store.protocol import Unit
from longboat.store.publishing import PendingUnit, Publisher
from longboat.store.records import WorkspaceRecord
from longboat.tasks import Tasks
from longboat.tools.process import deadline


class Told:
    """What a node tells the app."""

    def __init__(self, node: Node) -> None:
        self.order: list[str] = []
        self._changed = asyncio.Event()
        node.when_lost(lambda workspace_id: self._note(f"lost {workspace_id}"))
        node.when_renewed(lambda *_: self._note("renewed"))

    def _note(self, what: str) -> None:
        self.order.append(what)
        self._changed.set()

    async def until(self, *wanted: str) -> None:
        """These were told, in this order, at the end."""
        while self.order[-len(wanted) :] != list(wanted):
            self._changed.clear()
            await self._changed.wait()


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    settings = Settings(
        data_dir=tmp_path,
        runtime_dir=tmp_path,
        socket=None,
        token="t",
        node="a",
        cluster_secret="s",
        server=ServerSection(lease_s=60, shared_trees=("/shared",)),
    )
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_postgres(database_of(tmp_path), node="a"))
        shared = WorkspaceRecord(workspace_id="w", home="", path="/shared/w", created_at=AT)
        await store.submit(Unit(workspace_id="", writes=[add_workspace(shared)]))
        made = Node(settings, store, url="http://a")
        await made.join("disk")
        yield made


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    async with Tasks() as own:
        yield own


def oversleep(node: Node) -> None:
    """As if the process had been stopped, or the database away, for long."""
    node._confirmed_at = deadline.clock() - 1_000


async def test_after_a_long_silence_everything_is_given_up_and_the_node_goes_on(node: Node, tasks: Tasks) -> None:
    told = Told(node)
    await node.acquire("w")
    oversleep(node)
    tasks.spawn(node.keep_leases(), name="keep leases")
    await told.until("lost w", "renewed")
    assert not node.owns("w")
    await node.acquire("w")
    assert node.owns("w")


async def test_g3_everything_is_given_up_in_time_while_a_renewal_is_still_under_way(
    node: Node, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database stands still: it neither answers nor refuses."""
    told, asked = Told(node), asyncio.Event()

    async def never_confirm(_held: object) -> None:
        asked.set()
        await asyncio.shield(asyncio.get_running_loop().create_future())

    await node.acquire("w")
    monkeypatch.setattr(node._nodes, "confirm", never_confirm)
    tasks.spawn(node._confirm(), name="renewal")
    await asked.wait()
    oversleep(node)
    tasks.spawn(node.drop_before_expiry(), name="drop before expiry")
    await told.until("lost w")


async def own_two(node: Node) -> None:
    other = WorkspaceRecord(workspace_id="v", home="", path="/shared/v", created_at=AT)
    await node._store.submit(Unit(workspace_id="", writes=[add_workspace(other)]))
    for workspace_id in ("v", "w"):
        await node.acquire(workspace_id)


@asynccontextmanager
async def commit_under_way(node: Node, workspace_id: str) -> AsyncIterator[None]:
    """A long transaction of this node, such as an import: it has locked the lease of its workspace."""
    client = await asyncpg.connect(node._store._dsn)
    await client.execute("BEGIN")
    await client.execute("SELECT check_leases($1, $2)", [workspace_id], [node._held[workspace_id]])
    try:
        yield
    finally:
        await client.close()


async def test_g3_a_long_commit_keeps_no_other_lease_from_being_renewed(
    node: Node, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One import of hundreds of megabytes, and the node gave up all its workspaces."""
    clock, passed_s = deadline.clock, 0.0
    monkeypatch.setattr(deadline, "clock", lambda: clock() + passed_s)
    told = Told(node)
    await own_two(node)
    async with commit_under_way(node, "w"):
        passed_s = node.lease_s / 2
        tasks.spawn(node.keep_leases(), name="keep leases")
        await told.until("renewed")
        assert (node.owns("v"), node.owns("w")) == (True, True)
        passed_s += node.lease_s / 5  # more than two thirds of it since its last renewal
        node.drop_expired()
    assert (node.owns("v"), node.owns("w")) == (True, False)
    assert told.order[-1] == "lost w"


async def test_g3_a_lease_that_could_not_be_renewed_with_the_others_is_renewed_a_moment_later(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, passed_s = deadline.clock, 0.0
    monkeypatch.setattr(deadline, "clock", lambda: clock() + passed_s)
    renewed: list[Collection[str]] = []
    node.when_renewed(lambda workspace_ids, *_: renewed.append(workspace_ids))
    await own_two(node)
    passed_s = node.lease_s / 2
    async with commit_under_way(node, "w"):
        await node._renew()
    assert node._is_renewal_due(), "at the next look, although the others have time"
    await node._renew()
    assert renewed == [{"v"}, {"v", "w"}]
    assert not node._is_renewal_due()
    passed_s += node.lease_s / 5
    node.drop_expired()
    assert (node.owns("v"), node.owns("w")) == (True, True)


async def test_g3_a_renewal_that_hangs_leaves_time_for_another_one(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """One connection may be dead without a word while the database is there."""
    loop, skipped_s = asyncio.get_running_loop(), 0.0
    time, confirm, hangs = loop.time, node._nodes.confirm, asyncio.Event()

    async def hang_once(held: Mapping[str, int], **more: bool) -> Confirmed:
        if not hangs.is_set():
            hangs.set()
            await loop.create_future()
        return await confirm(held, **more)

    told = Told(node)
    await node.acquire("w")
    monkeypatch.setattr(node._nodes, "confirm", hang_once)
    monkeypatch.setattr(loop, "time", lambda: time() + skipped_s)
    renewing = asyncio.ensure_future(node._renew())
    await hangs.wait()
    skipped_s = node.lease_s / 3 + 1  # of the two thirds that there are
    await renewing
    assert (told.order, node.owns("w")) == (["renewed"], True)


async def test_g3_a_node_whose_name_another_server_uses_by_now_gives_up_and_writes_nothing_more(
    node: Node, tmp_path: Path
) -> None:
    """It was paused or cut off, and someone started a node of this name. They took each other's workspaces."""
    told = Told(node)
    await node.acquire("w")
    async with open_postgres(node._store._dsn, node="a") as store:
        successor = Nodes(store.borrow, "a", instance=store.instance, lease_s=60)
        async with store.borrow() as connection:
            await connection.execute("UPDATE nodes SET until = clock_timestamp()")
        await successor.register(disk="another", url="http://other", version="1", secret="s", token="t", started_at=AT)
        with pytest.raises(StoreLost, match="uses the name of this node"):
            await node._confirm()
        assert told.order == ["lost w"]
        assert node._store.problem is not None
        with pytest.raises(StoreLost):
            await node._store.submit(Unit(workspace_id=""))
        await node.leave()
        await node.sign_off()
        (seen,) = await successor.all()
        assert (seen.url, seen.leaving, seen.alive) == ("http://other", False, True)


async def test_a_node_that_its_database_has_forgotten_registers_again(node: Node) -> None:
    """As after a failover to a standby that had not heard of it."""
    await node.acquire("w")
    async with node._store.borrow() as connection:
        await connection.execute("DELETE FROM nodes")
    await node._confirm()
    assert [each.name for each in await node.nodes()] == ["a"]
    assert node.owns("w")


async def test_g2_a_node_that_registers_again_still_says_that_someone_can_answer_there(node: Node) -> None:
    """Otherwise the agents of other nodes decide alone, although a person is at the inbox here."""
    node.notifications.set_answering_counter(lambda: 1)
    await node.notifications.publish_answering()
    async with node._store.borrow() as connection:
        await connection.execute("DELETE FROM nodes")
    await node._confirm()
    await node.notifications.publish_answering()
    assert await node.notifications.is_someone_reachable()


async def test_g3_a_workspace_of_which_something_has_not_ended_is_not_claimed_again_before_the_lease_is_over(
    node: Node,
) -> None:
    await node.acquire("w")
    node.abandon("w")
    with pytest.raises(OwnedElsewhere):
        await node.acquire("w")
    node._abandoned["w"] = deadline.clock()
    await node.acquire("w")
    assert node.owns("w")


async def test_g3_canceling_a_statement_does_not_wait_for_a_database_that_stands_still(
    node: Node, tasks: Tasks
) -> None:
    backend: asyncio.Future[psutil.Process] = asyncio.get_running_loop().create_future()

    async def ask() -> None:
        async with node._store.borrow() as connection:
            backend.set_result(psutil.Process(connection.get_server_pid()))
            await connection.execute("SELECT pg_sleep(600)")

    asking = tasks.spawn(ask(), name="ask", awaited=True)
    process = await backend
    process.suspend()
    try:
        asking.cancel()
        await asyncio.wait([asking])
    finally:
        process.resume()
    assert asking.cancelled()


async def test_g3_a_renewal_gives_no_time_to_a_workspace_that_it_did_not_renew(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was claimed while the answer was on its way: its commands could have outlived its lease, which is older."""
    renewed: list[Collection[str]] = []
    node.when_renewed(lambda workspace_ids, *_: renewed.append(workspace_ids))
    confirm = node._nodes.confirm

    async def answer_late(held: Mapping[str, int]) -> Confirmed:
        confirmed = await confirm(held)
        await node.acquire("w")
        return confirmed

    with monkeypatch.context() as patch:
        patch.setattr(node._nodes, "confirm", answer_late)
        await node._confirm()
    await node._confirm()
    assert renewed == [set(), {"w"}]


async def test_g3_a_claim_that_took_long_is_renewed_before_anything_runs(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands may run until shortly before the lease ends, counted from when it was asked for."""
    acquire, clock, passed_s = node._nodes.acquire, deadline.clock, 0.0

    async def acquire_slowly(workspace_id: str) -> TakenLease | None:
        nonlocal passed_s
        lease = await acquire(workspace_id)
        passed_s = node.lease_s / 2
        return lease

    asked_at = clock()
    monkeypatch.setattr(deadline, "clock", lambda: clock() + passed_s)
    monkeypatch.setattr(node._nodes, "acquire", acquire_slowly)
    told = Told(node)
    terms = await node.acquire("w")
    assert told.order == ["renewed"]
    assert terms.allowed is not None
    assert terms.allowed[1] >= asked_at + node.lease_s / 2


async def test_g3_a_claim_that_took_long_and_cannot_be_renewed_is_none(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire, clock, passed_s = node._nodes.acquire, deadline.clock, 0.0

    async def lose_meanwhile(workspace_id: str) -> TakenLease | None:
        nonlocal passed_s
        lease = await acquire(workspace_id)
        passed_s = node.lease_s / 2
        async with node._store.borrow() as connection:
            await connection.execute("UPDATE leases SET epoch = epoch + 1")
        return lease

    monkeypatch.setattr(deadline, "clock", lambda: clock() + passed_s)
    monkeypatch.setattr(node._nodes, "acquire", lose_meanwhile)
    with pytest.raises(OwnedElsewhere):
        await node.acquire("w")
    assert not node.owns("w")


async def test_what_is_claimed_after_a_long_silence_is_not_given_up(node: Node) -> None:
    told = Told(node)
    oversleep(node)
    await node.acquire("w")
    node.drop_expired()
    assert (node.owns("w"), told.order) == (True, ["renewed"])


async def test_a_lost_workspace_gets_no_more_time_for_its_commands(node: Node) -> None:
    """It is dropped before the others hear of the renewal."""
    told = Told(node)
    await node.acquire("w")
    node._held["w"] -= 1  # as if another owner had come: its epoch is higher
    await node._confirm()
    assert told.order == ["lost w", "renewed"]


async def test_a_workspace_that_is_slow_to_open_holds_up_no_renewal(
    node: Node, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, opening = Told(node), asyncio.Event()

    async def ownerless_workspaces() -> list[str]:
        return ["w"]

    async def never_open(workspace_id: str) -> None:
        assert workspace_id == "w"
        opening.set()
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(node._nodes, "ownerless_workspaces", ownerless_workspaces)
    node.when_orphaned(never_open)
    tasks.spawn(node.take_over_orphans(), name="take over orphans")
    await opening.wait()
    oversleep(node)
    tasks.spawn(node.keep_leases(), name="keep leases")
    await told.until("renewed")


async def test_g7_g8_a_workspace_that_is_slow_to_open_does_not_hold_up_what_else_a_node_looks_for(
    node: Node, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    looked = asyncio.Event()

    async def orphans() -> list[str]:
        if opened:
            looked.set()
        return ["slow", "w"] if opened else ["slow"]

    async def open_slowly(workspace_id: str) -> None:
        opened.append(workspace_id)
        if workspace_id == "slow":
            await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(node._nodes, "ownerless_workspaces", orphans)
    node.when_orphaned(open_slowly)
    tasks.spawn(node.take_over_orphans(), name="look around")
    while "w" not in opened:
        looked.clear()
        await looked.wait()
        await asyncio.sleep(0)
    assert opened.count("slow") == 1


async def test_an_error_that_nobody_expects_does_not_end_the_renewals(
    node: Node, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, failed = Told(node), asyncio.Event()
    confirm = node._nodes.confirm

    async def fail_once(held: Mapping[str, int]) -> Confirmed:
        if not failed.is_set():
            failed.set()
            raise ValueError("a bug of ours")
        return await confirm(held)

    monkeypatch.setattr(node._nodes, "confirm", fail_once)
    oversleep(node)
    tasks.spawn(node.keep_leases(), name="keep leases")
    await told.until("renewed")
    assert failed.is_set()


async def take_orphans(node: Node) -> None:
    async with Tasks() as takeovers:
        await node._take_orphans(takeovers)
        while takeovers.pending:
            await asyncio.wait(takeovers.pending)


async def test_a_workspace_that_cannot_be_opened_does_not_hold_up_the_others(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened: list[str] = []

    async def ownerless_workspaces() -> list[str]:
        return ["broken", "w"]

    async def take(workspace_id: str) -> None:
        opened.append(workspace_id)
        if workspace_id == "broken":
            raise ValueError("a row that nobody can read")

    monkeypatch.setattr(node._nodes, "ownerless_workspaces", ownerless_workspaces)
    node.when_orphaned(take)
    await take_orphans(node)
    await take_orphans(node)
    assert opened == ["broken", "w", "w"], "the broken one is tried again later"
    assert caplog.text.count("could not be taken over") == 1


async def test_a_node_that_is_about_to_leave_takes_nothing_over_and_complains_of_nothing(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def ownerless_workspaces() -> list[str]:
        return ["w"]

    async def leaving(_: str) -> None:
        raise ServerLeaving

    monkeypatch.setattr(node._nodes, "ownerless_workspaces", ownerless_workspaces)
    node.when_orphaned(leaving)
    await take_orphans(node)
    assert caplog.text == ""


async def test_a_lost_workspace_says_nothing_about_the_store() -> None:
    publisher = Publisher()
    loop = asyncio.get_running_loop()
    refused = PendingUnit(Unit(workspace_id="w"), loop.create_future(), error=OwnerLost())
    publisher.settle([refused])
    assert publisher.problem is None
    with pytest.raises(OwnerLost):
        await refused.future
