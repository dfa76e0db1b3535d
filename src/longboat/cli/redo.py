"""`longboat redo`: restore an undone turn."""

import click

from longboat.cli import shell_completion
from longboat.cli.options import cwd_option
from longboat.cli.undo import turn_about


@click.command(short_help="Restore the turn that was undone last.")
@click.option(
    "-s",
    "--session",
    "session_id",
    metavar="ID",
    shell_complete=shell_completion.sessions,
    help="Session.  [default: the last one used in this directory]",
)
@cwd_option
def redo(session_id: str | None, cwd: str) -> None:
    """Restore the turn that `longboat undo` undid last, unless the session has had a new prompt since.

    \b
    longboat redo
    """
    from longboat.client import calls

    turn_about(calls.redo, session_id, cwd, done="Redone")
