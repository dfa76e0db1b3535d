"""The limits of a turn, without I/O: steps, failures in a row and working time, and the warnings for the model.

Must not know who is asked at a limit, nor what happens then.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from longboat.core.turn import is_waiting
from longboat.wire.models import ToolCallPart, ToolResultPart

STEPS_AHEAD = 5
"""How many steps before the limit to warn the model."""
TIME_AHEAD = 0.1
"""After which part of the time to warn the model."""
FAILURES_AHEAD = 2
NUDGE_AT = 3
"""The same call so often, failing or with the same result, is answered with a nudge."""
SAME_AGAIN = "This same call has had this same result"


class Limit(Enum):
    STEPS = "steps"
    FAILURES = "failures"
    TIME = "minutes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far a turn may go; 0 is no limit."""

    steps: int = 0
    failures: int = 0
    """Steps in a row whose tool calls all fail. A command that ran and failed, as red tests do, is no such failure."""
    seconds: float = 0.0
    most_seconds: float = 0.0
    """Where a turn whose people are asked at `seconds` ends in the middle of an answer."""


class LimitCounter:
    """Counts one turn. `worked_s` is the time it has worked so far."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._steps = self._failures = self._steps_before = 0
        self._renewed_s = 0.0
        self._told: set[Limit] = set()
        self._failed: Counter[tuple[str, str]] = Counter()
        self._repeated: Counter[tuple[str, str, str]] = Counter()

    def add_step(self) -> None:
        self._steps += 1

    def add_results(self, results: Iterable[ToolResultPart]) -> None:
        if all(result.tool_failed for result in results):
            self._failures += 1
        else:
            self._failures = 0
            self._told.discard(Limit.FAILURES)

    def renew(self, worked_s: float) -> None:
        """Count from the beginning: a person wants the turn to continue."""
        self._steps_before += self._steps
        self._steps = self._failures = 0
        self._renewed_s = worked_s
        self._told.clear()

    def reached(self, worked_s: float) -> Limit | None:
        left = self._left(worked_s)
        return next((limit for limit, (remaining, _) in left.items() if remaining <= 0), None)

    def answer_s(self, worked_s: float, *, asks: bool) -> float | None:
        """How long the model's next answer may take; None: there is no limit. `asks`: people are asked after it."""
        bound = self._bounds.most_seconds if asks else self._bounds.seconds
        return max(0.0, bound - (worked_s - self._renewed_s)) if bound else None

    def describe(self, limit: Limit, worked_s: float) -> str:
        """How far the turn has come, as a few words."""
        match limit:
            case Limit.STEPS:
                return _count(self._steps_before + self._steps, "step")
            case Limit.FAILURES:
                return f"{_count(self._failures, 'step')} in a row in which every tool call failed"
            case Limit.TIME:
                return f"{_count(round(worked_s / 60), 'minute')} of work"

    def warning(self, worked_s: float) -> str | None:
        """For the model, once, when a limit is near."""
        near = [
            limit for limit, (left, ahead) in self._left(worked_s).items() if left <= ahead and limit not in self._told
        ]
        self._told.update(near)
        return "\n".join(self._warning(limit, worked_s) for limit in near) or None

    def nudge(self, call: ToolCallPart, result: ToolResultPart) -> str | None:
        """For the model, when it repeats a call that fails, or one whose result stays the same."""
        key = (call.name, call.input)
        if not result.tool_failed:
            del self._failed[key]
            return None if is_waiting(call, result) else self._nudge_on(*key, result.content)
        self._failed[key] += 1
        if self._failed[key] < NUDGE_AT:
            return None
        return (
            f"This same call has failed {self._failed[key]} times. Do not repeat it: look at the error and at the "
            "current state, then do something else, or say what stops you."
        )

    def _nudge_on(self, *repeated: *tuple[str, str, str]) -> str | None:
        self._repeated[repeated] += 1
        if self._repeated[repeated] < NUDGE_AT:
            return None
        return (
            f"{SAME_AGAIN} {self._repeated[repeated]} times. Do not repeat it: use what you "
            "know, do something else, or answer."
        )

    def _left(self, worked_s: float) -> dict[Limit, tuple[float, float]]:
        """For each limit: what remains, and from where on the model hears of it."""
        bounds, spent_s = self._bounds, worked_s - self._renewed_s
        all_limits = {
            Limit.STEPS: (bounds.steps, self._steps, min(STEPS_AHEAD, bounds.steps // 2)),
            Limit.FAILURES: (bounds.failures, self._failures, min(FAILURES_AHEAD, bounds.failures // 2)),
            Limit.TIME: (bounds.seconds, spent_s, bounds.seconds * TIME_AHEAD),
        }
        return {limit: (bound - spent, ahead) for limit, (bound, spent, ahead) in all_limits.items() if bound}

    def _warning(self, limit: Limit, worked_s: float) -> str:
        left, _ = self._left(worked_s)[limit]
        steps = _count(round(left), "more step")
        match limit:
            case Limit.STEPS:
                near = f"This turn ends after {steps}."
            case Limit.FAILURES:
                near = f"This turn ends after {steps} in which every tool call fails."
            case Limit.TIME:
                near = f"This turn ends in about {max(1, round(left / 60))} min."
        return f"[{near} Finish what matters most, then say what is done and what is left.]"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
