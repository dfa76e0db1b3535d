"""A model that may be retired while turns still use it.

Owns when its connections close: as soon as no stream is open. Must not know any wire format.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from longboat.models.protocol import Abilities, Model, ModelEvent, ModelRequest


class Closable(Model, Protocol):
    """A model that holds connections or processes, and opens them again when it is used again."""

    async def aclose(self) -> None: ...


class RetirableModel:
    """An adapter shared by turns. A retired one still answers, but keeps nothing open between answers."""

    def __init__(self, adapter: Closable) -> None:
        self.adapter = adapter
        self._streams = 0
        self._retired = False

    @property
    def provider(self) -> str:
        return self.adapter.provider

    @property
    def name(self) -> str:
        return self.adapter.name

    @property
    def context_window(self) -> int:
        return self.adapter.context_window

    @property
    def abilities(self) -> Abilities:
        return self.adapter.abilities

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        self._streams += 1
        try:
            async with self.adapter.stream(request) as events:
                yield events
        finally:
            self._streams -= 1
            await self._close_if_done()

    async def retire(self) -> None:
        """Close now, or after the last open stream."""
        self._retired = True
        await self._close_if_done()

    async def aclose(self) -> None:
        await self.adapter.aclose()

    async def _close_if_done(self) -> None:
        if self._retired and self._streams == 0:
            await self.adapter.aclose()
