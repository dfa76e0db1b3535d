"""Retries while the store cannot be written: a full disk or another program's lock is often temporary."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from longboat.errors import StoreDamaged, StoreUnavailable

T = TypeVar("T")

RETRY_S = 0.5

RESTORE_S = 20.0
"""How long a start waits for a store that cannot be written before it gives up."""


async def retry_store(work: Callable[[], Awaitable[T]], *, for_s: float | None = None) -> T:
    """Do `work` until the store takes it; after `for_s` seconds its refusal stands. Damage does not go away: whoever
    can give up does so at once."""
    clock = asyncio.get_running_loop().time
    start = clock()
    while True:
        try:
            return await work()
        except StoreUnavailable as error:
            if for_s is not None and (isinstance(error, StoreDamaged) or clock() - start >= for_s):
                raise
            await asyncio.sleep(RETRY_S)
