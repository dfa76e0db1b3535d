"""Who is attached to a workspace: their claims, their streams, and that the others are told of them.

Owns the hub, the list of attached clients and their claims. Must not know sessions or runs.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

from longboat.config.settings import Settings
from longboat.runtime.workspace.claims import Claims
from longboat.runtime.workspace.config_watcher import ConfigWatcher
from longboat.runtime.workspace.guests import AttachedClients
from longboat.runtime.workspace.hub import Hub
from longboat.store.protocol import Store


class Presence:
    def __init__(
        self,
        store: Store,
        workspace_id: str,
        settings: Settings,
        config_watcher: ConfigWatcher,
        on_free: Callable[[], None],
    ) -> None:
        self.hub = Hub(store, workspace_id, heartbeat_s=settings.heartbeat_s)
        self._clients = AttachedClients(store, workspace_id)
        self._lookout = config_watcher
        self.claims = Claims(
            hold_s=settings.create_hold_s,
            grace_s=settings.detach_grace_s,
            on_detach=self._clients.left,
            on_free=on_free,
        )

    @asynccontextmanager
    async def stream(
        self, *, client_id: str, after: str | None, session_id: str | None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        stream = object()
        new = self.claims.attach(client_id, stream)
        try:
            if new:
                await self._clients.came(client_id)
            async with aclosing(self.hub.stream(after, session_id)) as chunks:
                with self._lookout.attended():
                    yield chunks
        finally:
            self.claims.detach(client_id, stream)

    async def release(self, client_id: str) -> None:
        """Give a client's claim back. Returns when that is on record: who asks next must not find the client there."""
        self.claims.release(client_id)
        await self._clients.wait_told()
