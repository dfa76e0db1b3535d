"""`longboat logs`."""

import time
from pathlib import Path
from typing import IO

import click

from longboat.regular_files import opener

POLL_S = 0.25


@click.command(short_help="Show the background server's log.")
@click.option("-f", "--follow", is_flag=True, help="Follow the log until Ctrl-C.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(0),
    default=50,
    show_default=True,
    help="Number of lines to show, from the end.",
)
def logs(follow: bool, lines: int) -> None:
    """Show the log of the background server.

    \b
    longboat logs
    longboat logs -f
    """
    from longboat.cli.background import log_file

    path = log_file()
    if not path.exists():
        click.echo(f"No log yet: {path} does not exist. (A server in the foreground logs to its terminal.)", err=True)
        return
    with open(path, errors="replace", opener=opener) as file:
        click.echo("".join(file.readlines()[-lines:] if lines else []), nl=False)
        if follow:
            _follow(path, file)


def _follow(path: Path, file: IO[str]) -> None:
    """Print new lines; reopen the log if it was moved or truncated."""
    while True:
        if text := file.read():
            click.echo(text, nl=False)
            continue
        time.sleep(POLL_S)
        if path.exists() and path.stat().st_size < file.tell():
            with open(path, errors="replace", opener=opener) as anew:
                return _follow(path, anew)
