"""The terminal's own ways: signals that end a program, and bytes that are no text."""

import asyncio
import signal
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from textual.app import App
from textual.drivers import linux_driver

DECODER = "getincrementaldecoder"
"""What the driver looks up when its thread begins."""


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


@contextmanager
def patient_input() -> Iterator[None]:
    """What is no UTF-8 (a binary file that was pasted, a terminal that speaks Latin-1) is shown as such. Textual's own
    decoder would raise in its thread, and end the app with all that is typed."""

    def lenient(encoding: str) -> partial[IncrementalDecoder]:
        return partial(getincrementaldecoder(encoding), "replace")

    setattr(linux_driver, DECODER, lenient)
    try:
        yield
    finally:
        setattr(linux_driver, DECODER, getincrementaldecoder)
