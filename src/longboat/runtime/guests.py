"""The attached clients, and the events that announce when one attaches or detaches."""

import asyncio

from longboat.runtime.clock import now
from longboat.store.protocol import Entry, Store, Unit, Write
from longboat.wire.events import Change, encode_body
from longboat.wire.models import ClientInfo


class GuestBook:
    def __init__(self, store: Store, workspace_id: str) -> None:
        self._store = store
        self._workspace_id = workspace_id
        self._came_at: dict[str, str] = {}
        self._told: asyncio.Future[None] | None = None
        """The newest word, on its way to the log."""

    async def came(self, client_id: str) -> None:
        self._came_at[client_id] = at = now()
        params = {"workspace_id": self._workspace_id, "client_id": client_id, "attached_at": at}
        await self._tell(Write("client_put", params), Change.CREATED, client_id, at)

    def left(self, client_id: str) -> None:
        write = Write("client_delete", {"workspace_id": self._workspace_id, "client_id": client_id})
        self._tell(write, Change.DELETED, client_id, self._came_at.pop(client_id, now()))

    async def wait_told(self) -> None:
        """Until all that was said is on record, or was refused."""
        if self._told is not None:
            await asyncio.wait([self._told])

    def _tell(self, write: Write, change: Change, client_id: str, at: str) -> "asyncio.Future[None]":
        info = ClientInfo(client_id=client_id, attached_at=at)
        entry = Entry(bodies=(encode_body(change, info),), session_id=None)
        unit = Unit(workspace_id=self._workspace_id, writes=[write], entries=[entry], durable=False)
        future = self._store.submit(unit)
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._told = future
        return future
