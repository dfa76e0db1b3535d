"""Times in the wire's format."""

from datetime import UTC, datetime


def now() -> str:
    """RFC 3339, UTC, microseconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
