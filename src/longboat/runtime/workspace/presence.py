"""The clients attached to a workspace: their claims, their streams, and the events that announce them.

Owns the hub, the list of attached clients and their claims. Must not know sessions or runs.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

from longboat.config.settings import Settings
from longboat.runtime.clock import now
from longboat.runtime.workspace.config_watcher import ConfigWatcher
from longboat.runtime.workspace.hub import Hub
from longboat.store.changes import delete_client, put_client
from longboat.store.protocol import Entry, Store, Unit, Write
from longboat.wire.events import Change
from longboat.wire.models import ClientInfo


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
        self._config_watcher = config_watcher
        self.claims = Claims(
            hold_s=settings.create_hold_s,
            grace_s=settings.detach_grace_s,
            on_detach=self._clients.left,
            on_free=on_free,
        )

    @asynccontextmanager
    async def stream(
        self, *, client_id: str, after: str | None, session_id: str | None, answers: bool
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """`answers`: the client says that someone there can answer questions."""
        stream = object()
        new = self.claims.attach(client_id, stream, answers=answers)
        try:
            if new:
                await self._clients.came(client_id)
            async with aclosing(self.hub.stream(after, session_id)) as chunks:
                with self._config_watcher.watching():
                    yield chunks
        finally:
            self.claims.detach(client_id, stream)

    async def release(self, client_id: str) -> None:
        """Release a client's claim. Returns once that is recorded, so that the next request does not find the
        client."""
        self.claims.release(client_id)
        await self._clients.wait_told()


class Claims:
    """Each client's streams, and the timers. `on_detach` is called when a client is gone, `on_free` when all are."""

    def __init__(
        self, *, hold_s: float, grace_s: float, on_detach: Callable[[str], None], on_free: Callable[[], None]
    ) -> None:
        self._hold_s = hold_s
        self._grace_s = grace_s
        self._on_detach = on_detach
        self._on_free = on_free
        self._streams: dict[str, set[object]] = {}
        self._answering: dict[str, set[object]] = {}
        """Each client's streams at which someone can answer. The last one of a client counts for the grace time."""
        self._leaving: dict[str, asyncio.TimerHandle] = {}
        self._hold: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def held(self) -> bool:
        return bool(self._streams) or self._hold is not None

    @property
    def streams(self) -> int:
        return sum(map(len, self._streams.values()))

    @property
    def can_answer(self) -> bool:
        """Whether someone can answer questions at any of the clients."""
        return any(self._answering.values())

    def hold(self) -> None:
        """Keep the workspace open until the first stream can have arrived."""
        if self._hold is not None:
            self._hold.cancel()
        self._hold = asyncio.get_running_loop().call_later(self._hold_s, self._unhold)

    def attach(self, client_id: str, stream: object, *, answers: bool = False) -> bool:
        """A stream opened. True if the client was not attached before."""
        if client_id in self._leaving:
            self._leaving.pop(client_id).cancel()
            self._answering.pop(client_id, None)
        if answers:
            self._answering.setdefault(client_id, set()).add(stream)
        new = client_id not in self._streams
        self._streams.setdefault(client_id, set()).add(stream)
        if self._hold is not None:
            self._hold.cancel()
            self._hold = None
        return new

    def detach(self, client_id: str, stream: object) -> None:
        """A stream ended; the claim stays for the grace time."""
        streams = self._streams.get(client_id, set())
        if self._closed or stream not in streams:
            return  # closed or released meanwhile: the streams that the client has now are others
        streams.remove(stream)
        if streams:
            self._answering.get(client_id, set()).discard(stream)
        else:
            timer = asyncio.get_running_loop().call_later(self._grace_s, self.release, client_id)
            self._leaving[client_id] = timer

    def release(self, client_id: str) -> None:
        """Release the client's claim now."""
        if client_id in self._leaving:
            self._leaving.pop(client_id).cancel()
        self._answering.pop(client_id, None)
        if self._streams.pop(client_id, None) is not None:
            self._on_detach(client_id)
        if not self.held:
            self._on_free()

    def close(self) -> None:
        self._closed = True
        for timer in self._leaving.values():
            timer.cancel()
        if self._hold is not None:
            self._hold.cancel()

    def _unhold(self) -> None:
        self._hold = None
        if not self.held:
            self._on_free()


class AttachedClients:
    def __init__(self, store: Store, workspace_id: str) -> None:
        self._store = store
        self._workspace_id = workspace_id
        self._came_at: dict[str, str] = {}
        self._told: asyncio.Future[None] | None = None
        """The newest word, on its way to the log."""

    async def came(self, client_id: str) -> None:
        self._came_at[client_id] = at = now()
        await self._tell(put_client(self._workspace_id, client_id, at), Change.CREATED, client_id, at)

    def left(self, client_id: str) -> None:
        write = delete_client(self._workspace_id, client_id)
        self._tell(write, Change.DELETED, client_id, self._came_at.pop(client_id, now()))

    async def wait_told(self) -> None:
        """Wait until all events are recorded, or were refused."""
        if self._told is not None:
            await asyncio.wait([self._told])

    def _tell(self, write: Write, change: Change, client_id: str, at: str) -> "asyncio.Future[None]":
        info = ClientInfo(client_id=client_id, attached_at=at)
        entry = Entry.of(change, info)
        unit = Unit(workspace_id=self._workspace_id, writes=[write], entries=[entry], durable=False)
        future = self._store.submit(unit)
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._told = future
        return future
