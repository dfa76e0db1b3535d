"""`longboat runs`: list the runs of a directory."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from longboat.cli import shell_completion
from longboat.cli.console import ago, elapsed, json_line, notice, one_line, table
from longboat.cli.options import cwd_option, elsewhere, format_option
from longboat.wire.amounts import cost_of, duration, worked_s
from longboat.wire.ids import person
from longboat.wire.models import Delivery, Outcome, Run, RunPage, RunState

if TYPE_CHECKING:
    from longboat.cli.connection import Connection

PAGE = 100
MOST = 10_000
"""The most runs in one list."""
OUTCOMES = {
    Outcome.END_TURN: "done",
    Outcome.CANCELED: "canceled",
    Outcome.ERROR: "failed",
    Outcome.INTERRUPTED: "interrupted",
}
"""How a run ended, in the words that every command uses."""


@click.command(short_help="List active, queued and finished runs.")
@click.option("--state", type=click.Choice([state.value for state in RunState]), help="Only runs in this state.")
@click.option(
    "-s",
    "--session",
    "session_id",
    metavar="ID",
    shell_complete=shell_completion.sessions,
    help="Only runs in this session.",
)
@click.option("--all", "everything", is_flag=True, help="Include runs of sub-agents, marked with ↳.")
@click.option("--limit", type=click.IntRange(1, MOST), default=20, show_default=True, help="Maximum number of runs.")
@format_option
@cwd_option
def runs(*, state: str | None, session_id: str | None, everything: bool, limit: int, style: str, cwd: str) -> None:
    """List the runs in this directory, newest first. Runs of sub-agents are hidden unless you use --all, or -s with the
    sub-agent's session.

    "queued, next" means that the prompt runs next, "queued #2" that two prompts are ahead of it; "steers" means that
    the prompt joins the running turn at its next step. A finished run is done, canceled, failed, or interrupted (the
    server stopped before the run ended). TOOK does not include time spent waiting for you.

    \b
    longboat runs
    longboat runs --state active
    longboat runs --all
    longboat runs --format json | jq -r .run_id
    """
    from longboat.cli.background import ensure_server
    from longboat.cli.ids import session_meant, short_ids
    from longboat.client import calls

    connection = ensure_server(cwd)
    workspace_id = connection.join(cwd).id
    if session_id is not None:
        session_id = session_meant(connection, workspace_id, session_id).id
    wanted = RunState(state) if state else None
    pages = connection.pages(
        lambda after: calls.runs(workspace_id, state=wanted, session_id=session_id, limit=PAGE, after=after)
    )
    # With -s, show all runs of that session, even if it belongs to a sub-agent.
    seen, found = _read(pages, limit, with_sub_agents=everything or session_id is not None)
    if style == "json":
        for run in found[:limit]:
            json_line(run)
    elif found:
        listed = _families(found[:limit])
        costs = _costs(connection, workspace_id, listed)
        shown_ids = short_ids([run.run_id for run in listed], seen)
        rows = [(name, *_row(run, costs)) for name, run in zip(shown_ids, listed, strict=True)]
        table(("RUN", "STATE", "ACCEPTED", "TOOK", "COST", "BY", "PROMPT"), rows, spare=("COST", "BY", "TOOK"))
        if len(found) > limit:
            options = f"{' --all' if everything else ''}{elsewhere(cwd)} --limit {min(limit * 5, MOST)}"
            notice(f"More runs: longboat runs{options}")
    else:
        click.echo("No runs.")


def _read(pages: Iterable[RunPage], limit: int, *, with_sub_agents: bool) -> tuple[list[str], list[Run]]:
    """The ids of all runs that were read, and the runs to list: more than `limit` of them if there are more."""
    seen: list[str] = []
    found: list[Run] = []
    for page in pages:
        seen += (run.run_id for run in page.items)
        found += (run for run in page.items if with_sub_agents or run.parent_run_id is None)
        if len(found) > limit:
            break
    return seen, found


def _families(runs: Sequence[Run]) -> list[Run]:
    """The runs with those of sub-agents under the run that started them."""
    listed = {run.run_id for run in runs}
    tops = [run for run in runs if run.parent_run_id not in listed]
    return [each for top in tops for each in (top, *(run for run in runs if run.parent_run_id == top.run_id))]


def _costs(connection: "Connection", workspace_id: str, runs: Sequence[Run]) -> dict[str, str]:
    """What each run that called a model cost."""
    from longboat.client import calls

    pages = (connection.send(calls.session_usage(workspace_id, each)) for each in {run.session_id for run in runs})
    return {item.run_id: cost_of(item.usage) for page in pages for item in page.items}


def _row(run: Run, costs: Mapping[str, str]) -> tuple[str, str, str, str, str, str]:
    sent = "↳ " if run.parent_run_id is not None else ""
    by = one_line(person(run.client_id)) if run.client_id else "-"
    cost = costs.get(run.run_id, "-")
    return _state(run), ago(run.accepted_at), _took(run), cost, by, sent + one_line(run.prompt)


def _took(run: Run) -> str:
    """How long it worked, without waiting for people, or how long it has taken so far."""
    if run.started_at is None:
        return "-"
    seconds = worked_s(run)
    return elapsed(run.started_at, None) if seconds is None else duration(seconds)


def _state(run: Run) -> str:
    state = OUTCOMES[run.outcome] if run.outcome else run.state.value
    if run.state is RunState.QUEUED and run.delivery is Delivery.STEER:
        state = "steers"  # joins the running turn at its next step: it has no place in the queue
    elif run.state is RunState.QUEUED and run.position is not None:
        state = f"queued #{run.position}" if run.position > 1 else "queued, next"
    if run.cancel_requested and run.state is RunState.ACTIVE:
        state = "stopping"
    if run.outcome is Outcome.CANCELED and run.canceled_by:
        state += f" by {one_line(person(run.canceled_by), 16)}"
    return state
