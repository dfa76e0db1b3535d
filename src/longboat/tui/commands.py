"""The built-in commands that `/`, the palette and the leader key offer, with their keys. `CommandActions` implements
them; must not know how."""

import re
from dataclasses import dataclass

from longboat.tui.completion import Choice
from longboat.wire.workspace_state import CommandInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    name: str
    description: str
    key: str = ""
    leader: str = ""
    """The key that runs it after the leader key."""
    argument: str = ""
    type_in_full: bool = False
    """The beginning of its name does not run it, even if no other command begins so."""


COMMANDS = (
    Command(name="attach", description="Attach text, an image or a PDF", argument="file"),
    Command(name="cancel", description="Cancel all runs in this session", type_in_full=True),
    Command(name="connect", description="Connect a provider and choose the default model"),
    Command(name="copy", description="Copy the last answer", leader="y"),
    Command(name="diff", description="Review the changes in this session", leader="d"),
    Command(name="editor", description="Edit the prompt in $EDITOR", key="ctrl+o", leader="e"),
    Command(name="effort", description="Set the reasoning effort", argument="low|medium|high"),
    Command(name="expand", description="Expand or collapse all tool calls and reasoning", leader="a"),
    Command(name="export", description="Save this session to a file", leader="x", argument="file"),
    Command(name="find", description="Search this session", key="ctrl+f", leader="/", argument="words"),
    Command(name="fork", description="Continue in a copy of this session", leader="f"),
    Command(name="help", description="Show keys and commands", key="f1", leader="?"),
    Command(name="inbox", description="Show pending requests and finished runs in all workspaces", leader="i"),
    Command(name="model", description="Choose the model", key="ctrl+l", leader="m", argument="name"),
    Command(name="new", description="Start a new session", key="ctrl+n", leader="n"),
    Command(name="plan", description="Turn “Plan first” on or off for prompts from this terminal", leader="l"),
    Command(name="quit", description="Quit; active runs continue", leader="q", type_in_full=True),
    Command(name="redo", description="Redo the last undone turn", leader="r"),
    Command(name="rename", description="Rename this session", argument="title"),
    Command(name="retry", description="Resend a rejected prompt, or retry the last run if it failed", key="ctrl+r"),
    Command(name="sessions", description="List this directory’s sessions", key="ctrl+s", leader="s"),
    Command(name="sidebar", description="Show or hide the sidebar", key="ctrl+t", leader="b"),
    Command(name="summarize", description="Summarize the conversation to free context", leader="c"),
    Command(name="theme", description="Choose the theme: dark, light, auto or another", leader="t", argument="name"),
    Command(name="undo", description="Undo the last turn", leader="u", type_in_full=True),
    Command(name="yolo", description="Turn “Approve all” on or off for prompts from this terminal", type_in_full=True),
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
            description=f"<{command.argument}> {command.description}" if command.argument else command.description,
            whole=not command.argument,
            type_in_full=command.type_in_full,
        )
        for command in COMMANDS
    ]
    theirs = [
        Choice(
            text=f"/{command.name}",
            description=f"{command.argument_hint} {command.description}".strip(),
            whole=not command.argument_hint and not command.arguments,
        )
        for command in project
        if command.name not in BY_NAME
    ]
    return ours + theirs
