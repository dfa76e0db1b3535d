"""Moves workspaces to other nodes: refuses what cannot be moved, lets the turns end, and closes the workspace (G12).

Owns which workspaces are on their way, and where to. Must not know how the next node becomes the owner.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from longboat.errors import BadInput, OwnedElsewhere, TreePinned, WorkspaceBusy
from longboat.runtime.ownership import Ownership
from longboat.tasks import Tasks
from longboat.wire.requests import MoveWorkspace

if TYPE_CHECKING:
    from longboat.runtime.workspace.workspace import Workspace

logger = logging.getLogger(__name__)


class Moves:
    def __init__(
        self, node: str, ownership: Ownership, tasks: Tasks, *, close: "Callable[[Workspace], Awaitable[None]]"
    ) -> None:
        """`node`: our name. `close` waits until the turns have ended and the workspace is closed and released."""
        self._node = node
        self._ownership = ownership
        self._tasks = tasks
        self._close = close
        self._next: dict[str, str] = {}

    def next_owner(self, workspace_id: str) -> str | None:
        """The node that is to have the workspace once it is closed; None: any."""
        return self._next.get(workspace_id)

    async def move(self, workspace: "Workspace", wanted: MoveWorkspace) -> None:
        if wanted.node == self._node:
            return
        if workspace.home is not None:
            raise TreePinned(str(workspace.directory), workspace.home)
        if not await self._ownership.accepts_workspaces(wanted.node):
            raise self.unknown_node(wanted.node)
        if workspace.id in self._next or workspace.closing:
            raise OwnedElsewhere(workspace.id)  # someone else moves it; ask its next owner
        if workspace.sessions.runs_active and not wanted.force:
            raise WorkspaceBusy
        self._next[workspace.id] = wanted.node
        workspace.sessions.refuse()
        logger.info("workspace %s moves to %s", workspace.id, wanted.node)
        # A task of its own: a client that goes away must not leave the workspace closed half-way.
        await asyncio.wait([self._tasks.spawn(self._hand_over(workspace), name=f"move {workspace.id}")])

    async def _hand_over(self, workspace: "Workspace") -> None:
        try:
            await self._close(workspace)
        finally:
            del self._next[workspace.id]

    def unknown_node(self, name: str) -> BadInput:
        if self._ownership.alone:
            message = (
                "This is the only server on its database, so there is no other node. To run several nodes, start each "
                "with the same PostgreSQL database: `longboat serve --store postgresql://… --node NAME`."
            )
        else:
            message = f"Node {name!r} is down or stopping. `longboat nodes` lists the nodes."
        return BadInput(message, code="unknown_node")
