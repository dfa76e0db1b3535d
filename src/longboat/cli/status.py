"""`longboat status`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from longboat.cli.options import format_option
from longboat.wire.ids import describe_people

if TYPE_CHECKING:
    from longboat.client.address import Address
    from longboat.wire.models import Health, Workspace


@click.command(short_help="Show the server and its workspaces.")
@format_option
@click.pass_context
def status(ctx: click.Context, style: str) -> None:
    """Show whether a server is running, its address and its open workspaces. Exit code 1 if none is running.

    \b
    longboat status
    longboat status --format json
    """
    from longboat.cli.background import probe
    from longboat.cli.connection import Connection
    from longboat.cli.console import json_line
    from longboat.client import calls

    connection = Connection()
    running = probe(connection)
    if running is None:
        if style == "json":
            json_line({"running": False})
        else:
            click.echo(nobody(connection.address))
        ctx.exit(1)
    health = connection.send(calls.health())
    workspaces = connection.send(calls.workspaces()).items
    if style == "json":
        json_line({"running": True, "version": running, "health": health, "workspaces": workspaces})
        return
    click.echo(f"server {running.version} at {connection.address}: {health_told(health)}")
    if workspaces:
        print_workspaces(workspaces)


def print_workspaces(workspaces: "Sequence[Workspace]") -> None:
    from longboat.cli.console import notice, one_line, table

    several = any(each.home or each.owner for each in workspaces)
    head = ("STATE", "CONNECTED", *(("HOME", "OWNER") if several else ()), "WORKSPACE")
    table(head, [_row(each, several=several) for each in workspaces], spare=("OWNER", "HOME"))
    for home, words in dict.fromkeys((each.home, _absence(each)) for each in workspaces if each.away):
        notice(f"Node {one_line(home or '')} {words}. Prompts for its directories are queued until it is back.")


def _absence(workspace: "Workspace") -> str:
    """Such as `has been down for 5 min (since 14:03)`."""
    from longboat.cli.console import elapsed, since

    if workspace.home_stopping:
        return "is stopping"
    if workspace.away_since is None:
        return "is down"
    return f"has been down for {elapsed(workspace.away_since, None)} (since {since(workspace.away_since)})"


def _row(workspace: "Workspace", *, several: bool) -> tuple[str, ...]:
    """`several`: more than one server works on the workspaces."""
    from longboat.cli.console import one_line

    people = ", ".join(describe_people(client.client_id for client in workspace.clients))
    absent = "stopping" if workspace.home_stopping else "down" if workspace.away else ""
    state = absent or ("busy" if workspace.busy else "idle")
    nodes = (one_line(workspace.home or "(shared)"), one_line(workspace.owner or "-")) if several else ()
    return state, one_line(people) or "-", *nodes, one_line(workspace.path)


def nobody(address: "Address") -> str:
    """The message that no server answers, with advice."""
    from longboat.cli.main import naming_variable

    if name := naming_variable():
        return f"No server answers at {address}: start it, or unset {name} to use your own."
    return 'No server is running. Start one with: longboat run "…"'


def health_told(health: "Health") -> str:
    status = "stopping" if health.status == "leaving" else health.status
    return f"{status}: {health.detail}" if health.detail else status
