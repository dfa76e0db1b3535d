"""Short forms of times, costs and token counts."""

from datetime import UTC, datetime

from longboat.wire.listings import ModelPrice


def now() -> datetime:
    return datetime.now(UTC)


def ago(instant: str, at: datetime) -> str:
    """The time since an RFC 3339 instant, in at most seven columns."""
    seconds = (at - datetime.fromisoformat(instant)).total_seconds()
    for size, unit in ((365 * 86_400, "y"), (86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds / size)} {unit}"
    return "now"


def cost(dollars: float) -> str:
    if not dollars:
        return ""
    return f"${dollars:,.2f}" if dollars >= 0.01 else "<$0.01"


def price(known: ModelPrice | None) -> str:
    """For a million tokens in and out; empty if unknown."""
    return f"${known.input:g} in, ${known.output:g} out per M" if known is not None else ""


def tokens(number: int | None) -> str:
    if number is None:
        return ""
    if number < 1_000_000:
        return f"{number // 1_000}k" if number >= 1_000 else str(number)
    return f"{number / 1_000_000:.1f}M".replace(".0M", "M")


def lasted(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 3_600 else f"{whole // 3_600} h {whole % 3_600 // 60} min"
