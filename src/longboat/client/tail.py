"""One reader's place in the event log, across connections. Pure: bytes in, typed events out."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from longboat.errors import LongboatError
from longboat.wire.events import Event, decode_event
from longboat.wire.sse import Decoder

E_co = TypeVar("E_co", covariant=True)


class StreamTail(Protocol[E_co]):
    """What a client needs to follow a stream."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    def connected(self) -> None: ...

    def feed(self, chunk: bytes) -> Sequence[E_co]: ...


class Tail:
    """Knows the cursor of the last whole event, which is where the next connection continues."""

    def __init__(self, after: str | None) -> None:
        self.cursor = after
        self._decoder = Decoder()

    def connected(self) -> None:
        """A new connection: half a frame of the former one is void, the server sends it again."""
        self._decoder = Decoder()

    @property
    def headers(self) -> dict[str, str]:
        """What to ask the next connection for."""
        headers = {"accept": "text/event-stream", "cache-control": "no-store"}
        return headers if self.cursor is None else headers | {"last-event-id": self.cursor}

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that became whole. Types this client is too old to know are passed over, their cursors kept."""
        events = []
        for frame in self._decoder.decode(chunk):
            event = _decode(frame.data, frame.id)
            if frame.id is not None:
                self.cursor = frame.id
            if event is None:
                continue
            if event.type == "snapshot":
                self.cursor = event.payload.cursor
            events.append(event)
        return events


def _decode(data: bytes, cursor: str | None) -> Event | None:
    try:
        return decode_event(data, cursor)
    except (msgspec.MsgspecError, UnicodeDecodeError) as wrong:
        raise LongboatError(
            f"The event stream contains an event that cannot be read: {wrong}", code="bad_event"
        ) from None
