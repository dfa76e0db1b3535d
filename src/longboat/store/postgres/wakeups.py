"""Wake-ups between the servers on one database: what PostgreSQL's NOTIFY carries, and the connection that hears it.

A wake-up only says that something may have changed, so one that is lost or repeated does no harm: everyone looks for
themselves, and also looks from time to time without one. Through a pooler nobody hears any.

A NOTIFY locks out every other one until its transaction ends. It is therefore sent after the commit that it tells of,
in a transaction that writes nothing and waits for no disk; and never for each event or delta.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Any

from longboat.backoff import Backoff
from longboat.errors import StoreUnavailable
from longboat.store.postgres.statements import FAILURES
from longboat.tasks import Tasks

logger = logging.getLogger(__name__)

CHANNEL = "longboat"
RETRY = Backoff(base_s=0.5, ceiling_s=10.0)
_NOTIFY = "SELECT pg_notify($1, topic || ' ' || $2) FROM unnest($3::text[]) AS topic"


class Topic(StrEnum):
    INBOX = "inbox"
    """What waits for someone, or which runs have ended."""
    LEASES = "leases"
    """A workspace has no owner any more, or another one; or a node came or is leaving."""


class Wakeups:
    def __init__(
        self,
        node: str,
        connect: Callable[[], Awaitable[Any]],
        borrow: Callable[[], AbstractAsyncContextManager[Any]],
        tasks: Tasks,
    ) -> None:
        """`connect` makes a new connection; `borrow` lends one for a moment."""
        self._node = node
        self._connect = connect
        self._borrow = borrow
        self._tasks = tasks
        self._told: Callable[[Topic], None] = lambda _: None
        self._unsent: set[Topic] = set()
        self._sending: asyncio.Task[None] | None = None

    def when_woken(self, told: Callable[[Topic], None]) -> None:
        """Call this when another server says that something changed."""
        self._told = told

    def send(self, topic: Topic) -> None:
        """Wake the other servers. Those that are asked for while one is on its way become one."""
        self._unsent.add(topic)
        if self._sending is None or self._sending.done():
            self._sending = self._tasks.spawn(self._send_all(), name="wake other servers")

    async def tell(self, topic: Topic) -> None:
        """Wake the other servers, and wait until the wake-up is sent."""
        self.send(topic)
        if self._sending is not None:
            await asyncio.wait([self._sending])

    async def _send_all(self) -> None:
        while self._unsent:
            topics, self._unsent = sorted(self._unsent), set()
            try:
                async with self._borrow() as connection:
                    await connection.execute(_NOTIFY, CHANNEL, self._node, topics)
            except StoreUnavailable as error:  # the others look by themselves, a little later
                logger.debug("no wake-up was sent: %s", error)

    async def listen(self) -> None:
        """Hear the others as long as the store is open."""
        failures = 0
        while True:
            try:
                await self._hear()
                failures = 0
            except FAILURES as error:
                logger.debug("no wake-ups are heard: %r", error)
            failures += 1
            await asyncio.sleep(RETRY.delay(failures))

    async def _hear(self) -> None:
        """Wait until the connection is gone."""
        connection = await self._connect()
        ended = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _: ended.set())
            await connection.add_listener(CHANNEL, self._take)
            for topic in Topic:  # nobody heard what was said before
                self._told(topic)
            await ended.wait()
        finally:
            connection.terminate()

    def _take(self, connection: Any, pid: int, channel: str, payload: str) -> None:
        del connection, pid, channel
        topic, _, node = payload.partition(" ")
        if node != self._node and topic in set(Topic):  # a newer server may have more of them
            self._told(Topic(topic))
