"""The built-in commands that `/`, the palette and the leader key offer, with their keys. `CommandActions` implements
them; must not know how."""

import re
from dataclasses import dataclass

from longboat.tui.completion import Choice
from longboat.wire.workshop import CommandInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    name: str
    told: str
    key: str = ""
    leader: str = ""
    """The key that runs it after the leader key."""
    argument: str = ""
    grave: bool = False


COMMANDS = (
    Command(name="attach", told="Attach text, an image or a PDF", argument="file"),
    Command(name="cancel", told="Cancel all runs in this session", grave=True),
    Command(name="connect", told="Connect a provider and choose the default model"),
    Command(name="copy", told="Copy the last answer", leader="y"),
    Command(name="diff", told="Review the changes in this session", leader="d"),
    Command(name="editor", told="Edit the prompt in $EDITOR", key="ctrl+o", leader="e"),
    Command(name="effort", told="Set the reasoning effort", argument="low|medium|high"),
    Command(name="expand", told="Expand or collapse all tool calls and reasoning", leader="a"),
    Command(name="export", told="Save this session to a file", leader="x", argument="file"),
    Command(name="find", told="Search this session", key="ctrl+f", leader="/", argument="words"),
    Command(name="fork", told="Continue in a copy of this session", leader="f"),
    Command(name="help", told="Show keys and commands", key="f1", leader="?"),
    Command(name="inbox", told="Show pending requests and finished runs in all workspaces", leader="i"),
    Command(name="model", told="Choose the model", key="ctrl+l", leader="m", argument="name"),
    Command(name="new", told="Start a new session", key="ctrl+n", leader="n"),
    Command(name="plan", told="Turn “Plan first” on or off for prompts from this terminal", leader="l"),
    Command(name="quit", told="Quit; active runs continue", leader="q", grave=True),
    Command(name="redo", told="Redo the last undone turn", leader="r"),
    Command(name="rename", told="Rename this session", argument="title"),
    Command(name="retry", told="Resend a rejected prompt, or retry the last run if it failed", key="ctrl+r"),
    Command(name="sessions", told="List this directory’s sessions", key="ctrl+s", leader="s"),
    Command(name="sidebar", told="Show or hide the sidebar", key="ctrl+t", leader="b"),
    Command(name="summarize", told="Summarize the conversation to free context", leader="c"),
    Command(name="theme", told="Choose the theme: dark, light, auto or another", leader="t", argument="name"),
    Command(name="undo", told="Undo the last turn", leader="u", grave=True),
    Command(name="yolo", told="Turn “Approve all” on or off for prompts from this terminal", grave=True),
)
BY_NAME = {command.name: command for command in COMMANDS}


_CALLED = re.compile(r"/([\w:.-]+)(?:\s|$)")


def command_in(text: str) -> str:
    """The name of the command that a prompt calls; empty if it calls none. A path is not a command."""
    called = _CALLED.match(text)
    return called[1] if called is not None else ""


def choices(project: tuple[CommandInfo, ...]) -> list[Choice]:
    """The commands that `/` offers: the built-in ones, then the project's."""
    ours = [
        Choice(
            text=f"/{command.name}",
            told=f"<{command.argument}> {command.told}" if command.argument else command.told,
            whole=not command.argument,
            grave=command.grave,
        )
        for command in COMMANDS
    ]
    theirs = [
        Choice(
            text=f"/{command.name}",
            told=f"{command.argument_hint} {command.description}".strip(),
            whole=not command.argument_hint and not command.arguments,
        )
        for command in project
        if command.name not in BY_NAME
    ]
    return ours + theirs
