"""Limits the number of TCP connections, and the memory used by those without a token.

The unix socket belongs to the owner: nobody is refused there. A TCP connection is unauthenticated until a request on it
has sent the token. Unauthenticated connections may use at most half of the places, and the oldest is closed when none
is left; when they use too much memory, the largest is closed. Must not know HTTP, nor what a token is.
"""

import logging
import resource
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

MAX_DESCRIPTORS = 65_536
MAX_CONNECTIONS = 4_096
"""Over TCP."""
MAX_STRANGERS = 1_024
"""Connections without a token; an idle one takes 7 KB."""
MAX_STRANGER_BYTES = 4 << 20
"""What connections without a token may hold together: unfinished heads, login forms, answers that nobody reads."""
_TELL_AGAIN_S = 60.0

log = logging.getLogger(__name__)


def raise_descriptor_limit() -> int:
    """Take as many file descriptors as the system lets us, within reason. Returns how many there are."""
    soft, hard = (_number(limit) for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
    wanted = min(hard, MAX_DESCRIPTORS)
    if soft < wanted:
        with suppress(ValueError, OSError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            return wanted
    return soft


def _number(limit: int) -> int:
    return 1 << 30 if limit == resource.RLIM_INFINITY else limit


def open_connection_limits() -> "ConnectionLimits":
    """The door of this process. The store, model calls and tools keep at least half of the descriptors."""
    return ConnectionLimits(limit=min(MAX_CONNECTIONS, raise_descriptor_limit() // 2))


class Connected(Protocol):
    """A connection, as far as the limits need it."""

    def make_room(self) -> None:
        """Close at once."""


@dataclass(slots=True, kw_only=True)
class ConnectionLimits:
    """Tracks the TCP connections."""

    limit: int
    known: set[Connected] = field(default_factory=set)
    strangers: dict[Connected, int] = field(default_factory=dict)
    """How many bytes each of them holds; oldest first."""
    held: int = 0
    """How many bytes all strangers hold."""
    told_at: float = float("-inf")

    def let_in(self, connection: Connected, now: float) -> bool:
        """Whether there is room. Where a stranger can make it, one does."""
        most_strangers = min(MAX_STRANGERS, max(1, self.limit // 2))
        if len(self.strangers) >= most_strangers or len(self.strangers) + len(self.known) >= self.limit:
            self._tell(now)
            oldest = next(iter(self.strangers), None)
            if oldest is None:
                return False
            self._turn_out(oldest)
        self.strangers[connection] = 0
        return True

    def hold(self, connection: Connected, size: int) -> None:
        """Record how many bytes a connection holds. If those without a token hold too much, close the largest."""
        if connection not in self.strangers:
            return
        self.held += size - self.strangers[connection]
        self.strangers[connection] = size
        while self.held > MAX_STRANGER_BYTES:
            self._turn_out(max(self.strangers, key=self.strangers.__getitem__))

    def welcome(self, connection: Connected) -> None:
        if connection in self.strangers:
            self._forget(connection)
            self.known.add(connection)

    def let_out(self, connection: Connected) -> None:
        self._forget(connection)
        self.known.discard(connection)

    def _turn_out(self, stranger: Connected) -> None:
        self._forget(stranger)
        stranger.make_room()

    def _forget(self, stranger: Connected) -> None:
        self.held -= self.strangers.pop(stranger, 0)

    def _tell(self, now: float) -> None:
        if now - self.told_at > _TELL_AGAIN_S:
            self.told_at = now
            strangers, all_ = len(self.strangers), len(self.strangers) + len(self.known)
            log.warning("%d TCP connections are open, %d without a token: some are refused or closed", all_, strangers)
