"""Statistics: the responses of `GET …/stats`. Days are in UTC."""

from longboat.wire.models import Outcome, Usage
from longboat.wire.shape import Shape


class OutcomeCount(Shape, frozen=True, kw_only=True):
    outcome: Outcome
    runs: int


class Latency(Shape, frozen=True, kw_only=True):
    """Seconds: the median, 90th and 99th percentile, and the maximum. Null if there are no runs."""

    p50: float | None
    p90: float | None
    p99: float | None
    most: float | None


class DayFigures(Shape, frozen=True, kw_only=True):
    """One day with activity."""

    day: str
    """For example 2026-11-15."""
    usage: Usage
    outcomes: tuple[OutcomeCount, ...]
    whole: Latency | None = None
    """From accepted to finished, for runs accepted on this day that were started; null if there are none."""


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
    """Usage and activity since a day, in one workspace or in all. Imported runs are not counted."""

    since: str
    usage: Usage
    """The total of all days."""
    outcomes: tuple[OutcomeCount, ...]
    """The total of all finished runs."""
    days: tuple[DayFigures, ...]
    """Oldest first."""
    models: tuple[ModelFigures, ...]
    """Most expensive first."""
    sessions: tuple[SessionFigures, ...]
    """Most expensive first, at most 50."""
    tools: tuple[ToolFigures, ...]
    """Most used first."""
    waiting: Latency
    """From accepted to started, for runs that were started."""
    working: Latency
    """From started to finished."""
    whole: Latency
    """From accepted to finished."""
