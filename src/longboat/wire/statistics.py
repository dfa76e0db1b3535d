"""Statistics: the responses of `GET …/stats`, `…/usage` and `…/timeline`. Days are in UTC."""

from enum import StrEnum

from longboat.wire.models import Outcome, Usage
from longboat.wire.shape import Shape


class OutcomeCount(Shape, frozen=True, kw_only=True):
    outcome: Outcome
    runs: int


class Latency(Shape, frozen=True, kw_only=True):
    """Seconds: the median, 90th and 99th percentile, and the maximum. Null if there is nothing to measure."""

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
    working: Latency | None = None
    """As `Stats.working`, for runs accepted on this day; null if there are none."""


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
    """Runs of the session itself that called a model."""
    requests: int
    usage: Usage
    """Requests and usage include those of its sub-agents."""
    sub_agents: tuple["SessionFigures", ...] = ()
    """The sessions of its sub-agents, most expensive first."""


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
    ran: Latency
    """How long the tool itself took, without waiting for people."""
    waited_s: float
    """Seconds that all calls together waited for people's answers."""


class CallOutcome(StrEnum):
    DONE = "done"
    FAILED = "failed"
    """Its result is an error."""
    CUT_OFF = "cut_off"
    """The run ended before the call had a result."""


class CallSpan(Shape, frozen=True, kw_only=True):
    """When a tool call was made, and how long it waited for people and ran; several waits are added up."""

    tool: str
    began_at: str
    waited_s: float
    ran_s: float
    outcome: CallOutcome


class RunTimeline(Shape, frozen=True, kw_only=True):
    run_id: str
    calls: tuple[CallSpan, ...]
    """The longest 500, in order of their beginning."""
    left_out: int = 0
    """How many shorter calls were left out."""
    left_out_s: float = 0.0
    """How many seconds these ran, added up."""


class SessionTimeline(Shape, frozen=True, kw_only=True):
    """The tool calls of the newest runs of a session, at most 20 runs, oldest first. Includes turns that were undone;
    runs without calls are left out."""

    session_id: str
    items: tuple[RunTimeline, ...]


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
    """Most expensive first, unknown cost last."""
    sessions: tuple[SessionFigures, ...]
    """Most expensive first, unknown cost last; at most 50. Sub-agents are listed under their parents."""
    tools: tuple[ToolFigures, ...]
    """Most used first."""
    waiting: Latency
    """From accepted to started, for runs that were started."""
    working: Latency
    """From started to finished, without time spent waiting for people."""
    asking: Latency
    """How long runs waited for people's answers, for those that did."""
    whole: Latency
    """From accepted to finished."""
