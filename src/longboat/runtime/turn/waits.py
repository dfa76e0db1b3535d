"""How long runs waited for people.

Owns the spans of time in which a run had an unanswered ask. Spans that overlap, as those of parallel sub-agents do,
count once.
"""

from collections import defaultdict

from longboat.runtime.clock import seconds_between
from longboat.wire.asks import Permission, Question


class Waits:
    def __init__(self) -> None:
        self._spans: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)

    def add(self, ask: Permission | Question, until: str) -> None:
        """The ask is over. The run that sent a sub-agent waited with it."""
        for run_id in filter(None, (ask.run_id, ask.parent_run_id)):
            self._spans[run_id].append((ask.asked_at, until))

    def take(self, run_id: str) -> float:
        """The seconds of a run that ends; they are not kept."""
        waited_s = self.so_far(run_id)
        self._spans.pop(run_id, None)
        return waited_s

    def so_far(self, run_id: str) -> float:
        """The seconds of a run, without what it is waiting for now."""
        total, end = 0.0, ""
        for since, until in sorted(self._spans.get(run_id, [])):
            if until > end:
                total += seconds_between(max(since, end), until)
                end = until
        return round(total, 3)
