"""How long to wait before another try, and when to give up."""

import pytest

from longboat.backoff import Backoff
from longboat.errors import OwnerLost
from longboat.runtime.store_retry import retry_store


def test_waits_grow_by_the_factor_up_to_the_ceiling() -> None:
    backoff = Backoff(base_s=0.5, factor=3.0, ceiling_s=10.0)
    assert [backoff.delay(failures) for failures in range(6)] == [0.0, 0.5, 1.5, 4.5, 10.0, 10.0]


def test_a_factor_of_one_waits_the_same_each_time() -> None:
    assert {Backoff(base_s=0.5, factor=1.0).delay(failures) for failures in range(1, 9)} == {0.5}


def test_jitter_spreads_a_wait_but_not_beyond_the_ceiling() -> None:
    backoff = Backoff(base_s=10.0, ceiling_s=15.0, jitter=(0.5, 1.5))
    assert [backoff.delay(1, lambda drawn=drawn: drawn) for drawn in (0.0, 0.5, 1.0)] == [5.0, 10.0, 15.0]  # type: ignore[misc]
    assert backoff.delay(2, lambda: 1.0) == 15.0


def test_jitter_still_spreads_waits_that_have_reached_the_ceiling() -> None:
    assert Backoff(base_s=1.0, ceiling_s=4.0, jitter=(0.5, 1.0)).delay(9, lambda: 0.0) == 2.0


def test_failures_without_end_do_not_overflow() -> None:
    assert Backoff(base_s=0.5, ceiling_s=30.0).delay(1_000_000) == 30.0


def test_attempts_count_the_first_try() -> None:
    backoff = Backoff(base_s=1.0, attempts=3)
    assert [backoff.gives_up(failures) for failures in (1, 2, 3)] == [False, False, True]


def test_a_deadline_ends_it_however_few_the_failures() -> None:
    backoff = Backoff(base_s=1.0, attempts=100, deadline_s=60.0)
    assert [backoff.gives_up(1, elapsed_s) for elapsed_s in (0.0, 59.9, 60.0)] == [False, False, True]


def test_without_limits_it_never_gives_up() -> None:
    assert not Backoff(base_s=1.0).gives_up(1_000_000, 1e9)


async def test_g3_a_workspace_that_has_another_owner_is_not_insisted_on() -> None:
    """Found by chaos: while it was, no other workspace could be opened, and the server could not leave."""
    tries: list[None] = []

    async def write() -> None:
        tries.append(None)
        raise OwnerLost

    with pytest.raises(OwnerLost):
        await retry_store(write, for_s=3600)
    assert len(tries) == 1
