"""`longboat attach`."""

import os

import click

from longboat.cli.options import wishes_options


@click.command(short_help="Open the terminal app on a server elsewhere.")
@click.argument("url", required=False)
@click.option("--token", help="The server's token.  [default: LONGBOAT_TOKEN, or you are asked]")
@click.option("--cwd", metavar="DIR", help="The directory on the server.  [default: the one that is open there]")
@wishes_options
def attach(url: str | None, token: str | None, cwd: str | None, **wishes: object) -> None:
    """Open the terminal app on a running server, on this machine or on another one, and share its sessions.

    \b
    longboat attach                                   the server of LONGBOAT_URL, or your own
    longboat attach https://box.example.com
    longboat attach https://box.example.com --cwd /srv/project -s 0198c2f4
    """
    from longboat.cli.terminal import Wishes, check_terminal, open_here, open_there

    wished = Wishes(**wishes)  # type: ignore[arg-type]  # click has checked them
    url = url or os.environ.get("LONGBOAT_URL")
    if url is None:
        open_here(os.path.realpath(cwd or "."), wished)
        return
    check_terminal()
    token = token or os.environ.get("LONGBOAT_TOKEN") or _known(url) or click.prompt("Token", hide_input=True)
    open_there(url, token, cwd, wished)


def _known(url: str) -> str | None:
    """The token of the user's own server, if that is the one which is meant."""
    from longboat.client.address import find

    return find(url=url).token
