"""One workspace's log as its readers see it: a ring of the newest frames in memory, the store behind it.

Owns cursors, the ring and wake-ups. A connection is only a number: readers at the head take frames from the ring,
encoded once; one that fell behind reads the store at its own pace. Nobody drops, nobody blocks. Must not know what the
events mean.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from enum import Enum

import msgspec

from longboat.core.state import RunView, SessionState
from longboat.store.protocol import Published, Reader, Store
from longboat.store.rows import client_from_row, open_messages, run_from_row, session_from_row
from longboat.wire.events import encode_unlogged
from longboat.wire.ids import Cursor
from longboat.wire.models import Message, Resync, Run, Snapshot
from longboat.wire.sse import HEARTBEAT

RING_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
STORE_PAGE = 64
SNAPSHOT_SESSIONS = 500
"""The newest ones; the list route pages through the rest."""

_RESYNC = encode_unlogged(Resync(reason="The cursor is not in the log any more: a snapshot follows."))


class Wake(Enum):
    """Why a waiting reader was woken."""

    NEWS = "news"
    HEARTBEAT = "heartbeat"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class View:
    """A snapshot, the number it stands at, and its frame."""

    number: int
    frame: bytes


class Hub:
    def __init__(self, store: Store, workspace_id: str, *, heartbeat_s: float) -> None:
        self._store = store
        self._workspace_id = workspace_id
        self._head = 0
        self._ring: dict[int, Published] = {}
        self._order: deque[int] = deque()
        self._size = 0
        self._waiting: list[asyncio.Future[Wake]] = []
        self._views: dict[str | None, View] = {}
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
        """Chunks of whole frames: from the cursor on, or a snapshot and the log from there on."""
        number = await self._locate(after) if after is not None else None
        if after is not None and number is None:
            yield _RESYNC
        while True:
            if number is None:
                view = await self._view(session_id)
                number = view.number
                yield view.frame
                del view  # it may be large, and a reader stays for days
            elif number < self._head:
                number, chunk = self._from_ring(number, session_id) or await self._from_store(number, session_id)
                if chunk:
                    yield chunk
                del chunk
            elif self._closed:
                return
            elif await self._news() is Wake.HEARTBEAT:
                yield HEARTBEAT

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

    def _from_ring(self, number: int, session_id: str | None) -> tuple[int | None, bytes] | None:
        """What the ring has right after `number`, as one chunk; None if it does not begin there."""
        entry = self._ring.get(number + 1)
        if entry is None:
            return None
        chunk: list[bytes] = []
        size = 0
        while entry is not None and size < CHUNK_BYTES:
            if _wanted(entry.session_id, session_id):
                chunk.append(entry.data)
                size += len(entry.data)
            number = entry.last
            entry = self._ring.get(number + 1)
        return number, chunk[0] if len(chunk) == 1 else b"".join(chunk)

    async def _from_store(self, number: int, session_id: str | None) -> tuple[int | None, bytes]:
        """The same from the store, for a reader that fell behind; no number if what it wants was pruned meanwhile."""
        page = {"workspace_id": self._workspace_id, "number": number, "limit": STORE_PAGE}
        rows = await self._store.read(lambda reader: reader.fetch("events_after", **page))
        if not rows or rows[0]["first"] > number + 1:
            return None, _RESYNC
        chunk: list[bytes] = []
        size = 0
        for row in rows:
            if _wanted(row["session_id"], session_id):
                chunk.append(_cut(row["frames"], row["first"], number))
                size += len(chunk[-1])
            number = row["last"]
            if size >= CHUNK_BYTES:
                break
        return number, b"".join(chunk)

    async def _locate(self, text: str) -> int | None:
        """The number of a cursor whose very event is in the log, or None."""
        cursor = Cursor.parse(text)
        if cursor is None or cursor.workspace_id != self._workspace_id:
            return None
        rows = await self._store.read(
            lambda reader: reader.fetch("event_at", workspace_id=self._workspace_id, number=cursor.number)
        )
        known = any(row["first"] <= cursor.number and row["epoch"] == cursor.epoch for row in rows)
        return cursor.number if known else None

    async def _view(self, session_id: str | None) -> View:
        """The committed state, no older than this call. Clients that attach at the same time share one."""
        asked = self._head
        async with self._viewing:  # one at a time: who waits here is served by the next one, with all others
            view = self._views.get(session_id)
            if view is None or view.number < asked:
                view = await self._store.read(lambda reader: _take_view(reader, self._workspace_id, session_id))
                self._views = {session_id: view}
        return view


def _wanted(entry_session: str | None, session_id: str | None) -> bool:
    return session_id is None or entry_session is None or entry_session == session_id


def _cut(frames: bytes, first: int, number: int) -> bytes:
    """The frames of an entry that come after `number`. JSON has no raw line ends: a blank line ends a frame."""
    if first > number:
        return frames
    return frames.split(b"\n\n", number - first + 1)[-1]


def _take_view(reader: Reader, workspace_id: str, session_id: str | None) -> View:
    newest = reader.fetch("event_newest", workspace_id=workspace_id)
    number, epoch = (newest[0]["last"], newest[0]["epoch"]) if newest else (0, 0)
    if session_id is None:
        rows = reader.fetch("sessions_page", workspace_id=workspace_id, before=2**62, limit=SNAPSHOT_SESSIONS)
    else:
        rows = reader.fetch("session_by_id", workspace_id=workspace_id, session_id=session_id)
    runs = with_positions([run_from_row(row) for row in reader.fetch("runs_unfinished", workspace_id=workspace_id)])
    messages: list[Message] = open_messages(reader, workspace_id)
    clients = tuple(client_from_row(row) for row in reader.fetch("clients_of", workspace_id=workspace_id))
    if session_id is not None:
        runs = [run for run in runs if run.session_id == session_id]
        messages = [message for message in messages if message.session_id == session_id]
    snapshot = Snapshot(
        cursor=str(Cursor(workspace_id, epoch, number)),
        sessions=tuple(session_from_row(row) for row in rows),
        runs=tuple(runs),
        messages=tuple(messages),
        clients=clients,
    )
    return View(number, encode_unlogged(snapshot))


def with_positions(runs: Sequence[Run]) -> list[Run]:
    """Unfinished runs with their places in the queues of their sessions."""
    states: dict[str, SessionState] = {}
    for run in runs:
        known = states.get(run.session_id, SessionState())
        view = RunView(run_id=run.run_id, seq=run.seq, delivery=run.delivery, state=run.state)
        states[run.session_id] = SessionState(runs=(*known.runs, view))
    return [msgspec.structs.replace(run, position=states[run.session_id].position(run.run_id)) for run in runs]
