"""Times in the wire's format."""

from datetime import UTC, datetime


def utc() -> datetime:
    """The clock itself: tests set another one here."""
    return datetime.now(UTC)


def now() -> str:
    """RFC 3339, UTC, microseconds."""
    return as_text(utc())


def as_text(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")[:26] + "Z"  # faster than strftime


def seconds_between(since: str, until: str) -> float:
    """To the millisecond; 0 if the clock was set back in between."""
    passed = datetime.fromisoformat(until) - datetime.fromisoformat(since)
    return max(0.0, round(passed.total_seconds(), 3))
