"""The servers that share a store, and who owns which workspace: rows that only nodes write.

Owns the statements that acquire, renew and release leases. Each is a single statement by the database's clock: no other
clock counts. Must not know what an owner does.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from longboat.errors import DataDirError
from longboat.store.postgres.schema import check_floor, newest_known

Borrow = Callable[[], AbstractAsyncContextManager[Any]]


class Lend(Protocol):
    def __call__(self, *, renewing: bool = False) -> AbstractAsyncContextManager[Any]:
        """A connection for a moment; with `renewing`, one that nothing else uses."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    name: str
    url: str
    version: str
    started_at: str
    seen_at: datetime
    leaving: bool
    alive: bool
    owns: int
    """How many workspaces it owns now."""
    home_of: int
    """How many workspaces are on its disk."""
    runs_active: int
    runs_waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """Where the directory of a workspace is, and who decides for it."""

    home: str
    """The node with the directory; empty: every node has it."""
    home_url: str | None
    """None: that node is not alive, or about to leave."""
    owner: str | None
    """The node with a lease that is not over."""
    owner_url: str | None
    epoch: int
    until: float
    """When the lease ends, in seconds since 1970; 0: there is no owner."""
    other_url: str | None
    """A node that is not this one and takes workspaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceRecord:
    workspace_id: str
    home: str
    """Empty: every node has the directory."""
    owner: str | None
    away: bool
    """The home is not running, or about to leave and no longer the owner."""
    away_since: datetime | None
    """When the home was last heard of; None: never."""
    home_stopping: bool
    """The home is about to leave, and still running."""
    ready: bool
    """Whether the directory and its configuration could be used when an owner last looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenLease:
    epoch: int
    number: int
    """The number of the newest event."""
    first_seq: int
    home: str
    home_seen_at: datetime | None
    """When the home was last heard of; None: never."""
    resume: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """What a renewal found."""

    at: float
    """The database's time, in seconds since 1970."""
    kept: frozenset[str]
    """The workspaces whose leases are renewed."""
    locked: frozenset[str]
    """Those whose leases were left out and are still ours."""
    instance: str | None
    """Which server has the name of this node now; None: the database does not know the name."""
    floor: int
    """The oldest schema whose servers can use the database."""


class Nodes:
    def __init__(self, borrow: Lend, name: str, *, instance: str, lease_s: float) -> None:
        """`instance` tells this start of the server from all others."""
        self._borrow = borrow
        self._name = name
        self._instance = instance
        self._lease_s = lease_s

    async def register(self, *, disk: str, url: str, version: str, secret: str, token: str, started_at: str) -> None:
        """Join the others. Refuses a name or an address that another machine uses, a secret or a token that differs
        from theirs, and a database that became too new. `secret`, `token`: their fingerprints."""
        async with self._borrow() as connection, connection.transaction():
            await connection.execute("LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE")
            await check_floor(connection)
            others = await connection.fetch(_LIVE)
            if any(each["name"] == self._name and each["disk"] != disk for each in others):
                raise DataDirError(
                    f"Another machine uses the name {self._name} with this store. Choose another with --node.",
                    code="node_name_taken",
                )
            others = [each for each in others if each["name"] != self._name]
            if same := [each["name"] for each in others if each["url"] == url]:
                raise DataDirError(
                    f"Node {same[0]} has the address {url}, too. Pass --advertise URL with the address at which the "
                    "other nodes reach this one.",
                    code="node_address_taken",
                )
            if any(each["secret"] != secret for each in others):
                raise DataDirError(
                    "LONGBOAT_CLUSTER_SECRET differs from that of the other nodes. Copy it from one of them.",
                    code="wrong_cluster_secret",
                )
            if any(each["token"] not in (token, "") for each in others):
                raise DataDirError(
                    "The token of this node differs from that of the other nodes. Set LONGBOAT_TOKEN to the same value "
                    "on all of them; to change it, stop all nodes first.",
                    code="wrong_cluster_token",
                )
            await connection.execute(_REPLACE, self._name, disk, self._instance)
            values = (self._name, disk, url, version, secret, started_at, self._lease_s, token, self._instance)
            await connection.execute(_REGISTER, *values, newest_known())
            await connection.execute(_FORGET_OLD_NODES)

    async def token_seed(self, proposed: bytes) -> bytes:
        """The value that the nodes derive their token from: this, if there is none yet."""
        async with self._borrow() as connection:
            await connection.execute("INSERT INTO cluster_token (seed) VALUES ($1) ON CONFLICT DO NOTHING", proposed)
            kept: bytes = await connection.fetchval("SELECT seed FROM cluster_token")
        return kept

    async def confirm(self, held: Mapping[str, int], *, skip_locked: bool = False) -> Confirmed:
        """Renew this node and the leases that it holds, by workspace and epoch. Waits for transactions that have locked
        a lease, or leaves those leases out."""
        async with self._borrow(renewing=True) as connection:
            row = await connection.fetchrow(
                _CONFIRM_UNLOCKED if skip_locked else _CONFIRM,
                self._name,
                self._lease_s,
                list(held),
                list(held.values()),
                self._instance,
            )
        kept = frozenset(row["kept"])
        locked = frozenset(row["ours"]) - kept if skip_locked else frozenset[str]()
        return Confirmed(at=row["at"], kept=kept, locked=locked, instance=row["instance"], floor=row["floor"])

    async def leave(self) -> None:
        """Tell the others that this node accepts no more workspaces."""
        async with self._borrow() as connection:
            await connection.execute(_LEAVE, self._name, self._instance)

    async def sign_off(self, held: Iterable[str]) -> None:
        """Give these workspaces back. Other leases of this node end by themselves."""
        async with self._borrow() as connection:
            await connection.execute(_SIGN_OFF, self._name, list(held), self._instance)

    async def find(self, workspace_id: str) -> Whereabouts | None:
        async with self._borrow() as connection:
            row = await connection.fetchrow(_FIND, workspace_id, self._name)
        return None if row is None else Whereabouts(**row)

    async def acquire(self, workspace_id: str) -> TakenLease | None:
        """Become the owner, unless another node has a lease, or the directory and is running."""
        async with self._borrow() as connection, connection.transaction():
            epoch = await connection.fetchval(_CLAIM, workspace_id, self._name, self._lease_s, self._instance)
            if epoch is None:
                return None
            row = await connection.fetchrow(_CONTINUE, workspace_id)
        return TakenLease(epoch=epoch, **row)

    async def restore_workspace_of(self, path: str, home: str, *, host: str) -> None:
        """Give the directory the workspace that it had under another home. If every node has the directory (`home` is
        empty): that of this node, or of one that is not running. Otherwise the one that was made on this `host` before
        it was a node."""
        async with self._borrow() as connection:
            await connection.execute(_ADOPT, path, home, self._name, host)

    async def note_policy(self, workspace_id: str, epoch: int, *, resume: bool, ready: bool) -> None:
        async with self._borrow() as connection:
            await connection.execute(_NOTE_POLICY, workspace_id, epoch, resume, ready)

    async def at_home_again(self, held: Iterable[str]) -> list[str]:
        """Which of these workspaces have their directory at another node that takes them."""
        async with self._borrow() as connection:
            rows = await connection.fetch(_RETURNED, self._name, list(held))
        return [row["workspace_id"] for row in rows]

    async def release(self, workspace_id: str, epoch: int, *, to: str | None = None) -> None:
        """Release the lease. `to`: this node becomes the owner for the length of a lease; it can acquire it then."""
        async with self._borrow() as connection:
            given = to and await connection.fetchval(_HAND_OVER, workspace_id, epoch, to, self._lease_s)
            if not given:
                await connection.execute(_RELEASE, workspace_id, epoch)

    async def ownerless_workspaces(self) -> list[str]:
        """The workspaces with unfinished runs that have no owner and that this node can take."""
        async with self._borrow() as connection:
            rows = await connection.fetch(_ORPHANS, self._name, self._instance)
        return [row["workspace_id"] for row in rows]

    async def dead_node_urls(self) -> list[str]:
        """The addresses of the nodes that are not alive."""
        async with self._borrow() as connection:
            return [row["url"] for row in await connection.fetch(_GONE)]

    async def all(self) -> list[NodeRecord]:
        async with self._borrow() as connection:
            return [NodeRecord(**row) for row in await connection.fetch(_ALL)]

    async def places(self) -> list[PlaceRecord]:
        """Where the directory of each workspace is, and its owner."""
        async with self._borrow() as connection:
            return [PlaceRecord(**row) for row in await connection.fetch(_PLACES)]


class SharedTrustRows:
    """What “always” made of the files of shared directories: implements longboat.runtime.ownership.SharedTrust."""

    def __init__(self, borrow: Borrow) -> None:
        self._borrow = borrow

    async def record_change(self, workspace_id: str, before: str, after: str) -> None:
        async with self._borrow() as connection:
            await connection.execute(_NOTE_TRUST, workspace_id, before, after)

    async def changes(self, workspace_id: str) -> list[tuple[str, str]]:
        async with self._borrow() as connection:
            return [(row["before"], row["after"]) for row in await connection.fetch(_TRUST_STEPS, workspace_id)]


_LIVE = "SELECT name, disk, url, secret, token FROM nodes WHERE until > clock_timestamp()"
_REPLACE = """
WITH former AS (SELECT instance, disk FROM nodes WHERE name = $1 AND instance != $3), kept AS (
    UPDATE leases SET instance = NULL FROM former WHERE owner = $1 AND former.disk = $2
)
DELETE FROM writers USING former WHERE node = former.instance
"""
"""The server that had the name before. The lock of its data directory tells that one with the same disk has ended: its
leases can be claimed at once. Whatever it is, from now on it cannot commit."""
_FORGET_OLD_NODES = """
WITH forgotten AS (
    DELETE FROM nodes WHERE until < clock_timestamp() - interval '7 days' AND name NOT IN (SELECT home FROM workspaces)
    RETURNING instance
)
DELETE FROM writers USING forgotten WHERE node = instance
"""
_REGISTER = """
INSERT INTO nodes (name, disk, url, version, secret, started_at, leaving, until, seen_at, token, instance,
    known_schema)
VALUES ($1, $2, $3, $4, $5, $6, false, clock_timestamp() + make_interval(secs => $7), clock_timestamp(), $8, $9, $10)
ON CONFLICT (name) DO UPDATE SET disk = excluded.disk, url = excluded.url, version = excluded.version,
    secret = excluded.secret, started_at = excluded.started_at, leaving = false, until = excluded.until,
    seen_at = excluded.seen_at, token = excluded.token, answering = false, instance = excluded.instance,
    known_schema = excluded.known_schema
"""
_CONFIRM = """
WITH ours AS (
    SELECT workspace_id FROM leases JOIN unnest($3::text[], $4::bigint[]) AS held (workspace_id, epoch)
        USING (workspace_id, epoch)
    WHERE owner = $1 AND instance = $5
), mine AS (
    SELECT workspace_id FROM leases JOIN unnest($3::text[], $4::bigint[]) AS held (workspace_id, epoch)
        USING (workspace_id, epoch)
    WHERE owner = $1 AND instance = $5 ORDER BY workspace_id FOR UPDATE OF leases  -- in the same order as check_leases
), renewed AS (
    UPDATE leases SET until = clock_timestamp() + make_interval(secs => $2)
    FROM mine WHERE leases.workspace_id = mine.workspace_id RETURNING leases.workspace_id
), alive AS (
    UPDATE nodes SET until = clock_timestamp() + make_interval(secs => $2), seen_at = clock_timestamp()
    WHERE name = $1 AND instance = $5
)
SELECT extract(epoch FROM clock_timestamp())::double precision AS at,
    (SELECT instance FROM nodes WHERE name = $1) AS instance, (SELECT max(floor) FROM longboat_schema) AS floor,
    coalesce((SELECT array_agg(workspace_id) FROM renewed), '{}') AS kept,
    coalesce((SELECT array_agg(workspace_id) FROM ours), '{}') AS ours
"""
_CONFIRM_UNLOCKED = _CONFIRM.replace("FOR UPDATE OF leases", "FOR UPDATE OF leases SKIP LOCKED")
_TRUST_STEPS = "SELECT before, after FROM trust_steps WHERE workspace_id = $1"
_NOTE_TRUST = "INSERT INTO trust_steps VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
_LEAVE = "UPDATE nodes SET leaving = true WHERE name = $1 AND instance = $2"
_SIGN_OFF = """
WITH released AS (
    UPDATE leases SET owner = NULL WHERE owner = $1 AND workspace_id = ANY($2) AND instance = $3
)
UPDATE nodes SET leaving = true, until = clock_timestamp(), seen_at = clock_timestamp()
WHERE name = $1 AND instance = $3
"""
_FIND = """
SELECT workspaces.home, homes.url AS home_url, leases.owner, owners.url AS owner_url,
    coalesce(leases.epoch, 0) AS epoch, coalesce(extract(epoch FROM leases.until), 0)::double precision AS until,
    (SELECT url FROM nodes WHERE until > clock_timestamp() AND NOT leaving AND name != $2 LIMIT 1) AS other_url
FROM workspaces
    LEFT JOIN nodes AS homes ON homes.name = workspaces.home AND homes.until > clock_timestamp() AND NOT homes.leaving
    LEFT JOIN leases ON leases.workspace_id = workspaces.workspace_id AND leases.until > clock_timestamp()
    LEFT JOIN nodes AS owners ON owners.name = leases.owner
WHERE workspaces.workspace_id = $1
"""
_CLAIM = """
INSERT INTO leases (workspace_id, owner, instance, epoch, until)
SELECT workspace_id, $2, $4, (nextval('epochs') << 20) + floor(random() * (1 << 20))::bigint,
    clock_timestamp() + make_interval(secs => $3)
FROM workspaces LEFT JOIN nodes ON nodes.name = home AND nodes.until > clock_timestamp() AND NOT nodes.leaving
WHERE workspace_id = $1 AND (nodes.name IS NULL OR nodes.name = $2)
    AND NOT EXISTS (SELECT 1 FROM nodes AS other WHERE other.name = $2 AND other.instance != $4)
ON CONFLICT (workspace_id) DO UPDATE SET owner = excluded.owner, instance = excluded.instance, epoch = excluded.epoch,
    until = clock_timestamp() + make_interval(secs => $3)  -- not `excluded`: that is from before the wait for the row
WHERE leases.owner IS NULL OR leases.until <= clock_timestamp()
    OR (leases.owner = excluded.owner AND coalesce(leases.instance, excluded.instance) = excluded.instance)
RETURNING epoch
"""
_CONTINUE = """
SELECT coalesce((SELECT max(last) FROM events WHERE workspace_id = $1), 0) AS number, nextval('run_seqs') AS first_seq,
    home, resume, (SELECT seen_at FROM nodes WHERE name = home) AS home_seen_at
FROM workspaces WHERE workspace_id = $1
"""
_NOTE_POLICY = """
UPDATE workspaces SET resume = $3, ready = $4
WHERE workspace_id = $1 AND (resume != $3 OR ready != $4)
    AND EXISTS (SELECT 1 FROM leases WHERE leases.workspace_id = $1 AND epoch = $2)
"""
_RETURNED = """
SELECT workspace_id FROM workspaces LEFT JOIN nodes ON nodes.name = home
WHERE workspace_id = ANY($2) AND home != $1 AND (home = '' OR (nodes.until > clock_timestamp() AND NOT leaving))
"""
_ADOPT = """
UPDATE workspaces SET home = $2
WHERE workspace_id = (
    SELECT workspace_id FROM workspaces LEFT JOIN nodes ON nodes.name = home
    WHERE path = $1 AND home != $2 AND (
        $2 = '' AND (home = $3 OR nodes.until <= clock_timestamp() OR nodes.name IS NULL)
        OR home = $4 AND nodes.name IS NULL
    )
    ORDER BY home = $3 DESC, workspaces.place LIMIT 1
)
"""
_RELEASE = "UPDATE leases SET owner = NULL WHERE workspace_id = $1 AND epoch = $2"
_HAND_OVER = """
UPDATE leases SET owner = name, instance = NULL, until = clock_timestamp() + make_interval(secs => $4)
FROM nodes
WHERE workspace_id = $1 AND epoch = $2 AND name = $3 AND nodes.until > clock_timestamp() AND NOT leaving
RETURNING owner
"""
_ORPHANS = """
SELECT DISTINCT runs.workspace_id
FROM runs JOIN workspaces USING (workspace_id) LEFT JOIN leases USING (workspace_id)
    LEFT JOIN nodes ON nodes.name = home AND nodes.until > clock_timestamp() AND NOT nodes.leaving
WHERE runs.state != 'finished' AND (workspaces.home IN ($1, '') OR nodes.name IS NULL)
    AND (leases.owner IS NULL OR leases.until <= clock_timestamp()
        OR (leases.owner = $1 AND coalesce(leases.instance, $2) = $2))
"""
_GONE = """
SELECT url FROM nodes WHERE until <= clock_timestamp()
EXCEPT SELECT url FROM nodes WHERE until > clock_timestamp()
"""
_ALL = """
WITH owned AS (
    SELECT owner AS name, count(*) AS owns FROM leases WHERE until > clock_timestamp() GROUP BY owner
), load AS (
    SELECT owner AS name, count(*) FILTER (WHERE state = 'active') AS runs_active,
        count(*) FILTER (WHERE state IN ('accepted', 'queued')) AS runs_waiting
    FROM runs JOIN leases USING (workspace_id) WHERE state != 'finished' AND until > clock_timestamp() GROUP BY owner
)
SELECT name, url, version, started_at, seen_at, leaving, until > clock_timestamp() AS alive,
    coalesce(owns, 0) AS owns, (SELECT count(*) FROM workspaces WHERE home = name) AS home_of,
    coalesce(runs_active, 0) AS runs_active, coalesce(runs_waiting, 0) AS runs_waiting
FROM nodes LEFT JOIN owned USING (name) LEFT JOIN load USING (name) ORDER BY name
"""
_PLACES = """
SELECT workspaces.workspace_id, home, owner, seen_at AS away_since, ready,
    coalesce(nodes.leaving AND nodes.until > clock_timestamp(), false) AS home_stopping,
    home != '' AND owner IS DISTINCT FROM home
        AND (nodes.name IS NULL OR nodes.leaving OR nodes.until <= clock_timestamp()) AS away
FROM workspaces LEFT JOIN nodes ON nodes.name = home
    LEFT JOIN leases ON leases.workspace_id = workspaces.workspace_id AND leases.until > clock_timestamp()
"""
