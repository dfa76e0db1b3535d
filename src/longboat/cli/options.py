"""Options that many commands share, and the workspace that they name."""

import getpass
import os
import re
import shlex
from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def cwd_option(command: Command) -> Command:
    return click.option(
        "--cwd",
        type=click.Path(exists=True, file_okay=False),
        default=".",
        metavar="DIR",
        callback=lambda _, __, path: os.path.realpath(path),
        help="The directory to work in.  [default: the current one]",
    )(command)


def elsewhere(cwd: str) -> str:
    """The option by which a command that is to be copied names a directory other than the current one."""
    return "" if cwd == os.path.realpath(".") else f" --cwd {shlex.quote(cwd)}"


def format_option(command: Command) -> Command:
    return click.option(
        "--format",
        "style",
        type=click.Choice(["text", "json"]),
        default="text",
        help="text for people, json for programs.  [default: text]",
    )(command)


def events_option(command: Command) -> Command:
    return click.option(
        "--format",
        "style",
        type=click.Choice(["text", "json"]),
        default="text",
        help="text, or json: one line per event.  [default: text]",
    )(command)


def hand_down(ctx: click.Context) -> None:
    """What was given before the name of a subcommand holds for it too, unless it is given once more behind it."""
    assert isinstance(ctx.command, click.Group)
    ctx.default_map = {name: dict(ctx.params) for name in ctx.command.commands}


def wishes_options(command: Command) -> Command:
    """What can be wished of a session in the terminal app; the names are those of `terminal.Wishes`."""
    options = (
        click.option("-s", "--session", metavar="ID", help="Open this session."),
        click.option("-c", "--continue", "last", is_flag=True, help="Open the session that was used last here."),
        click.option("-m", "--model", metavar="PROVIDER/MODEL", help="Use this model for your prompts."),
        click.option("--effort", type=click.Choice(["low", "medium", "high"]), help="How much the model is to think."),
        click.option("--yolo", is_flag=True, help="Allow your runs everything that no rule denies, without asking."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def own_name() -> str:
    """Who answers, as others see it: the user's name in the characters an id may have."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "somebody"
    return re.sub(r"[^A-Za-z0-9._:-]", "-", name)[:64] or "somebody"
