"""Numbers of what was used and done: the answers of `GET …/stats`. Days are days of UTC."""

from longboat.wire.models import Outcome, Usage
from longboat.wire.shape import Shape


class OutcomeCount(Shape, frozen=True, kw_only=True):
    outcome: Outcome
    runs: int


class Latency(Shape, frozen=True, kw_only=True):
    """Seconds: half, 90 % and 99 % of the runs took no longer than this. Null where there is no run."""

    p50: float | None
    p90: float | None
    p99: float | None
    most: float | None


class DayFigures(Shape, frozen=True, kw_only=True):
    """One day on which something was done."""

    day: str
    """As 2026-11-15."""
    usage: Usage
    outcomes: tuple[OutcomeCount, ...]
    whole: Latency | None = None
    """From accepted to finished, of the runs that were accepted on this day and started; null where there is none."""


class ModelFigures(Shape, frozen=True, kw_only=True):
    model: str
    """As provider/model."""
    requests: int
    usage: Usage


class SessionFigures(Shape, frozen=True, kw_only=True):
    workspace_id: str
    session_id: str
    title: str | None
    """Null: the session was deleted. What it used was used all the same."""
    runs: int
    """Those that asked a model."""
    requests: int
    usage: Usage


class RunFigures(Shape, frozen=True, kw_only=True):
    """What one run used."""

    run_id: str
    requests: int
    usage: Usage


class SessionUsage(Shape, frozen=True, kw_only=True):
    """What the newest runs of a session used, at most 500, oldest first."""

    session_id: str
    items: tuple[RunFigures, ...]


class ToolFigures(Shape, frozen=True, kw_only=True):
    tool: str
    calls: int
    """Those that got a result."""
    errors: int


class Stats(Shape, frozen=True, kw_only=True):
    """What was used and done since a day, in one workspace or in all. Imported runs are not counted."""

    since: str
    usage: Usage
    """Of all days together."""
    outcomes: tuple[OutcomeCount, ...]
    """Of all finished runs together."""
    days: tuple[DayFigures, ...]
    """Oldest first."""
    models: tuple[ModelFigures, ...]
    """The dearest first, as are the sessions."""
    sessions: tuple[SessionFigures, ...]
    """At most 50."""
    tools: tuple[ToolFigures, ...]
    """The most used first."""
    waiting: Latency
    """From accepted to started, of runs that were started."""
    working: Latency
    """From started to finished."""
    whole: Latency
    """From accepted to finished."""
