"""Somebody who follows the inbox of an app in the test's process."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from running_app import following

from longboat.client.inbox import InboxMirror, InboxTail
from longboat.runtime.app import App
from longboat.wire.inbox import InboxEvent
from secrecy import StreamCheck


class InboxWatcher:
    """Every event of the stream so far, what it adds up to, and a way to wait."""

    def __init__(self) -> None:
        self.events: list[InboxEvent] = []
        self.mirror = InboxMirror()
        self.chunks: list[bytes] = []
        self.ended = asyncio.Event()
        self._tail = InboxTail()
        self._news = asyncio.Event()
        self._check = StreamCheck("the inbox")

    def take(self, chunk: bytes) -> None:
        self._check.check_for_secrets(chunk)
        self.chunks.append(chunk)
        for event in self._tail.feed(chunk):
            self.events.append(event)
            self.mirror.apply(event)
        self._news.set()

    async def until(self, found: Callable[[InboxMirror], bool]) -> InboxMirror:
        """The inbox as soon as it is so."""
        while not found(self.mirror):
            self._news.clear()
            await self._news.wait()
        return self.mirror


@asynccontextmanager
async def follow_inbox(app: App, client_id: str = "ann:web") -> AsyncIterator[InboxWatcher]:
    watcher = InboxWatcher()
    attached = asyncio.Event()

    async def follow() -> None:
        async with app.inbox.stream(client_id, answers=True) as chunks:
            async for chunk in chunks:
                watcher.take(chunk)
                attached.set()
        watcher.ended.set()

    async with following(follow(), attached):
        yield watcher
