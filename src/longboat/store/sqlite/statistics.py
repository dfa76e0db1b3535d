"""Usage statistics, read from SQLite."""

from collections import Counter

from longboat.store.protocol import Row
from longboat.store.sqlite.queries import SqliteReader
from longboat.wire.figures import (
    DayFigures,
    Latency,
    ModelFigures,
    OutcomeCount,
    RunFigures,
    SessionFigures,
    SessionUsage,
    Stats,
    ToolFigures,
)
from longboat.wire.models import Outcome, Usage

MAX_SESSIONS = 50
MAX_RUNS = 500
NOTHING = Usage()


def read_stats(reader: SqliteReader, workspace_id: str | None, since: str) -> Stats:
    """Of one workspace, or of all."""
    where = {"workspace_id": workspace_id, "since": since}
    used = {row["day"]: _usage(row) for row in reader.fetch("stats_days", **where)}
    spans = {row["day"]: _percentiles(row) for row in reader.fetch("stats_days_latency", **where)}
    ended: dict[str, Counter[Outcome]] = {}
    for row in reader.fetch("stats_runs", **where):
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
                whole=spans.get(day),
            )
            for day in sorted(used.keys() | ended.keys())
        ),
        models=tuple(
            ModelFigures(model=row["model"], requests=row["requests"], usage=_usage(row))
            for row in reader.fetch("stats_models", **where)
        ),
        sessions=tuple(_session(row) for row in reader.fetch("stats_sessions", **where, limit=MAX_SESSIONS)),
        tools=tuple(
            ToolFigures(tool=row["tool"], calls=row["calls"], errors=row["errors"])
            for row in reader.fetch("stats_tools", **where)
        ),
        waiting=_latency(reader, where, "waiting"),
        working=_latency(reader, where, "working"),
        whole=_latency(reader, where, "whole"),
    )


def read_session_usage(reader: SqliteReader, workspace_id: str, session_id: str) -> SessionUsage:
    rows = reader.fetch("stats_of_session", workspace_id=workspace_id, session_id=session_id, limit=MAX_RUNS)
    items = [RunFigures(run_id=row["run_id"], requests=row["requests"], usage=_usage(row)) for row in rows]
    return SessionUsage(session_id=session_id, items=tuple(reversed(items)))


def _usage(row: Row) -> Usage:
    return Usage(input_tokens=row["input_tokens"], output_tokens=row["output_tokens"], cost=row["cost"])


def _outcomes(counts: Counter[Outcome]) -> tuple[OutcomeCount, ...]:
    return tuple(OutcomeCount(outcome=outcome, runs=counts[outcome]) for outcome in Outcome if counts[outcome])


def _session(row: Row) -> SessionFigures:
    return SessionFigures(
        workspace_id=row["workspace_id"],
        session_id=row["session_id"],
        title=row["title"],
        runs=row["runs"],
        requests=row["requests"],
        usage=_usage(row),
    )


def _latency(reader: SqliteReader, where: dict[str, str | None], span: str) -> Latency:
    (row,) = reader.fetch("stats_latency", **where, span=span)
    return _percentiles(row)


def _percentiles(row: Row) -> Latency:
    return Latency(**{name: _rounded(row[name]) for name in ("p50", "p90", "p99", "most")})


def _rounded(seconds: float | None) -> float | None:
    """The clocks of the store are good to a millisecond; one set back in between makes no run end before it began."""
    return None if seconds is None else max(0.0, round(seconds, 3))
