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
@click.option("--force", is_flag=True, help="Also when runs are unfinished: they are interrupted; queued ones stay.")
def stop(force: bool) -> None:
    """Stop the server if it is idle.

    \b
    longboat stop
    longboat stop --force
    """
    from longboat.cli.background import STOP_S, probe, wait_until_gone
    from longboat.cli.connection import Connection
    from longboat.client import calls

    connection = Connection()
    if probe(connection) is None:
        click.echo(f"No server answers at {connection.address}." if naming_variable() else "No server runs.")
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
            click.echo(f"Waiting for what runs in {where}: up to {drain_s:g} s, then it is interrupted.", err=True)
            click.echo("(Ctrl-C interrupts it now.)", err=True)
        gone = wait_until_gone(connection, drain_s + STOP_S)
    except KeyboardInterrupt:
        _hurry()
        gone = wait_until_gone(connection, STOP_S)
    if not gone:
        raise Failure("The server still answers.", "`longboat logs` shows what it does.")
    click.echo("The server has stopped.")


def _unfinished(busy: Sequence[str]) -> Failure:
    """Where something runs: the server may have many directories open, and this may be none of them."""
    where, there = (f" in {safe(', '.join(busy))}", elsewhere(busy[0])) if busy else ("", "")
    hint = f"`longboat runs{there} --state active` shows what runs; `longboat stop --force` stops it anyway."
    return Failure(f"A run is unfinished{where}: wait for it, or cancel it.", hint)


def _drain_s() -> float:
    """How long the user's own server lets active runs go on; where another was named, about as long."""
    from longboat.config.load import load_user_config
    from longboat.config.settings import ServerSection

    try:
        return load_user_config(environ=os.environ, user_dir=Path.home()).server.drain_s
    except LongboatError:
        return ServerSection().drain_s


def _hurry() -> None:
    """The second signal of a server on this machine skips the drain; any other is left to itself."""
    from longboat.client.address import read_discovery

    found = read_discovery(os.environ)
    if found is None or naming_variable():
        raise KeyboardInterrupt
    os.kill(found.pid, signal.SIGTERM)
