"""The histories of the sessions used last, in memory: a turn need not read what this process has just written.

Owns which are kept, and that each says what the store would. It follows every unit; a write that it does not know to
leave histories alone makes it forget, and the next turn reads. Must not know turns or SQL.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from operator import attrgetter

from longboat.store.changes import concerns_history
from longboat.store.protocol import Unit, Write
from longboat.store.records import SessionHistory
from longboat.wire.models import Message

MAX_SIZE = 4_000_000
"""Of all that are kept, in bytes. Each message, note and session counts as OVERHEAD more."""
OVERHEAD = 500

_seq = attrgetter("seq")


@dataclass(slots=True, kw_only=True)
class _Kept:
    after: int
    """Messages up to this seq are left out."""
    messages: dict[str, Message] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """The sizes of the messages that were written since the history is kept."""
    surroundings: dict[str, str] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    """Messages that are still being written, and file changes that are expected: while there are any, the history
    cannot be used."""
    size: int = 0

    def history(self) -> SessionHistory:
        return SessionHistory(
            messages=sorted(self.messages.values(), key=_seq),
            surroundings={**self.surroundings},
            reverts=(),
            has_unsettled_changes=False,
        )


class RecentHistories:
    """On the loop."""

    def __init__(self, *, max_size: int = MAX_SIZE) -> None:
        self._max_size = max_size
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        """By session; the one used last is at the end."""
        self._size = 0
        self._reading: dict[str, object] = {}
        """The sessions that are being read and have not been written to meanwhile."""

    async def get(
        self, session_id: str, *, after: int, read: Callable[[], Awaitable[SessionHistory]]
    ) -> SessionHistory:
        """The history of a session; read only if it is not kept."""
        kept = self._kept.get(session_id)
        if kept is not None and kept.after == after and not kept.open:
            self._kept.move_to_end(session_id)
            return kept.history()
        reading = self._reading[session_id] = object()
        try:
            history = await read()
        finally:
            is_unchanged = self._reading.pop(session_id, None) is reading
        if is_unchanged:
            self._keep(session_id, after, history)
        return history

    def forget_all(self) -> None:
        self._kept.clear()
        self._reading.clear()
        self._size = 0

    def follow(self, unit: Unit, *, committed: bool) -> None:
        """Take in what was written, before its submitter hears of it. What failed may be on disk all the same."""
        if not committed and unit.writes:
            self.forget_all()
            return
        for write in unit.writes:
            if concerns_history(write):
                self._take(write)

    def _take(self, write: Write) -> None:
        params = write.params
        match write.query:
            case "session_insert":
                self._forget(params["session_id"])
                self._add(params["session_id"], _Kept(after=0), OVERHEAD)
            case "message_put" if write.message is not None:
                self._put_message(write.message, len(params["parts"]))
            case "surroundings_put":
                self._put_surroundings(params["session_id"], params["run_id"], params["text"])
            case "change_expect" if params["author"] is None:  # an edit of a turn: once it is made, nothing has changed
                self._reading.pop(params["session_id"], None)
                if (kept := self._kept.get(params["session_id"])) is not None:
                    kept.open.add(params["pending"])
            case "change_made" | "change_forget":
                for kept in self._kept.values():
                    kept.open.discard(params["pending"])
            case _ if "session_id" in params:
                self._forget(params["session_id"])
            case _:
                self.forget_all()

    def _put_message(self, message: Message, size: int) -> None:
        self._reading.pop(message.session_id, None)
        kept = self._kept.get(message.session_id)
        if kept is None or message.seq <= kept.after:
            return
        if message.finished_at is None:
            kept.open.add(message.id)
            return
        kept.open.discard(message.id)
        kept.messages[message.id] = message
        known = kept.sizes.get(message.id, 0)
        kept.sizes[message.id] = size + OVERHEAD
        self._grow(kept, size + OVERHEAD - known)

    def _put_surroundings(self, session_id: str, run_id: str, text: str) -> None:
        self._reading.pop(session_id, None)
        if (kept := self._kept.get(session_id)) is not None:
            kept.surroundings[run_id] = text
            self._grow(kept, len(text) + OVERHEAD)

    def _keep(self, session_id: str, after: int, history: SessionHistory) -> None:
        """Keep a history, unless people undid changes: what a turn reads then depends on more than these writes."""
        is_open = any(message.finished_at is None for message in history.messages)
        if is_open or history.reverts or history.has_unsettled_changes:
            return
        self._forget(session_id)
        kept = _Kept(
            after=after,
            messages={message.id: message for message in history.messages},
            surroundings={**history.surroundings},
        )
        self._add(session_id, kept, history.size + OVERHEAD * (1 + len(kept.messages) + len(kept.surroundings)))

    def _add(self, session_id: str, kept: _Kept, size: int) -> None:
        self._kept[session_id] = kept
        self._grow(kept, size)

    def _grow(self, kept: _Kept, size: int) -> None:
        """The sessions that were not used for longest make room, perhaps with this one."""
        kept.size += size
        self._size += size
        while self._size > self._max_size:
            _, oldest = self._kept.popitem(last=False)
            self._size -= oldest.size

    def _forget(self, session_id: str) -> None:
        self._reading.pop(session_id, None)
        kept = self._kept.pop(session_id, None)
        if kept is not None:
            self._size -= kept.size
