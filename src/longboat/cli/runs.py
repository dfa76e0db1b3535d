"""`longboat runs`: the ledger."""

from itertools import islice

import click

from longboat.cli import shell_completion
from longboat.cli.console import ago, json_line, notice, one_line, table
from longboat.cli.options import cwd_option, elsewhere, format_option
from longboat.wire.models import Delivery, Outcome, Run, RunState

PAGE = 100
MOST = 10_000
"""Runs in one list."""
OUTCOMES = {
    Outcome.END_TURN: "done",
    Outcome.CANCELED: "canceled",
    Outcome.ERROR: "failed",
    Outcome.INTERRUPTED: "interrupted",
}
"""How a run ended, for people; the same words in every command."""


@click.command(short_help="List runs: what is active, queued and over.")
@click.option("--state", type=click.Choice([state.value for state in RunState]), help="Only runs in this state.")
@click.option(
    "-s",
    "--session",
    "session_id",
    metavar="ID",
    shell_complete=shell_completion.sessions,
    help="Only runs of this session.",
)
@click.option("--all", "everything", is_flag=True, help="Also the runs of sub-agents, marked with ↳.")
@click.option("--limit", type=click.IntRange(1, MOST), default=20, show_default=True, help="At most so many.")
@format_option
@cwd_option
def runs(*, state: str | None, session_id: str | None, everything: bool, limit: int, style: str, cwd: str) -> None:
    """List the runs of this directory, newest first. Those of sub-agents are part of the run that sent them, and listed
    with --all, or with -s and the sub-agent's session.

    A prompt that is "queued #2" has two before it; one that "steers" goes into the running turn with its next step.
    What is over is done, canceled (somebody ended it), failed, or interrupted (the server stopped in the middle).

    \b
    longboat runs
    longboat runs --state active
    longboat runs --all
    longboat runs --format json | jq -r .run_id
    """
    from longboat.cli.background import ensure_server
    from longboat.cli.ids import session_meant
    from longboat.client import calls

    connection = ensure_server(cwd)
    workspace_id = connection.join(cwd).id
    if session_id is not None:
        session_id = session_meant(connection, workspace_id, session_id).id
    wanted = RunState(state) if state else None
    pages = connection.pages(
        lambda after: calls.runs(workspace_id, state=wanted, session_id=session_id, limit=PAGE, after=after)
    )
    # Whoever names a session wants its runs, whoever's it is.
    shown = (run for page in pages for run in page.items if everything or session_id or run.parent_run_id is None)
    found = list(islice(shown, limit + 1))
    if style == "json":
        for run in found[:limit]:
            json_line(run)
    elif found:
        table(("RUN", "STATE", "ACCEPTED", "PROMPT"), [_row(run) for run in found[:limit]])
        if len(found) > limit:
            options = f"{' --all' if everything else ''}{elsewhere(cwd)} --limit {min(limit * 5, MOST)}"
            notice(f"There are older ones: longboat runs{options}")
    else:
        click.echo("No runs.")


def _row(run: Run) -> tuple[str, str, str, str]:
    state = OUTCOMES[run.outcome] if run.outcome else run.state.value
    if run.state is RunState.QUEUED and run.delivery is Delivery.STEER:
        state = "steers"  # with the next step of what runs: it has no place in the queue
    elif run.state is RunState.QUEUED and run.position is not None:
        state = f"queued #{run.position}"
    if run.cancel_requested and run.state is RunState.ACTIVE:
        state = "stopping"
    sent = "↳ " if run.parent_run_id is not None else ""
    return run.run_id, state, ago(run.accepted_at), sent + one_line(run.prompt)
