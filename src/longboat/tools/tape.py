"""The output of one command: bounded in memory, whole in a file once it is long.

Owns what is kept and what is left out. Must not know processes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TextIO

HEAD = TAIL = 15_000
"""Characters kept of the beginning and of the end: what a model reads at once."""
FILE_LIMIT = 64 * 1024 * 1024
"""Characters that go to the file."""


class Tape:
    """Text is written at its end and read from any place on. `new_file` is asked for a path if the text gets long."""

    def __init__(self, new_file: Callable[[], Path]) -> None:
        self.total = 0
        self._new_file = new_file
        self._head = ""
        self._tail = ""
        self._file: TextIO | None = None
        self._path: Path | None = None
        self._problem = ""

    def write(self, text: str) -> None:
        self._spill(text)
        self.total += len(text)
        room = HEAD - len(self._head)
        self._head += text[:room]
        self._tail += text[room:]
        if len(self._tail) > 4 * TAIL:
            self._tail = self._tail[-TAIL:]

    def read(self, since: int = 0) -> str:
        """The text from `since` on; of more than `HEAD + TAIL` characters a part is left out, and a line says so."""
        head = self._head[since:]
        start = max(since, len(self._head), self.total - TAIL)
        left_out = start - max(since, len(self._head))
        tail = self._tail[len(self._tail) - (self.total - start) :]
        if not left_out:
            return head + tail
        return f"{head}\n[… {left_out:,} characters left out{self._where()} …]\n{tail}"

    def piece(self, since: int | None) -> tuple[int, str]:
        """What memory has from `since` on in one piece, or the end of it all, and where it begins: later than asked for
        where something is left out."""
        kept_from = self.total - len(self._tail)
        if since is None:
            since = max(0, self.total - TAIL)
        if since >= len(self._head):
            since = min(max(since, kept_from), self.total)
            return since, self._tail[since - kept_from :]
        head = self._head[since:]
        return since, head + self._tail if kept_from == len(self._head) else head

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _spill(self, text: str) -> None:
        """Everything goes to the file from the moment on when memory no longer holds it all."""
        if self._problem or self.total + len(text) <= HEAD + TAIL:
            return
        try:
            if self._path is None:
                self._path = self._new_file()
                self._file = self._path.open("w", encoding="utf-8", newline="")
                text = self._head + self._tail + text
            if self._file is not None:
                self._file.write(text)
                self._file.flush()
                if self.total > FILE_LIMIT:
                    self._problem = f"; {self._path} holds only the first {self._file.tell():,} bytes"
                    self.close()
        except OSError as error:
            self._problem = f"; they could not be kept in a file: {error.strerror}"

    def _where(self) -> str:
        return self._problem or f"; the full output is in {self._path}"
