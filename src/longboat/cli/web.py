"""`longboat web`."""

import os
import sys
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from longboat.cli.main import Failure
from longboat.cli.options import cwd_option, own_name

if TYPE_CHECKING:
    from longboat.client.address import Address


@click.command(short_help="Open the web page in a browser, logged in.")
@click.option("--no-open", is_flag=True, help="Print the address (with the token) instead of opening it.")
@cwd_option
def web(no_open: bool, cwd: str) -> None:
    """Open your server's web page in a browser, with the same live sessions. Starts a server if none is running.

    The page is only reachable from this machine. For other machines use `longboat serve --host`, preferably behind a
    reverse proxy with TLS.

    \b
    longboat web
    longboat web --no-open      without a browser on this machine, for example through an ssh tunnel
    """
    from longboat.cli.background import ensure_server
    from longboat.client import calls

    connection = ensure_server(cwd)
    workspace = connection.join(cwd)
    address = connection.address
    if address.url is None:
        url, token = connection.send(calls.open_web()).url, _token(address)
    else:
        url, token = address.url, address.token or ""
    # The page suggests this name to a new visitor.
    page = f"/#/{workspace.id}?name={quote(own_name())}"
    link = f"{url}/login?token={quote(token, safe='')}&to={quote(page, safe='')}"
    if not no_open and _opened(link):
        click.echo(f"Opened {url} in your browser.")
    elif no_open or sys.stdout.isatty():
        click.echo(link)
    else:  # never write the token to a log unasked
        raise Failure("Cannot open a browser here.", "`longboat web --no-open` prints the address with the token.")


def _token(address: "Address") -> str:
    """The token of the server at this socket, from its discovery file, which only its user can read."""
    from longboat.cli.data_dirs import running_server

    found = running_server()
    token = found.token if found is not None else address.token
    if not token:
        raise Failure(f"Cannot find the token of the server at {address}.", "Set LONGBOAT_TOKEN to its token.")
    return token


def _opened(link: str) -> bool:
    """Open a browser and return whether that worked. Uses a file, because other users can read command lines."""
    import webbrowser

    from longboat.cli.background import private_dir
    from longboat.wire.discovery import runtime_dir

    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False  # a text browser would take over this terminal
    page: Path = private_dir(runtime_dir(os.environ, os.getuid())) / "open.html"
    page.unlink(missing_ok=True)
    with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(link)}"><title>Longboat</title>')
    return webbrowser.open(page.as_uri())
