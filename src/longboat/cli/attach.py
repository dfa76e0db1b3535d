"""`longboat attach`."""

import os

import click

from longboat.cli.options import resolve_directory, session_options


@click.command(short_help="Open the terminal app on another server.")
@click.argument("url", required=False)
@click.option("--token", help="The server's token.  [default: LONGBOAT_TOKEN, or prompt]")
@click.option(
    "--cwd",
    metavar="DIR",
    help="Directory on the server; NODE:/path in a cluster.  [default: choose from those open there]",
)
@session_options
def attach(url: str | None, token: str | None, cwd: str | None, **requested: object) -> None:
    """Open the terminal app on a running server, on this machine or another one, and share its sessions.

    \b
    longboat attach                                   the server at LONGBOAT_URL, or your own
    longboat attach https://box.example.com
    longboat attach https://box.example.com --cwd /srv/project -s 0198c2f4
    """
    from longboat.cli.terminal import RequestedOptions, check_terminal, open_here, open_there

    options = RequestedOptions(**requested)  # type: ignore[arg-type]  # click has checked them
    url = url or os.environ.get("LONGBOAT_URL")
    if url is None:
        open_here(resolve_directory(cwd or "."), options)
        return
    check_terminal()
    _check_answers(url)
    token = token or os.environ.get("LONGBOAT_TOKEN") or _known(url) or click.prompt("Token", hide_input=True)
    open_there(url, _clean(token), cwd, options)


def _clean(token: str) -> str:
    """The token as pasted, without surrounding white space. It is never shown."""
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        raise click.UsageError("Not a valid token: tokens contain only printable ASCII characters.")
    return token


def _check_answers(url: str) -> None:
    """Fail if no server answers, before asking for a token: this check needs none."""
    from longboat.cli.connection import Connection
    from longboat.cli.main import Failure
    from longboat.client import calls
    from longboat.client.address import Address, find
    from longboat.errors import ServerUnreachable

    try:
        Connection(Address(url=find(url=url).url)).send(calls.health())
    except ServerUnreachable as nobody:
        hint = "Check the address, and that a server was started there with `longboat serve --host`."
        raise Failure(nobody.message, hint) from nobody


def _known(url: str) -> str | None:
    """The token of the user's own server, if `url` is its address."""
    from longboat.client.address import find

    return find(url=url).token
