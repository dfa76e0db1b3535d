"""`longboat nodes`."""

import click

from longboat.cli.options import format_option


@click.command(short_help="List the servers that share a database.")
@format_option
def nodes(style: str) -> None:
    """List the servers that share a PostgreSQL database: their state, and how many workspaces each has.

    WORKING ON counts the workspaces that a server works on now, DIRECTORIES those whose directory is on its disk.

    \b
    longboat nodes
    longboat nodes --format json | jq -r .name
    """
    from longboat.cli.connection import Connection
    from longboat.cli.console import json_line, one_line, table
    from longboat.client import calls

    found = Connection().send(calls.nodes()).items
    if style == "json":
        for node in found:
            json_line(node)
        return
    if not found:
        click.echo("This server has its database to itself.")
        return
    head = ("NAME", "STATE", "WORKING ON", "DIRECTORIES", "VERSION", "URL")
    rows = [
        (
            f"{one_line(node.name)}{' *' if node.answering else ''}",
            node.state,
            str(node.owned),
            str(node.homes),
            one_line(node.version),
            one_line(node.url),
        )
        for node in found
    ]
    table(head, rows, spare=("VERSION", "URL"))
