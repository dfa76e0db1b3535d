"""What is forgotten after some days: the event log, what was sent to models, the answers to cancels.

Owns when that is done, and in which pieces: a unit forgets few rows, and other units are committed between two of them,
however much there is to forget. Must not know what else the store keeps.
"""

import asyncio
import time

from longboat.runtime.inbox import SERVER
from longboat.runtime.ownership import Ownership
from longboat.store.changes import prune_cancels, prune_events, prune_request_pieces, prune_requests
from longboat.store.protocol import Store, Unit, Write
from longboat.wire.listings import NodeState

DAY_S = 86_400
SLICE = 1_000
"""Rows that one unit forgets. A thousand take about three milliseconds in PostgreSQL and four in SQLite."""
REST_S = 0.02
"""Between two units, in which the writer does nothing but other work."""


class Pruning:
    def __init__(self, store: Store, ownership: Ownership, *, keep_days: float) -> None:
        self._store = store
        self._ownership = ownership
        self._keep_s = keep_days * DAY_S

    async def is_ours(self) -> bool:
        """Whether this node prunes. One node does so for every workspace, since most have no owner. If two prune at
        once, because a node has just joined, they wait for each other's slices and do no harm."""
        nodes = [node for node in await self._ownership.nodes() if node.state is not NodeState.GONE]
        return not nodes or nodes[0].answering

    async def prune(self) -> None:
        """Forget all that is older than the limit, and the answers to cancels of yesterday."""
        now_s = int(time.time())
        before_s = int(now_s - self._keep_s)
        for known in await self._store.reads.workspaces():
            await self._prune_events(known.workspace_id, before_s, now_s)
        await self._prune_requests(before_s, now_s)
        await self._prune_pieces(before_s - DAY_S)
        await self._forget(prune_cancels(now_s - DAY_S))

    async def _prune_events(self, workspace_id: str, before_s: int, now_s: int) -> None:
        up_to = await self._store.reads.old_events(workspace_id, before_s=before_s, now_s=now_s)
        if up_to is None:
            return
        while stretch := await self._store.reads.oldest_events(workspace_id, up_to=up_to, most=SLICE):
            await self._forget(prune_events(workspace_id, *stretch))

    async def _prune_requests(self, before_s: int, now_s: int) -> None:
        after = 0
        limits = {"before_s": before_s, "now_s": now_s, "most": SLICE}
        while (up_to := await self._store.reads.old_requests(after=after, **limits)) is not None:
            await self._forget(prune_requests(after=after, up_to=up_to, before_s=before_s))
            after = up_to

    async def _prune_pieces(self, before_s: int) -> None:
        after = 0
        while places := await self._store.reads.old_request_pieces(after=after, before_s=before_s, most=SLICE):
            await self._forget(prune_request_pieces(places, before_s))
            after = places[-1]

    async def _forget(self, write: Write) -> None:
        """Durable: if a crash brought this stretch of the log back and not the next one, there would be a gap."""
        await self._store.submit(Unit(workspace_id=SERVER, writes=[write]))
        await asyncio.sleep(REST_S)
