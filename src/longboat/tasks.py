"""Tasks with an owner: none is lost, and none outlives the `async with` it belongs to.

Only this module creates tasks. Every package but `core` and `permissions` may use it; it imports none.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

logger = logging.getLogger(__name__)
T = TypeVar("T")

CLOSE_S = 1.0


class Tasks:
    """Keeps tasks until they are done. A failure is logged, not propagated; leaving cancels the remaining tasks."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str, awaited: bool = False) -> "asyncio.Task[T]":
        """Start a task. `awaited`: the caller awaits it and handles its failure, so a failure is not logged."""
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._forget if awaited else self._log)
        return task

    @property
    def pending(self) -> frozenset["asyncio.Task[Any]"]:
        """The tasks that have not ended yet."""
        return frozenset(self._tasks)

    def cancel(self) -> None:
        """Cancel the remaining tasks without waiting for them."""
        for task in self._tasks:
            task.cancel()

    def _forget(self, task: "asyncio.Task[Any]") -> BaseException | None:
        self._tasks.discard(task)
        return None if task.cancelled() else task.exception()

    def _log(self, task: "asyncio.Task[Any]") -> None:
        if (error := self._forget(task)) is not None:
            logger.error("task %s failed", task.get_name(), exc_info=error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel what is left and wait for it, but not forever: a task may be deaf."""
        end = asyncio.get_running_loop().time() + CLOSE_S
        while self._tasks and (left := end - asyncio.get_running_loop().time()) > 0:
            self.cancel()
            await asyncio.wait(self._tasks, timeout=left)
        for task in self._tasks:
            logger.error("task %s does not end", task.get_name())


async def run_together(coroutines: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Do these at once. The first failure, or a cancel, ends them all; none is left behind."""
    tasks = [asyncio.get_running_loop().create_task(coroutine) for coroutine in coroutines]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
