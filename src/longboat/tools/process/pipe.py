"""The output of a process as it arrives, stdout and stderr in one order.

Reads in chunks with a pause between them, so that a program that writes endlessly does not keep the event loop busy but
waits for us. A chunk is small enough to be handled quickly, and while there is more to read, the loop has at least half
of the time for other work.
"""

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import Callable

_CAPACITY = 1024 * 1024
"""What the kernel keeps for us while we rest: the most that it grants to everyone."""
_MUCH = 16 * 1024
"""A process that wrote this much during a pause is read again soon."""
_GULPS = _MUCH, _CAPACITY
_LONG_S, _SHORT_S = 0.002, 0.0005
"""Of the processor. What took longer is followed by a smaller gulp, what took less by a larger one."""
_LEAST_REST_S, _REST_S = 0.001, 0.01
"""The longer one if there was little to read: who prints line by line is read a few lines at a time."""


class Pipe:
    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._fd, self.write_end = os.pipe()
        self._gulp_size = _GULPS[-1]
        os.set_blocking(self._fd, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):  # its user has too many large ones
                fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, _CAPACITY)
        self.is_open = True
        """Until no one can write to it any more, or until it is closed."""

    def listen(self) -> None:
        """Begin to read. The write end is the child's alone from here on, else the pipe would never end."""
        self._close_write_end()
        self._wait()

    def drain(self) -> None:
        """Read what is available now, without a pause; limited, because the process may keep writing."""
        left = 2 * _CAPACITY
        while left > 0 and self.is_open and (size := self._gulp()):
            left -= size

    def close(self) -> None:
        self._close_write_end()
        if not self.is_open:
            return
        self.is_open = False
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _close_write_end(self) -> None:
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    def _wait(self) -> None:
        self._timer = None
        if self.is_open:
            self._loop.add_reader(self._fd, self._readable)

    def _readable(self) -> None:
        self._loop.remove_reader(self._fd)
        start = time.thread_time()
        size = self._gulp()
        took_s = time.thread_time() - start
        if self.is_open:
            rest_s = max(_LEAST_REST_S, took_s) if size >= _MUCH else _REST_S
            self._timer = self._loop.call_later(rest_s, self._wait)
        self._adapt(took_s)

    def _adapt(self, took_s: float) -> None:
        smallest, largest = _GULPS
        if took_s > _LONG_S:
            self._gulp_size = max(smallest, self._gulp_size // 2)
        elif took_s < _SHORT_S:
            self._gulp_size = min(largest, self._gulp_size * 2)

    def _gulp(self) -> int:
        """How much there was to read."""
        try:
            data = os.read(self._fd, self._gulp_size)
        except BlockingIOError:
            return 0
        if data:
            self._take(data)
        else:
            self.close()
        return len(data)
