"""`longboat redo`: bring back what was undone."""

import click

from longboat.cli.options import cwd_option
from longboat.cli.undo import session_option, turn_about


@click.command(short_help="Bring back what was undone last.")
@session_option
@cwd_option
def redo(session_id: str | None, cwd: str) -> None:
    """Bring back what `longboat undo` took back last, unless a prompt came since.

    \b
    longboat redo
    """
    from longboat.client import calls

    turn_about(calls.redo, session_id, cwd, done="Redone")
