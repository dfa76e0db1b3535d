"""`longboat trust`: review what a project's longboat.json asks for, and trust it."""

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from longboat.config.demands import Demand
    from longboat.config.load import Review

MASK = "***"

_KEY_HEADER = re.compile(r"(?:.*[-_])?(?:authorization|auth|(?:api)?key|token|secret|password|cookie)", re.I | re.S)
"""Headers that hold a key, by the end of their name: `X-Api-Key`, but not `X-Api-Key-Goes-To`."""
_CREDENTIALS = re.compile(r"(?<=://)[^/\\?#\s]*(?=@)")


@click.command(short_help="Review a project's longboat.json and trust it.")
@click.argument("directory", metavar="[DIR]", default=".", type=click.Path(file_okay=False, resolve_path=True))
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--list", "listing", is_flag=True, help="List the trusted directories.")
@click.option("--forget", "forgetting", is_flag=True, help="Stop trusting DIR.")
def trust(directory: str, yes: bool, listing: bool, forgetting: bool) -> None:
    """Show which extra rights DIR's longboat.json asks for, and trust it as it is now.

    Until you trust the file, it cannot send data to its own addresses, use your keys or run anything. If the file
    changes, you have to trust it again.

    \b
    longboat trust                  the current directory
    longboat trust --list
    longboat trust --forget DIR
    """
    if listing and forgetting:
        raise click.UsageError("Use --list or --forget, not both.")
    if listing:
        _list()
    elif forgetting:
        _forget(Path(directory))
    else:
        _trust(Path(directory), yes=yes)


def _trust(directory: Path, *, yes: bool) -> None:
    from longboat.cli.main import Failure
    from longboat.config.trust import TrustState, record

    found = _review(directory)
    if not found.file.exists():
        raise Failure(f"There is no {_display_path(found.file)}.", "Give the directory: longboat trust DIR")
    if found.trust_state is TrustState.HARMLESS:
        click.echo(f"{_display_path(found.file)} asks for nothing that needs trust.")
        return
    _print(found)
    if found.trust_state is TrustState.TRUSTED:
        click.echo("This file is trusted.")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise Failure("Cannot ask for confirmation without a terminal.", "In a script, use --yes.")
        click.confirm("Trust this file as it is now?", abort=True, err=True)
    record(_record_file(), directory, found.digest)
    click.echo("Trusted, until the file changes.")


def _print(found: "Review") -> None:
    from longboat.config.source import format_path
    from longboat.config.trust import TrustState

    changed = " has changed since you trusted it. It" if found.trust_state is TrustState.CHANGED else ""
    click.echo(f"{_display_path(found.file)}{changed} asks for:\n")
    for demand in found.demands:
        # Escaped, and never shortened: a person must see exactly what they are asked to trust.
        value = json.dumps(mask_keys(demand))
        click.echo(f"  {click.style(format_path(demand.path), bold=True)}: {value}\n      {demand.why}")
    click.echo()


def mask_keys(demand: "Demand") -> Any:
    """The value without literal keys. References stay, because they show which variables would be sent.

    Only keys of providers are masked: the values of a command decide what it does. And only headers that are keys by
    name: any other header may tell a gateway where to send the user's key.
    """
    match demand.path, demand.value:
        case ("providers", _, "api_key"), str(value):
            return _references_of(value)
        case ("providers", _, "headers", str(name)), str(value) if _KEY_HEADER.fullmatch(name):
            return _references_of(value)
        case ("providers", _, "base_url"), str(value):
            return _CREDENTIALS.sub(lambda found: _references_of(found[0]), value)
        case _:
            return demand.value


def _references_of(text: str) -> str:
    """The text with its literal parts masked."""
    from longboat.config.references import REFERENCE

    shown, at = "", 0
    for match in REFERENCE.finditer(text):
        if match["dollar"] is None:
            shown += (MASK if match.start() > at else "") + match[0]
            at = match.end()
    return shown + (MASK if at < len(text) else "")


def _list() -> None:
    from longboat.cli.console import table
    from longboat.config.trust import TrustState, recorded
    from longboat.errors import ConfigInvalid

    def state(directory: str) -> str:
        try:
            return str(_review(Path(directory)).trust_state)
        except ConfigInvalid:  # it was valid when it was trusted, so it has changed
            return str(TrustState.CHANGED)

    directories = sorted(recorded(_record_file()))
    if directories:
        table(("STATE", "DIRECTORY"), [(state(directory), _display_path(directory)) for directory in directories])
    else:
        click.echo("No directories are trusted.")


def _forget(directory: Path) -> None:
    from longboat.config.trust import forget

    known = forget(_record_file(), directory)
    click.echo(f"{_display_path(directory)} {'is no longer trusted' if known else 'was not trusted'}.")


def _review(directory: Path) -> "Review":
    from longboat.config.load import review

    return review(directory, environ=os.environ, user_dir=Path.home())


def _record_file() -> Path:
    from longboat.config.load import user_config_file
    from longboat.config.trust import trusted_file

    return trusted_file(user_config_file(os.environ, Path.home()))


def _display_path(path: Path | str) -> str:
    from longboat.cli.console import safe

    return safe(click.format_filename(path))
