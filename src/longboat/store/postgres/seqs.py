"""The accept numbers of runs: taken from the database by the thousand, handed out one by one without asking it."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from longboat.errors import StoreUnavailable
from longboat.store.postgres.statements import load_statements
from longboat.tasks import Tasks

logger = logging.getLogger(__name__)

SEQS = 1000
"""How many are taken at a time, the same number as in the schema."""


class Seqs:
    def __init__(self, borrow: Callable[[], AbstractAsyncContextManager[Any]], tasks: Tasks) -> None:
        self._borrow = borrow
        self._tasks = tasks
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._blocks: deque[range] = deque()
        self._next = 0
        self._taking: asyncio.Task[None] | None = None

    def next(self) -> int:
        """The next one. From another thread, it waits for the database if it must: an import needs many, and leaves
        enough for prompts."""
        if threading.get_ident() != self._thread:
            return asyncio.run_coroutine_threadsafe(self._await_next(), self._loop).result()
        if len(self._blocks) < 2:
            self._refilling()
        if not self._blocks:
            raise StoreUnavailable(
                "The database did not respond in time, so the prompt was not accepted. Send it again in a moment."
            )
        seq = self._next
        self._next += 1
        if self._next == self._blocks[0].stop:
            self._blocks.popleft()
            self._next = self._blocks[0].start if self._blocks else 0
        return seq

    def begin_at(self, first: int) -> None:
        """Go on with this block: those that the node had are older than those that the former owner has handed out."""
        if first < self._next:
            return  # ours were taken later still
        self._blocks = deque([range(first, first + SEQS)])
        self._next = first

    async def take(self) -> None:
        """Take a block from the database."""
        async with self._borrow() as connection:
            first: int = await connection.fetchval(load_statements()["seqs_reserve"].sql)
        if first < self._next:
            return  # taken before `begin_at` got newer ones
        if not self._blocks:
            self._next = first
        self._blocks.append(range(first, first + SEQS))

    async def _await_next(self) -> int:
        if len(self._blocks) < 2:
            await asyncio.wait([self._refilling()])
        return self.next()

    def _refilling(self) -> "asyncio.Task[None]":
        if self._taking is None or self._taking.done():
            self._taking = self._tasks.spawn(self._refill(), name="seqs")
        return self._taking

    async def _refill(self) -> None:
        try:
            await self.take()
        except StoreUnavailable as error:  # the next prompt tries again
            logger.warning("no seqs could be taken: %s", error)
