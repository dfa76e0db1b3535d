"""A turn's ordered way to the log.

Owns what the turn has said and the store has not yet taken. One unit is in flight at a time; deltas that wait meanwhile
are merged, so a fast model costs no more commits than the disk can do. While the store fails, units are tried again and
`room()` holds the model back. Must not know why anything is said.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from longboat.errors import StoreUnavailable
from longboat.store.protocol import Entry, Store, Unit, Write
from longboat.store.rows import put_message
from longboat.wire.events import Change, encode_body
from longboat.wire.models import Message, MessageDelta

ROOM_CHARACTERS = 256 * 1024
RETRY_S = 0.5


@dataclass(slots=True)
class _Delta:
    """A delta that may still grow."""

    first: MessageDelta
    pieces: list[str]

    def body(self) -> bytes:
        if len(self.pieces) > 1:
            return encode_body(Change.UPDATED, msgspec.structs.replace(self.first, text="".join(self.pieces)))
        return encode_body(Change.UPDATED, self.first)


@dataclass(frozen=True, slots=True)
class _Told:
    """Any other event with its writes. `whole`: ends its unit, so that later deltas have higher numbers."""

    body: bytes
    writes: Sequence[Write]
    whole: bool
    durable: bool = False


@dataclass(slots=True)
class _Batch:
    """Writes and entries in the making."""

    writes: list[Write] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)


class Outbox:
    def __init__(self, store: Store, workspace_id: str, session_id: str) -> None:
        self._store = store
        self._workspace_id = workspace_id
        self._session_id = session_id
        self._pending: list[_Delta | _Told] = []
        self._waiting_characters = 0
        self._in_flight: list[_Delta | _Told] = []
        self._held = False
        self._settled: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()

    def delta(self, delta: MessageDelta) -> None:
        self._waiting_characters += len(delta.text)
        last = self._pending[-1] if self._pending else None
        if isinstance(last, _Delta) and last.first.part == delta.part and last.first.message_id == delta.message_id:
            last.pieces.append(delta.text)
            return
        self._pending.append(_Delta(delta, [delta.text]))
        self._send()

    def whole(self, message: Message, change: Change = Change.UPDATED, *, durable: bool = False) -> None:
        """A whole message, on disk and on the stream. `durable`: all up to here is to survive a power cut."""
        body = encode_body(change, message)
        self._pending.append(_Told(body, (put_message(message),), whole=True, durable=durable))
        self._send()

    def tell(self, payload: msgspec.Struct, change: Change = Change.CREATED, *, writes: Sequence[Write] = ()) -> None:
        self._pending.append(_Told(encode_body(change, payload), writes, whole=False))
        self._send()

    async def flush(self) -> None:
        """Wait until all that was said is on disk."""
        while self._pending or self._in_flight:
            await self._settling()

    @property
    def crowded(self) -> bool:
        return self._waiting_characters > ROOM_CHARACTERS

    async def room(self) -> None:
        """Wait while too much is waiting."""
        while self.crowded:
            await self._settling()

    def hold(self) -> None:
        """Send nothing more: what is said from here on goes with the end of the turn."""
        self._held = True

    async def close(self) -> tuple[list[Write], list[Entry]]:
        """Wait for what is in flight and hand over the rest, to be committed with the end of the turn (T5)."""
        self.hold()
        while self._in_flight:
            await self._settling()
        batch = _build(self._pending, self._session_id)
        self._pending = []
        return batch.writes, batch.entries

    async def _settling(self) -> None:
        if self._settled is None:
            self._settled = self._loop.create_future()
        await asyncio.shield(self._settled)

    def _send(self) -> None:
        if self._in_flight or self._held or not self._pending:
            return
        end = next((i for i, item in enumerate(self._pending, 1) if isinstance(item, _Told) and item.whole), None)
        self._in_flight, self._pending = self._pending[:end], self._pending[end:] if end else []
        self._waiting_characters = _characters(self._pending)
        batch = _build(self._in_flight, self._session_id)
        unit = Unit(
            workspace_id=self._workspace_id,
            writes=batch.writes,
            entries=batch.entries,
            durable=any(isinstance(item, _Told) and item.durable for item in self._in_flight),
        )
        self._store.submit(unit).add_done_callback(self._sent)

    def _sent(self, future: "asyncio.Future[None]") -> None:
        sent, self._in_flight = self._in_flight, []
        error = future.exception()
        if isinstance(error, StoreUnavailable):
            self._pending = sent + self._pending
            self._waiting_characters = _characters(self._pending)
            self._loop.call_later(RETRY_S, self._send)
        else:
            if error is not None:
                self._loop.call_exception_handler({"message": "the log refused what a turn said", "exception": error})
            self._send()
        if self._settled is not None:
            self._settled.set_result(None)
            self._settled = None


def _characters(items: Sequence[_Delta | _Told]) -> int:
    return sum(len(piece) for item in items if isinstance(item, _Delta) for piece in item.pieces)


def _build(items: Sequence[_Delta | _Told], session_id: str) -> _Batch:
    """Deltas of one message make an entry that names it, so that a crash finds them again."""
    batch = _Batch()
    bodies: list[bytes] = []
    message_id: str | None = None
    for item in items:
        owner = item.first.message_id if isinstance(item, _Delta) else None
        if bodies and owner != message_id:
            batch.entries.append(Entry(bodies=tuple(bodies), session_id=session_id, message_id=message_id))
            bodies = []
        message_id = owner
        if isinstance(item, _Told):
            batch.writes += item.writes
            bodies.append(item.body)
        else:
            bodies.append(item.body())
    if bodies:
        batch.entries.append(Entry(bodies=tuple(bodies), session_id=session_id, message_id=message_id))
    return batch
