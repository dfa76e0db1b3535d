"""Log messages about a store that cannot be written: when it starts failing, now and then meanwhile, and when it ends.

Owns how often to log. Must not know why the store fails.
"""

import logging
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

REPEAT_S = 300.0
"""While the store fails, seconds between two log lines."""
FLAPPING_S = 10.0
"""A store that fails again right after it could be written is not worth a line each time."""


class FailureLog:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None
        self._logged_at = float("-inf")
        self._told = False
        """The log has a line about the present failure."""
        self._refused = 0

    def note(self, problem: str | None) -> None:
        """What became of a unit: `problem` if the store could not be written, None if it could."""
        if problem is None:
            self._recovered()
        else:
            self._failed(problem)

    def _failed(self, problem: str) -> None:
        now = self._clock()
        if self._since is None:
            self._since = now
        self._refused += 1
        if now - self._logged_at >= (REPEAT_S if self._told else FLAPPING_S):
            self._logged_at, self._told = now, True
            lasting = now - self._since
            logger.error("%s Failing for %.0f s; %d writes refused so far.", problem, lasting, self._refused)

    def _recovered(self) -> None:
        if self._since is None:
            return
        if self._told:
            lasted = self._clock() - self._since
            logger.warning(
                "The store can be written again after %.0f s; %d writes were refused.", lasted, self._refused
            )
        self._since, self._refused, self._told = None, 0, False
