"""This server as one of several on a store: its leases, and what it does when it loses them.

Owns the time: an owner renews every third of the lease, and gives up if two thirds have passed without an answer.
Implements longboat.runtime.ownership.Ownership. Must not know HTTP.
"""

import asyncio
import base64
import hashlib
import hmac
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from socket import gethostname
from urllib.parse import urlsplit

from longboat import __version__
from longboat.config.settings import Settings
from longboat.errors import ListenError, OwnedElsewhere, ServerLeaving, StoreLost, StoreUnavailable, WorkspaceNotFound
from longboat.fleet.node_records import node_info, place, seen_text
from longboat.regular_files import opener
from longboat.runtime.clock import now
from longboat.runtime.ownership import OwnershipTerms, Place
from longboat.store.postgres.batch import UNFENCED
from longboat.store.postgres.nodes import Nodes, SharedTrustRows, TakenLease, Whereabouts
from longboat.store.postgres.notifications import PostgresNotifications
from longboat.store.postgres.schema import newest_known
from longboat.store.postgres.store import PostgresStore
from longboat.store.postgres.wakeups import Topic
from longboat.store.protocol import Store, Unit
from longboat.tasks import Tasks
from longboat.tools.process import deadline
from longboat.wire.listings import NodeInfo

logger = logging.getLogger(__name__)

GUARD_SHARE = 5 / 6
"""When this much of a lease has passed without a renewal, the guards end all commands by themselves, also if this
server is stopped. Early enough that they are gone when the lease is over."""
LOOK_S = 1.0
"""How often to look for directories that are back and for workspaces that nobody owns, if no wake-up comes."""
LOOK_REST_S = 0.05
"""Wake-ups within this time lead to one look: with many workspaces, many leases are released."""
AFTER_FAILURE_S = 60.0
LEAVE_S = 1.0
"""How long a server that stops waits for the database to note it. A lease that is not given back ends by itself."""
_EVERY_ADDRESS = ("0.0.0.0", "::", "")
DISK_FILE = "node"
"""A file in the data directory that tells it from those of other nodes."""


class Node:
    alone = False

    def __init__(self, settings: Settings, store: PostgresStore, *, url: str) -> None:
        self.name = settings.node
        self.url = url
        self.lease_s = settings.server.lease_s
        self._guard_s = self.lease_s * GUARD_SHARE
        self.secret = settings.cluster_secret.encode()
        self.token = settings.token
        self._shared = tuple(Path(tree) for tree in settings.server.shared_trees)
        self._store = store
        self._nodes = Nodes(store.borrow, self.name, instance=store.instance, lease_s=self.lease_s)
        self.notifications = PostgresNotifications(store.borrow, self.name)
        self._shared_trust = SharedTrustRows(store.borrow)
        self._held: dict[str, int] = {}
        """The epoch of each workspace that this node owns."""
        self._late: dict[str, float] = {}
        """When the leases were renewed last that could not be renewed with the others."""
        self._cared_for: set[str] = set()
        """The owned workspaces whose directory is on another node, which is not running."""
        self._not_before: dict[str, float] = {}
        """When to try again to take over workspaces that could not be opened."""
        self._abandoned: dict[str, float] = {}
        """Workspaces with something that has not ended here, and when their leases are over at the latest."""
        self._taking: set[str] = set()
        """The workspaces that are being taken over."""
        self._takeovers = 0
        """How many workspaces with unfinished runs were taken over from an owner that was gone."""
        self.relayed = 0
        """How many requests were passed on to other nodes."""
        self._leaving = False
        self._disk = ""
        self._started_at = now()
        self._confirmed_at = 0.0
        self._database_ahead_s = 0.0
        """The database's clock less our own, which counts from no particular time."""
        self._tell_lost: Callable[[str], None] = lambda _: None
        self._tell_renewed: Callable[[Collection[str], float, float], None] = lambda *_: None
        self._tell_inbox: Callable[[], None] = lambda: None
        self._take_over: Callable[[str], Awaitable[object]] | None = None
        self._tell_peer_gone: Callable[[str], None] = lambda _: None
        self._should_look = asyncio.Event()
        """Set for `take_over_orphans` when leases or nodes have changed."""
        self._leases_moved = asyncio.Event()
        """Set and cleared at once: wakes doors that wait for the next owner."""
        store.when_lost(self._lost)
        store.wakeups.when_woken(self._wake)

    async def join(self, disk: str) -> None:
        if not self.token:
            self.token = self._make_token(await self._nodes.token_seed(secrets.token_bytes(32)))
        self._disk = disk
        await self._register()
        await self._confirm()
        self._store.wakeups.send(Topic.LEASES)

    async def _register(self) -> None:
        await self._nodes.register(
            disk=self._disk,
            url=self.url,
            version=__version__,
            secret=self._fingerprint("longboat fingerprint"),
            token=self._fingerprint(f"longboat token {self.token}"),
            started_at=self._started_at,
        )
        self.notifications.forget_published()

    def _make_token(self, seed: bytes) -> str:
        """The token is the same on all nodes. The database stores only the seed."""
        made = hmac.digest(self.secret, b"longboat cluster token " + seed, hashlib.sha256)
        return base64.urlsafe_b64encode(made).rstrip(b"=").decode()

    @property
    def cluster_name(self) -> str:
        """A fingerprint that is the same on all nodes with this secret, and does not reveal it."""
        return self._fingerprint("longboat cluster name")[:16]

    def _fingerprint(self, text: str) -> str:
        return hmac.digest(self.secret, text.encode(), hashlib.sha256).hex()

    # For the app

    @property
    def is_confirmed(self) -> bool:
        return self._left_s() > 0

    def gauges(self) -> dict[str, float]:
        return {
            "lease_confirmed_seconds_ago": deadline.clock() - self._confirmed_at,
            "takeovers": self._takeovers,
            "relayed_requests": self.relayed,
        }

    def home_of(self, directory: Path) -> str:
        return "" if any(directory.is_relative_to(tree) for tree in self._shared) else self.name

    async def restore_workspace_of(self, directory: Path) -> None:
        await self._nodes.restore_workspace_of(str(directory), self.home_of(directory), host=gethostname())

    async def acquire(self, workspace_id: str) -> OwnershipTerms:
        if self._leaving or self._is_abandoned(workspace_id):
            raise OwnedElsewhere(workspace_id)
        if self._left_s() <= 0:  # a lease acquired now would not be known as confirmed
            self.drop_expired()
            await self._confirm()
        asked_at = deadline.clock()
        lease = await self._nodes.acquire(workspace_id)
        if lease is None:
            raise OwnedElsewhere(workspace_id)
        self._held[workspace_id] = lease.epoch
        self._store.hold(workspace_id, epoch=lease.epoch, number=lease.number, first_seq=lease.first_seq)
        if deadline.clock() - asked_at > self.lease_s * (1 - GUARD_SHARE):
            asked_at = await self._renew_at_once(workspace_id)
        place = self._place_of(workspace_id, lease)
        if not place.away:
            shared_trust = self._shared_trust if place.home is None else None
            return OwnershipTerms(place=place, allowed=(self._guard_s, asked_at), shared_trust=shared_trust)
        self._cared_for.add(workspace_id)
        return OwnershipTerms(place=place, resume=lease.resume)

    async def _renew_at_once(self, workspace_id: str) -> float:
        """The claim has waited for the former owner's last commit, and little of the lease may be left. Returns when
        the renewal was asked for."""
        try:
            await self._renew()
            if not self.owns(workspace_id) or workspace_id in self._late:
                raise OwnedElsewhere(workspace_id)
        except BaseException:
            self._forget(workspace_id)
            raise
        return self._confirmed_at

    def _place_of(self, workspace_id: str, lease: TakenLease) -> Place:
        away = lease.home not in ("", self.name)
        since = lease.home_seen_at if away else None
        return Place(home=lease.home or None, owner=self.name, away=away, away_since=seen_text(since), ready=not away)

    async def note_policy(self, workspace_id: str, *, resume: bool, ready: bool) -> None:
        epoch = self._held.get(workspace_id)
        if epoch is not None and workspace_id not in self._cared_for:
            await self._nodes.note_policy(workspace_id, epoch, resume=resume, ready=ready)

    def owns(self, workspace_id: str) -> bool:
        return workspace_id in self._held

    async def release(self, workspace_id: str, *, to: str | None = None) -> None:
        epoch = self._held.get(workspace_id)
        if epoch is None:
            return
        limit_s = LEAVE_S if self._leaving else self.lease_s / 3
        with suppress(StoreUnavailable, TimeoutError):  # if it cannot be given back, it ends by itself
            async with asyncio.timeout(limit_s):
                await self._store.submit(Unit(workspace_id=UNFENCED))  # after everything that was submitted before
        if self._held.get(workspace_id) != epoch:
            return  # it was lost meanwhile
        self._forget(workspace_id)
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._nodes.release(workspace_id, epoch, to=to)
        self._store.wakeups.send(Topic.LEASES)

    def abandon(self, workspace_id: str) -> None:
        self._forget(workspace_id)
        self._abandoned[workspace_id] = deadline.clock() + self.lease_s

    def _is_abandoned(self, workspace_id: str) -> bool:
        if self._abandoned.get(workspace_id, 0.0) > deadline.clock():
            return True
        self._abandoned.pop(workspace_id, None)
        return False

    def when_lost(self, told: Callable[[str], None]) -> None:
        self._tell_lost = told

    def when_renewed(self, told: Callable[[Collection[str], float, float], None]) -> None:
        self._tell_renewed = told

    def when_inbox_changed(self, told: Callable[[], None]) -> None:
        self._tell_inbox = told

    def when_orphaned(self, take_over: Callable[[str], Awaitable[object]]) -> None:
        self._take_over = take_over

    # For the door

    async def find(self, workspace_id: str) -> Whereabouts:
        found = await self._nodes.find(workspace_id)
        if found is None:
            raise WorkspaceNotFound(workspace_id)
        return found

    async def nodes(self) -> tuple[NodeInfo, ...]:
        return tuple([node_info(each, answering=each.name == self.name) for each in await self._nodes.all()])

    async def places(self) -> dict[str, Place]:
        return {each.workspace_id: place(each) for each in await self._nodes.places()}

    async def accepts_workspaces(self, node: str) -> bool:
        return any(
            each.name == node and each.alive and not each.leaving and each.name != self.name
            for each in await self._nodes.all()
        )

    async def peers(self) -> dict[str, str]:
        """The addresses of the other nodes that are running, by name."""
        running = [each for each in await self._nodes.all() if each.alive and each.name != self.name]
        return {each.name: each.url for each in running}

    def when_peer_gone(self, told: Callable[[str], None]) -> None:
        """Call this with the address of each node that has not been heard of for a lease, again and again."""
        self._tell_peer_gone = told

    @property
    def leaving(self) -> bool:
        return self._leaving

    def database_time(self) -> float:
        """Seconds since 1970 by the database's clock, which all nodes share."""
        return deadline.clock() + self._database_ahead_s

    # Leases

    async def keep_leases(self) -> None:
        """Renew the leases as long as the server runs. Nothing else is done in between: a renewal must not wait."""
        while True:
            await asyncio.sleep(min(LOOK_S, self.lease_s / 3))
            if not self._is_renewal_due():
                continue
            self.drop_expired()
            try:
                await self._renew()
            except (StoreUnavailable, TimeoutError) as error:
                logger.warning("the leases could not be renewed: %s", str(error) or type(error).__name__)
            except Exception:
                logger.exception("the leases could not be renewed")

    def _is_renewal_due(self) -> bool:
        return bool(self._late) or deadline.clock() - self._confirmed_at >= self.lease_s / 3

    async def _renew(self) -> None:
        """Try twice in the time that is left, on another connection the second time: the first may be dead. A lease is
        locked while a transaction of its workspace is under way, so the second try waits for none."""
        try:
            async with asyncio.timeout((self._left_s() if self._held else self.lease_s / 3) / 2):
                await self._confirm()
                return
        except (StoreUnavailable, TimeoutError) as error:
            logger.debug("the leases are not renewed yet: %s", str(error) or type(error).__name__)
        async with asyncio.timeout(self._left_s() if self._held else self.lease_s / 3):
            await self._confirm(skip_locked=True)

    async def take_over_orphans(self) -> None:
        """Note which nodes are gone, give back workspaces whose home is running again, and take over those that nobody
        owns."""
        async with Tasks() as takeovers:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(LOOK_S, self.lease_s / 3)):
                        await self._should_look.wait()
                self._should_look.clear()
                await asyncio.sleep(LOOK_REST_S)
                try:
                    for url in await self._nodes.dead_node_urls():
                        self._tell_peer_gone(url)
                    await self._hand_back()
                    await self._take_orphans(takeovers)
                except StoreUnavailable:
                    pass  # keep_leases tells
                except Exception:
                    logger.exception("the other nodes could not be looked at")

    async def _hand_back(self) -> None:
        if self._cared_for:
            for workspace_id in await self._nodes.at_home_again(self._cared_for):
                logger.info("the directory of workspace %s is back", workspace_id)
                self._tell_lost(workspace_id)  # what is written is written; the app releases it once it is closed

    def _left_s(self, since: float | None = None) -> float:
        """How many seconds are left until two thirds of the lease have passed since this renewal, or the last one. Then
        everything has to end, so that it is over before the lease is."""
        since = self._confirmed_at if since is None else since
        return max(since + self.lease_s * 2 / 3 - deadline.clock(), 0.0)

    async def _confirm(self, *, skip_locked: bool = False) -> None:
        asked_at, held, before = deadline.clock(), dict(self._held), self._confirmed_at
        confirmed = await (self._nodes.confirm(held, skip_locked=True) if skip_locked else self._nodes.confirm(held))
        if confirmed.instance is None:  # a database that failed over may have forgotten it
            await self._register()
        elif confirmed.instance != self._store.instance:
            raise self._give_up("another server uses the name of this node now")
        if confirmed.floor > newest_known():  # it was paused or cut off meanwhile: no migration locks out others
            raise self._give_up("a newer Longboat has changed it, and this version is too old for it: upgrade")
        self._confirmed_at = asked_at
        self._database_ahead_s = confirmed.at - deadline.clock()
        for workspace_id, epoch in held.items():
            if workspace_id in confirmed.kept:
                self._late.pop(workspace_id, None)
            elif self._held.get(workspace_id) == epoch and workspace_id in confirmed.locked:
                self._late.setdefault(workspace_id, before)
            elif self._held.get(workspace_id) == epoch:
                self._lost(workspace_id)
        self._tell_renewed(confirmed.kept, self._guard_s, asked_at)

    def _give_up(self, why: str) -> StoreLost:
        """Write nothing more: this node was paused or cut off, and what was done meanwhile leaves no place for it."""
        lost = self._store.lose(why)
        for workspace_id in list(self._held):
            self._lost(workspace_id)
        return lost

    async def drop_before_expiry(self) -> None:
        """Drop everything when two thirds of the lease have passed, also while a renewal is still under way: a database
        that stands still does not answer, and does not refuse either."""
        while True:
            left_s = min(self._left_s(since) for since in (self._confirmed_at, *self._late.values()))
            await asyncio.sleep(min(left_s or LOOK_S, self.lease_s / 3))
            self.drop_expired()

    def drop_expired(self) -> None:
        """Drop everything if the last renewal is too long ago: because the database was away, or this process slept."""
        if self._held and self._left_s() <= 0:
            logger.error("%d leases were not confirmed in time: their work ends here", len(self._held))
            for workspace_id in list(self._held):
                self._lost(workspace_id)
        for workspace_id in [each for each, since in self._late.items() if self._left_s(since) <= 0]:
            logger.error("the lease of workspace %s was not confirmed in time: its work ends here", workspace_id)
            self._lost(workspace_id)

    def _lost(self, workspace_id: str) -> None:
        logger.warning("workspace %s is no longer ours", workspace_id)
        self._forget(workspace_id)
        self._tell_lost(workspace_id)

    def _forget(self, workspace_id: str) -> None:
        self._held.pop(workspace_id, None)
        self._late.pop(workspace_id, None)
        self._cared_for.discard(workspace_id)
        self._store.let_go(workspace_id)

    async def _take_orphans(self, takeovers: Tasks) -> None:
        """Take over each workspace in a task of its own, so that a slow one delays nothing else."""
        if self._leaving or self._take_over is None:
            return
        clock = asyncio.get_running_loop().time
        for workspace_id in await self._nodes.ownerless_workspaces():
            is_ours = workspace_id in self._held or workspace_id in self._taking
            if not is_ours and clock() >= self._not_before.get(workspace_id, 0.0):
                self._taking.add(workspace_id)
                taking = takeovers.spawn(
                    self._take_orphan(workspace_id, self._take_over), name=f"take over {workspace_id}"
                )
                taking.add_done_callback(partial(self._forget_taking, workspace_id))

    def _forget_taking(self, workspace_id: str, _: object) -> None:
        self._taking.discard(workspace_id)

    async def _take_orphan(self, workspace_id: str, take_over: Callable[[str], Awaitable[object]]) -> None:
        try:
            await take_over(workspace_id)
            self._takeovers += 1
        except (OwnedElsewhere, ServerLeaving, StoreUnavailable):
            return  # another node was faster, this one is about to leave, or the next look tries again
        except Exception:
            # A damaged row or a bug of ours must not affect the other workspaces.
            logger.exception("workspace %s could not be taken over", workspace_id)
            self._not_before[workspace_id] = asyncio.get_running_loop().time() + AFTER_FAILURE_S

    def _wake(self, topic: Topic) -> None:
        match topic:
            case Topic.INBOX:
                self._tell_inbox()
            case Topic.LEASES:
                self._should_look.set()
                self._leases_moved.set()
                self._leases_moved.clear()

    async def wait_leases_moved(self, timeout_s: float) -> None:
        """Return early if another node may have released a workspace."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._leases_moved.wait()

    async def leave(self) -> None:
        """Take no more workspaces, and tell the others."""
        self._leaving = True
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await self._nodes.leave()
        self._store.wakeups.send(Topic.LEASES)

    async def sign_off(self) -> None:
        self._leaving = True
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await self._nodes.sign_off(self._held)
                await self._store.wakeups.tell(Topic.LEASES)


@asynccontextmanager
async def open_node(settings: Settings, store: Store, *, url: str | None) -> AsyncIterator[Node]:
    """Join the other nodes; leave them at the end. `url`: where it listens."""
    reached_at = settings.advertise or (url and _on_this_machine(url, settings.host))
    if reached_at is None:
        raise ListenError("The nodes of a cluster talk to each other over TCP. Pass --host, or --advertise URL.")
    assert isinstance(store, PostgresStore)
    node = Node(settings, store, url=reached_at.rstrip("/"))
    await node.join(await asyncio.to_thread(_disk, settings.data_dir))
    async with Tasks() as tasks:
        tasks.spawn(node.keep_leases(), name="keep leases")
        tasks.spawn(node.drop_before_expiry(), name="drop before expiry")
        tasks.spawn(node.take_over_orphans(), name="take over orphans")
        tasks.spawn(node.notifications.keep_answering_current(), name="note who can answer")
        try:
            yield node
        finally:
            await node.sign_off()


def _on_this_machine(url: str, host: str | None) -> str:
    """The address for other machines. If the server listens on every address: this machine's name."""
    return f"http://{gethostname()}:{urlsplit(url).port}" if host in _EVERY_ADDRESS else url


def _disk(data_dir: Path) -> str:
    """The permanent id of this data directory."""
    path = data_dir / DISK_FILE
    with suppress(FileNotFoundError):
        return path.read_text("ascii").strip()
    made = secrets.token_hex(16)
    with open(path, "x", encoding="ascii", opener=opener) as file:
        file.write(made)
    return made
