"""`longboat run`: a prompt, its answer, an exit code."""

import os
import sys
from typing import TYPE_CHECKING

import click

from longboat.cli.options import cwd_option
from longboat.errors import EmptyPrompt

if TYPE_CHECKING:
    from longboat.cli.connection import Connection
    from longboat.cli.display import Display
    from longboat.wire.requests import Submit

READER_GONE = 141
"""What a shell reports of a program that SIGPIPE ended."""


@click.command(short_help="Send a prompt, stream the answer.")
@click.argument("prompt", nargs=-1)
@click.option("-s", "--session", "session_id", metavar="ID", help="Go on in this session.")
@click.option("-c", "--continue", "newest", is_flag=True, help="Go on in the session that was used last here.")
@click.option("-m", "--model", metavar="PROVIDER/MODEL", help="Use this model for this prompt.")
@click.option(
    "--delivery",
    type=click.Choice(["steer", "queue"]),
    help="If the session is busy: steer what runs now, or queue behind it.  [default: queue]",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    help="text, or json: one line per event.  [default: text]",
)
@click.option("--detach", is_flag=True, help="Do not wait: print the run's id and leave.")
@click.option("--run-id", metavar="ID", help="Choose the run's id; sending the same again is safe.")
@click.option("--give-up-after", type=click.FloatRange(0), default=60, metavar="SECONDS", hidden=True)
@cwd_option
@click.pass_context
def run(
    ctx: click.Context,
    *,
    prompt: tuple[str, ...],
    session_id: str | None,
    newest: bool,
    model: str | None,
    delivery: str | None,
    style: str,
    detach: bool,
    run_id: str | None,
    give_up_after: float,
    cwd: str,
) -> None:
    """Send PROMPT to the agent and stream its answer. A server is started in the background if none runs.

    The prompt is read from standard input if none is given, or if it is "-". Ctrl-C cancels the run; closing the
    terminal does not. Exit code: 0 answered, 1 failed, 130 canceled.

    \b
    longboat run "Why does the build fail?"
    longboat run -c "Then fix it."
    git diff | longboat run -
    longboat run --detach "Tidy up the tests"
    """
    if session_id is not None and newest:
        raise click.UsageError("Give -s or -c, not both.")
    text = _prompt(prompt)
    from longboat.cli.background import ensure_server
    from longboat.client import calls
    from longboat.wire.ids import new_id
    from longboat.wire.models import Delivery
    from longboat.wire.requests import Submit

    connection = ensure_server()
    workspace_id = connection.join(cwd).id
    submit = Submit(
        session_id=session_id or _session(connection, workspace_id, newest=newest),
        prompt=text,
        run_id=run_id or new_id(),
        delivery=Delivery(delivery) if delivery else None,
        model=model,
    )
    if detach:
        click.echo(connection.send(calls.submit(workspace_id, submit)).run_id)
    else:
        ctx.exit(_wait(workspace_id, submit, style, give_up_after))


def _wait(workspace_id: str, submit: "Submit", style: str, give_up_after_s: float) -> int:
    from longboat.cli.console import notice
    from longboat.cli.watch import watch

    try:
        code = watch(workspace_id, submit, _display(style), give_up_after_s=give_up_after_s)
    except BrokenPipeError:
        _forget_stdout()
        return READER_GONE
    if code == 0 and sys.stdout.isatty():
        notice(f'session {submit.session_id}; go on with: longboat run -c "…"')
    return code


def _prompt(words: tuple[str, ...]) -> str:
    """Standard input is read only if there is no other prompt: it may be open and silent for ever."""
    if words and words != ("-",):
        text = " ".join(words)
    elif sys.stdin is None or (not words and sys.stdin.isatty()):
        raise click.UsageError('Give a prompt: longboat run "…", or pipe one in.')
    else:
        text = sys.stdin.buffer.read().decode(errors="replace")
    if not text.strip():
        raise EmptyPrompt  # before a server is started and a session made for it
    return text


def _session(connection: "Connection", workspace_id: str, *, newest: bool) -> str:
    from longboat.client import calls

    if newest:
        # The one somebody prompted last, which need not be the one that was created last.
        if runs := connection.send(calls.runs(workspace_id, limit=1)).items:
            return runs[0].session_id
        if sessions := connection.send(calls.sessions(workspace_id, limit=1)).items:
            return sessions[0].id
    return connection.send(calls.create_session(workspace_id)).id


def _display(style: str) -> "Display":
    from longboat.cli.display import FinalText, JsonLines, LiveText

    if style == "json":
        return JsonLines(sys.stdout)
    return LiveText(sys.stdout) if sys.stdout.isatty() else FinalText(sys.stdout)


def _forget_stdout() -> None:
    """Nobody reads any more: what is left in the buffer must not fail at exit. The run goes on (B2)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
