"""`longboat models`."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longboat.cli.options import cwd_option, format_option

if TYPE_CHECKING:
    from longboat.models.registry import Overview
    from longboat.models.weights import FetchProgress


@click.group(short_help="Show the configured models; fetch the local one.", invoke_without_command=True)
@format_option
@cwd_option
@click.pass_context
def models(ctx: click.Context, style: str, cwd: str) -> None:
    """Show which models are configured for this directory, and what is missing for the others.

    \b
    longboat models
    longboat models pull        fetch the small model that runs on this machine
    """
    if ctx.invoked_subcommand is not None:
        return
    from longboat.cli.console import json_page

    overview = describe(cwd)
    if style == "json":
        json_page(overview)
    else:
        _print(overview)


@models.command("pull")
@click.option("--data-dir", type=click.Path(file_okay=False), metavar="DIR", help="Where the weights are kept.")
def pull_weights(data_dir: str | None) -> None:
    """Fetch the local model's weights (93 MB, checked against a known hash), unless they are here.

    \b
    longboat models pull
    """
    import asyncio

    from longboat.models.weights import pull
    from longboat.wire import discovery

    target = Path(data_dir) if data_dir else discovery.data_dir(os.environ, Path.home())
    progress = _Progress()
    try:
        path = asyncio.run(pull(target.absolute(), progress.show))
    finally:
        progress.close()
    click.echo(f"The local model is here: {path}")


def describe(cwd: str) -> "Overview":
    """What is configured for a directory, as a server with this environment would see it."""
    from longboat.config.load import load_config
    from longboat.models.registry import Registry
    from longboat.wire import discovery

    config = load_config(Path(cwd), environ=os.environ, user_dir=Path.home())
    return Registry(config, os.environ, data_dir=discovery.data_dir(os.environ, Path.home())).describe()


def _print(overview: "Overview") -> None:
    from longboat.cli.console import table

    rows = [
        (each.name, "ready" if each.problem is None else "-", ", ".join(each.models) or "-", each.problem or "")
        for each in overview.providers
    ]
    table(("PROVIDER", "STATE", "MODELS", "TO DO"), rows)
    click.echo()
    if overview.problem is not None:
        click.echo(overview.problem)
    else:
        click.echo(f"Prompts go to {overview.large}; titles are written by {overview.small}.")


class _Progress:
    """One line that changes on a terminal; a few lines elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._said: object = None

    def show(self, progress: "FetchProgress") -> None:
        if self._live:
            click.echo(f"\r\x1b[K{progress}", nl=False, err=True)
            return
        step = (progress.stage, progress.done * 4 // max(progress.total, 1))
        if step != self._said:
            self._said = step
            click.echo(str(progress), err=True)

    def close(self) -> None:
        if self._live:
            click.echo(err=True)
