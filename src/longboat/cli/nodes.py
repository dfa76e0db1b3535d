"""`longboat nodes`."""

import click

from longboat.cli.options import format_option

WORDS = {"running": "running", "leaving": "stopping", "gone": "down"}


@click.command(short_help="List the nodes of a cluster.")
@format_option
def nodes(style: str) -> None:
    """List the nodes of a cluster, the servers that share a PostgreSQL database: their state
    (running, stopping or down), workspaces and runs.

    OWNS counts the workspaces that a node works on now, HOME OF those whose directory is on its disk. ACTIVE and QUEUED
    count runs. * marks the node that answered this command.

    \b
    longboat nodes
    longboat nodes --format json | jq -r .name
    """
    from longboat.cli.connection import Connection
    from longboat.cli.console import ago, json_line, one_line, table
    from longboat.client import calls

    found = Connection().send(calls.nodes()).items
    if style == "json":
        for node in found:
            json_line(node)
        return
    head = ("NAME", "STATE", "SEEN", "OWNS", "HOME OF", "ACTIVE", "QUEUED", "VERSION", "URL")
    rows = [
        (
            f"{one_line(node.name)}{' *' if node.answering else ''}",
            WORDS[node.state],
            ago(node.seen_at),
            str(node.owns),
            str(node.home_of),
            str(node.runs_active),
            str(node.runs_waiting),
            one_line(node.version),
            one_line(node.url or "-"),
        )
        for node in found
    ]
    table(head, rows, spare=("SEEN", "VERSION", "URL"))
