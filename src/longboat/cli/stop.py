"""`longboat stop`."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import click

from longboat.cli.console import safe
from longboat.cli.main import Failure, naming_variable
from longboat.cli.options import elsewhere
from longboat.errors import LongboatError, ServerBusy


@click.command(short_help="Stop the server.")
@click.option(
    "--force", is_flag=True, help="Stop even if runs are unfinished: active ones are interrupted, queued ones are kept."
)
def stop(force: bool) -> None:
    """Stop the server, if it is idle.

    \b
    longboat stop
    longboat stop --force
    """
    from longboat.cli.background import STOP_S, probe, wait_until_gone
    from longboat.cli.connection import Connection
    from longboat.client import calls

    connection = Connection()
    if probe(connection) is None:
        click.echo(f"No server answers at {connection.address}." if naming_variable() else "No server is running.")
        return
    busy = [each.path for each in connection.send(calls.workspaces()).items if each.busy]
    try:
        connection.send(calls.shutdown(if_idle=not force))
    except ServerBusy as error:
        raise _unfinished(busy) from error
    drain_s = _drain_s()
    try:
        if busy:
            where = safe(", ".join(busy))
            click.echo(f"Waiting up to {drain_s:g} s for runs in {where} to end, then interrupting them.", err=True)
            click.echo("(Press Ctrl-C to interrupt them now.)", err=True)
        gone = wait_until_gone(connection, drain_s + STOP_S)
    except KeyboardInterrupt:
        _hurry()
        gone = wait_until_gone(connection, STOP_S)
    if not gone:
        raise Failure("The server is still running.", "`longboat logs` shows its log.")
    click.echo("The server has stopped.")


def _unfinished(busy: Sequence[str]) -> Failure:
    """The failure of a busy server. Names the directories: the current one may not be among them."""
    where, there = (f" in {safe(', '.join(busy))}", elsewhere(busy[0])) if busy else ("", "")
    hint = f"`longboat runs{there} --state active` lists the active runs; `longboat stop --force` stops anyway."
    return Failure(f"A run is unfinished{where}: wait for it, or cancel it.", hint)


def _drain_s() -> float:
    """How long the user's own server waits for active runs; an estimate for any other server."""
    from longboat.config.load import load_user_config
    from longboat.config.settings import ServerSection

    try:
        return load_user_config(environ=os.environ, user_dir=Path.home()).server.drain_s
    except LongboatError:
        return ServerSection().drain_s


def _hurry() -> None:
    """Send our own server a second signal, which skips the wait for active runs. Any other server is left alone."""
    from longboat.client.address import read_discovery

    found = read_discovery(os.environ)
    if found is None or naming_variable():
        raise KeyboardInterrupt
    os.kill(found.pid, signal.SIGTERM)
