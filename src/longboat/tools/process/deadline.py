"""An instant at which all guards of a workspace end their commands, also while the server is stopped or hangs (G3).

On Linux a timer of the kernel, which the supervisor and its guards inherit: the server sets it with one call, however
many guards there are, and wakes none of them. It is readable from the instant on, in every process that has it, until
it is set again. Must not know commands.
"""

import ctypes
import os
import sys
import time

if sys.platform == "linux":
    _CLOCK = time.CLOCK_BOOTTIME
    """Goes on while the server is stopped and while the machine sleeps; the same in all processes."""
else:
    _CLOCK = time.CLOCK_MONOTONIC
_TFD_TIMER_ABSTIME = 1
_SECOND = 10**9
_libc = ctypes.CDLL(None, use_errno=True)


def clock() -> float:
    """The time that deadlines are measured by, in seconds."""
    return time.clock_gettime(_CLOCK)


class Deadline:
    """None at first. The newest one counts, also if it is earlier than the one before."""

    def __init__(self) -> None:
        self._instant: float | None = None
        self._timer: int | None = None

    @property
    def is_set(self) -> bool:
        return self._instant is not None

    @property
    def is_past(self) -> bool:
        return self._instant is not None and clock() >= self._instant

    def set(self, instant: float) -> None:
        """By `clock`. One that is over is past at once."""
        self._instant = instant
        if self._timer is not None:
            self._arm(self._timer, instant)

    def open_timer(self) -> int:
        """A descriptor that has something to read when the deadline is past, for processes that inherit it. Raises
        OSError if there is none to be had. Linux only."""
        if self._timer is None:
            timer = _checked(_libc.timerfd_create(_CLOCK, os.O_CLOEXEC | os.O_NONBLOCK))
            if self._instant is not None:
                self._arm(timer, self._instant)
            self._timer = timer
        return self._timer

    def close(self) -> None:
        """It stays set for those who have inherited it."""
        if self._timer is not None:
            os.close(self._timer)
            self._timer = None

    def _arm(self, timer: int, instant: float) -> None:
        seconds, rest = divmod(max(1, int(instant * _SECOND)), _SECOND)  # 0 would be none
        _checked(_libc.timerfd_settime(timer, _TFD_TIMER_ABSTIME, (ctypes.c_long * 4)(0, 0, seconds, rest), None))


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
