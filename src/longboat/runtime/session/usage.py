"""The usage of a turn's model requests and tool calls, until it is saved.

Owns how it is recorded for the statistics. Must not know when: it is saved with the session's next decision.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from longboat.store.changes import add_model_usage, add_tool_use
from longboat.store.protocol import Write
from longboat.wire.models import Session, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """One model request."""

    run_id: str
    model: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTally:
    spendings: tuple[ModelUsage, ...] = ()
    calls: tuple[tuple[str, bool], ...] = ()
    """Each call that got a result: its tool, and whether it failed."""
    context: int | None = None
    """Tokens in the model's window, if a request of the turn told."""

    @property
    def usage(self) -> Usage:
        return sum((spending.usage for spending in self.spendings), Usage())

    def __add__(self, other: "UsageTally") -> "UsageTally":
        context = self.context if other.context is None else other.context
        return UsageTally(spendings=self.spendings + other.spendings, calls=self.calls + other.calls, context=context)

    def writes(self, session: Session, at: str) -> Iterator[Write]:
        day = at[:10]
        for each in self.spendings:
            yield add_model_usage(session, day, each.run_id, each.model, each.usage)
        calls = Counter(tool for tool, _ in self.calls)
        errors = Counter(tool for tool, failed in self.calls if failed)
        for tool, count in calls.items():
            yield add_tool_use(session, day, tool, calls=count, errors=errors[tool])


NOTHING = UsageTally()
