"""Backoff with jitter, and giving up (R3)."""

import pytest

from longboat.client.patience import BACKOFF, STOPPED, Patience
from longboat.errors import ServerUnreachable

LOST = ServerUnreachable("nobody there")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_waits_double_up_to_a_limit() -> None:
    patience = Patience(None, clock=Clock(), dice=lambda: 1.0)
    waits = [patience.lost(LOST) for _ in range(8)]
    assert waits[:3] == [BACKOFF.base_s, 2 * BACKOFF.base_s, 4 * BACKOFF.base_s]
    assert waits[-1] == BACKOFF.ceiling_s


def test_jitter_takes_up_to_half_of_a_wait() -> None:
    assert Patience(None, dice=lambda: 0.0).lost(LOST) == BACKOFF.base_s / 2


def test_r3_it_gives_up_when_the_outage_has_lasted_long_enough() -> None:
    clock = Clock()
    patience = Patience(60, clock=clock)
    patience.lost(LOST)
    clock.now += 59
    patience.lost(LOST)
    clock.now += 1
    with pytest.raises(ServerUnreachable, match="Gave up after 60 s: nobody there"):
        patience.lost(LOST)


def test_hearing_from_the_server_ends_the_outage() -> None:
    clock = Clock()
    patience = Patience(60, clock=clock, dice=lambda: 1.0)
    patience.lost(LOST)
    clock.now += 59
    patience.heard()
    clock.now += 59
    assert patience.lost(LOST) == BACKOFF.base_s


def test_without_a_limit_it_waits_for_ever() -> None:
    clock = Clock()
    patience = Patience(None, clock=clock)
    for _ in range(5000):
        patience.lost(LOST)
        clock.now += 3600
    assert patience.lost(LOST) <= BACKOFF.ceiling_s


def test_an_outage_and_its_end_are_told_once_each() -> None:
    told: list[object] = []
    patience = Patience(None, on_outage=told.append)
    patience.heard()
    for _ in range(3):
        patience.lost(LOST)
    patience.heard()
    patience.heard()
    patience.lost(LOST)
    assert told == [LOST, None, LOST]


def test_that_the_server_was_stopped_is_told_once_whenever_it_is_known() -> None:
    told: list[str | None] = []
    patience = Patience(None, on_outage=lambda error: told.append(error.code if error else None))
    stopped = ServerUnreachable("It was stopped.", code=STOPPED)
    for cause in (LOST, LOST, stopped, LOST, stopped):
        patience.lost(cause)
    patience.heard()
    patience.lost(stopped)
    patience.lost(stopped)
    assert told == ["server_unreachable", STOPPED, None, STOPPED]
