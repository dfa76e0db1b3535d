"""How long to wait before retrying something that failed, and when to give up.

Pure: the caller keeps the clock, counts the failures and supplies random numbers. Every package may use it; it imports
none.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

_LARGEST_EXPONENT = 64
"""Larger exponents would overflow a float; no wait is that long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Wait `base_s` after the first failure, and `factor` times longer after each further one, up to `ceiling_s`."""

    base_s: float
    factor: float = 2.0
    ceiling_s: float = math.inf
    jitter: tuple[float, float] = (1.0, 1.0)
    """Each wait is multiplied by a random number between these two, so that many clients do not retry in step."""
    attempts: int | None = None
    """How often to try, the first time included. None: no limit."""
    deadline_s: float | None = None
    """How long to keep trying. None: no limit."""

    def delay(self, failures: int, random: Callable[[], float] = lambda: 0.5) -> float:
        """Seconds to wait after this many failures in a row; 0 before the first. `random` returns 0 to 1."""
        if failures == 0:
            return 0.0
        wait_s = min(self.base_s * self.factor ** min(failures - 1, _LARGEST_EXPONENT), self.ceiling_s)
        low, high = self.jitter
        return min(wait_s * (low + (high - low) * random()), self.ceiling_s)

    def gives_up(self, failures: int, elapsed_s: float = 0.0) -> bool:
        """Whether this many failures, or this much time, are enough."""
        is_spent = self.attempts is not None and failures >= self.attempts
        return is_spent or (self.deadline_s is not None and elapsed_s >= self.deadline_s)
