"""Watches the workspace's configuration, and tells attached clients when it changed and which model answers now.

Owns when files are checked: every few seconds while someone is attached, otherwise not at all. Must not know what the
configuration says.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from longboat.config.load import FILE_NAME
from longboat.errors import LongboatError
from longboat.runtime.workspace.models import ModelPool
from longboat.tasks import Tasks
from longboat.wire.workspace_state import ConfigChanged

LOOK_S = 2.0
"""Four calls of `stat` each time."""


class ConfigWatcher:
    def __init__(
        self, directory: Path, models: ModelPool, tasks: Tasks, tell: Callable[[msgspec.Struct], None]
    ) -> None:
        self._directory = directory
        self._models = models
        self._tasks = tasks
        self._tell = tell
        self._attending = 0
        self._looking: asyncio.Task[None] | None = None
        self._untold = False
        self._telling: asyncio.Task[None] | None = None
        self._note_change: Callable[[], Awaitable[None]] | None = None
        models.listen(directory, self._changed)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Someone is attached: check the files now, and then regularly."""
        self._attending += 1
        if self._looking is None:
            self._looking = self._tasks.spawn(self._look(), name=f"look at {self._directory / FILE_NAME}")
        try:
            yield
        finally:
            self._attending -= 1
            if not self._attending:
                self._looking.cancel()
                self._looking = None

    def when_changed(self, note: Callable[[], Awaitable[None]]) -> None:
        """Await this after every change, before clients hear of it."""
        self._note_change = note

    def close(self) -> None:
        self._models.listen(self._directory, None)

    async def _look(self) -> None:
        while True:
            await self._models.look(self._directory)
            await asyncio.sleep(LOOK_S)

    def _changed(self) -> None:
        """Called by the reader of the configuration, while it reads. What changed is worked out in a task."""
        self._untold = True
        if self._telling is None or self._telling.done():
            self._telling = self._tasks.spawn(self._tell_all(), name=f"tell of {self._directory / FILE_NAME}")

    async def _tell_all(self) -> None:
        """One after the other, so that the newest is announced last."""
        while self._untold:
            self._untold = False
            if self._note_change is not None:
                await self._note_change()
            self._tell(await self._news())

    async def _news(self) -> ConfigChanged:
        try:
            page = await self._models.list_models(self._directory)
        except LongboatError as error:
            return ConfigChanged(large=None, small=None, ready=False, problem=error.message)
        return ConfigChanged(large=page.large, small=page.small, ready=page.problem is None, problem=page.problem)
