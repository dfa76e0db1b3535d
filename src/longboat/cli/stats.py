"""`longboat stats`: usage statistics as plain tables with small bars."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from longboat.cli.options import cwd_option, format_option

if TYPE_CHECKING:
    from longboat.wire.models import Usage
    from longboat.wire.statistics import Latency, SessionFigures, Stats, ToolFigures

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
    and how long tools and runs took and waited for you. Days are in UTC.

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
    from longboat.cli.console import table
    from longboat.cli.runs import OUTCOMES

    tokens_in, tokens_out, cost = _used(found.usage)
    click.echo(f"Since {found.since} (UTC): {tokens_in} tokens in, {tokens_out} out, cost {cost}.")
    if found.usage.unpriced_tokens:
        click.echo(f"{found.usage.unpriced_tokens:,} tokens have no known price: set `price` in longboat.json.")
    click.echo()
    table(
        ("DAY (UTC)", "RUNS", *USED, ""),
        _barred(
            [(each.day, str(sum(o.runs for o in each.outcomes)), *_used(each.usage)) for each in found.days],
            [_tokens(each.usage) for each in found.days],
        ),
    )
    _section("MODEL", [((each.model, f"{each.requests:,}"), each.usage) for each in found.models], "REQUESTS")
    _section("SESSION", [row for each in found.sessions[:SESSIONS] for row in _session_rows(each)], "RUNS")
    if found.tools:
        click.echo()
        tools = [(each.tool, f"{each.calls:,}", f"{each.errors:,}", *_tool_times(each)) for each in found.tools]
        head = ("TOOL", "CALLS", "FAILED", "MEDIAN S", "P90 S", "MAX S", "WAITED FOR YOU S", "")
        table(head, _barred(tools, [each.calls for each in found.tools]))
    if found.outcomes:
        click.echo()
        ends = [(OUTCOMES[each.outcome], f"{each.runs:,}") for each in found.outcomes]
        table(("OUTCOME", "RUNS", ""), _barred(ends, [each.runs for each in found.outcomes]))
        click.echo()
        table(
            ("SECONDS", "MEDIAN", "P90", "P99", "MAX"),
            [
                _spans("queued", found.waiting),
                _spans("working", found.working),
                _spans("waiting for you", found.asking),
                _spans("total", found.whole),
            ],
        )


def _session_rows(session: "SessionFigures") -> "list[tuple[tuple[str, str], Usage]]":
    """The session, and its sub-agents under it."""
    rows = [(session, ""), *((each, "↳ ") for each in session.sub_agents)]
    return [((mark + _title(each), f"{each.runs:,}"), each.usage) for each, mark in rows]


def _title(session: "SessionFigures") -> str:
    from longboat.cli.console import one_line

    return "(deleted)" if session.title is None else one_line(session.title, 40) or "(untitled)"


def _tool_times(tool: "ToolFigures") -> tuple[str, ...]:
    _, median, p90, _, most = _spans("", tool.ran)
    return median, p90, most, f"{tool.waited_s:,.0f}" if tool.waited_s else ""


USED = ("IN", "OUT", "COST")


def _section(head: str, rows: "Sequence[tuple[tuple[str, str], Usage]]", count: str) -> None:
    from longboat.cli.console import table

    if rows:
        click.echo()
        cells = [(*cells, *_used(usage)) for cells, usage in rows]
        table((head, count, *USED, ""), _barred(cells, [_tokens(usage) for _, usage in rows]))


def _used(usage: "Usage") -> tuple[str, str, str]:
    from longboat.wire.amounts import cost_of

    return f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", cost_of(usage)


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
