"""This server as one of several on a store: its leases, and what it does when it loses them.

Owns the time: an owner renews every third of the lease, and gives up if two thirds have passed without an answer.
Implements longboat.runtime.ownership.Ownership. Must not know HTTP.
"""

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from longboat import __version__
from longboat.config.settings import Settings
from longboat.errors import ListenError, OwnedElsewhere, StoreUnavailable, WorkspaceNotFound
from longboat.regular import opener
from longboat.runtime.clock import as_text, now
from longboat.runtime.ownership import Claimed
from longboat.store.postgres.nodes import NodeRecord, Nodes, Whereabouts
from longboat.store.postgres.store import UNFENCED, PostgresStore
from longboat.store.protocol import Store, Unit
from longboat.tasks import Tasks
from longboat.tools.process import deadline
from longboat.wire.listings import NodeInfo, NodeState

logger = logging.getLogger(__name__)

GUARD_SHARE = 5 / 6
"""When this much of a lease has passed without a renewal, the guards end all commands by themselves, also if this
server is stopped. Early enough that they are gone when the lease is over."""
LOOK_S = 1.0
"""How often to look for directories that are back and for workspaces that nobody owns."""
AFTER_FAILURE_S = 60.0
DISK_FILE = "node"
"""In the data directory: tells it from those of other machines."""


class Node:
    alone = False

    def __init__(self, settings: Settings, store: PostgresStore, *, url: str) -> None:
        self.name = settings.node
        self.url = url
        self.lease_s = settings.server.lease_s
        self._guard_s = self.lease_s * GUARD_SHARE
        self.secret = settings.cluster_secret.encode()
        self._shared = tuple(Path(tree) for tree in settings.server.shared_trees)
        self._store = store
        self._nodes = Nodes(store.borrow, self.name, lease_s=self.lease_s)
        self._held: dict[str, int] = {}
        """The epoch of each workspace that this node owns."""
        self._cared_for: set[str] = set()
        """Those of them whose directory is on another node, which is not running."""
        self._not_before: dict[str, float] = {}
        """When to try again to take over workspaces that could not be opened."""
        self._leaving = False
        self._confirmed_at = 0.0
        self._database_ahead_s = 0.0
        """The database's clock less our own, which counts from no particular time."""
        self._tell_lost: Callable[[str], None] = lambda _: None
        self._tell_renewed: Callable[[float, float], None] = lambda *_: None
        self._take_over: Callable[[str], Awaitable[object]] | None = None
        store.when_lost(self._lost)

    async def join(self, disk: str) -> None:
        fingerprint = hmac.digest(self.secret, b"longboat fingerprint", hashlib.sha256).hex()
        await self._nodes.register(disk=disk, url=self.url, version=__version__, secret=fingerprint, started_at=now())
        await self._confirm()

    # For the app

    def home_of(self, directory: Path) -> str:
        return "" if any(directory.is_relative_to(tree) for tree in self._shared) else self.name

    async def claim(self, workspace_id: str) -> Claimed:
        if self._leaving:
            raise OwnedElsewhere(workspace_id)
        if self._left_s() <= 0:  # nothing that was claimed now would be known as confirmed
            self.lose_overdue()
            await self._confirm()
        asked_at = deadline.clock()
        claim = await self._nodes.claim(workspace_id)
        if claim is None:
            raise OwnedElsewhere(workspace_id)
        self._held[workspace_id] = claim.epoch
        self._store.hold(workspace_id, epoch=claim.epoch, number=claim.number, first_seq=claim.first_seq)
        if claim.home in ("", self.name):
            return Claimed(allowed=(self._guard_s, asked_at))
        self._cared_for.add(workspace_id)
        since = datetime.fromtimestamp(claim.home_until or 0, UTC)
        return Claimed(away_since=as_text(since), resume=claim.resume)

    async def note_policy(self, workspace_id: str, *, resume: bool) -> None:
        if workspace_id not in self._cared_for:
            await self._nodes.note_policy(workspace_id, resume=resume)

    def owns(self, workspace_id: str) -> bool:
        return workspace_id in self._held

    async def release(self, workspace_id: str) -> None:
        epoch = self._held.get(workspace_id)
        if epoch is None:
            return
        with suppress(StoreUnavailable):  # if it cannot be given back, it ends by itself
            await self._store.submit(Unit(workspace_id=UNFENCED))  # after everything that was submitted before
        self._forget(workspace_id)
        with suppress(StoreUnavailable):
            await self._nodes.release(workspace_id, epoch)

    def when_lost(self, told: Callable[[str], None]) -> None:
        self._tell_lost = told

    def when_renewed(self, told: Callable[[float, float], None]) -> None:
        self._tell_renewed = told

    def when_orphaned(self, take_over: Callable[[str], Awaitable[object]]) -> None:
        self._take_over = take_over

    # For the door

    async def find(self, workspace_id: str) -> Whereabouts:
        found = await self._nodes.find(workspace_id)
        if found is None:
            raise WorkspaceNotFound(workspace_id)
        return found

    async def nodes(self) -> tuple[NodeInfo, ...]:
        return tuple(
            NodeInfo(
                name=each.name,
                url=each.url,
                version=each.version,
                started_at=each.started_at,
                state=_state(each),
                owned=each.owned,
                homes=each.homes,
                answering=each.name == self.name,
            )
            for each in await self._nodes.all()
        )

    async def peers(self) -> dict[str, str]:
        """The addresses of the other nodes that are running, by name."""
        running = [each for each in await self._nodes.all() if each.alive and each.name != self.name]
        return {each.name: each.url for each in running}

    @property
    def leaving(self) -> bool:
        return self._leaving

    def database_time(self) -> float:
        """Seconds since 1970 by the database's clock, which all nodes share."""
        return asyncio.get_running_loop().time() + self._database_ahead_s

    # Leases

    async def keep_leases(self) -> None:
        """Renew the leases as long as the server runs. Nothing else is done in between: a renewal must not wait."""
        while True:
            await asyncio.sleep(min(LOOK_S, self.lease_s / 3))
            if asyncio.get_running_loop().time() - self._confirmed_at < self.lease_s / 3:
                continue
            self.lose_overdue()
            try:
                async with asyncio.timeout(self._left_s() if self._held else self.lease_s / 3):
                    await self._confirm()
            except (StoreUnavailable, TimeoutError) as error:
                logger.warning("the leases could not be renewed: %s", str(error) or type(error).__name__)

    async def look_around(self) -> None:
        """Give back workspaces whose home is running again, and take over those that nobody owns."""
        while True:
            await asyncio.sleep(min(LOOK_S, self.lease_s / 3))
            with suppress(StoreUnavailable):  # keep_leases tells
                await self._hand_back()
                await self._take_orphans()

    async def _hand_back(self) -> None:
        if self._cared_for:
            for workspace_id in await self._nodes.returned(self._cared_for):
                logger.info("the directory of workspace %s is back", workspace_id)
                self._tell_lost(workspace_id)  # what is written is written; the app releases it once it is closed

    def _left_s(self) -> float:
        """Until two thirds of the lease have passed since the last renewal. Then everything has to end, so that it is
        over before the lease is."""
        return max(self._confirmed_at + self.lease_s * 2 / 3 - asyncio.get_running_loop().time(), 0.0)

    async def _confirm(self) -> None:
        clock = asyncio.get_running_loop().time
        asked_at, held, since = clock(), dict(self._held), deadline.clock()
        confirmed = await self._nodes.confirm(held)
        self._confirmed_at = asked_at
        self._database_ahead_s = confirmed.at - clock()
        for workspace_id, epoch in held.items():
            if workspace_id not in confirmed.kept and self._held.get(workspace_id) == epoch:
                self._lost(workspace_id)
        self._tell_renewed(self._guard_s, since)

    def lose_overdue(self) -> None:
        """Drop everything if the last renewal is too long ago: because the database was away, or this process slept."""
        if self._held and self._left_s() <= 0:
            logger.error("%d leases were not confirmed in time: their work ends here", len(self._held))
            for workspace_id in list(self._held):
                self._lost(workspace_id)

    def _lost(self, workspace_id: str) -> None:
        logger.warning("workspace %s is no longer ours", workspace_id)
        self._forget(workspace_id)
        self._tell_lost(workspace_id)

    def _forget(self, workspace_id: str) -> None:
        self._held.pop(workspace_id, None)
        self._cared_for.discard(workspace_id)
        self._store.let_go(workspace_id)

    async def _take_orphans(self) -> None:
        if self._leaving or self._take_over is None:
            return
        clock = asyncio.get_running_loop().time
        for workspace_id in await self._nodes.orphans():
            if workspace_id in self._held or clock() < self._not_before.get(workspace_id, 0.0):
                continue
            try:
                await self._take_over(workspace_id)
            except OwnedElsewhere:
                continue  # another node was faster
            except StoreUnavailable:
                raise
            except Exception:
                # A damaged row or a bug of ours must not affect the other workspaces.
                logger.exception("workspace %s could not be taken over", workspace_id)
                self._not_before[workspace_id] = clock() + AFTER_FAILURE_S

    async def leave(self) -> None:
        """Take no more workspaces, and tell the others."""
        self._leaving = True
        with suppress(StoreUnavailable):
            await self._nodes.leave()

    async def sign_off(self) -> None:
        self._leaving = True
        with suppress(StoreUnavailable):
            await self._nodes.sign_off()


@asynccontextmanager
async def open_node(settings: Settings, store: Store, *, url: str | None) -> AsyncIterator[Node]:
    """Join the other nodes; leave them at the end. `url`: where it listens."""
    reached_at = settings.advertise or url
    if reached_at is None:
        raise ListenError("The nodes of a cluster talk to each other over TCP. Pass --host, or --advertise URL.")
    assert isinstance(store, PostgresStore)
    node = Node(settings, store, url=reached_at.rstrip("/"))
    await node.join(await asyncio.to_thread(_disk, settings.data_dir))
    async with Tasks() as tasks:
        tasks.spawn(node.keep_leases(), name="keep leases")
        tasks.spawn(node.look_around(), name="look around")
        try:
            yield node
        finally:
            await node.sign_off()


def _state(node: NodeRecord) -> NodeState:
    if not node.alive:
        return NodeState.GONE
    return NodeState.LEAVING if node.leaving else NodeState.RUNNING


def _disk(data_dir: Path) -> str:
    """What this data directory is known by, for ever."""
    path = data_dir / DISK_FILE
    with suppress(FileNotFoundError):
        return path.read_text("ascii").strip()
    made = secrets.token_hex(16)
    with open(path, "x", encoding="ascii", opener=opener) as file:
        file.write(made)
    return made
