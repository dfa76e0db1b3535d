"""How long and how often to try again. Pure but for the clock and the dice, which are given."""

import random
import time
from collections.abc import Callable
from dataclasses import replace

from longboat.backoff import Backoff
from longboat.errors import LongboatError, ServerUnreachable

Outage = Callable[[LongboatError | None], None]
"""Told of the error when the server is lost, and of None when it is back."""

STOPPED = "server_stopped"
"""The code of the loss of a server that went in order."""
BACKOFF = Backoff(base_s=0.05, ceiling_s=2.0, jitter=(0.5, 1.0))


class Reconnection:
    """Counts one outage: each loss returns the wait before the next attempt, until `give_up_after_s` have passed. None
    waits forever, 0 not at all. The waits double and have jitter, so that many clients do not come back at once.
    `on_outage` is called once for each outage and once at its end; and once more if the server turns out to have been
    stopped, which is not known at first."""

    def __init__(
        self,
        give_up_after_s: float | None,
        *,
        on_outage: Outage | None = None,
        clock: Callable[[], float] = time.monotonic,
        dice: Callable[[], float] = random.random,
    ) -> None:
        self._backoff = replace(BACKOFF, deadline_s=give_up_after_s)
        self._on_outage = on_outage
        self._clock = clock
        self._dice = dice
        self._failures = 0
        self._since: float | None = None
        self._stopped = False

    def heard(self) -> None:
        """The server is there: the outage is over."""
        if self._since is None:
            return
        self._failures, self._since, self._stopped = 0, None, False
        if self._on_outage is not None:
            self._on_outage(None)

    def lost(self, cause: LongboatError) -> float:
        """Seconds to wait before the next try. Raises when it is not worth waiting any longer (R3)."""
        deadline_s = self._backoff.deadline_s
        if deadline_s == 0:
            raise cause
        now = self._clock()
        stopped = cause.code == STOPPED
        if self._on_outage is not None and (self._since is None or (stopped and not self._stopped)):
            self._on_outage(cause)
        self._stopped = self._stopped or stopped
        self._since = now if self._since is None else self._since
        self._failures += 1
        if self._backoff.gives_up(self._failures, now - self._since):
            raise ServerUnreachable(f"Gave up after {deadline_s:g} s: {cause.message}") from cause
        return self._backoff.delay(self._failures, self._dice)
