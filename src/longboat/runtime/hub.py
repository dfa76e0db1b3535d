"""One workspace's log as its readers see it: a ring of the newest frames in memory, the store behind it.

Owns cursors, the ring and wake-ups. A connection is only a number: readers at the head take frames from the ring,
encoded once; a reader that fell behind reads from the store at its own pace. No reader loses frames or blocks others.
Must not know what the events mean.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from weakref import WeakValueDictionary

import msgspec

from longboat.errors import StoreDamaged
from longboat.store.protocol import Published, Reader, Store
from longboat.store.rows import (
    client_from_row,
    is_intact,
    listed_session,
    open_messages,
    pending,
    readable,
    run_from_row,
)
from longboat.wire.asks import Permission, Question
from longboat.wire.events import encode_unlogged
from longboat.wire.ids import Cursor
from longboat.wire.models import Message, Resync, Run, RunState, Snapshot
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
class Stretch:
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
        self._views: dict[str | None, Stretch] = {}
        self._pages: WeakValueDictionary[tuple[int, str | None], Stretch] = WeakValueDictionary()
        """What is being sent from the store. Many who are stuck at the same place hold it once."""
        self._viewing = asyncio.Lock()
        self._heartbeat_s = heartbeat_s
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(heartbeat_s, self._beat)
        store.listen(workspace_id, self.publish)

    async def open(self) -> None:
        """Read where the log stands; what was published meanwhile is newer still."""
        rows = await self._store.read(lambda reader: reader.fetch("event_newest", workspace_id=self._workspace_id))
        self._head = max(self._head, rows[0]["last"] if rows else 0)

    def publish(self, entries: Sequence[Published]) -> None:
        """Take committed entries into the ring and wake whoever waits."""
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
        self._store.listen(self._workspace_id, None)
        self._wake(Wake.CLOSED)

    async def stream(self, after: str | None, session_id: str | None) -> AsyncGenerator[bytes, None]:
        """Frames in chunks: from the cursor on, or a snapshot and the log from there on."""
        number = await self._locate(after) if after is not None else None
        if after is not None and number is None:
            yield _RESYNC
        while True:
            if number is None:
                stretch = await self._view(session_id)
            elif number < self._head:
                stretch = self._from_ring(number, session_id) or await self._from_store(number, session_id)
            elif self._closed:
                return
            else:
                stretch = Stretch(number, HEARTBEAT if await self._news() is Wake.HEARTBEAT else b"")
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

    def _from_ring(self, number: int, session_id: str | None) -> Stretch | None:
        """What the ring has right after `number`: about a chunk, or one entry that is larger, which is then not copied.

        None if the ring does not begin there.
        """
        entry = self._ring.get(number + 1)
        if entry is None:
            return None
        chunk: list[bytes] = []
        size = 0
        while entry is not None:
            if _wanted(entry.sessions, session_id):
                if size and size + len(entry.data) > CHUNK_BYTES:
                    break
                chunk.append(entry.data)
                size += len(entry.data)
            number = entry.last
            entry = self._ring.get(number + 1)
        return Stretch(number, chunk[0] if len(chunk) == 1 else b"".join(chunk))

    async def _from_store(self, number: int, session_id: str | None) -> Stretch:
        """The same from the store, for a reader that fell behind; a resync if what it wants was pruned
        meanwhile or is damaged: it goes on from the state as it is now."""
        page = self._pages.get((number, session_id))
        if page is None:
            try:
                page = await self._store.read(
                    lambda reader: _take_page(reader, self._workspace_id, number, session_id), replay=True
                )
            except StoreDamaged:
                page = Stretch(None, _DAMAGED)
            page = self._pages.setdefault((number, session_id), page)
        return page

    async def _locate(self, text: str) -> int | None:
        """The number of a cursor whose very event is in the log, or None."""
        cursor = Cursor.parse(text)
        if cursor is None or cursor.workspace_id != self._workspace_id:
            return None
        rows = await self._store.read(
            lambda reader: reader.fetch("event_at", workspace_id=self._workspace_id, number=cursor.number), replay=True
        )
        known = any(row["first"] <= cursor.number and row["epoch"] == cursor.epoch for row in rows)
        return cursor.number if known else None

    async def _view(self, session_id: str | None) -> Stretch:
        """The committed state, no older than this call. Clients that attach at the same time share one."""
        asked = self._head
        async with self._viewing:  # one at a time: who waits here is served by the next one, with all others
            view = self._views.get(session_id)
            if view is None or (view.number or 0) < asked:
                view = await self._store.read(
                    lambda reader: _take_view(reader, self._workspace_id, session_id), replay=True
                )
                self._views = {session_id: view}
        return view


def _wanted(sessions: tuple[str | None, str | None], session_id: str | None) -> bool:
    return session_id is None or sessions[0] is None or session_id in sessions


def _take_page(reader: Reader, workspace_id: str, number: int, session_id: str | None) -> Stretch:
    ahead = reader.fetch("events_ahead", workspace_id=workspace_id, number=number, limit=STORE_PAGE)
    if not ahead or ahead[0]["first"] > number + 1:
        return Stretch(None, _RESYNC)
    up_to, size = number, 0
    for row in ahead:
        if _wanted((row["session_id"], row["parent_session_id"]), session_id):
            if size and size + row["size"] > CHUNK_BYTES:
                break
            size += row["size"]
        up_to = row["last"]
    stretch = {"workspace_id": workspace_id, "number": number, "up_to": up_to, "session_id": session_id}
    rows = reader.fetch("events_between", **stretch)
    if not all(is_intact(row, workspace_id) for row in rows):
        return Stretch(None, _DAMAGED)
    return Stretch(up_to, b"".join(_cut(row["frames"], row["first"], number) for row in rows))


def _cut(frames: bytes, first: int, number: int) -> bytes:
    """The frames of an entry that come after `number`. JSON has no raw line ends: a blank line ends a frame."""
    if first > number:
        return frames
    return frames.split(b"\n\n", number - first + 1)[-1]


def _take_view(reader: Reader, workspace_id: str, session_id: str | None) -> Stretch:
    newest = reader.fetch("event_newest", workspace_id=workspace_id)
    number, epoch = (newest[0]["last"], newest[0]["epoch"]) if newest else (0, 0)
    if session_id is None:
        rows = reader.fetch("sessions_page", workspace_id=workspace_id, before=2**62, limit=SNAPSHOT_SESSIONS)
    else:
        rows = reader.fetch("session_family", workspace_id=workspace_id, session_id=session_id)
    unfinished = reader.fetch("runs_unfinished", workspace_id=workspace_id)
    # Without those that a cancel has taken out of the queue: only their ends are left to be told.
    runs = with_positions(readable(run_from_row, [row for row in unfinished if not row["covered"]]))
    messages: list[Message] = open_messages(reader, workspace_id)
    clients = tuple(client_from_row(row) for row in reader.fetch("clients_of", workspace_id=workspace_id))
    permissions = pending(reader, workspace_id, Permission)
    questions = pending(reader, workspace_id, Question)
    if session_id is not None:
        family = {row["session_id"] for row in rows}
        runs = [run for run in runs if run.session_id in family]
        messages = [message for message in messages if message.session_id in family]
        permissions = [ask for ask in permissions if session_id in (ask.session_id, ask.parent_session_id)]
        questions = [ask for ask in questions if session_id in (ask.session_id, ask.parent_session_id)]
    snapshot = Snapshot(
        cursor=str(Cursor(workspace_id, epoch, number)),
        sessions=tuple(map(listed_session, rows)),
        runs=tuple(runs),
        messages=tuple(messages),
        permissions=tuple(permissions),
        questions=tuple(questions),
        clients=clients,
    )
    return Stretch(number, encode_unlogged(snapshot))


def with_positions(runs: Sequence[Run]) -> list[Run]:
    """Unfinished runs, given in order of seq, with their places in the queues of their sessions."""
    busy = {run.session_id for run in runs if run.state is RunState.ACTIVE}
    places: dict[str, int] = {}
    placed: list[Run] = []
    for run in runs:
        position: int | None = None
        if run.state is RunState.ACTIVE:
            position = 0
        elif run.state is not RunState.FOLDED:
            position = places.get(run.session_id, int(run.session_id in busy))
            places[run.session_id] = position + 1
        placed.append(msgspec.structs.replace(run, position=position))
    return placed
