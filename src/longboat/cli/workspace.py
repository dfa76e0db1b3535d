"""`longboat workspace`: list workspaces, and move one to another node."""

from typing import TYPE_CHECKING

import click

from longboat.cli.options import format_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longboat.wire.models import Workspace


@click.group(short_help="List workspaces; move one to another node.")
def workspace() -> None:
    """List the workspaces of the server, or of all nodes of its cluster; move one to another node.

    \b
    longboat workspace list
    longboat workspace move /mnt/projects/shop boat-2
    """


@workspace.command("list")
@format_option
def list_workspaces(style: str) -> None:
    """List the workspaces. In a cluster: whose disk has the directory (HOME), and which node works on it now (OWNER).

    \b
    longboat workspace list
    longboat workspace list --format json | jq -r .path
    """
    from longboat.cli.connection import Connection
    from longboat.cli.console import json_line
    from longboat.cli.status import print_workspaces
    from longboat.client import calls

    found = Connection().send(calls.workspaces()).items
    if style == "json":
        for each in found:
            json_line(each)
    elif found:
        print_workspaces(found)
    else:
        click.echo('No workspaces yet. Open one with: longboat run "…"')


@workspace.command("move")
@click.argument("name", metavar="WORKSPACE")
@click.argument("node")
@click.option("--force", is_flag=True, help="Move even if a run is active: it may be interrupted.")
def move(name: str, node: str, force: bool) -> None:
    """Move a workspace to another node. All nodes must share its directory (`server.shared_trees`).

    WORKSPACE is its directory, its id or the beginning of the id. Queued prompts start on the other node. Background
    jobs end. Clients stay connected. While a run is active, the move is refused unless you pass --force: then the run
    has `server.drain_s` seconds to end, and is interrupted or resumed as `on_restart` says.

    \b
    longboat workspace move /mnt/projects/shop boat-2
    """
    from longboat.cli.connection import Connection
    from longboat.cli.console import one_line
    from longboat.client import calls

    connection = Connection()
    found = _meant(name, connection.send(calls.workspaces()).items)
    moved = connection.send(calls.move_workspace(found.id, node, force=force))
    click.echo(f"Moved {one_line(moved.path)} to {one_line(moved.owner or node)}.")


def _meant(name: str, known: "Sequence[Workspace]") -> "Workspace":
    """The workspace of this directory, or with this id or beginning of an id."""
    import os

    from longboat.cli.ids import SHORTEST
    from longboat.cli.main import Failure

    path = os.path.realpath(name)
    for found in (
        [each for each in known if each.path == path or each.id == name],
        [each for each in known if len(name) >= SHORTEST and each.id.startswith(name)],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            raise Failure(f"{name} could be {len(found)} workspaces.", "`longboat workspace list` shows their ids.")
    raise Failure(f"No workspace is at {path}, and none has the id {name}.", "`longboat workspace list` lists them.")
