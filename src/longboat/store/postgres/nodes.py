"""The servers that share a store, and who owns which workspace: rows that only nodes write.

Owns the statements of claims, renewals and releases. Each is a single statement by the database's clock: no other clock
counts. Must not know what an owner does.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from longboat.errors import DataDirError

Borrow = Callable[[], AbstractAsyncContextManager[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    name: str
    url: str
    version: str
    started_at: str
    leaving: bool
    alive: bool
    owned: int
    """How many workspaces it owns now."""
    homes: int
    """How many workspaces are on its disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """Where the directory of a workspace is, and who decides for it."""

    home: str
    """The node with the directory; empty: every node has it."""
    home_url: str | None
    """None: that node is not alive, or about to leave."""
    owner: str | None
    """Has a lease that is not over."""
    owner_url: str | None
    other_url: str | None
    """A node that is not this one and takes workspaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    epoch: int
    number: int
    """Of the newest event."""
    first_seq: int
    home: str
    home_until: float | None
    """When the home stopped being alive, or will if it is not confirmed: seconds since 1970."""
    resume: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """What a renewal found."""

    at: float
    """The database's time, in seconds since 1970."""
    kept: frozenset[str]
    """The workspaces whose leases are renewed."""


class Nodes:
    def __init__(self, borrow: Borrow, name: str, *, lease_s: float) -> None:
        self._borrow = borrow
        self._name = name
        self._lease_s = lease_s

    async def register(self, *, disk: str, url: str, version: str, secret: str, started_at: str) -> None:
        """Join the others. Refuses a name that another machine uses, and a secret that differs from theirs."""
        async with self._borrow() as connection, connection.transaction():
            await connection.execute("LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE")
            others = await connection.fetch(_LIVE)
            if any(each["name"] == self._name and each["disk"] != disk for each in others):
                raise DataDirError(
                    f"Another machine uses the name {self._name} with this store. Choose another with --node.",
                    code="node_name_taken",
                )
            if any(each["secret"] != secret for each in others if each["name"] != self._name):
                raise DataDirError(
                    "LONGBOAT_CLUSTER_SECRET is not the one that the other nodes of this store have.",
                    code="wrong_cluster_secret",
                )
            await connection.execute(_REGISTER, self._name, disk, url, version, secret, started_at, self._lease_s)

    async def confirm(self, held: Mapping[str, int]) -> Confirmed:
        """Renew this node and the leases that it holds, by workspace and epoch."""
        async with self._borrow() as connection:
            row = await connection.fetchrow(_CONFIRM, self._name, self._lease_s, list(held), list(held.values()))
        return Confirmed(at=row["at"], kept=frozenset(row["kept"]))

    async def leave(self) -> None:
        """Tell the others that this node takes no more workspaces."""
        async with self._borrow() as connection:
            await connection.execute("UPDATE nodes SET leaving = true WHERE name = $1", self._name)

    async def sign_off(self) -> None:
        """Give everything back."""
        async with self._borrow() as connection:
            await connection.execute(_SIGN_OFF, self._name)

    async def find(self, workspace_id: str) -> Whereabouts | None:
        async with self._borrow() as connection:
            row = await connection.fetchrow(_FIND, workspace_id, self._name)
        return None if row is None else Whereabouts(**row)

    async def claim(self, workspace_id: str) -> Claim | None:
        """Become the owner, unless another node has a lease, or the directory and is running."""
        async with self._borrow() as connection, connection.transaction():
            epoch = await connection.fetchval(_CLAIM, workspace_id, self._name, self._lease_s)
            if epoch is None:
                return None
            row = await connection.fetchrow(_CONTINUE, workspace_id)
        return Claim(epoch=epoch, **row)

    async def note_policy(self, workspace_id: str, *, resume: bool) -> None:
        async with self._borrow() as connection:
            await connection.execute(_NOTE_POLICY, workspace_id, resume)

    async def returned(self, held: Iterable[str]) -> list[str]:
        """Which of these workspaces have their directory at another node that takes them."""
        async with self._borrow() as connection:
            rows = await connection.fetch(_RETURNED, self._name, list(held))
        return [row["workspace_id"] for row in rows]

    async def release(self, workspace_id: str, epoch: int) -> None:
        async with self._borrow() as connection:
            await connection.execute(_RELEASE, workspace_id, epoch)

    async def orphans(self) -> list[str]:
        """The workspaces with unfinished runs that have no owner and that this node can take."""
        async with self._borrow() as connection:
            rows = await connection.fetch(_ORPHANS, self._name)
        return [row["workspace_id"] for row in rows]

    async def all(self) -> list[NodeRecord]:
        async with self._borrow() as connection:
            return [NodeRecord(**row) for row in await connection.fetch(_ALL)]


_LIVE = "SELECT name, disk, secret FROM nodes WHERE until > clock_timestamp()"
_REGISTER = """
INSERT INTO nodes (name, disk, url, version, secret, started_at, leaving, until)
VALUES ($1, $2, $3, $4, $5, $6, false, clock_timestamp() + make_interval(secs => $7))
ON CONFLICT (name) DO UPDATE SET disk = excluded.disk, url = excluded.url, version = excluded.version,
    secret = excluded.secret, started_at = excluded.started_at, leaving = false, until = excluded.until
"""
_CONFIRM = """
WITH mine AS (
    SELECT workspace_id FROM leases JOIN unnest($3::text[], $4::bigint[]) AS held (workspace_id, epoch)
        USING (workspace_id, epoch)
    WHERE owner = $1 ORDER BY workspace_id FOR UPDATE OF leases  -- in the same order as check_leases
), renewed AS (
    UPDATE leases SET until = clock_timestamp() + make_interval(secs => $2)
    FROM mine WHERE leases.workspace_id = mine.workspace_id RETURNING leases.workspace_id
), alive AS (
    UPDATE nodes SET until = clock_timestamp() + make_interval(secs => $2) WHERE name = $1
)
SELECT extract(epoch FROM clock_timestamp())::double precision AS at,
    coalesce((SELECT array_agg(workspace_id) FROM renewed), '{}') AS kept
"""
_SIGN_OFF = """
WITH released AS (UPDATE leases SET owner = NULL WHERE owner = $1)
UPDATE nodes SET leaving = true, until = clock_timestamp() WHERE name = $1
"""
_FIND = """
SELECT workspaces.home, homes.url AS home_url, leases.owner, owners.url AS owner_url,
    (SELECT url FROM nodes WHERE until > clock_timestamp() AND NOT leaving AND name != $2 LIMIT 1) AS other_url
FROM workspaces
    LEFT JOIN nodes AS homes ON homes.name = workspaces.home AND homes.until > clock_timestamp() AND NOT homes.leaving
    LEFT JOIN leases ON leases.workspace_id = workspaces.workspace_id AND leases.until > clock_timestamp()
    LEFT JOIN nodes AS owners ON owners.name = leases.owner
WHERE workspaces.workspace_id = $1
"""
_CLAIM = """
INSERT INTO leases (workspace_id, owner, epoch, until)
SELECT workspace_id, $2, nextval('epochs'), clock_timestamp() + make_interval(secs => $3)
FROM workspaces LEFT JOIN nodes ON nodes.name = home AND nodes.until > clock_timestamp() AND NOT nodes.leaving
WHERE workspace_id = $1 AND (nodes.name IS NULL OR nodes.name = $2)
ON CONFLICT (workspace_id) DO UPDATE SET owner = excluded.owner, epoch = excluded.epoch, until = excluded.until
WHERE leases.owner IS NULL OR leases.owner = excluded.owner OR leases.until <= clock_timestamp()
RETURNING epoch
"""
_CONTINUE = """
SELECT coalesce((SELECT max(last) FROM events WHERE workspace_id = $1), 0) AS number, nextval('run_seqs') AS first_seq,
    home, resume, (SELECT extract(epoch FROM until)::double precision FROM nodes WHERE name = home) AS home_until
FROM workspaces WHERE workspace_id = $1
"""
_NOTE_POLICY = "UPDATE workspaces SET resume = $2 WHERE workspace_id = $1 AND resume != $2"
_RETURNED = """
SELECT workspace_id FROM workspaces JOIN nodes ON nodes.name = home
WHERE workspace_id = ANY($2) AND home != $1 AND nodes.until > clock_timestamp() AND NOT leaving
"""
_RELEASE = "UPDATE leases SET owner = NULL WHERE workspace_id = $1 AND epoch = $2"
_ORPHANS = """
SELECT DISTINCT runs.workspace_id
FROM runs JOIN workspaces USING (workspace_id) LEFT JOIN leases USING (workspace_id)
    LEFT JOIN nodes ON nodes.name = home AND nodes.until > clock_timestamp() AND NOT nodes.leaving
WHERE runs.state != 'finished' AND (workspaces.home IN ($1, '') OR nodes.name IS NULL)
    AND (leases.owner IS NULL OR leases.owner = $1 OR leases.until <= clock_timestamp())
"""
_ALL = """
SELECT name, url, version, started_at, leaving, until > clock_timestamp() AS alive,
    (SELECT count(*) FROM leases WHERE owner = name AND leases.until > clock_timestamp()) AS owned,
    (SELECT count(*) FROM workspaces WHERE home = name) AS homes
FROM nodes ORDER BY name
"""
