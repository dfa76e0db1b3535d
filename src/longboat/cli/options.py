"""Options that many commands share."""

import getpass
import os
import re
import shlex
from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def resolve_directory(path: str) -> str:
    """As the server knows it. `NODE:/path`, on a node of a cluster, is for that node to resolve."""
    return path if _is_on_node(path) else os.path.realpath(path)


def _is_on_node(path: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9._-]+:/.*", path) is not None


class _Directory(click.Path):
    """A directory here, or `NODE:/path`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        path = os.fspath(value)
        return resolve_directory(path if _is_on_node(path) else str(super().convert(path, param, ctx)))


def cwd_option(command: Command) -> Command:
    return click.option(
        "--cwd",
        type=_Directory(exists=True, file_okay=False),
        default=".",
        metavar="DIR",
        help="Directory to work in; NODE:/path for one on a node of a cluster.  [default: the current one]",
    )(command)


def local_cwd_option(command: Command) -> Command:
    return click.option(
        "--cwd",
        type=click.Path(exists=True, file_okay=False),
        default=".",
        metavar="DIR",
        callback=lambda _, __, path: os.path.realpath(path),
        help="Directory to work in.  [default: the current one]",
    )(command)


def elsewhere(cwd: str) -> str:
    """The --cwd option to add to a suggested command, unless `cwd` is the current directory."""
    return "" if cwd == os.path.realpath(".") else f" --cwd {shlex.quote(cwd)}"


def everywhere_option(command: Command) -> Command:
    return click.option("--all", "everywhere", is_flag=True, help="Include all workspaces on this server.")(command)


def format_option(command: Command) -> Command:
    return click.option(
        "--format",
        "style",
        type=click.Choice(["text", "json"]),
        default="text",
        help="Output format: text for people, json for programs.  [default: text]",
    )(command)


def events_option(command: Command) -> Command:
    return click.option(
        "--format",
        "style",
        type=click.Choice(["text", "json"]),
        default="text",
        help="Output format: text, or json with one event per line.  [default: text]",
    )(command)


def hand_down(ctx: click.Context) -> None:
    """Make options given before a subcommand's name its defaults; the same option after the name wins."""
    assert isinstance(ctx.command, click.Group)
    ctx.default_map = {name: dict(ctx.params) for name in ctx.command.commands}


def session_options(command: Command) -> Command:
    """The session options of the terminal app; their names match the fields of `terminal.RequestedOptions`."""
    options = (
        click.option("-s", "--session", metavar="ID", help="Open this session."),
        click.option("-c", "--continue", "last", is_flag=True, help="Open the last session used in this directory."),
        click.option("-m", "--model", metavar="PROVIDER/MODEL", help="Use this model for your prompts."),
        click.option("--effort", type=click.Choice(["low", "medium", "high"]), help="Reasoning effort."),
        click.option("--yolo", is_flag=True, help="Approve all: allow everything that no rule denies, without asking."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def own_name() -> str:
    """The client id that others see: the user's name, limited to the characters an id may have."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "somebody"
    return re.sub(r"[^A-Za-z0-9._:-]", "-", name)[:64] or "somebody"
