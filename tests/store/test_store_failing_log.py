"""D7: a store that fails is in the log, not only in health; once, rarely again, and when it is over."""

import logging

import pytest

from longboat.store.publishing import FLAPPING_S, REPEAT_S, FailureLog


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records]


def test_d7_the_first_failure_and_the_recovery_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = FailureLog(clock)
    log.note(None)
    assert lines(caplog) == []
    log.note("The disk is full.")
    clock.now += 7
    log.note("The disk is full.")
    with caplog.at_level(logging.WARNING):
        log.note(None)
        log.note(None)
    assert lines(caplog) == [
        (logging.ERROR, "The disk is full. Failing for 0 s; 1 writes refused so far."),
        (logging.WARNING, "The store can be written again after 7 s; 2 writes were refused."),
    ]


def test_d7_a_failure_that_lasts_is_repeated_rarely(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = FailureLog(clock)
    for _ in range(int(REPEAT_S) * 2):
        log.note("The disk is full.")
        clock.now += 1
    assert len(lines(caplog)) == 2


def test_d7_a_store_that_fails_every_other_time_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = FailureLog(clock)
    for _ in range(1000):
        log.note("The disk is full.")
        log.note(None)
        clock.now += FLAPPING_S / 1000
    assert [level for level, _ in lines(caplog)] == [logging.ERROR, logging.WARNING]
    clock.now += FLAPPING_S
    log.note("The disk is full.")
    assert lines(caplog)[-1][0] == logging.ERROR, "a failure that stays is told after all"
