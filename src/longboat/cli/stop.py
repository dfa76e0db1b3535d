"""`longboat stop`."""

import click


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
    from longboat.cli.main import Failure
    from longboat.client import calls

    connection = Connection()
    if probe(connection) is None:
        click.echo("No server runs.")
        return
    connection.send(calls.shutdown(if_idle=not force))
    if not wait_until_gone(connection, STOP_S):
        raise Failure(f"The server still answers after {STOP_S:g} s.", "`longboat logs` shows what it does.")
    click.echo("The server has stopped.")
