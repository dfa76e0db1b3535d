"""The terminal app at a terminal of its own: the installed `longboat` and a thread that reads what it writes."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from benchmarks.harness import RunningServer
from benchmarks.wires import GIVE_UP_S

COLUMNS, LINES = 120, 40
_STAMP = re.compile(rb"t(\d{20})")


class Screen:
    def __init__(self, outer: int, process: psutil.Process) -> None:
        self._outer = outer
        self._process = process
        self._changed = threading.Condition()
        self._rest = b""
        self.seen = bytearray()
        self.delays: dict[int, int] = {}
        """When each stamp was written, and how many nanoseconds later it was first on the screen."""

    def read(self) -> None:
        while chunk := _read(self._outer):
            now = time.monotonic_ns()
            with self._changed:
                self.seen += chunk
                self._rest += chunk
                for found in _STAMP.finditer(self._rest):
                    self.delays.setdefault(int(found[1]), now - int(found[1]))
                self._rest = self._rest[-20:]
                self._changed.notify_all()

    def until(self, text: bytes) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: text in self.seen, GIVE_UP_S):
                raise RuntimeError(f"{text!r} was never shown")

    def forget(self) -> None:
        with self._changed:
            self.seen.clear()
            self.delays.clear()

    @property
    def cpu_s(self) -> float:
        """What the app has used so far."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    @property
    def resident_mb(self) -> float:
        return float(self._process.memory_info().rss / 1e6)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # how a terminal says that no one writes any more
        return b""


@contextmanager
def screen(server: RunningServer, session_id: str) -> Iterator[Screen]:
    """`longboat -s SESSION`, until the block ends."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-m", "longboat", "-s", session_id],
        cwd=server.project,
        env=server.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"},
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
    )
    os.close(inner)
    shown = Screen(outer, psutil.Process(child.pid))
    reader = threading.Thread(target=shown.read, daemon=True)
    reader.start()
    try:
        yield shown
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        reader.join(5)
        os.close(outer)
