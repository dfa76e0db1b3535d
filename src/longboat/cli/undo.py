"""`longboat undo`: take a turn back."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from longboat.cli import candidates
from longboat.cli.options import cwd_option

if TYPE_CHECKING:
    from longboat.client.calls import Call
    from longboat.wire.workshop import Undone


@click.command(short_help="Take the newest turn back: its file changes and its messages.")
@click.option(
    "-s",
    "--session",
    "session_id",
    metavar="ID",
    shell_complete=candidates.sessions,
    help="The session.  [default: the one used last here]",
)
@cwd_option
def undo(session_id: str | None, cwd: str) -> None:
    """Put back the files that the newest turn changed with its own tools, and take its messages out of the session.
    Of each file you are told whether it was restored, recreated or removed.

    If somebody has changed one of those files since, nothing is undone, and you are told which. What shell commands did
    is not undone.

    \b
    longboat undo
    longboat redo        changed your mind again?
    """
    from longboat.client import calls

    turn_about(calls.undo, session_id, cwd, done="Undone")


def turn_about(call: "Callable[[str, str], Call[Undone]]", session_id: str | None, cwd: str, *, done: str) -> None:
    """Undo or redo in a session, and say what became of which files."""
    from longboat.cli.background import ensure_server
    from longboat.cli.connection import last_session
    from longboat.cli.console import safe
    from longboat.cli.ids import session_meant
    from longboat.cli.main import Failure

    connection = ensure_server(cwd)
    workspace_id = connection.join(cwd).id
    if session_id is not None:
        session_id = session_meant(connection, workspace_id, session_id).id
    elif (session_id := last_session(connection, workspace_id)) is None:
        raise Failure("There is no session here yet.", 'Begin one with: longboat run "…"')
    undone = connection.send(call(workspace_id, session_id))
    click.echo(f"{done}: run {undone.run_id} of session {session_id}")
    for file in undone.fates:
        click.echo(f"  {file.fate.value} {safe(file.path)}")
    if not undone.files:
        click.echo("  It had changed no files.")
