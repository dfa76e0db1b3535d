"""How long and how much a command listens to whoever answers: an answer that never ends is given up.

Owns the limits and the reading within them. Must not know what was asked.
"""

import io
import socket
import time
from collections.abc import Callable
from typing import Any, cast

from longboat.errors import LongboatError

GREETING = 64 << 10
"""Bytes, head included, of what a server says of itself to somebody who does not know it yet."""
LARGEST = 512 << 20
"""Of anything else: a session with all that is in it."""
RATE = 16_000
"""Bytes per second. What comes at least that fast may take its time."""


class BoundedReading:
    """Keeps the account of one answer."""

    def __init__(
        self, address: str, *, timeout_s: float, most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._most = most
        self._clock = clock
        self._began = clock()
        self.taken = 0

    def took(self, count: int) -> None:
        self.taken += count
        if self.taken > self._most:
            raise self._endless(f"it is larger than {self._most >> 10} KB")

    def left_s(self) -> float:
        """Until it is too late; 0 if it is."""
        return max(0.0, self._began + self._timeout_s + self.taken / RATE - self._clock())

    def late(self) -> Exception:
        """Of somebody who says nothing it is known what that means; one that dribbles is no server of ours."""
        if not self.taken:
            return TimeoutError("timed out")
        return self._endless(f"only {self.taken} bytes came in time")

    def _endless(self, why: str) -> LongboatError:
        return LongboatError(
            f"The answer from {self._address} does not come to an end ({why}): is the address that of a "
            "Longboat server? A browser that opens it shows who answers there.",
            code="endless_answer",
        )


class _Incoming(io.RawIOBase):
    """What comes from a socket, as far as the reception lets it."""

    def __init__(self, wire: socket.socket, reception: BoundedReading) -> None:
        self._wire = wire
        self._reception = reception

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left_s = self._reception.left_s()
        if not left_s:
            raise self._reception.late()
        self._wire.settimeout(left_s)
        try:
            count = self._wire.recv_into(buffer)
        except TimeoutError:
            raise self._reception.late() from None
        self._reception.took(count)
        return count


class _Listened:
    """As much of a socket as an HTTP answer is read from."""

    def __init__(self, incoming: _Incoming) -> None:
        self._incoming = incoming

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._incoming)


def listened(wire: socket.socket, reception: BoundedReading) -> socket.socket:
    """The socket, for `http.client` to read from within the limits."""
    return cast(socket.socket, _Listened(_Incoming(wire, reception)))
