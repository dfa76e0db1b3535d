"""Tasks with an owner: failures are heard of once, and none is left behind."""

import asyncio
import logging

import pytest

from longboat.tasks import Tasks, run_together


async def fail() -> None:
    raise ValueError("broken")


async def test_leaving_cancels_what_is_left_and_waits_for_it() -> None:
    unwound: list[str] = []
    begun = asyncio.Barrier(3)

    async def hang(name: str) -> None:
        try:
            await begun.wait()
            await asyncio.Event().wait()
        finally:
            unwound.append(name)

    async with Tasks() as tasks:
        for name in ("a", "b"):
            tasks.spawn(hang(name), name=name)
        await begun.wait()
        assert len(tasks.pending) == 2
    assert (sorted(unwound), tasks.pending) == (["a", "b"], frozenset())


async def test_a_failure_that_nobody_awaits_is_logged_with_the_name_of_the_task(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Tasks() as tasks:
        await asyncio.wait([tasks.spawn(fail(), name="errand")])
    assert [record.message for record in caplog.records] == ["task errand failed"]


async def test_a_failure_that_is_awaited_is_the_callers_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with Tasks() as tasks:
            with pytest.raises(ValueError, match="broken"):
                await tasks.spawn(fail(), name="errand", awaited=True)
    assert caplog.records == []


async def test_run_together_ends_all_when_one_fails() -> None:
    ended = asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(ValueError, match="broken"):
        await run_together([hang(), fail()])
    assert ended.is_set()
