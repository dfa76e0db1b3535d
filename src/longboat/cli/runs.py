"""`longboat runs`: the ledger."""

import click

from longboat.cli import candidates
from longboat.cli.console import ago, json_line, one_line, table
from longboat.cli.options import cwd_option, format_option
from longboat.wire.models import Outcome, Run, RunState

OUTCOMES = {
    Outcome.END_TURN: "done",
    Outcome.CANCELED: "canceled",
    Outcome.ERROR: "failed",
    Outcome.INTERRUPTED: "interrupted",
}
"""How a run ended, for people."""


@click.command(short_help="List runs: what is active, queued and over.")
@click.option("--state", type=click.Choice([state.value for state in RunState]), help="Only runs in this state.")
@click.option(
    "-s",
    "--session",
    "session_id",
    metavar="ID",
    shell_complete=candidates.sessions,
    help="Only runs of this session.",
)
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True, help="At most so many.")
@format_option
@cwd_option
def runs(state: str | None, session_id: str | None, limit: int, style: str, cwd: str) -> None:
    """List the runs of this directory, newest first.

    \b
    longboat runs
    longboat runs --state active
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
    page = connection.send(calls.runs(workspace_id, state=wanted, session_id=session_id, limit=limit))
    if style == "json":
        for run in page.items:
            json_line(run)
    elif page.items:
        table(("RUN", "STATE", "ACCEPTED", "PROMPT"), [_row(run) for run in page.items])
    else:
        click.echo("No runs.")


def _row(run: Run) -> tuple[str, str, str, str]:
    state = OUTCOMES[run.outcome] if run.outcome else run.state.value
    if run.state is RunState.QUEUED and run.position is not None:
        state = f"queued #{run.position}"
    if run.cancel_requested and run.state is RunState.ACTIVE:
        state = "stopping"
    return run.run_id, state, ago(run.accepted_at), one_line(run.prompt)
