"""`longboat web`."""

import os
import sys
from html import escape
from pathlib import Path
from urllib.parse import quote

import click

from longboat.cli.main import Failure
from longboat.cli.options import cwd_option, own_name


@click.command(short_help="Open the web page in a browser, logged in.")
@click.option("--no-open", is_flag=True, help="Print the address with its token instead of opening it.")
@cwd_option
def web(no_open: bool, cwd: str) -> None:
    """Open the page of your server in a browser: the same sessions, live. Starts a server if none runs.

    The page is served on this machine alone. For other machines run `longboat serve --host`, best behind a reverse
    proxy with TLS.

    \b
    longboat web
    longboat web --no-open      on a machine without a browser: through an ssh tunnel, for example
    """
    from longboat.cli.background import ensure_server
    from longboat.client import calls

    connection = ensure_server(cwd)
    workspace = connection.join(cwd)
    address = connection.address
    if address.url is None:
        url, token = connection.send(calls.open_web()).url, _token()
    else:
        url, token = address.url, address.token or ""
    # The page offers this name to whom it does not know yet.
    page = f"/#/{workspace.id}?name={quote(f'{own_name()}:web')}"
    link = f"{url}/login?token={quote(token, safe='')}&to={quote(page, safe='')}"
    if not no_open and _opened(link):
        click.echo(f"Opened {url} in your browser.")
    elif no_open or sys.stdout.isatty():
        click.echo(link)
    else:  # the token goes into no log that nobody asked to have it in
        raise Failure("No browser can be opened here.", "`longboat web --no-open` prints the address with its token.")


def _token() -> str:
    """Of the user's own server, which only its user can read."""
    from longboat.client.address import read_discovery

    found = read_discovery(os.environ)
    return found.token if found is not None else ""


def _opened(link: str) -> bool:
    """Whether a browser was told. By a file: on a command line other users of this machine could read the token."""
    import webbrowser

    from longboat.cli.background import private_dir
    from longboat.wire.discovery import runtime_dir

    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False  # a browser in this terminal would hide what is said here
    page: Path = private_dir(runtime_dir(os.environ, os.getuid())) / "open.html"
    page.unlink(missing_ok=True)
    with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(link)}"><title>Longboat</title>')
    return webbrowser.open(page.as_uri())
