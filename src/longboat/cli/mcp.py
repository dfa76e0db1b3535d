"""`longboat mcp`: list a directory's MCP servers and their prompts, and log in to them."""

import sys
from typing import TYPE_CHECKING

import click

from longboat.cli.console import json_line, one_line, safe, table
from longboat.cli.options import cwd_option, format_option
from longboat.wire.workspace_state import CommandInfo, McpEvent

if TYPE_CHECKING:
    from longboat.cli.connection import Connection


@click.group(invoke_without_command=True, short_help="List the MCP servers and their state; log in to one.")
@format_option
@cwd_option
@click.pass_context
def mcp(ctx: click.Context, style: str, cwd: str) -> None:
    """List the MCP servers configured for this directory, their state and their prompts; log in to one.

    Use a prompt with `longboat run "/SERVER:PROMPT arguments"`.

    \b
    longboat mcp
    longboat mcp login tickets
    """
    if ctx.invoked_subcommand is None:
        _list(style, cwd)


@mcp.command("login")
@click.argument("server", metavar="NAME")
@click.argument("redirect_url", metavar="[URL]", required=False)
@cwd_option
def login(server: str, redirect_url: str | None, cwd: str) -> None:
    """Log in to an MCP server: prints the page to open.

    A browser on the Longboat server's machine completes the login automatically. A browser elsewhere ends up at an
    address on 127.0.0.1 that it cannot load: paste that address here, or pass it as URL.

    \b
    longboat mcp login tickets
    longboat mcp login tickets 'http://127.0.0.1:40123/callback?code=…&state=…'
    """
    from longboat.cli.background import ensure_server
    from longboat.client import calls

    connection = ensure_server(cwd)
    workspace_id = connection.join(cwd).id
    told = connection.send(calls.mcp_login(workspace_id, server, redirect_url))
    if redirect_url is None and told.authorization_url is not None:
        click.echo(f"To log in to {safe(server)}, open {safe(told.authorization_url)}")
        if not sys.stdin.isatty():
            click.echo("If the browser cannot load the last page, pass its address to this command as URL.", err=True)
            return
        told = _finish(connection, workspace_id, server)
    _tell(told)


def _finish(connection: "Connection", workspace_id: str, server: str) -> McpEvent:
    from longboat.client import calls

    question = "Then paste the address the browser ended up at (or press Enter if it says you are logged in)"
    address: str = click.prompt(question, default="", show_default=False).strip()
    return connection.send(calls.mcp_login(workspace_id, server, address or None))


def _tell(server: McpEvent) -> None:
    from longboat.cli.main import Failure

    if server.authorization_url is not None:
        raise Failure(f"The login to {one_line(server.server)} is not complete.", "Open the page and log in first.")
    if server.phase == "failed":
        reason = one_line(server.reason)
        raise Failure(f"{one_line(server.server)} failed: {reason}", "Try again with `longboat mcp login`.")
    click.echo(f"{one_line(server.server)} is {one_line(server.phase)}")


def _list(style: str, cwd: str) -> None:
    from longboat.cli.background import ensure_server
    from longboat.client import calls

    connection = ensure_server(cwd)
    workspace_id = connection.join(cwd).id
    page = connection.send(calls.mcp(workspace_id))
    if style == "json":
        for server in page.items:
            json_line(server)
    elif page.items:
        table(("SERVER", "STATE", "OFFERS"), [_row(server) for server in page.items])
        _list_prompts(connection.send(calls.skills(workspace_id)).commands)
        for server in page.items:
            if server.authorization_url is not None:
                name, page_to_open = safe(server.server), safe(server.authorization_url)
                click.echo(f"\nTo log in to {name}, run longboat mcp login {name}, or open {page_to_open}")
    else:
        click.echo("No MCP servers are configured in longboat.json.")


def _list_prompts(commands: tuple[CommandInfo, ...]) -> None:
    rows = [
        (one_line(f"/{each.name} {each.argument_hint}"), one_line(each.description))
        for each in commands
        if each.server is not None
    ]
    if rows:
        click.echo()
        table(("PROMPT", "DESCRIPTION"), rows)


def _row(server: McpEvent) -> tuple[str, str, str]:
    offers = (("tools", server.tools), ("prompts", server.prompts), ("resources", server.resources))
    told = ", ".join(f"{count} {what}" for what, count in offers if count)
    return one_line(server.server), one_line(server.phase), told or one_line(server.reason)
