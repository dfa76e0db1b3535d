"""Short forms of times and token counts."""

from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)


def ago(instant: str, at: datetime) -> str:
    """The time since an RFC 3339 instant, in at most seven columns."""
    seconds = (at - datetime.fromisoformat(instant)).total_seconds()
    for size, unit in ((365 * 86_400, "y"), (86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds / size)} {unit}"
    return "now"


def tokens(number: int | None) -> str:
    if number is None:
        return ""
    if number < 1_000_000:
        return f"{number // 1_000}k" if number >= 1_000 else str(number)
    return f"{number / 1_000_000:.1f}M".replace(".0M", "M")


def format_duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 3_600 else f"{whole // 3_600} h {whole % 3_600 // 60} min"
