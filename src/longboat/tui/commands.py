"""Built-in commands: what `/` and the palette offer. Each names an action of the app, which does it.

Must not know how.
"""

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
    Command(name="attach", told="attach text, a PDF or a picture", argument="file"),
    Command(name="cancel", told="cancel everything in this session", grave=True),
    Command(name="copy", told="copy the last answer"),
    Command(name="diff", told="what this session changed"),
    Command(name="editor", told="write the prompt in $EDITOR", key="ctrl+o"),
    Command(name="effort", told="how much the model thinks", argument="low|medium|high"),
    Command(name="export", told="write this session to a file", argument="file"),
    Command(name="fork", told="go on in a copy of this session"),
    Command(name="help", told="keys and commands", key="f1"),
    Command(name="model", told="choose the model", key="ctrl+l", argument="name"),
    Command(name="new", told="a new session", key="ctrl+n"),
    Command(name="quit", told="leave; what runs goes on", grave=True),
    Command(name="redo", told="bring back what was undone"),
    Command(name="rename", told="give this session a title", argument="title"),
    Command(name="retry", told="send again what was refused", key="ctrl+r"),
    Command(name="sessions", told="the sessions of this directory", key="ctrl+s"),
    Command(name="summarize", told="shorten what the model goes on from"),
    Command(name="theme", told="choose the colors; dark, light or auto", argument="name"),
    Command(name="todos", told="show or hide the plan, clients and jobs", key="ctrl+t"),
    Command(name="undo", told="take the last turn back", grave=True),
    Command(name="yolo", told="approve everything that this terminal's prompts do, or no longer", grave=True),
)
BY_NAME = {command.name: command for command in COMMANDS}


_CALLED = re.compile(r"/([\w:.-]+)(?:\s|$)")


def command_in(text: str) -> str:
    """The name of the command that a prompt calls; empty if it is none. A path is none."""
    called = _CALLED.match(text)
    return called[1] if called is not None else ""


def choices(project: tuple[CommandInfo, ...]) -> list[Choice]:
    """What `/` offers: ours, then those of the project."""
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
    """Textual's, in which keys that come before its list is drawn mean nothing."""

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
