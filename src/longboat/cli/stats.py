"""`longboat stats`: usage statistics as plain tables with small bars."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from longboat.cli.options import cwd_option, format_option

if TYPE_CHECKING:
    from longboat.wire.figures import Latency, Stats
    from longboat.wire.models import Usage

WIDTH = 16
EIGHTHS = " ▏▎▍▌▋▊▉"
SESSIONS = 10
"""How many sessions the text format shows; `--format json` has more."""


@click.command(short_help="Show tokens, cost, runs, tool calls and durations.")
@click.option(
    "--days", type=click.IntRange(1, 3_650), default=30, show_default=True, help="Number of days to include (UTC)."
)
@click.option("--all", "everywhere", is_flag=True, help="Include all directories, not only this one.")
@format_option
@cwd_option
def stats(days: int, everywhere: bool, style: str, cwd: str) -> None:
    """Show usage statistics of this directory: tokens and cost by day, model and session; outcomes of runs; tool calls;
    and how long runs waited and worked.

    \b
    longboat stats --days 7
    longboat stats --all --format json
    """
    from longboat.cli.background import ensure_server
    from longboat.cli.console import json_page
    from longboat.client import calls

    connection = ensure_server(cwd)
    workspace_id = None if everywhere else connection.join(cwd).id
    found = connection.send(calls.stats(workspace_id, days=days))
    if style == "json":
        json_page(found)
    elif found.days:
        _print(found)
    else:
        click.echo(f'No usage since {found.since}. Send a prompt with: longboat run "…"')


def _print(found: "Stats") -> None:
    from longboat.cli.console import one_line, table
    from longboat.cli.runs import OUTCOMES

    tokens_in, tokens_out, cost = _used(found.usage)
    click.echo(f"Since {found.since}: {tokens_in} tokens in, {tokens_out} out, {cost}.\n")
    table(
        ("DAY", "RUNS", *USED, ""),
        _barred(
            [(each.day, str(sum(o.runs for o in each.outcomes)), *_used(each.usage)) for each in found.days],
            [_tokens(each.usage) for each in found.days],
        ),
    )
    _section("MODEL", [((each.model, f"{each.requests:,}"), each.usage) for each in found.models], "REQUESTS")
    sessions = found.sessions[:SESSIONS]
    titles = ["(deleted)" if each.title is None else one_line(each.title, 40) or "(untitled)" for each in sessions]
    rows = [((title, f"{each.runs:,}"), each.usage) for title, each in zip(titles, sessions, strict=True)]
    _section("SESSION", rows, "RUNS")
    if found.tools:
        click.echo()
        tools = [(each.tool, f"{each.calls:,}", f"{each.errors:,}") for each in found.tools]
        table(("TOOL", "CALLS", "FAILED", ""), _barred(tools, [each.calls for each in found.tools]))
    if found.outcomes:
        click.echo()
        ends = [(OUTCOMES[each.outcome], f"{each.runs:,}") for each in found.outcomes]
        table(("OUTCOME", "RUNS", ""), _barred(ends, [each.runs for each in found.outcomes]))
        click.echo()
        table(
            ("SECONDS", "MEDIAN", "P90", "P99", "MAX"),
            [_spans("waiting", found.waiting), _spans("working", found.working), _spans("total", found.whole)],
        )


USED = ("IN", "OUT", "COST")


def _section(head: str, rows: "Sequence[tuple[tuple[str, str], Usage]]", count: str) -> None:
    from longboat.cli.console import table

    if rows:
        click.echo()
        cells = [(*cells, *_used(usage)) for cells, usage in rows]
        table((head, count, *USED, ""), _barred(cells, [_tokens(usage) for _, usage in rows]))


def _used(usage: "Usage") -> tuple[str, str, str]:
    return f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", f"${usage.cost:,.4f}"


def _tokens(usage: "Usage") -> int:
    return usage.input_tokens + usage.output_tokens


def _spans(name: str, latency: "Latency") -> tuple[str, ...]:
    numbers = (latency.p50, latency.p90, latency.p99, latency.most)
    return (name, *("–" if number is None else f"{number:.2f}" for number in numbers))


def _barred(rows: Sequence[Sequence[str]], values: Iterable[int]) -> list[tuple[str, ...]]:
    """Each row with a bar; the largest value has the full width."""
    numbers = list(values)
    most = max(numbers, default=0)
    return [(*row, bar(number, most)) for row, number in zip(rows, numbers, strict=True)]


def bar(value: int, most: int) -> str:
    """A bar in eighths of a character; any value above zero gets at least one eighth."""
    if value <= 0 or most <= 0:
        return ""
    whole, rest = divmod(max(1, round(value / most * WIDTH * 8)), 8)
    return "█" * whole + (EIGHTHS[rest] if rest else "")
