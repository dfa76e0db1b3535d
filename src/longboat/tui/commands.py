"""The built-in commands that `/` and the palette offer. `CommandActions` implements them; must not know how."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from longboat.tui.completion import Choice
from longboat.wire.workshop import CommandInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    name: str
    told: str
    key: str = ""
    argument: str = ""
    grave: bool = False


COMMANDS = (
    Command(name="attach", told="Attach text, an image or a PDF", argument="file"),
    Command(name="cancel", told="Cancel all runs of this session", grave=True),
    Command(name="connect", told="Connect a provider and choose the default model"),
    Command(name="copy", told="Copy the last answer"),
    Command(name="diff", told="Show this session's file changes"),
    Command(name="editor", told="Write the prompt in $EDITOR", key="ctrl+o"),
    Command(name="effort", told="Set the reasoning effort", argument="low|medium|high"),
    Command(name="export", told="Save this session to a file", argument="file"),
    Command(name="fork", told="Continue in a copy of this session"),
    Command(name="help", told="Show keys and commands", key="f1"),
    Command(name="model", told="Choose the model", key="ctrl+l", argument="name"),
    Command(name="new", told="Start a new session", key="ctrl+n"),
    Command(name="quit", told="Quit; active runs continue", grave=True),
    Command(name="redo", told="Restore the turn that was undone last"),
    Command(name="rename", told="Rename this session", argument="title"),
    Command(name="retry", told="Resend rejected prompts", key="ctrl+r"),
    Command(name="sessions", told="List the sessions in this directory", key="ctrl+s"),
    Command(name="summarize", told="Summarize the conversation to free context"),
    Command(name="theme", told="Choose the theme: dark, light, auto or another", argument="name"),
    Command(name="todos", told="Show or hide the plan, clients and jobs", key="ctrl+t"),
    Command(name="undo", told="Undo the last turn", grave=True),
    Command(name="yolo", told="Turn automatic approval on or off for prompts from this terminal", grave=True),
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


class Palette(CommandPalette):
    """Textual's palette, but keys that arrive before its list is drawn are ignored instead of failing."""

    def _action_command_list(self, action: str) -> None:
        if self.query_one(CommandList).scrollable_content_region:
            super()._action_command_list(action)


class CommandProvider(Provider):
    """The built-in commands in the palette."""

    async def discover(self) -> Hits:
        for command in COMMANDS:
            yield DiscoveryHit(_shown(command), self._doing(command), text=command.name, help=command.told)

    async def search(self, query: str) -> AsyncIterator[Hit]:
        matcher = self.matcher(query)
        for command in COMMANDS:
            if (score := matcher.match(f"{command.name} {command.told}")) > 0:
                yield Hit(score, _shown(command), self._doing(command), text=command.name, help=command.told)

    def _doing(self, command: Command) -> "_Doing":
        return _Doing(self.app.run_action, command.name)


class _Doing:
    """A palette entry that runs the action of a command."""

    def __init__(self, run_action: object, name: str) -> None:
        self._run_action = run_action
        self._name = name

    async def __call__(self) -> None:
        await self._run_action(f"app.command({self._name!r})")  # type: ignore[operator]


def _shown(command: Command) -> Content:
    return Content.assemble(command.name.capitalize(), (f"  {command.key}" if command.key else "", "dim"))
