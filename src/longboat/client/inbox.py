"""A client's copy of the inbox, kept by the events of `Client.inbox_events`; and the reader of that stream. Pure."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from longboat.errors import LongboatError
from longboat.wire.inbox import InboxEvent, InboxItem, InboxPage, decode_inbox
from longboat.wire.sse import Decoder


class InboxTail:
    """Bytes of the stream in, typed events out. A new connection starts over: there is nothing to resume."""

    headers: ClassVar[Mapping[str, str]] = {"accept": "text/event-stream", "cache-control": "no-store"}

    def __init__(self) -> None:
        self._decoder = Decoder()

    def connected(self) -> None:
        self._decoder = Decoder()

    def feed(self, chunk: bytes) -> list[InboxEvent]:
        """The events that became whole; without types this client is too old to know."""
        try:
            events = [decode_inbox(frame.data) for frame in self._decoder.decode(chunk)]
        except (msgspec.MsgspecError, UnicodeDecodeError) as wrong:
            message = f"The inbox stream contains an event that cannot be read: {wrong}"
            raise LongboatError(message, code="bad_event") from None
        return [event for event in events if event is not None]


class InboxMirror:
    """A person's inbox, as much of it as was loaded."""

    def __init__(self) -> None:
        self._items: dict[str, InboxItem] = {}
        self._newest = 0
        self.next: str | None = None
        """Where the page after the loaded ones begins."""
        self.waiting = 0
        self.unseen = 0

    @property
    def items(self) -> list[InboxItem]:
        """Newest first."""
        return sorted(self._items.values(), key=_place, reverse=True)

    @property
    def lacks_waiting(self) -> bool:
        """Whether items that wait for an answer are on pages that are not loaded yet: read `next` and `take` it."""
        return self.next is not None and sum(item.kind.waits for item in self._items.values()) < self.waiting

    def apply(self, event: InboxEvent) -> tuple[InboxItem, ...]:
        """Take an event of the stream; returns the items that are new since the first one."""
        self.waiting, self.unseen = event.waiting, event.unseen
        if isinstance(event, InboxPage):
            self._items = {item.id: item for item in event.items}
            self._newest = max(map(_place, event.items), default=self._newest)
            self.next = event.next
            return ()
        for item_id in event.removed:
            self._items.pop(item_id, None)
        new = tuple(item for item in event.changed if _place(item) > self._newest)
        self._newest = max(map(_place, new), default=self._newest)
        loaded = [item for item in event.changed if self.next is None or _place(item) >= int(self.next)]
        self._items |= {item.id: item for item in loaded}
        return new

    def take(self, page: InboxPage) -> None:
        """Add the page after those that are loaded."""
        self._items = {item.id: item for item in page.items} | self._items
        self.next = page.next


def _place(item: InboxItem) -> int:
    return int(item.id)
