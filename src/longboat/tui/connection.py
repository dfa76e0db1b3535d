"""The connection to the server: joins the workspace, updates the mirror, retries while the server is unreachable.

Owns the use of the client; must not know widgets. The listener gets each event after the mirror.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Protocol, TypeVar

from longboat.client import Client, Mirror
from longboat.client.reconnection import Outage, Reconnection
from longboat.errors import LongboatError, ServerUnreachable, Unavailable, WorkspaceClosing
from longboat.tasks import Tasks
from longboat.wire.events import Event
from longboat.wire.models import Workspace

T = TypeVar("T")

AWAY = (ServerUnreachable, WorkspaceClosing, Unavailable)
"""Temporary errors: the same request may succeed in a moment."""
FIRST_S = 15.0
"""How long to wait for the server's first response."""
FAREWELL_S = 1.0


class Listener(Protocol):
    def joined(self, workspace: Workspace) -> None: ...
    def heard(self, event: Event) -> None: ...
    def outage(self, error: LongboatError | None) -> None:
        """The server is unreachable, or reachable again (None)."""


class Connection:
    def __init__(self, client: Client, path: str, listener: Listener, *, env: Mapping[str, str] | None = None) -> None:
        self.client = client
        self.path = path
        self.mirror = Mirror()
        self.workspace_id = ""
        self.away: LongboatError | None = None
        self.first_s = FIRST_S
        self._listener = listener
        self._env = env
        self._tasks = Tasks()
        self._also_told: Outage | None = None
        """The outage callback of the code that opened the client."""

    async def follow(self) -> None:
        """Keep the mirror up to date forever. Raises errors that waiting cannot fix."""
        self._also_told, self.client.on_outage = self.client.on_outage, self._on_outage
        self.client.answers = True  # a person is here
        workspace = await self.send_with_retry(self._join, give_up_after_s=self.first_s)
        self.workspace_id = workspace.id
        self._listener.joined(workspace)
        async for event in self.client.events(workspace.id):
            self.mirror.apply(event)
            self._listener.heard(event)

    async def send_with_retry(self, ask: Callable[[], Awaitable[T]], *, give_up_after_s: float | None = None) -> T:
        """Send a request, again while the server is unreachable. Only for requests that are safe to repeat."""
        reconnection = Reconnection(give_up_after_s)
        while True:
            try:
                return await ask()
            except AWAY as lost:
                await asyncio.sleep(reconnection.lost(lost))

    async def leave(self) -> None:
        """Release the workspace, if the server is reachable."""
        await self._tasks.aclose()
        if self.workspace_id and self.away is None:
            with suppress(LongboatError, TimeoutError):
                async with asyncio.timeout(FAREWELL_S):
                    await self.client.release(self.workspace_id)

    def _join(self) -> Awaitable[Workspace]:
        return self.client.join(self.path, env=self._env)

    def _on_outage(self, error: LongboatError | None) -> None:
        if error is None and self.away is not None and self._env is not None:
            # A restarted server has forgotten the environment for our commands.
            self._tasks.spawn(self._rejoin(), name="rejoin")
        self.away = error
        self._listener.outage(error)
        if self._also_told is not None:
            self._also_told(error)

    async def _rejoin(self) -> None:
        with suppress(LongboatError):
            await self._join()
