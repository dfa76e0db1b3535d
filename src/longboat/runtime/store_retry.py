"""Retries while the store cannot be written: a full disk or another program's lock is often temporary."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar, TypeVarTuple

from longboat.backoff import Backoff
from longboat.errors import OwnerLost, StoreDamaged, StoreUnavailable

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

BACKOFF = Backoff(base_s=0.5, factor=1.0)

RESTORE_S = 20.0
"""How long a start waits for a store that cannot be written before it gives up."""


async def retry_store(work: Callable[[], Awaitable[T]], *, for_s: float | None = None) -> T:
    """Repeat `work` until the store accepts it; after `for_s` seconds its error is raised. With `for_s`, damage is
    raised at once, and so is the loss of the workspace: they do not go away."""
    clock, backoff = asyncio.get_running_loop().time, replace(BACKOFF, deadline_s=for_s)
    start, failures = clock(), 0
    while True:
        try:
            return await work()
        except StoreUnavailable as error:
            failures += 1
            may_give_up = for_s is not None
            if (may_give_up and isinstance(error, StoreDamaged | OwnerLost)) or backoff.gives_up(
                failures, clock() - start
            ):
                raise
            await asyncio.sleep(backoff.delay(failures))


def retry_later(callback: Callable[[*Ts], object], *args: *Ts) -> None:
    """Schedule `callback` for when the store should be tried again, for callers that must not wait."""
    asyncio.get_running_loop().call_later(BACKOFF.delay(1), callback, *args)
