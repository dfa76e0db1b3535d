"""Whether this server may work on a workspace and write to it. Alone on its store, it always may."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from longboat.config.settings import Settings
from longboat.errors import OwnerLost
from longboat.store.protocol import Listener, Report, Store, Unit
from longboat.store.reads import Reads
from longboat.wire.inbox import InboxItem
from longboat.wire.listings import NodeInfo

NODE_KEY = "node-"
"""Prefix of the idempotency keys that nodes add to requests without one."""
OBSERVED = "longboat.observed"
"""In the scope of a request: the owner cannot be reached, so answer with what the store has, or not at all. Names the
owner's address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the directory of a workspace is, and who works on it."""

    home: str | None = None
    """None: every node has the directory, or there is only one server."""
    owner: str | None = None
    away: bool = False
    """The home is down or stopping."""
    away_since: str | None = None
    """When the home was last heard of; None: never."""
    home_stopping: bool = False
    """Away, because the home finishes its active runs and takes no more work."""
    ready: bool = True
    """The directory exists and its configuration can be used, as far as its owner has told."""


NOWHERE = Place()


class SharedTrust(Protocol):
    """Changes of trusted project files, shared by the servers that have the directory."""

    async def record_change(self, workspace_id: str, before: str, after: str) -> None:
        """Record that a person chose “always”, which changes the project's file: see `longboat.config.trust.follow`."""
        ...

    async def changes(self, workspace_id: str) -> Collection[tuple[str, str]]:
        """All recorded changes, each with the digests before and after."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipTerms:
    """On what terms a server owns a workspace."""

    place: Place = NOWHERE
    """If the directory is away, nothing can run here."""
    allowed: tuple[float, float] | None = None
    """For how many seconds commands may run unless the lease is renewed, and since when by the clock of
    longboat.tools.process.deadline; None: without end."""
    resume: bool = False
    """If the directory is away: whether its configuration says that an active run continues after a crash."""
    shared_trust: SharedTrust | None = None
    """None: no other server has the directory."""


class SharedNotifications(Protocol):
    """Notifications sent jointly by the servers that share a store."""

    async def push_key(self, proposed: bytes) -> bytes:
        """The key that all servers sign notifications with: this one, if there is none yet."""
        ...

    async def take_items(self, *, limit: int) -> list[InboxItem]:
        """New inbox items to send notifications of, oldest first. No other server gets them."""
        ...

    def set_answering_counter(self, count: Callable[[], int]) -> None:
        """Set what counts the inbox streams of this server whose clients can answer."""
        ...

    async def publish_answering(self) -> None:
        """Tell the other servers whether there are any."""
        ...

    async def is_someone_reachable(self) -> bool:
        """Whether anyone would get a notification, or can answer at an inbox stream of any server."""
        ...


class Ownership(Protocol):
    """What the app asks before it opens a workspace, and tells once it has closed it."""

    alone: bool
    """No other server uses this store."""
    token: str
    """The token of this server and of all that share its store."""

    @property
    def notifications(self) -> SharedNotifications | None:
        """How this server sends notifications with others; None: it is alone on the store."""
        ...

    @property
    def is_confirmed(self) -> bool:
        """Whether the database has confirmed lately that this server may work."""
        ...

    def gauges(self) -> dict[str, float]:
        """Values for the metrics."""
        ...

    def home_of(self, directory: Path) -> str:
        """The node whose disk has this directory of ours; empty: every node has it."""
        ...

    async def restore_workspace_of(self, directory: Path) -> None:
        """Give a directory without a workspace the one that it had before it was declared shared, or before this server
        was a node, if there is one."""
        ...

    async def acquire(self, workspace_id: str) -> OwnershipTerms:
        """Become the owner; raises OwnedElsewhere."""
        ...

    async def note_policy(self, workspace_id: str, *, resume: bool, ready: bool) -> None:
        """Remember what the servers without the directory must know of it: its policy, for the time when it is away,
        and whether it can be worked in."""
        ...

    def owns(self, workspace_id: str) -> bool: ...

    async def release(self, workspace_id: str, *, to: str | None = None) -> None:
        """Another node may become the owner. Only after everything is written and every tool has ended. `to`: this
        one, if it takes workspaces."""
        ...

    def abandon(self, workspace_id: str) -> None:
        """Renew the lease no longer: something of the workspace has not ended here. Another node may become the owner
        once the lease is over; by then, the guards have ended all commands."""
        ...

    async def accepts_workspaces(self, node: str) -> bool:
        """Whether another node with this name is running and accepts workspaces."""
        ...

    async def nodes(self) -> tuple[NodeInfo, ...]:
        """The servers that share the store; none if there is only this one."""
        ...

    async def places(self) -> Mapping[str, Place]:
        """Where each workspace is, by id; empty if there is only this server."""
        ...

    def when_renewed(self, told: Callable[[Collection[str], float, float], None]) -> None:
        """Call this with the workspaces whose leases were renewed, and how many seconds their commands may go on, and
        since when: see `OwnershipTerms.allowed`."""
        ...

    def when_orphaned(self, take_over: Callable[[str], Awaitable[object]]) -> None:
        """Call this with each workspace that has work left and whose owner is gone."""
        ...

    def when_inbox_changed(self, told: Callable[[], None]) -> None:
        """Call this when another server may have changed what the inbox shows."""
        ...

    async def leave(self) -> None:
        """Accept no more workspaces."""
        ...

    def when_lost(self, told: Callable[[str], None]) -> None:
        """Call this with each workspace that is no longer ours: its turns and tools must end at once."""
        ...


class OpenOwnership(Protocol):
    """Opens what says which workspaces are ours. `url`: where the server listens."""

    def __call__(
        self, settings: Settings, store: Store, *, url: str | None
    ) -> AbstractAsyncContextManager[Ownership]: ...


class WorkspaceStore:
    """The store for the sessions of one workspace object. Once that is closed, it takes no more units: another object
    may be at work by then, in this process too, and what was left behind must not get into its log."""

    def __init__(self, store: Store) -> None:
        self.epoch = store.epoch
        self._store = store
        self._closed = False

    def close(self) -> None:
        self._closed = True

    def submit(self, unit: Unit) -> "asyncio.Future[None]":
        if not self._closed:
            return self._store.submit(unit)
        refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        refused.set_exception(OwnerLost())
        return refused

    @property
    def reads(self) -> Reads:
        return self._store.reads

    @property
    def problem(self) -> str | None:
        return self._store.problem

    def next_seq(self) -> int:
        return self._store.next_seq()

    async def check(self, *, limit_s: float) -> Report:
        return await self._store.check(limit_s=limit_s)

    def when_gone(self, told: Callable[[], None]) -> None:
        self._store.when_gone(told)

    def listen(self, workspace_id: str, listener: Listener | None) -> None:
        self._store.listen(workspace_id, listener)

    def watch(self, watcher: Callable[[Unit], None] | None) -> None:
        self._store.watch(watcher)


class SoleOwner:
    """The owner of everything in its store: the only server."""

    alone = True
    notifications = None
    is_confirmed = True

    def __init__(self, name: str, token: str = "") -> None:
        self._name = name
        self.token = token

    def gauges(self) -> dict[str, float]:
        return {}

    def home_of(self, directory: Path) -> str:
        del directory
        return self._name

    async def restore_workspace_of(self, directory: Path) -> None:
        pass

    async def acquire(self, workspace_id: str) -> OwnershipTerms:
        del workspace_id
        return OwnershipTerms()

    async def note_policy(self, workspace_id: str, *, resume: bool, ready: bool) -> None:
        pass

    def owns(self, workspace_id: str) -> bool:
        del workspace_id
        return True

    async def release(self, workspace_id: str, *, to: str | None = None) -> None:
        pass

    def abandon(self, workspace_id: str) -> None:
        pass

    async def accepts_workspaces(self, node: str) -> bool:
        del node
        return False

    async def nodes(self) -> tuple[NodeInfo, ...]:
        return ()

    async def places(self) -> Mapping[str, Place]:
        return {}

    def when_renewed(self, told: Callable[[Collection[str], float, float], None]) -> None:
        pass

    def when_orphaned(self, take_over: Callable[[str], Awaitable[object]]) -> None:
        pass

    def when_inbox_changed(self, told: Callable[[], None]) -> None:
        pass

    async def leave(self) -> None:
        pass

    def when_lost(self, told: Callable[[str], None]) -> None:
        pass


@asynccontextmanager
async def open_sole_owner(settings: Settings, store: Store, *, url: str | None) -> AsyncIterator[Ownership]:
    del store, url
    yield SoleOwner(settings.node, settings.token)
