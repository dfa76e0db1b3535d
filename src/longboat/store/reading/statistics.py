"""Usage statistics."""

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

from longboat.store.protocol import Row
from longboat.store.queries import Reader
from longboat.wire.models import Outcome, Usage
from longboat.wire.statistics import (
    CallOutcome,
    CallSpan,
    DayFigures,
    Latency,
    ModelFigures,
    OutcomeCount,
    RunFigures,
    RunTimeline,
    SessionFigures,
    SessionTimeline,
    SessionUsage,
    Stats,
    ToolFigures,
)

MAX_SESSIONS = 50
MAX_RUNS = 500
MAX_TIMELINE = 20
"""Runs."""
MAX_CALLS = 500
"""Of each run of a timeline."""
NOTHING = Usage()


async def read_stats(reader: Reader, workspace_id: str | None, since: str) -> Stats:
    """Of one workspace, or of all."""
    where = {"workspace_id": workspace_id, "since": since}
    used = {row["day"]: _usage(row) for row in await reader.fetch("stats_days", **where)}
    spans = {row["day"]: _percentiles(row) for row in await reader.fetch("stats_days_latency", **where)}
    ended: dict[str, Counter[Outcome]] = {}
    for row in await reader.fetch("stats_runs", **where):
        ended.setdefault(row["day"], Counter())[Outcome(row["outcome"])] = row["runs"]
    return Stats(
        since=since,
        usage=sum(used.values(), NOTHING),
        outcomes=_outcomes(sum(ended.values(), Counter())),
        days=tuple(
            DayFigures(
                day=day,
                usage=used.get(day, NOTHING),
                outcomes=_outcomes(ended.get(day, Counter())),
                working=spans.get(day),
            )
            for day in sorted(used.keys() | ended.keys())
        ),
        models=tuple(
            ModelFigures(model=row["model"], requests=row["requests"], usage=_usage(row))
            for row in await reader.fetch("stats_models", **where)
        ),
        sessions=_sessions(await reader.fetch("stats_sessions", **where, limit=MAX_SESSIONS)),
        tools=tuple(_tool(row) for row in await reader.fetch("stats_tools", **where)),
        waiting=await _latency(reader, where, "waiting"),
        working=await _latency(reader, where, "working"),
        asking=await _latency(reader, where, "asking"),
        whole=await _latency(reader, where, "whole"),
    )


async def read_session_usage(reader: Reader, workspace_id: str, session_id: str) -> SessionUsage:
    rows = await reader.fetch("stats_of_session", workspace_id=workspace_id, session_id=session_id, limit=MAX_RUNS)
    items = [RunFigures(run_id=row["run_id"], requests=row["requests"], usage=_usage(row)) for row in rows]
    return SessionUsage(session_id=session_id, items=tuple(reversed(items)))


async def read_session_timeline(reader: Reader, workspace_id: str, session_id: str) -> SessionTimeline:
    rows = await reader.fetch(
        "timeline_of_session",
        workspace_id=workspace_id,
        session_id=session_id,
        limit=MAX_TIMELINE,
        most=MAX_CALLS,
    )
    items = [_run_timeline(run_id, list(found)) for run_id, found in groupby(rows, key=itemgetter("run_id"))]
    return SessionTimeline(session_id=session_id, items=tuple(items))


def _run_timeline(run_id: str, rows: list[Row]) -> RunTimeline:
    calls = tuple(map(_span, rows))
    left_out = rows[0]["calls"] - len(calls)
    left_out_s = rows[0]["all_ran_s"] - sum(call.ran_s for call in calls) if left_out else 0.0
    return RunTimeline(run_id=run_id, calls=calls, left_out=left_out, left_out_s=round(max(0.0, left_out_s), 3))


def _span(row: Row) -> CallSpan:
    return CallSpan(
        tool=row["tool"],
        began_at=row["began_at"],
        waited_s=row["waited_s"],
        ran_s=row["ran_s"],
        outcome=CallOutcome(row["outcome"]),
    )


def _usage(row: Row) -> Usage:
    return Usage.of(
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        cost=row["cost"],
        unpriced_tokens=row["unpriced_tokens"],
    )


def _outcomes(counts: Counter[Outcome]) -> tuple[OutcomeCount, ...]:
    return tuple(OutcomeCount(outcome=outcome, runs=counts[outcome]) for outcome in Outcome if counts[outcome])


def _sessions(rows: Iterable[Row]) -> tuple[SessionFigures, ...]:
    return tuple(_session_with_sub_agents(list(group)) for _, group in groupby(rows, key=itemgetter("head")))


def _session_with_sub_agents(rows: list[Row]) -> SessionFigures:
    """`rows`: the session's own, if it used anything itself, and those of its sub-agents."""
    first = rows[0]
    own = _session(first) if first["session_id"] == first["head"] else None
    found = tuple(_session(row) for row in (rows if own is None else rows[1:]))
    return SessionFigures(
        workspace_id=first["workspace_id"],
        session_id=first["head"],
        title=first["head_title"],
        runs=0 if own is None else own.runs,
        requests=sum(row["requests"] for row in rows),
        usage=sum((_usage(row) for row in rows), NOTHING),
        sub_agents=found,
    )


def _session(row: Row) -> SessionFigures:
    return SessionFigures(
        workspace_id=row["workspace_id"],
        session_id=row["session_id"],
        title=row["title"],
        runs=row["runs"],
        requests=row["requests"],
        usage=_usage(row),
    )


def _tool(row: Row) -> ToolFigures:
    return ToolFigures(
        tool=row["tool"],
        calls=row["calls"],
        errors=row["errors"],
        ran=_percentiles(row),
        waited_s=round(row["waited_s"], 3),
    )


async def _latency(reader: Reader, where: dict[str, str | None], span: str) -> Latency:
    (row,) = await reader.fetch("stats_latency", **where, span=span)
    return _percentiles(row)


def _percentiles(row: Row) -> Latency:
    return Latency(**{name: _rounded(row[name]) for name in ("p50", "p90", "p99", "most")})


def _rounded(seconds: float | None) -> float | None:
    """The clocks of the store are good to a millisecond; one set back in between makes no run end before it began."""
    return None if seconds is None else max(0.0, round(seconds, 3))
