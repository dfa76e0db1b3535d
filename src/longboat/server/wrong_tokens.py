"""Counts recent wrong tokens, per address and in total. Pure except for a log line.

A client that sends too many has to wait. The right token never has to: it is compared first, so no one can lock out its
holder, even from behind the same proxy. For the same reason, this cannot protect a token that is easy to guess.
"""

import ipaddress
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from longboat.errors import TooManyAttempts

MAX_ADDRESSES = 1_000
"""How many addresses to remember; the one that was quiet longest is forgotten first."""
_LOG_AGAIN_S = 60.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A token bucket: a burst, then one every few seconds."""

    at_once: int
    every_s: float

    def wait_s(self, due_at: float, now: float) -> float:
        """How long until another one is allowed; `due_at` is what `after` returned for the last one."""
        return due_at - now - (self.at_once - 1) * self.every_s

    def after(self, due_at: float, now: float) -> float:
        """When all of the allowance is there again, if one is used now."""
        return max(due_at, now) + self.every_s


PER_ADDRESS = Allowance(at_once=10, every_s=5.0)
IN_ALL = Allowance(at_once=100, every_s=0.25)


class WrongTokens:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due_at: dict[str, float] = {}
        """By address, the most recent last."""
        self._all_due_at = float("-inf")
        self._logged_at = float("-inf")

    def count(self, address: str) -> TooManyAttempts | None:
        """Another wrong token came from there. The answer, if it is one too many."""
        now, key = self._clock(), _network(address)
        due_at = self._due_at.pop(key, float("-inf"))
        self._due_at[key] = due_at
        if len(self._due_at) > MAX_ADDRESSES:
            del self._due_at[next(iter(self._due_at))]
        wait_s = max(PER_ADDRESS.wait_s(due_at, now), IN_ALL.wait_s(self._all_due_at, now))
        if wait_s > 0:
            self._log(key, now)
            return TooManyAttempts(math.ceil(wait_s))
        self._due_at[key] = PER_ADDRESS.after(due_at, now)
        self._all_due_at = IN_ALL.after(self._all_due_at, now)
        return None

    def _log(self, key: str, now: float) -> None:
        if now - self._logged_at > _LOG_AGAIN_S:
            self._logged_at = now
            log.warning("many wrong tokens, now from %s; answered with 429", key)


def _network(address: str) -> str:
    """What one caller has: an IPv4 address, or 64 bits of IPv6."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
