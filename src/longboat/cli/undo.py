"""`longboat undo`: undo a turn."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from longboat.cli import shell_completion
from longboat.cli.options import cwd_option

if TYPE_CHECKING:
    from longboat.client.call import Call
    from longboat.wire.workspace_state import Undone

WORDS = 70
"""Columns of the prompt shown, enough to recognize the turn."""

session_option = click.option(
    "-s",
    "--session",
    "session_id",
    metavar="ID",
    shell_complete=shell_completion.sessions,
    help="Session.  [default: the last one used in this directory]",
)


@click.command(short_help="Undo the last turn: its file changes and its messages.")
@session_option
@cwd_option
def undo(session_id: str | None, cwd: str) -> None:
    """Undo the last turn: restore the files it changed with the agent's file tools and remove its messages.

    Prints the prompt of the turn, and for each file whether it was restored, recreated or removed. If one of those
    files has been changed since, nothing is undone and the file is named. Effects of shell commands are not undone.

    \b
    longboat undo
    longboat redo        redo the turn
    """
    from longboat.client import calls

    turn_about(calls.undo, session_id, cwd, done="Undone")


def turn_about(call: "Callable[[str, str], Call[Undone]]", session_id: str | None, cwd: str, *, done: str) -> None:
    """Undo or redo in a session, and print the prompt and what happened to each file."""
    from longboat.cli.background import ensure_server
    from longboat.cli.connection import last_session
    from longboat.cli.console import one_line, safe
    from longboat.cli.ids import session_meant
    from longboat.cli.main import Failure
    from longboat.client import calls
    from longboat.errors import NotFound

    connection = ensure_server(cwd)
    workspace_id = connection.join(cwd).id
    if session_id is not None:
        session_id = session_meant(connection, workspace_id, session_id).id
    elif (session_id := last_session(connection, workspace_id)) is None:
        raise Failure("No sessions in this directory yet.", 'Start one with: longboat run "…"')
    undone = connection.send(call(workspace_id, session_id))
    try:
        prompt = connection.send(calls.get_run(workspace_id, undone.run_id)).prompt
        said = one_line(prompt, WORDS) or "(empty prompt)"
    except NotFound:  # the session is a fork, and the run belongs to the original
        said = "a turn from before the fork"
    click.echo(f"{done}: {said}")
    for file in undone.fates:
        click.echo(f"  {file.fate.value} {safe(file.path)}")
    if not undone.files:
        click.echo("  No files were changed.")
