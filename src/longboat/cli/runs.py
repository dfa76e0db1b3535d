"""`longboat runs`: list the runs of a directory."""

import click

from longboat.cli import shell_completion
from longboat.cli.console import ago, elapsed, json_line, notice, one_line, table
from longboat.cli.options import cwd_option, elsewhere, format_option
from longboat.wire.ids import person
from longboat.wire.models import Delivery, Outcome, Run, RunState

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
    help="Only runs of this session.",
)
@click.option("--all", "everything", is_flag=True, help="Include runs of sub-agents, marked with ↳.")
@click.option("--limit", type=click.IntRange(1, MOST), default=20, show_default=True, help="Maximum number of runs.")
@format_option
@cwd_option
def runs(*, state: str | None, session_id: str | None, everything: bool, limit: int, style: str, cwd: str) -> None:
    """List the runs in this directory, newest first. Runs of sub-agents are hidden unless you use --all, or -s with the
    sub-agent's session.

    "queued #2" means that two prompts are ahead; "steers" means that the prompt joins the running turn at its next
    step. A finished run is done, canceled, failed, or interrupted (the server stopped before the run ended).

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
    seen: list[str] = []
    found: list[Run] = []
    for page in pages:
        seen += (run.run_id for run in page.items)
        # With -s, show all runs of that session, even if it belongs to a sub-agent.
        found += (run for run in page.items if everything or session_id or run.parent_run_id is None)
        if len(found) > limit:
            break
    if style == "json":
        for run in found[:limit]:
            json_line(run)
    elif found:
        shown_ids = short_ids([run.run_id for run in found[:limit]], seen)
        rows = [(name, *_row(run)) for name, run in zip(shown_ids, found, strict=False)]
        table(("RUN", "STATE", "ACCEPTED", "TOOK", "BY", "PROMPT"), rows)
        if len(found) > limit:
            options = f"{' --all' if everything else ''}{elsewhere(cwd)} --limit {min(limit * 5, MOST)}"
            notice(f"More runs: longboat runs{options}")
    else:
        click.echo("No runs.")


def _row(run: Run) -> tuple[str, str, str, str, str]:
    state = OUTCOMES[run.outcome] if run.outcome else run.state.value
    if run.state is RunState.QUEUED and run.delivery is Delivery.STEER:
        state = "steers"  # joins the running turn at its next step: it has no place in the queue
    elif run.state is RunState.QUEUED and run.position is not None:
        state = f"queued #{run.position}"
    if run.cancel_requested and run.state is RunState.ACTIVE:
        state = "stopping"
    sent = "↳ " if run.parent_run_id is not None else ""
    by = one_line(person(run.client_id)) if run.client_id else "-"
    return state, ago(run.accepted_at), _took(run), by, sent + one_line(run.prompt)


def _took(run: Run) -> str:
    """How long it worked, or has worked so far."""
    if run.started_at is None:
        return "-"
    return elapsed(run.started_at, run.finished_at)
