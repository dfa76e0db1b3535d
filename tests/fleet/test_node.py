"""What a node does with its leases, and when it gives them up (G3, G10)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from bench import AT
from postgres import database_of

from longboat.config.settings import ServerSection, Settings
from longboat.errors import OwnerLost
from longboat.fleet.node import Node
from longboat.store.changes import add_workspace
from longboat.store.postgres.store import open_postgres
from longboat.store.protocol import Unit
from longboat.store.publishing import PendingUnit, Publisher
from longboat.store.records import WorkspaceRecord
from longboat.tasks import Tasks


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
    node._confirmed_at = asyncio.get_running_loop().time() - 1_000


async def test_after_a_long_silence_everything_is_given_up_and_the_node_goes_on(node: Node, tasks: Tasks) -> None:
    told = Told(node)
    await node.claim("w")
    oversleep(node)
    tasks.spawn(node.keep_leases(), name="keep leases")
    await told.until("lost w", "renewed")
    assert not node.owns("w")
    await node.claim("w")
    assert node.owns("w")


async def test_what_is_claimed_after_a_long_silence_is_not_given_up(node: Node) -> None:
    told = Told(node)
    oversleep(node)
    await node.claim("w")
    node.lose_overdue()
    assert (node.owns("w"), told.order) == (True, ["renewed"])


async def test_a_lost_workspace_gets_no_more_time_for_its_commands(node: Node) -> None:
    """It is dropped before the others hear of the renewal."""
    told = Told(node)
    await node.claim("w")
    node._held["w"] -= 1  # as if another owner had come: its epoch is higher
    await node._confirm()
    assert told.order == ["lost w", "renewed"]


async def test_a_workspace_that_is_slow_to_open_holds_up_no_renewal(
    node: Node, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, opening = Told(node), asyncio.Event()

    async def orphans() -> list[str]:
        return ["w"]

    async def never_open(workspace_id: str) -> None:
        assert workspace_id == "w"
        opening.set()
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(node._nodes, "orphans", orphans)
    node.when_orphaned(never_open)
    tasks.spawn(node.look_around(), name="look around")
    await opening.wait()
    oversleep(node)
    tasks.spawn(node.keep_leases(), name="keep leases")
    await told.until("renewed")


async def test_a_workspace_that_cannot_be_opened_does_not_hold_up_the_others(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened: list[str] = []

    async def orphans() -> list[str]:
        return ["broken", "w"]

    async def take(workspace_id: str) -> None:
        opened.append(workspace_id)
        if workspace_id == "broken":
            raise ValueError("a row that nobody can read")

    monkeypatch.setattr(node._nodes, "orphans", orphans)
    node.when_orphaned(take)
    await node._take_orphans()
    await node._take_orphans()
    assert opened == ["broken", "w", "w"], "the broken one is tried again later"
    assert caplog.text.count("could not be taken over") == 1


async def test_a_lost_workspace_says_nothing_about_the_store() -> None:
    publisher = Publisher()
    loop = asyncio.get_running_loop()
    refused = PendingUnit(Unit(workspace_id="w"), loop.create_future(), error=OwnerLost())
    publisher.settle([refused])
    assert publisher.problem is None
    with pytest.raises(OwnerLost):
        await refused.future
