"""The inbox of a server: pending requests and ended runs in all workspaces, and who has seen them.

Owns the streams of the inbox. The store's triggers keep the inbox itself; this module learns that a commit may have
changed it, and reads it again for the open streams. It opens no workspace and keeps none open. While no stream is open,
a commit costs nothing here.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress

from longboat.errors import StoreUnavailable
from longboat.runtime.ownership import SharedNotifications
from longboat.runtime.workspace.hub import CHUNK_BYTES
from longboat.runtime.workspace.ledger import page_start
from longboat.store.changes import concerns_inbox, prune_inbox, recount_inbox, see_items
from longboat.store.protocol import Store, Unit
from longboat.store.reads import InboxMarks
from longboat.wire.ids import check_own_id, person
from longboat.wire.inbox import InboxPage, MarkSeen, encode_inbox
from longboat.wire.sse import HEARTBEAT

FIRST_PAGE = 50
"""How many items a stream begins with."""
KEEP_DAYS = 7
KEEP_RUNS = 2_000
"""How long ended runs stay in the inbox, and how many at most."""
REST = 4
"""After reading the inbox, streams rest this many times as long as the read took."""
SERVER = ""
"""The workspace of a unit that belongs to no workspace. It has no events."""


class Inbox:
    def __init__(
        self,
        store: Store,
        *,
        heartbeat_s: float,
        on_listeners: Callable[[], None],
        poll_s: float | None = None,
        notifications: SharedNotifications | None = None,
    ) -> None:
        """`on_listeners` is called when the first stream opens and when the last one ends. `poll_s`: other servers
        write to the store too; how often to look. `notifications`: tells them who can answer here."""
        self._store = store
        self._heartbeat_s = heartbeat_s
        self._poll_s = poll_s
        self._on_listeners = on_listeners
        self._notifications = notifications
        if notifications is not None:
            notifications.set_answering_counter(lambda: self.answering)
        self._version = 0
        self._watchers = 0
        self._reading = asyncio.Lock()
        self._rest_until = 0.0
        self.streams = 0
        self.answering = 0
        """How many of the streams belong to clients where someone can answer."""
        self._waiting: set[asyncio.Future[None]] = set()
        self._hints = 0
        self._streams_waiting: set[asyncio.Future[None]] = set()
        self.closed = False

    async def page(self, client_id: str, *, before: str | None, limit: int) -> InboxPage:
        return await self._store.reads.inbox(person(client_id), before=page_start(before), limit=limit)

    async def mark_seen(self, request: MarkSeen) -> None:
        """Remember it for the person, in all their clients."""
        name = person(check_own_id(request.client_id, field="client_id"))
        places = [int(item_id) for item_id in request.ids]
        up_to = int(request.up_to) if request.up_to is not None else None
        await self._store.submit(Unit(workspace_id=SERVER, writes=[see_items(name, places, up_to=up_to)]))

    async def prune(self) -> None:
        """Forget runs that ended too long ago, and make the inbox match the pending asks."""
        now_s = int(time.time())
        writes = [prune_inbox(now_s - KEEP_DAYS * 86_400, most=KEEP_RUNS), *recount_inbox(now_s)]
        await self._store.submit(Unit(workspace_id=SERVER, writes=writes, durable=False))
        self._note_change()

    # Streams

    @asynccontextmanager
    async def stream(self, client_id: str, *, answers: bool = False) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield frames: the first page, then every change. A slow reader gets several changes as one. `answers`: the
        client says that someone there can answer questions."""
        with self.watch(), self._counted(answers=answers):
            if self._notifications is not None:
                with suppress(StoreUnavailable):  # it is noted a little later
                    await self._notifications.publish_answering()
            async with aclosing(self._frames(person(client_id))) as frames:
                yield frames

    async def _frames(self, name: str) -> AsyncGenerator[bytes, None]:
        marks: InboxMarks | None = None
        version = hints = -1
        clock = asyncio.get_running_loop().time
        beat_at = clock() + self._heartbeat_s
        while not self.closed:
            pause_s = beat_at - clock() if self._poll_s is None else min(self._poll_s, beat_at - clock())
            if await self.wait_news(version, hints, pause_s) or clock() < beat_at:
                async with self._read_turn():
                    # Before the read: a commit during it is read with the next one.
                    version, hints = self._version, self._hints
                    known, (marks, event) = marks, await self._store.reads.inbox_since(name, marks, limit=FIRST_PAGE)
                frame = encode_inbox(event) if marks != known else b""
            else:
                frame = HEARTBEAT
            for start in range(0, len(frame), CHUNK_BYTES):
                yield frame[start : start + CHUNK_BYTES]
            if frame:
                beat_at = clock() + self._heartbeat_s

    @asynccontextmanager
    async def _read_turn(self) -> AsyncIterator[None]:
        """Streams read one after the other, with rests: however many streams and however long the inbox, they take only
        a small part of the machine from the runs (E5). The next read includes everything that changed meanwhile."""
        clock = asyncio.get_running_loop().time
        async with self._reading:
            await asyncio.sleep(self._rest_until - clock())
            began = clock()
            yield
            self._rest_until = clock() + REST * (clock() - began)

    @contextmanager
    def watch(self) -> Iterator[None]:
        """While this is open, commits wake `wait_changed`."""
        self._watchers += 1
        self._store.watch(self._note_unit)
        try:
            yield
        finally:
            self._watchers -= 1
            if not self._watchers:
                self._store.watch(None)

    @property
    def version(self) -> int:
        """Rises whenever the inbox may have changed. Get it before you read the inbox."""
        return self._version

    async def wait_changed(self, version: int) -> None:
        """Wait until the inbox may be newer than this version, by a commit of this server; with other servers, no
        longer than until the next look."""
        if version != self._version or self.closed:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            async with asyncio.timeout(self._poll_s):
                await future
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(future)

    async def wait_news(self, version: int, hints: int, timeout_s: float) -> bool:
        """The same for a stream, which also shows what other servers have written; False if the time ran out."""

        def is_news() -> bool:
            return (version, hints) != (self._version, self._hints) or self.closed

        if is_news() or timeout_s <= 0:
            return is_news()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._streams_waiting.add(future)
        try:
            async with asyncio.timeout(timeout_s):
                await future
        except TimeoutError:
            pass
        finally:
            self._streams_waiting.discard(future)
        return is_news()

    def look(self) -> None:
        """Another server has written to the store: the streams read the inbox. That server also sends the pushes,
        unless it dies first."""
        self._hints += 1
        self._wake_streams()

    def close(self) -> None:
        """End every stream."""
        self.closed = True
        self.wake()

    @contextmanager
    def _counted(self, *, answers: bool) -> Iterator[None]:
        self.streams += 1
        self.answering += answers
        self._on_listeners()
        try:
            yield
        finally:
            self.streams -= 1
            self.answering -= answers
            self._on_listeners()

    def _note_unit(self, unit: Unit) -> None:
        if concerns_inbox(unit):
            self._note_change()

    def _note_change(self) -> None:
        self._version += 1
        self.wake()

    def wake(self) -> None:
        """End every `wait_changed`, and every wait of a stream."""
        waiting, self._waiting = self._waiting, set()
        _release(waiting)
        self._wake_streams()

    def _wake_streams(self) -> None:
        waiting, self._streams_waiting = self._streams_waiting, set()
        _release(waiting)


def _release(waiting: Iterable["asyncio.Future[None]"]) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)
