"""Limits the size and duration of an HTTP response: one that never ends is given up.

Owns the limits and the reading within them. Must not know what was requested.
"""

import io
import socket
import time
from collections.abc import Callable
from typing import Any, cast

from longboat.errors import LongboatError

GREETING = 64 << 10
"""The most bytes, headers included, of a version or health response: the sender may not be a Longboat server."""
LARGEST = 512 << 20
"""The most bytes of any other response, such as an exported session."""
RATE = 16_000
"""Bytes per second: a response that arrives at least this fast does not time out."""


class BoundedReading:
    """Tracks the size and duration of one response."""

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
        """Seconds left to receive more; 0 if the time is up."""
        return max(0.0, self._began + self._timeout_s + self.taken / RATE - self._clock())

    def late(self) -> Exception:
        """The error for a response that timed out: silence is a plain timeout, a trickle is not a Longboat server."""
        if not self.taken:
            return TimeoutError("timed out")
        return self._endless(f"only {self.taken} bytes arrived in time")

    def _endless(self, why: str) -> LongboatError:
        return LongboatError(
            f"The response from {self._address} does not end ({why}). Is this the address of a Longboat server? "
            "Open it in a browser to see what answers there.",
            code="endless_answer",
        )


class _Incoming(io.RawIOBase):
    """The data from a socket, within the limits of a reception."""

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


class _BoundedSocket:
    """The part of a socket's interface that `http.client` uses."""

    def __init__(self, incoming: _Incoming) -> None:
        self._incoming = incoming

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._incoming)


def limit_reading(wire: socket.socket, reception: BoundedReading) -> socket.socket:
    """The socket, for `http.client` to read from within the limits."""
    return cast(socket.socket, _BoundedSocket(_Incoming(wire, reception)))
