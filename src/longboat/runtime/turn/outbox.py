"""A turn's ordered queue to the log.

Owns the turn's output that the store has not yet accepted. One unit is in flight at a time; deltas that wait meanwhile
are merged, and so are versions of a message, so a fast model causes no more commits than the disk can handle. While the
store fails, units are retried and `room()` slows the model down. Must not know what the output means.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from longboat.core.stream import encodable, reshape
from longboat.errors import OwnerLost, StoreUnavailable
from longboat.runtime.clock import now
from longboat.runtime.store_retry import retry_later
from longboat.store.changes import put_message
from longboat.store.protocol import Entry, Store, Unit, Write
from longboat.wire.events import Change, encode_body
from longboat.wire.ids import new_id
from longboat.wire.models import AgentEvent, AgentEventType, Message, MessageDelta, Role, Run

ROOM_CHARACTERS = 256 * 1024
ENVELOPE = 200
"""The approximate size of a delta without its text."""
LONG = 64 * 1024
REST_PER_CHARACTER_S = 1 / 4_000_000
"""After a message of more than `LONG` characters was sent whole, its next version waits this long for each character,
or until as much text is new. So the versions of a long answer cost as much as its text, not its whole length for each
part."""


@dataclass(slots=True)
class _Delta:
    """A delta that may still grow."""

    first: MessageDelta
    pieces: list[str]

    @property
    def size(self) -> int:
        return ENVELOPE + sum(map(len, self.pieces))

    def merged(self) -> MessageDelta:
        return msgspec.structs.replace(self.first, text="".join(self.pieces)) if len(self.pieces) > 1 else self.first


@dataclass(slots=True)
class _Whole:
    """A message that a newer version may still replace. Ends its unit, so that later deltas have higher numbers."""

    message: Message
    change: Change
    durable: bool

    @property
    def size(self) -> int:
        values = (value for part in self.message.parts for value in msgspec.structs.astuple(part))
        return sum(len(value) for value in values if isinstance(value, str))


@dataclass(frozen=True, slots=True)
class _Told:
    """Any other event with its writes, or only writes."""

    body: bytes
    writes: Sequence[Write]

    @property
    def size(self) -> int:
        return len(self.body)


_Item = _Delta | _Whole | _Told


@dataclass(slots=True)
class _Batch:
    """Writes and entries being collected."""

    writes: list[Write] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)


class Outbox:
    def __init__(self, store: Store, workspace_id: str, session_id: str, *, parent: str | None = None) -> None:
        """`parent` is the session that started this one, if it is a sub-agent's."""
        self._store = store
        self._workspace_id = workspace_id
        self._session_id = session_id
        self._parent = parent
        self._pending: list[_Item] = []
        self._waiting_characters = 0
        self._in_flight: list[_Item] = []
        self._held = False
        self._flushing = 0
        self._long = ""
        """The id and length of the long message sent last, and until when its next version rests."""
        self._long_size = 0
        self._rested_at = 0.0
        self._rest: asyncio.TimerHandle | None = None
        self._settled: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()

    def delta(self, delta: MessageDelta) -> None:
        self._waiting_characters += len(delta.text)
        last = self._pending[-1] if self._pending else None
        if isinstance(last, _Delta) and last.first.part == delta.part and last.first.message_id == delta.message_id:
            last.pieces.append(delta.text)
            if self._rest is not None:
                self._send()
            return
        self._waiting_characters += ENVELOPE
        self._pending.append(_Delta(delta, [delta.text]))
        self._send()

    def begin(self, message: Message) -> None:
        """Add a new message. It is sent once the turn waits: the request to the model goes first."""
        self._pending.append(_Whole(message, Change.CREATED, durable=False))
        self._waiting_characters = _weight(self._pending)
        self._loop.call_soon(self._send)

    def whole(self, message: Message, change: Change = Change.UPDATED, *, durable: bool = False) -> None:
        """Add a whole message, for the disk and the stream. `durable`: everything up to here must survive a power
        cut."""
        # Deltas follow a merged version, so durable and final messages keep their place.
        last = durable or message.finished_at is not None
        if last or not self._reshape(message):
            self._put(_Whole(message, change, durable))

    def tell(self, payload: msgspec.Struct, change: Change = Change.CREATED, *, writes: Sequence[Write] = ()) -> None:
        self._put(_Told(encode_body(change, payload, parent=self._parent), writes))

    def write(self, write: Write) -> None:
        """Add a write without an event. It goes with the next unit."""
        self._pending.append(_Told(b"", [write]))

    async def flush(self) -> None:
        """Wait until everything added so far is on disk."""
        self._flushing += 1
        try:
            self._send()
            while self._pending or self._in_flight:
                await self._settling()
        finally:
            self._flushing -= 1

    @property
    def crowded(self) -> bool:
        # While a version rests, as much text may wait as was sent; then it goes.
        return self._waiting_characters > max(ROOM_CHARACTERS, self._long_size if self._rest is not None else 0)

    async def room(self) -> None:
        """Wait while too much is queued."""
        while self.crowded:
            await self._settling()

    def hold(self) -> None:
        """Send nothing more: output from here on is committed with the end of the turn."""
        self._held = True
        self._end_rest()

    async def close(self) -> tuple[list[Write], list[Entry]]:
        """Wait for the unit in flight, and return the rest to be committed with the end of the turn (T5)."""
        self.hold()
        while self._in_flight:
            await self._settling()
        batch = self._build(self._pending)
        self._pending = []
        return batch.writes, batch.entries

    def _put(self, item: _Whole | _Told) -> None:
        self._pending.append(item)
        self._waiting_characters = _weight(self._pending)
        self._send()

    def _reshape(self, message: Message) -> bool:
        """Whether a waiting version of the message could become this one, with the deltas behind it adding the rest.
        Without this, a model that begins part after part would have its whole answer written for each of them."""
        at, waits = _newest_whole(self._pending)
        if waits is None or waits.message.id != message.id:
            return False
        behind = [item for item in self._pending[at + 1 :] if isinstance(item, _Delta)]
        if at + 1 + len(behind) < len(self._pending):
            return False  # other events in between keep their place, such as the notice of a retry
        shape = reshape(waits.message, message, [item.merged() for item in behind])
        if shape is not None:
            waits.message = shape
        return shape is not None

    async def _settling(self) -> None:
        if self._settled is None:
            self._settled = self._loop.create_future()
        await asyncio.shield(self._settled)

    def _send(self) -> None:
        if self._in_flight or self._held or not self._pending:
            return
        end = self._due()
        if not end:
            return
        self._in_flight, self._pending = self._pending[:end], self._pending[end:]
        self._waiting_characters = _weight(self._pending)
        batch = self._build(self._in_flight)
        unit = Unit(
            workspace_id=self._workspace_id,
            writes=batch.writes,
            entries=batch.entries,
            durable=any(isinstance(item, _Whole) and item.durable for item in self._in_flight),
        )
        self._store.submit(unit).add_done_callback(self._sent)

    def _due(self) -> int:
        """How many of the waiting items go next: up to and including the first whole message, unless it rests."""
        for place, item in enumerate(self._pending):
            if isinstance(item, _Whole):
                if self._rests(item):
                    return place
                self._end_rest()
                size = item.size
                self._long, self._long_size = (item.message.id, size) if size > LONG else ("", 0)
                self._rested_at = self._loop.time() + size * REST_PER_CHARACTER_S
                return place + 1
        return len(self._pending)

    def _rests(self, whole: _Whole) -> bool:
        """Whether a message may wait for newer versions to replace it. A final version, or one that a caller waits for,
        may not."""
        last = whole.durable or whole.message.finished_at is not None
        if last or self._flushing or self._long != whole.message.id:
            return False
        left = self._rested_at - self._loop.time()
        if left <= 0 or self._waiting_characters >= self._long_size:
            return False
        if self._rest is None:
            self._rest = self._loop.call_later(left, self._end_rest, True)
        return True

    def _end_rest(self, rested: bool = False) -> None:
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        if rested:
            self._rested_at = 0.0  # timers may be early by their resolution
            self._send()

    def _sent(self, future: "asyncio.Future[None]") -> None:
        sent, self._in_flight = self._in_flight, []
        error = future.exception()
        if isinstance(error, OwnerLost):
            self._pending = sent + self._pending
            self.hold()  # the turn is about to end; nobody who waits for this may believe that it is on disk
        elif isinstance(error, StoreUnavailable):
            self._pending = sent + self._pending
            self._long, self._long_size = "", 0
            self._waiting_characters = _weight(self._pending)
            retry_later(self._send)
        else:
            if error is not None:
                self._loop.call_exception_handler({"message": "the log rejected events of a turn", "exception": error})
            self._send()
        if self._settled is not None:
            self._settled.set_result(None)
            self._settled = None

    def _build(self, items: Sequence[_Item]) -> _Batch:
        """Build a unit. Deltas of one message make one entry that names it, so that recovery after a crash finds
        them."""
        batch = _Batch()
        bodies: list[bytes] = []
        message_id: str | None = None
        for item in items:
            owner = item.first.message_id if isinstance(item, _Delta) else None
            if bodies and owner != message_id:
                batch.entries.append(self._entry(bodies, message_id))
                bodies = []
            message_id = owner
            match item:
                case _Delta():
                    bodies.append(encode_body(Change.UPDATED, item.merged(), parent=self._parent))
                case _Whole():
                    batch.writes.append(put_message(item.message))
                    bodies.append(encode_body(item.change, item.message, parent=self._parent))
                case _Told():
                    batch.writes += item.writes
                    bodies += [item.body] if item.body else []
        if bodies:
            batch.entries.append(self._entry(bodies, message_id))
        return batch

    def _entry(self, bodies: Sequence[bytes], message_id: str | None) -> Entry:
        return Entry(
            bodies=tuple(bodies),
            session_id=self._session_id,
            parent_session_id=self._parent,
            message_id=message_id,
        )


def _newest_whole(items: Sequence[_Item]) -> tuple[int, _Whole | None]:
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, _Whole):
            return index, item
    return -1, None


def _weight(items: Sequence[_Item]) -> int:
    """How much room the items take. The newest whole message takes none, because it shares its text with the draft. It
    must not slow the model down either: if the turn waited for each version of a long answer, each would be written."""
    _, newest = _newest_whole(items)
    return sum(item.size for item in items if item is not newest)


def blank_message(run: Run, role: Role, seq: int) -> Message:
    """Make an empty message of the run."""
    return Message(
        id=new_id(), session_id=run.session_id, run_id=run.run_id, seq=seq, role=role, parts=(), created_at=now()
    )


class Notices:
    def __init__(self, run: Run, outbox: Outbox, next_seq: Callable[[], int]) -> None:
        self._run = run
        self._outbox = outbox
        self._next_seq = next_seq

    def blank(self, role: Role) -> Message:
        return blank_message(self._run, role, self._next_seq())

    def notice(self, kind: AgentEventType, message: str = "", detail: str = "") -> None:
        event = AgentEvent(
            type=kind,
            session_id=self._run.session_id,
            run_id=self._run.run_id,
            message=encodable(message),
            detail=encodable(detail),
        )
        self._outbox.tell(event)

    def problem(self, text: str) -> None:
        self.notice(AgentEventType.NOTICE, text)
