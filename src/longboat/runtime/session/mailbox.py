"""A mailbox: one piece of work at a time, in the order of the requests.

Callers may be canceled at any moment: work that has started runs to its end. Must not know what the work is.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from longboat.errors import ServerLeaving
from longboat.tasks import Tasks

T = TypeVar("T")


class Mailbox:
    def __init__(self, tasks: Tasks, *, name: str, on_idle: Callable[[], None]) -> None:
        self._tasks = tasks
        self._name = name
        self._on_idle = on_idle
        self._waiting: deque[tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = deque()
        self.working = False

    def __len__(self) -> int:
        """How much waits, behind what is being worked off."""
        return len(self._waiting)

    async def do(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do this after all that was asked before. Shielded: a caller that vanishes leaves the work whole."""
        return await asyncio.shield(self.post(work))

    def post(self, work: Callable[[], Awaitable[T]]) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting.append((work, future))
        if not self.working:
            self.working = True
            self._tasks.spawn(self._work_off(), name=self._name)
        return future

    async def _work_off(self) -> None:
        try:
            while self._waiting:
                work, future = self._waiting.popleft()
                try:
                    result = await work()
                except asyncio.CancelledError:
                    _turn_away(future)
                    raise
                except Exception as error:
                    if not future.done():
                        future.set_exception(error)
                else:
                    if not future.done():
                        future.set_result(result)
        finally:
            self.working = False
            while self._waiting:
                _turn_away(self._waiting.popleft()[1])
            self._on_idle()


def _turn_away(future: "asyncio.Future[Any]") -> None:
    """The workspace ends with the server: nobody is to wait for what will not come."""
    if not future.done():
        future.set_exception(ServerLeaving())
