"""`longboat redo`: restore an undone turn."""

import click

from longboat.cli.options import cwd_option
from longboat.cli.undo import session_option, turn_about


@click.command(short_help="Redo the last undone turn.")
@session_option
@cwd_option
def redo(session_id: str | None, cwd: str) -> None:
    """Redo the last undone turn, unless the session has had a new prompt since.

    \b
    longboat redo
    """
    from longboat.client import calls

    turn_about(calls.redo, session_id, cwd, done="Redone")
