"""Handles what a terminal can do to the app: signals, bytes that are not text, and closing."""

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
"""The names in the driver module that its threads use when they start."""


@contextmanager
def ended_by_signals(app: App[Any]) -> Iterator[None]:
    """Quit the app properly on SIGTERM, and on SIGHUP from a closing terminal: the terminal is restored and the closing
    message is printed."""
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
    """A terminal file that ignores write errors after the terminal has closed."""

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
    """Textual's writer, kept alive when the terminal closes: otherwise a later write would block forever."""

    def __init__(self, file: IO[str]) -> None:
        super().__init__(Output(file))  # type: ignore[arg-type]  # it has all that is used


@contextmanager
def ignoring_slow_terminal() -> Iterator[None]:
    """Replace bytes that are not UTF-8 (from a pasted binary file or a Latin-1 terminal): Textual's decoder would raise
    in its thread and end the app. And do not block when the terminal closes while the app is drawing."""

    def lenient(encoding: str) -> partial[IncrementalDecoder]:
        return partial(getincrementaldecoder(encoding), "replace")

    setattr(linux_driver, DECODER, lenient)
    setattr(linux_driver, WRITER, Writer)
    try:
        yield
    finally:
        setattr(linux_driver, DECODER, getincrementaldecoder)
        setattr(linux_driver, WRITER, WriterThread)
