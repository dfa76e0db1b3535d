"""`longboat version`."""

import click


@click.command(short_help="Show the versions of this command and of the server.")
def version() -> None:
    """Show the versions of this command and of the server, if one is running.

    \b
    longboat version
    """
    from longboat import __version__
    from longboat.cli.background import probe
    from longboat.cli.connection import Connection
    from longboat.cli.status import nobody
    from longboat.wire.models import PROTOCOL

    connection = Connection()
    click.echo(f"longboat {__version__} (protocol {PROTOCOL})")
    running = probe(connection)
    if running is None:
        click.echo(nobody(connection.address))
    else:
        click.echo(f"server   {running.version} (protocol {running.protocol}) at {connection.address}")
