"""Where the owner of a workspace is: found in the database, remembered, and looked for again when it has changed.

If there is none and this node may, it becomes the owner. Must not know what is asked of an owner.
"""

import asyncio
from typing import TYPE_CHECKING

from longboat.errors import OwnedElsewhere, ServerLeaving, StoreUnavailable
from longboat.fleet.node import Node
from longboat.fleet.relay import RETRY

if TYPE_CHECKING:
    from longboat.runtime.app import App

MAX_REMEMBERED = 10_000
SUCCESSOR_WAIT_S = 5.0
"""How much longer than a lease a request waits for its next owner."""
HAND_OVER_S = 600.0
"""How long it waits at most for an owner that is there and hands the workspace over: `server.drain_s` of that node."""


class Owners:
    def __init__(self, app: "App", node: Node) -> None:
        self._app = app
        self._node = node
        self._urls: dict[str, str] = {}
        """Where the owners were found last, by workspace."""

    async def locate(self, workspace_id: str) -> str | None:
        """The address of the node that answers for the workspace; None: this one, and it is open. A node that is no
        longer the owner says so, or is refused by the store: an old answer does no harm."""
        if self._app.is_open(workspace_id):
            return None
        if (known := self._urls.get(workspace_id)) is not None:
            return known
        found = await self._node.find(workspace_id)
        if found.owner is not None and found.owner != self._node.name:
            if found.owner_url is not None:
                self._remember(workspace_id, found.owner_url)
            return found.owner_url
        if found.owner is None and found.home != self._node.name and found.home_url is not None:
            return found.home_url
        if found.owner is None and self._node.leaving:
            if found.other_url is None:
                raise ServerLeaving
            return found.other_url
        await self._app.workspace(workspace_id)
        return None

    def search(self, workspace_id: str) -> "OwnerLookup":
        return OwnerLookup(self, self._node, workspace_id)

    async def is_owner(self, url: str, workspace_id: str) -> bool:
        """Whether the node at this address still answers for the workspace, as far as the database tells."""
        try:
            found = await self._node.find(workspace_id)
        except StoreUnavailable:
            return True
        return url == (found.owner_url if found.owner is not None else found.home_url)

    def forget(self, workspace_id: str | None) -> None:
        """Forget where the owner is: it did not answer, or is no longer the owner."""
        self._urls.pop(workspace_id or "", None)

    def _remember(self, workspace_id: str, url: str) -> None:
        if len(self._urls) >= MAX_REMEMBERED:
            self._urls.clear()
        self._urls[workspace_id] = url


class OwnerLookup:
    """Looks for an owner on behalf of one request, again and again."""

    def __init__(self, owners: Owners, node: Node, workspace_id: str) -> None:
        self._owners = owners
        self._node = node
        self._workspace_id = workspace_id
        self._began_at = asyncio.get_running_loop().time()
        self._successor_wait_s = node.lease_s + SUCCESSOR_WAIT_S
        self._deadline = self._began_at + self._successor_wait_s
        self._tries = 0

    @property
    def deadline_passed(self) -> bool:
        """Whether the next owner should have been there by now."""
        return asyncio.get_running_loop().time() >= self._deadline

    def restart_deadline(self) -> None:
        """An owner is still there and is handing over: give its successor a full lease from now."""
        clock = asyncio.get_running_loop().time
        self._deadline = min(clock() + self._successor_wait_s, self._began_at + HAND_OVER_S)

    async def find(self) -> str | None:
        """Wait, then locate the owner; keep waiting while a successor is expected."""
        while True:
            await self._node.wait_leases_moved(RETRY.delay(self._tries))
            self._tries += 1
            try:
                return await self._owners.locate(self._workspace_id)
            except (OwnedElsewhere, ServerLeaving):
                if self.deadline_passed:
                    raise


class LeaseWatch:
    """The lease of an owner that does not answer. If it is renewed, the owner is alive and no successor will come."""

    def __init__(self, node: Node, workspace_id: str) -> None:
        self._node = node
        self._workspace_id = workspace_id
        self._seen: tuple[int, float] | None = None

    async def is_held(self) -> bool:
        """Whether any node holds the lease."""
        return (await self._node.find(self._workspace_id)).owner is not None

    async def is_renewed(self) -> bool:
        """Whether the lease was renewed since the first call."""
        found = await self._node.find(self._workspace_id)
        if self._seen is None or found.epoch != self._seen[0]:
            self._seen = found.epoch, found.until
        return found.until > self._seen[1]
