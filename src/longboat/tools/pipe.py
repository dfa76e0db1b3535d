"""The output of a process as it comes, stdout and stderr in one order.

Read in gulps with a rest between them, so that a program that writes without end does not keep the loop busy: it waits
for us instead.
"""

import asyncio
import os
from collections.abc import Callable

_GULP = 256 * 1024
_REST_S = 0.01


class Pipe:
    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._fd, self.write_end = os.pipe()
        os.set_blocking(self._fd, False)
        self.is_open = True
        """Until nobody can write to it any more, or until it is closed."""

    def listen(self) -> None:
        """Begin to read. The write end is the child's alone from here on, else the pipe would never end."""
        self._close_write_end()
        self._wait()

    def drain(self) -> None:
        """Take what is there now, without a rest; bounded, as somebody may go on writing."""
        for _ in range(8):
            if not self.is_open or not self._gulp():
                return

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
        self._gulp()
        if self.is_open:
            self._timer = self._loop.call_later(_REST_S, self._wait)

    def _gulp(self) -> bool:
        """Whether there was something to read."""
        try:
            data = os.read(self._fd, _GULP)
        except BlockingIOError:
            return False
        if data:
            self._take(data)
        else:
            self.close()
        return bool(data)
