"""One workspace's log as its readers see it: a ring of the newest frames in memory, the store behind it.

Owns cursors, the ring and wake-ups. A connection is only a number: readers at the head take frames from the ring,
encoded once; a reader that fell behind reads from the store at its own pace. No reader loses frames or blocks others.
Must not know what the events mean.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from weakref import WeakValueDictionary

from longboat.errors import StoreDamaged, StoreUnavailable
from longboat.store.protocol import Published, Store
from longboat.wire.events import encode_unlogged
from longboat.wire.ids import Cursor
from longboat.wire.models import Resync
from longboat.wire.sse import HEARTBEAT

RING_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
"""About as much is read and sent at a time. A larger frame goes out in slices, so that a connection which does not
read holds no more than this in its buffer; a shared frame stays shared."""
STORE_PAGE = 256
"""Entries that are looked at in one read; no more of them are read than make a chunk."""
SNAPSHOT_SESSIONS = 500
"""The newest ones; the list route pages through the rest."""

_RESYNC = encode_unlogged(Resync(reason="The cursor is no longer in the log. A snapshot follows."))
_DAMAGED = encode_unlogged(Resync(reason="The log is damaged after the cursor. A snapshot follows."))


class Wake(Enum):
    """Why a waiting reader was woken."""

    NEWS = "news"
    HEARTBEAT = "heartbeat"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, weakref_slot=True)
class FrameBatch:
    """Whole frames, and the number to continue after; None: with a snapshot."""

    number: int | None
    frames: bytes = field(repr=False)


class Hub:
    def __init__(self, store: Store, workspace_id: str, *, heartbeat_s: float) -> None:
        self._store = store
        self._workspace_id = workspace_id
        self._head = 0
        self._ring: dict[int, Published] = {}
        self._order: deque[int] = deque()
        self._size = 0
        self._waiting: list[asyncio.Future[Wake]] = []
        self._views: dict[str | None, FrameBatch] = {}
        self._pages: WeakValueDictionary[tuple[int, str | None], FrameBatch] = WeakValueDictionary()
        """What is being sent from the store: readers that are stuck at the same place share it."""
        self._viewing = asyncio.Lock()
        self._heartbeat_s = heartbeat_s
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._listens = False
        self._timer = self._loop.call_later(heartbeat_s, self._beat)

    async def open(self) -> None:
        """Find the end of the log. Everything that this server commits from now on is published."""
        self._listens = True
        self._store.listen(self._workspace_id, self.publish)
        await self.look()

    async def look(self) -> None:
        """Read the number of the newest event; what was published meanwhile is newer."""
        newest = await self._store.reads.newest_event(self._workspace_id)
        if newest > self._head:
            self._head = newest
            self._wake(Wake.NEWS)

    async def follow(self, every_s: float) -> None:
        """Look again and again, for a log that another server writes."""
        while True:
            await asyncio.sleep(every_s)
            with suppress(StoreUnavailable):
                await self.look()

    def publish(self, entries: Sequence[Published]) -> None:
        """Add committed entries to the ring and wake the waiting readers."""
        for entry in entries:
            self._ring[entry.first] = entry
            self._order.append(entry.first)
            self._size += len(entry.data)
        self._head = entries[-1].last
        while self._size > RING_BYTES and len(self._order) > 1:
            self._size -= len(self._ring.pop(self._order.popleft()).data)
        self._wake(Wake.NEWS)

    def close(self) -> None:
        """End every stream after what has been published so far."""
        self._closed = True
        self._timer.cancel()
        if self._listens:
            self._store.listen(self._workspace_id, None)
        self._wake(Wake.CLOSED)

    async def stream(self, after: str | None, session_id: str | None) -> AsyncGenerator[bytes, None]:
        """Frames in chunks: from the cursor on, or a snapshot and the log from there on."""
        number = await self._locate(after) if after is not None else None
        if after is not None and number is None:
            yield _RESYNC
        if number is not None and number >= self._head:
            yield HEARTBEAT  # nothing was missed: a client that shows an outage learns at once that it is over
        while True:
            if number is None:
                stretch = await self._view(session_id)
            elif number < self._head:
                stretch = self._from_ring(number, session_id) or await self._from_store(number, session_id)
            elif self._closed:
                return
            else:
                stretch = FrameBatch(number, HEARTBEAT if await self._news() is Wake.HEARTBEAT else b"")
            for start in range(0, len(stretch.frames), CHUNK_BYTES):
                yield stretch.frames[start : start + CHUNK_BYTES]
            number = stretch.number
            del stretch  # it may be large, and a reader stays for days

    def _wake(self, why: Wake) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(why)

    async def _news(self) -> Wake:
        future: asyncio.Future[Wake] = self._loop.create_future()
        self._waiting.append(future)
        return await future

    def _beat(self) -> None:
        self._wake(Wake.HEARTBEAT)
        self._timer = self._loop.call_later(self._heartbeat_s, self._beat)

    def _from_ring(self, number: int, session_id: str | None) -> FrameBatch | None:
        """What the ring has right after `number`: about a chunk, or one entry that is larger, which is then not copied.

        None if the ring does not begin there.
        """
        entry = self._ring.get(number + 1)
        if entry is None:
            return None
        chunk: list[bytes] = []
        size = 0
        while entry is not None:
            if _is_wanted(entry.sessions, session_id):
                if size and size + len(entry.data) > CHUNK_BYTES:
                    break
                chunk.append(entry.data)
                size += len(entry.data)
            number = entry.last
            entry = self._ring.get(number + 1)
        return FrameBatch(number, chunk[0] if len(chunk) == 1 else b"".join(chunk))

    async def _from_store(self, number: int, session_id: str | None) -> FrameBatch:
        """The same from the store, for a reader that fell behind; a resync if what it wants was pruned
        meanwhile or is damaged: it continues from the current state."""
        page = self._pages.get((number, session_id))
        if page is None:
            try:
                page = await self._read_page(number, session_id)
            except StoreDamaged:
                page = FrameBatch(None, _DAMAGED)
            page = self._pages.setdefault((number, session_id), page)
        return page

    async def _read_page(self, number: int, session_id: str | None) -> FrameBatch:
        page = await self._store.reads.log_page(
            self._workspace_id, after=number, session_id=session_id, entries=STORE_PAGE, size=CHUNK_BYTES
        )
        return FrameBatch(None, _RESYNC) if page is None else FrameBatch(page.last, page.frames)

    async def _locate(self, text: str) -> int | None:
        """The number of a cursor whose very event is in the log, or None."""
        cursor = Cursor.parse(text)
        if cursor is None or cursor.workspace_id != self._workspace_id:
            return None
        reads = self._store.reads
        known = await reads.has_event(self._workspace_id, number=cursor.number, epoch=cursor.epoch)
        return cursor.number if known else None

    async def _view(self, session_id: str | None) -> FrameBatch:
        """The committed state, no older than this call. Clients that attach at the same time share one."""
        asked = self._head
        async with self._viewing:  # one at a time: who waits here is served by the next one, with all others
            view = self._views.get(session_id)
            if view is None or (view.number or 0) < asked:
                reads = self._store.reads
                number, snapshot = await reads.snapshot(self._workspace_id, session_id, sessions=SNAPSHOT_SESSIONS)
                view = FrameBatch(number, await asyncio.to_thread(encode_unlogged, snapshot))
                self._views = {session_id: view}
        return view


def _is_wanted(sessions: tuple[str | None, str | None], session_id: str | None) -> bool:
    return session_id is None or sessions[0] is None or session_id in sessions
