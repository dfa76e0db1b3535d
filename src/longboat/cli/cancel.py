"""`longboat cancel`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from longboat.cli import shell_completion
from longboat.cli.options import cwd_option, own_name
from longboat.errors import LongboatError
from longboat.wire.models import Outcome, RunPage, RunState

if TYPE_CHECKING:
    from longboat.cli.connection import Connection


@click.command(short_help="Cancel a run, a session's runs, or all runs.")
@click.argument("run_id", metavar="[RUN]", required=False, shell_complete=shell_completion.runs)
@click.option(
    "-s",
    "--session",
    "session_id",
    metavar="ID",
    shell_complete=shell_completion.sessions,
    help="Cancel all runs in this session.",
)
@click.option("--all", "everything", is_flag=True, help="Cancel all unfinished runs in this directory.")
@cwd_option
def cancel(run_id: str | None, session_id: str | None, everything: bool, cwd: str) -> None:
    """Cancel one active or queued run, all runs of a session, or all runs.

    \b
    longboat cancel 0198c2f4-…
    longboat cancel --session 0198c2f0-…
    longboat cancel --all
    """
    if [run_id is not None, session_id is not None, everything].count(True) != 1:
        raise click.UsageError("Use one of RUN, --session ID or --all.")
    from longboat.cli.background import ensure_server
    from longboat.cli.ids import run_meant, session_meant
    from longboat.client import calls

    connection = ensure_server(cwd)
    workspace_id = connection.join(cwd).id
    if run_id is not None:
        _cancel_run(connection, workspace_id, run_meant(connection, workspace_id, run_id).run_id)
        return
    if session_id is not None:
        session_id = session_meant(connection, workspace_id, session_id).id
    canceled: list[str] = []
    for session in [session_id] if session_id is not None else _busy_sessions(connection, workspace_id):
        call = calls.cancel_session(workspace_id, session, own_name())
        canceled += connection.send_with_retry(call, on_outage=_tell).canceled
    if not canceled:
        click.echo("Nothing to cancel.")
    for each in canceled:
        click.echo(f"{each} canceled")


def _tell(lost: LongboatError | None) -> None:
    from longboat.cli.background import revive
    from longboat.cli.console import notice, one_line

    if lost is not None:
        notice(f"{one_line(lost.message)} Trying again…")
        revive()


def _cancel_run(connection: "Connection", workspace_id: str, run_id: str) -> None:
    from longboat.cli.runs import OUTCOMES
    from longboat.client import calls

    run = connection.send_with_retry(calls.cancel_run(workspace_id, run_id, own_name()), on_outage=_tell)
    if run.outcome is None:
        click.echo(f"{run_id} is stopping")
    elif run.outcome is Outcome.CANCELED:
        click.echo(f"{run_id} canceled")
    else:
        click.echo(f"{run_id} had already ended: {OUTCOMES[run.outcome]}")


def _busy_sessions(connection: "Connection", workspace_id: str) -> list[str]:
    """The ids of the sessions with unfinished runs, without duplicates."""
    from longboat.client import calls

    def pages(state: RunState) -> Iterator[RunPage]:
        return connection.pages(lambda after: calls.runs(workspace_id, state=state, limit=500, after=after))

    unfinished = (RunState.ACCEPTED, RunState.QUEUED, RunState.ACTIVE, RunState.FOLDED)
    runs = (run for state in unfinished for page in pages(state) for run in page.items)
    return list(dict.fromkeys(run.session_id for run in runs))
