"""Costs and durations as text, in the same words for every client."""

from datetime import datetime

from longboat.wire.listings import ModelPrice
from longboat.wire.models import Run, Usage


def dollars(amount: float) -> str:
    if 0 < amount < 0.01:
        return f"${amount:.4f}" if amount >= 0.0001 else "<$0.0001"
    return f"${amount:,.2f}" if amount else "$0"


def cost_of(usage: Usage) -> str:
    """Such as `$0.12`; `≥ $0.12` if a part of the price is unknown; `unknown` if all of it is."""
    if usage.cost is None:
        return "unknown"
    return f"≥ {dollars(usage.cost)}" if usage.unpriced_tokens else dollars(usage.cost)


def price_text(price: ModelPrice | None) -> str:
    """For a million tokens; `free` for a model that costs nothing."""
    if price is None:
        return "price unknown"
    return f"${price.input:g} in, ${price.output:g} out per M" if price.input or price.output else "free"


def worked_s(run: Run) -> float | None:
    """Seconds from started to finished, without those in which the run waited for people. None if it is not finished,
    or never started."""
    if run.started_at is None or run.finished_at is None:
        return None
    passed = datetime.fromisoformat(run.finished_at) - datetime.fromisoformat(run.started_at)
    return max(0.0, passed.total_seconds() - run.waited_s)


def duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
