"""`longboat mcp`: the MCP servers of a directory."""

import click

from longboat.cli.console import json_line, one_line, safe, table
from longboat.cli.options import cwd_option, format_option
from longboat.wire.models import McpEvent


@click.command(short_help="List the MCP servers and how they are doing.")
@format_option
@cwd_option
def mcp(style: str, cwd: str) -> None:
    """List the MCP servers that longboat.json names for this directory, and how they are doing.

    \b
    longboat mcp
    """
    from longboat.cli.background import ensure_server
    from longboat.client import calls

    connection = ensure_server(cwd)
    page = connection.send(calls.mcp(connection.join(cwd).id))
    if style == "json":
        for server in page.items:
            json_line(server)
    elif page.items:
        table(("SERVER", "STATE", "OFFERS"), [_row(server) for server in page.items])
        for server in page.items:
            if server.authorization_url is not None:
                click.echo(f"\nTo log in to {safe(server.server)}, open {safe(server.authorization_url)}")
    else:
        click.echo("No MCP servers: longboat.json names none.")


def _row(server: McpEvent) -> tuple[str, str, str]:
    offers = (("tools", server.tools), ("prompts", server.prompts), ("resources", server.resources))
    told = ", ".join(f"{count} {what}" for what, count in offers if count)
    return one_line(server.server), one_line(server.phase), told or one_line(server.reason)
