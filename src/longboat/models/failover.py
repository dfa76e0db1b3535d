"""Which of several models answers: the first in the list that is not cooling down after a failure.

Owns the cooldowns, and which errors another model may make good. Must not know turns: they say what failed.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from longboat.backoff import Backoff
from longboat.errors import ModelError
from longboat.models.protocol import Model

MADE_GOOD = frozenset(
    {
        "unreachable",
        "timeout",
        "loading",
        "server_error",
        "stream_broken",
        "rate_limited",
        "quota",
        "local_model_failed",
    }
)
"""Codes of errors that are the provider's, and that pass. A bad request is ours, a rejected key its owner's."""
OF_PROVIDER = frozenset({"unreachable", "quota"})
"""Codes that concern every model of the provider."""
COOLDOWN = Backoff(base_s=60, ceiling_s=900)
QUOTA_S = 900.0
LONGEST_S = 3600.0
"""A provider that asks for a longer wait is tried again all the same."""


def seconds() -> float:
    """The clock itself: tests set another one here."""
    return time.time()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooldown:
    """Why a model is not asked, and until when (seconds since the epoch)."""

    until: float
    why: str
    failures: int
    """How often in a row; counted until it answers again."""


class Cooldowns:
    """Shared by all turns that use the same configuration."""

    def __init__(self) -> None:
        self._known: dict[str, Cooldown] = {}
        """By `provider/model`, or by provider if that is what failed."""

    def begin(self, model: Model, error: ModelError) -> Cooldown:
        key = model.provider if error.code in OF_PROVIDER else name_of(model)
        failures = self._known[key].failures + 1 if key in self._known else 1
        wait_s = QUOTA_S if error.code == "quota" else COOLDOWN.delay(failures)
        until = seconds() + min(max(wait_s, error.retry_after_s or 0), LONGEST_S)
        self._known[key] = begun = Cooldown(until=until, why=error.title, failures=failures)
        return begun

    def end(self, model: Model) -> bool:
        """The model has answered. Returns whether it had failed before."""
        keys = [key for key in (model.provider, name_of(model)) if key in self._known]
        for key in keys:
            del self._known[key]
        return bool(keys)

    def has_failed(self, model: Model) -> bool:
        """Whether it has not answered since it failed."""
        return model.provider in self._known or name_of(model) in self._known

    def of(self, name: str) -> Cooldown | None:
        """Of a model by its `provider/model`: what keeps it from being asked now."""
        found = [self._known[key] for key in (name.partition("/")[0], name) if key in self._known]
        last = max(found, key=lambda each: each.until, default=None)
        return last if last is not None and last.until > seconds() else None

    def left_s(self, name: str) -> float:
        """How much longer it is not asked."""
        cooldown = self.of(name)
        return cooldown.until - seconds() if cooldown is not None else 0.0


class Lineup:
    """The models that may answer, the preferred one first."""

    def __init__(self, models: Sequence[Model], cooldowns: Cooldowns | None = None) -> None:
        self.models = tuple(models)
        self.cooldowns = cooldowns or Cooldowns()

    def first(self) -> Model:
        """The model to ask now: if all are cooling down, the one whose cooldown ends first."""
        return self.rest()[0]

    def rest(self, tried: Sequence[Model] = ()) -> list[Model]:
        """The models not tried yet, in order."""
        left = [model for model in self.models if model not in tried]
        return sorted(left, key=lambda model: self.cooldowns.left_s(name_of(model)))


def is_made_good(error: ModelError) -> bool:
    """Whether another model may succeed where this error came."""
    return error.code in MADE_GOOD


def name_of(model: Model) -> str:
    return f"{model.provider}/{model.name}"
