"""The clients attached to a workspace: their claims, their streams, and the events that announce them.

Owns the hub, the list of guests and the claims; the config is watched while someone is attached. Must not know sessions
or runs.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

from longboat.config.settings import Settings
from longboat.runtime.claims import Claims
from longboat.runtime.guests import GuestBook
from longboat.runtime.hub import Hub
from longboat.runtime.lookout import Lookout
from longboat.store.protocol import Store


class Audience:
    def __init__(
        self, store: Store, workspace_id: str, settings: Settings, lookout: Lookout, on_free: Callable[[], None]
    ) -> None:
        self.hub = Hub(store, workspace_id, heartbeat_s=settings.heartbeat_s)
        self._guests = GuestBook(store, workspace_id)
        self._lookout = lookout
        self.claims = Claims(
            hold_s=settings.create_hold_s,
            grace_s=settings.detach_grace_s,
            on_detach=self._guests.left,
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
                await self._guests.came(client_id)
            async with aclosing(self.hub.stream(after, session_id)) as chunks:
                with self._lookout.attended():
                    yield chunks
        finally:
            self.claims.detach(client_id, stream)

    async def release(self, client_id: str) -> None:
        """Give a client's claim back. Returns when that is on record: who asks next must not find the client there."""
        self.claims.release(client_id)
        await self._guests.wait_told()
