"""The terminal's own ways: signals that end a program, bytes that are no text, and that it can be gone."""

import asyncio
import signal
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, Any

from textual.app import App
from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread

DECODER, WRITER = "getincrementaldecoder", "WriterThread"
"""What the driver looks up when its threads begin."""


@contextmanager
def ended_by_signals(app: App[Any]) -> Iterator[None]:
    """SIGTERM, and SIGHUP of a terminal that closes, end the app as if somebody left: the terminal is put back in
    order, and what goes on without them is told."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, partial(app.exit, return_code=128 + number))
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


class Output:
    """A terminal that takes what is written also when it is closed."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()


class Writer(WriterThread):
    """Textual's own ends when the terminal is closed, and whoever has more to write then waits for ever."""

    def __init__(self, file: IO[str]) -> None:
        super().__init__(Output(file))  # type: ignore[arg-type]  # all that it uses of a file


@contextmanager
def ignoring_slow_terminal() -> Iterator[None]:
    """What is no UTF-8 (a binary file that was pasted, a terminal that speaks Latin-1) is shown as such: Textual's own
    decoder would raise in its thread, and end the app with all that is typed. And a terminal that is closed in the
    middle of a drawing holds up nobody."""

    def lenient(encoding: str) -> partial[IncrementalDecoder]:
        return partial(getincrementaldecoder(encoding), "replace")

    setattr(linux_driver, DECODER, lenient)
    setattr(linux_driver, WRITER, Writer)
    try:
        yield
    finally:
        setattr(linux_driver, DECODER, getincrementaldecoder)
        setattr(linux_driver, WRITER, WriterThread)
