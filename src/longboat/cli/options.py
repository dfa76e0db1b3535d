"""Options that many commands share, and the workspace that they name."""

import getpass
import os
import re
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


def own_name() -> str:
    """Who answers, as others see it: the user's name in the characters an id may have."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "somebody"
    return re.sub(r"[^A-Za-z0-9._:-]", "-", name)[:64] or "somebody"
