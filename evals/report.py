"""The tables: one result, and two results side by side. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import comb, sqrt
from statistics import median

from evals.results import Result
from evals.trial import Trial

Row = tuple[str, ...]


def table(result: Result) -> str:
    """A row for each task, the total, and what the failures were."""
    head = ("task", "solved", "steps", "calls", "failed", "tokens in", "out", "seconds", "failures")
    rows = [_row(name, trials) for name, trials in _by_task(result.trials).items()]
    total = _row("total", result.trials)
    solved, count = sum(trial.solved for trial in result.trials), len(result.trials)
    low, high = interval(solved, count)
    lines = [
        _title(result),
        *_aligned([head, *rows, total]),
        f"Solved {solved} of {count} ({solved / count:.0%}; with 95 % certainty {low:.0%} to {high:.0%}).",
        "Steps, calls, tokens and seconds are medians; in the last row, of all trials.",
    ]
    return "\n".join(lines)


def comparison(before: Result, after: Result) -> str:
    """The tasks that both have, how often each was solved, and whether the difference may be chance."""
    old, new = _by_task(before.trials), _by_task(after.trials)
    both = [name for name in old if name in new]
    head = ("task", "before", "after", "", "steps", "tokens in", "seconds")
    rows = [_change(name, old[name], new[name]) for name in both]
    better = sum(_rate(new[name]) > _rate(old[name]) for name in both)
    worse = sum(_rate(new[name]) < _rate(old[name]) for name in both)
    before_all, after_all = [t for name in both for t in old[name]], [t for name in both for t in new[name]]
    lines = [
        f"before: {_title(before)}",
        f"after:  {_title(after)}",
        *_aligned([head, *rows, _change("total", before_all, after_all)]),
        f"{better} tasks better, {worse} worse, {len(both) - better - worse} the same; {_chance(better, worse)}",
    ]
    if left := sorted(set(old) ^ set(new)):
        lines.append(f"Only in one of them, and not counted: {', '.join(left)}.")
    return "\n".join(lines)


def interval(solved: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a rate."""
    if not count:
        return 0.0, 1.0
    z, rate = 1.96, solved / count
    middle = rate + z * z / (2 * count)
    spread = z * sqrt(rate * (1 - rate) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def chance(better: int, worse: int) -> float:
    """How probable so uneven a split is if nothing has changed: the two-sided sign test."""
    count = better + worse
    if not count:
        return 1.0
    tail: float = sum(comb(count, most) for most in range(max(better, worse), count + 1)) / 2**count
    return min(1.0, 2 * tail)


def _chance(better: int, worse: int) -> str:
    probability = chance(better, worse)
    verdict = "may well be chance" if probability > 0.05 else "unlikely to be chance"
    return f"{verdict} (sign test, p = {probability:.2f})."


def _title(result: Result) -> str:
    label = f" ({result.label})" if result.label else ""
    tasks = len(_by_task(result.trials))
    counted = f"{tasks} tasks, {len(result.trials)} trials"
    return f"{result.model}{label} at {result.commit}: {counted}, {result.jobs} at a time, {result.limit_s:g} s each"


def _by_task(trials: Iterable[Trial]) -> dict[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.task, []).append(trial)
    return found


def _row(name: str, trials: Sequence[Trial]) -> Row:
    failures = Counter(str(trial.failure) for trial in trials if trial.failure is not None)
    return (
        name,
        _solved(trials),
        f"{median(trial.steps for trial in trials):g}",
        f"{median(trial.calls for trial in trials):g}",
        f"{median(trial.failed_calls for trial in trials):g}",
        f"{median(trial.input_tokens for trial in trials):,.0f}",
        f"{median(trial.output_tokens for trial in trials):,.0f}",
        f"{median(trial.seconds for trial in trials):,.1f}",
        ", ".join(f"{count} {name}" for name, count in failures.most_common()),
    )


def _change(name: str, old: Sequence[Trial], new: Sequence[Trial]) -> Row:
    mark = "+" if _rate(new) > _rate(old) else "-" if _rate(new) < _rate(old) else ""
    return (
        name,
        _solved(old),
        _solved(new),
        mark,
        f"{median(t.steps for t in old):g} → {median(t.steps for t in new):g}",
        f"{median(t.input_tokens for t in old):,.0f} → {median(t.input_tokens for t in new):,.0f}",
        f"{median(t.seconds for t in old):,.1f} → {median(t.seconds for t in new):,.1f}",
    )


def _solved(trials: Sequence[Trial]) -> str:
    return f"{sum(trial.solved for trial in trials)}/{len(trials)}"


def _rate(trials: Sequence[Trial]) -> float:
    return sum(trial.solved for trial in trials) / len(trials)


def _aligned(rows: Sequence[Row]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.ljust(width) if column in (0, last) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
