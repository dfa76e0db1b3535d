"""A `longboat` process at a terminal of its own, as a person has it: what it shows, and what is typed."""

import os
import pty
import select
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli_home import GIVE_UP_S, Home, Process


def read_until(terminal: int, wanted: bytes) -> bytes:
    """All that was shown, once it holds the text. What never comes fails this test alone, not all that run with it."""
    seen, end = b"", time.monotonic() + GIVE_UP_S
    while wanted not in seen:
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
        assert ready, f"{wanted!r} was never shown, but:\n{seen!r}"
        seen += os.read(terminal, 4096)
    return seen


class Terminal:
    def __init__(
        self,
        home: Home,
        *arguments: str,
        cwd: Path,
        user: str = "ann",
        stdout: Any = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`stdout`: where the answer goes instead."""
        self._outer, inner = pty.openpty()
        own = {"COLUMNS": "100", "NO_COLOR": "1", "LOGNAME": user}
        self.process: Process = home.start(
            *arguments,
            cwd=cwd,
            stdin=inner,
            stdout=stdout or inner,
            stderr=inner,
            environ=own | dict(environ or {}),
            start_new_session=True,
        )
        os.close(inner)
        self.seen = ""

    def until(self, wanted: str) -> str:
        """All that was shown, once it holds the text."""
        end = time.monotonic() + GIVE_UP_S
        while wanted not in self.seen:
            ready, _, _ = select.select([self._outer], [], [], max(0, end - time.monotonic()))
            chunk = self._read() if ready else ""
            assert chunk, f"{wanted!r} was never shown, but:\n{self.seen}"
        return self.seen

    def type(self, line: str) -> None:
        self.press(f"{line}\n".encode())

    def press(self, keys: bytes) -> None:
        os.write(self._outer, keys)

    def forget(self) -> None:
        """What was shown so far counts no more."""
        self.seen = ""

    def finish(self) -> int:
        """The exit code, once everything is shown."""
        while self._read():
            pass
        os.close(self._outer)
        return self.process.wait(GIVE_UP_S)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.seen.replace("\r\n", "\n").split("\n")]

    def _read(self) -> str:
        try:
            chunk = os.read(self._outer, 4096).decode(errors="replace")
        except OSError:  # how a terminal says that nobody writes any more
            return ""
        self.seen += chunk
        return chunk
