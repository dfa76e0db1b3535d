"""What a turn takes from the project's files, read in one go off the event loop.

Owns when they are read. Must not know what the turn does with them.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from longboat.context.git_head import Head
from longboat.context.library import Context

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFiles:
    context: Context
    head: Head | None
    """What is checked out; None outside of a repository."""
    have_servers: bool | None
    """Whether language servers know some of the files; None if the servers were not set up yet."""


class SharedReading(Generic[T]):
    """Reads on another thread. Every caller gets what was read after its call; calls in the meantime share the
    next reading."""

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._is_reading = False
        self._next: asyncio.Future[T] | None = None

    def get(self) -> "asyncio.Future[T]":
        """Each has a future of their own: canceling one leaves the others alone."""
        return asyncio.shield(self._share())

    def _share(self) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        if self._is_reading:
            self._next = self._next or loop.create_future()
            return self._next
        self._is_reading = True
        reading = loop.run_in_executor(None, self._read)
        reading.add_done_callback(self._go_on)
        return reading

    def _go_on(self, _: "asyncio.Future[T]") -> None:
        self._is_reading = False
        waiting, self._next = self._next, None
        if waiting is not None:
            self._share().add_done_callback(partial(_pass_on, waiting))


def _pass_on(waiting: "asyncio.Future[T]", read: "asyncio.Future[T]") -> None:
    if waiting.done():
        return
    if read.cancelled():
        waiting.cancel()
    elif (error := read.exception()) is not None:
        waiting.set_exception(error)
    else:
        waiting.set_result(read.result())
