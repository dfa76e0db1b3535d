"""The output of one command: limited in memory, complete in a file once it is long.

Owns what is kept and what is left out. Must not know processes.
"""

from collections.abc import Callable

from longboat.tools.process.output_files import WAS_REMOVED, OutputFile

HEAD = TAIL = 15_000
"""Characters kept of the beginning and of the end: what a model reads at once."""
FILE_LIMIT = 64 * 1024 * 1024
"""Characters that go to the file."""


class OutputBuffer:
    """Text is appended, and read from any position. `new_file` is called for a file if the text gets long."""

    def __init__(self, new_file: Callable[[], OutputFile]) -> None:
        self.total = 0
        self._new_file = new_file
        self._head = ""
        self._tail = ""
        self._file: OutputFile | None = None
        self._problem = ""

    def write(self, text: str) -> None:
        self._spill(text)
        self.total += len(text)
        room = HEAD - len(self._head)
        if room:
            self._head += text[:room]
            text = text[room:]
        self._tail = (
            self._tail + text if len(self._tail) + len(text) <= 4 * TAIL else (self._tail + text[-TAIL:])[-TAIL:]
        )

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
            self._file.finish()

    def _spill(self, text: str) -> None:
        """Everything goes to the file from the moment on when memory no longer holds it all."""
        if self._problem or self.total + len(text) <= HEAD + TAIL:
            return
        try:
            if self._file is None:
                self._file = self._new_file()
                text = self._head + self._tail + text
            if not self._file.write(text.encode()) or self.total > FILE_LIMIT:
                self._file.close()
                self._problem = f"; {self._file.path} contains only the first {self._file.length:,} bytes"
        except OSError as error:
            self._problem = f"; they could not be saved to a file: {error.strerror}"

    def _where(self) -> str:
        if self._file is not None and self._file.is_dropped:
            return WAS_REMOVED
        return self._problem or f"; the full output is in {self._file.path if self._file is not None else None}"
