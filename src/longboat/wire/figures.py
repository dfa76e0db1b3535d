"""Usage statistics: the answers of `GET …/stats`. Days are UTC days."""

from longboat.wire.models import Outcome, Usage
from longboat.wire.shape import Shape


class OutcomeCount(Shape, frozen=True, kw_only=True):
    outcome: Outcome
    runs: int


class Latency(Shape, frozen=True, kw_only=True):
    """Seconds: median, 90th and 99th percentile, and maximum. Null if there is no run."""

    p50: float | None
    p90: float | None
    p99: float | None
    most: float | None


class DayFigures(Shape, frozen=True, kw_only=True):
    """One day with activity."""

    day: str
    """Such as 2026-11-15."""
    usage: Usage
    outcomes: tuple[OutcomeCount, ...]
    whole: Latency | None = None
    """From accepted to finished, for runs that were accepted on this day and started; null if there is none."""


class ModelFigures(Shape, frozen=True, kw_only=True):
    model: str
    """As provider/model."""
    requests: int
    usage: Usage


class SessionFigures(Shape, frozen=True, kw_only=True):
    workspace_id: str
    session_id: str
    title: str | None
    """Null if the session was deleted; its usage still counts."""
    runs: int
    """Runs that called a model."""
    requests: int
    usage: Usage


class RunFigures(Shape, frozen=True, kw_only=True):
    """The usage of one run."""

    run_id: str
    requests: int
    usage: Usage


class SessionUsage(Shape, frozen=True, kw_only=True):
    """The usage of the newest runs of a session, at most 500, oldest first."""

    session_id: str
    items: tuple[RunFigures, ...]


class ToolFigures(Shape, frozen=True, kw_only=True):
    tool: str
    calls: int
    """Calls that returned a result."""
    errors: int


class Stats(Shape, frozen=True, kw_only=True):
    """Usage since a given day, in one workspace or in all. Imported runs are not counted."""

    since: str
    usage: Usage
    """Total of all days."""
    outcomes: tuple[OutcomeCount, ...]
    """Total of all finished runs."""
    days: tuple[DayFigures, ...]
    """Oldest first."""
    models: tuple[ModelFigures, ...]
    """Most expensive first, as are the sessions."""
    sessions: tuple[SessionFigures, ...]
    """At most 50."""
    tools: tuple[ToolFigures, ...]
    """Most used first."""
    waiting: Latency
    """From accepted to started, for runs that were started."""
    working: Latency
    """From started to finished."""
    whole: Latency
    """From accepted to finished."""
