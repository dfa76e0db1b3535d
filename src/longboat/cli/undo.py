"""`longboat undo`: take a turn back."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from longboat.cli import shell_completion
from longboat.cli.options import cwd_option

if TYPE_CHECKING:
    from longboat.client.calls import Call
    from longboat.wire.workshop import Undone

WORDS = 70
"""Columns of the prompt by which a turn is known again."""


@click.command(short_help="Take the newest turn back: its file changes and its messages.")
@click.option(
    "-s",
    "--session",
    "session_id",
    metavar="ID",
    shell_complete=shell_completion.sessions,
    help="The session.  [default: the one used last here]",
)
@cwd_option
def undo(session_id: str | None, cwd: str) -> None:
    """Put back the files that the newest turn changed with its own tools, and take its messages out of the session.
    You are told the prompt, and of each file whether it was restored, recreated or removed.

    If somebody has changed one of those files since, nothing is undone, and you are told which. What shell commands did
    is not undone.

    \b
    longboat undo
    longboat redo        changed your mind again?
    """
    from longboat.client import calls

    turn_about(calls.undo, session_id, cwd, done="Undone")


def turn_about(call: "Callable[[str, str], Call[Undone]]", session_id: str | None, cwd: str, *, done: str) -> None:
    """Undo or redo in a session, and say of which prompt, and what became of which files."""
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
        raise Failure("There is no session here yet.", 'Begin one with: longboat run "…"')
    undone = connection.send(call(workspace_id, session_id))
    try:
        prompt = connection.send(calls.get_run(workspace_id, undone.run_id)).prompt
        said = one_line(prompt, WORDS) or "(a prompt without words)"
    except NotFound:  # the session is a copy of one in which it ran
        said = "a turn from before the fork"
    click.echo(f"{done}: {said}")
    for file in undone.fates:
        click.echo(f"  {file.fate.value} {safe(file.path)}")
    if not undone.files:
        click.echo("  It had changed no files.")
