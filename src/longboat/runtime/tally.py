"""The usage of a turn's model requests and tool calls, until it is saved.

Owns how it is recorded for the statistics. Must not know when: it is saved with the session's next decision.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from longboat.store.protocol import Write
from longboat.wire.models import Session, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """One model request."""

    run_id: str
    model: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    spendings: tuple[Spending, ...] = ()
    calls: tuple[tuple[str, bool], ...] = ()
    """Each call that got a result: its tool, and whether it failed."""
    context: int | None = None
    """Tokens in the model's window, if a request of the turn told."""

    @property
    def usage(self) -> Usage:
        return sum((spending.usage for spending in self.spendings), Usage())

    def __add__(self, other: "Tally") -> "Tally":
        context = self.context if other.context is None else other.context
        return Tally(spendings=self.spendings + other.spendings, calls=self.calls + other.calls, context=context)

    def writes(self, session: Session, at: str) -> Iterator[Write]:
        where = {"workspace_id": session.workspace_id, "session_id": session.id, "day": at[:10]}
        for each in self.spendings:
            what = {"run_id": each.run_id, "model": each.model, **msgspec.structs.asdict(each.usage)}
            yield Write("spending_add", where | what, rows=1)
        calls = Counter(tool for tool, _ in self.calls)
        errors = Counter(tool for tool, failed in self.calls if failed)
        for tool, count in calls.items():
            yield Write("tool_use_add", where | {"tool": tool, "calls": count, "errors": errors[tool]}, rows=1)


NOTHING = Tally()
