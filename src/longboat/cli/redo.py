"""`longboat redo`: bring back what was undone."""

import click

from longboat.cli import shell_completion
from longboat.cli.options import cwd_option
from longboat.cli.undo import turn_about


@click.command(short_help="Bring back what was undone last.")
@click.option(
    "-s",
    "--session",
    "session_id",
    metavar="ID",
    shell_complete=shell_completion.sessions,
    help="The session.  [default: the one used last here]",
)
@cwd_option
def redo(session_id: str | None, cwd: str) -> None:
    """Bring back what `longboat undo` took back last, unless a prompt came since.

    \b
    longboat redo
    """
    from longboat.client import calls

    turn_about(calls.redo, session_id, cwd, done="Redone")
