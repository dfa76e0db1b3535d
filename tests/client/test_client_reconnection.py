"""Backoff with jitter, and giving up (R3)."""

import pytest

from longboat.client.reconnection import BACKOFF, STOPPED, Reconnection
from longboat.errors import ServerUnreachable

LOST = ServerUnreachable("nobody there")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_waits_double_up_to_a_limit() -> None:
    reconnection = Reconnection(None, clock=Clock(), dice=lambda: 1.0)
    waits = [reconnection.lost(LOST) for _ in range(8)]
    assert waits[:3] == [BACKOFF.base_s, 2 * BACKOFF.base_s, 4 * BACKOFF.base_s]
    assert waits[-1] == BACKOFF.ceiling_s


def test_jitter_takes_up_to_half_of_a_wait() -> None:
    assert Reconnection(None, dice=lambda: 0.0).lost(LOST) == BACKOFF.base_s / 2


def test_r3_it_gives_up_when_the_outage_has_lasted_long_enough() -> None:
    clock = Clock()
    reconnection = Reconnection(60, clock=clock)
    reconnection.lost(LOST)
    clock.now += 59
    reconnection.lost(LOST)
    clock.now += 1
    with pytest.raises(ServerUnreachable, match="Gave up after 60 s: nobody there"):
        reconnection.lost(LOST)


def test_hearing_from_the_server_ends_the_outage() -> None:
    clock = Clock()
    reconnection = Reconnection(60, clock=clock, dice=lambda: 1.0)
    reconnection.lost(LOST)
    clock.now += 59
    reconnection.heard()
    clock.now += 59
    assert reconnection.lost(LOST) == BACKOFF.base_s


def test_without_a_limit_it_waits_for_ever() -> None:
    clock = Clock()
    reconnection = Reconnection(None, clock=clock)
    for _ in range(5000):
        reconnection.lost(LOST)
        clock.now += 3600
    assert reconnection.lost(LOST) <= BACKOFF.ceiling_s


def test_an_outage_and_its_end_are_told_once_each() -> None:
    told: list[object] = []
    reconnection = Reconnection(None, on_outage=told.append)
    reconnection.heard()
    for _ in range(3):
        reconnection.lost(LOST)
    reconnection.heard()
    reconnection.heard()
    reconnection.lost(LOST)
    assert told == [LOST, None, LOST]


def test_that_the_server_was_stopped_is_told_once_whenever_it_is_known() -> None:
    told: list[str | None] = []
    reconnection = Reconnection(None, on_outage=lambda error: told.append(error.code if error else None))
    stopped = ServerUnreachable("It was stopped.", code=STOPPED)
    for cause in (LOST, LOST, stopped, LOST, stopped):
        reconnection.lost(cause)
    reconnection.heard()
    reconnection.lost(stopped)
    reconnection.lost(stopped)
    assert told == ["server_unreachable", STOPPED, None, STOPPED]
