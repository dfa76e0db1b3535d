"""What a workspace lends a tool for one call, and how a tool says what is wrong."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from longboat.core.permissions import Allow, Need, Rule
from longboat.tools.schema import schema_of
from longboat.wire.workshop import TodoItem

Input = TypeVar("Input", bound=msgspec.Struct)


class ToolError(Exception):
    """What the model reads as an error result: what is wrong, and what to do instead."""


def parse(name: str, arguments: Mapping[str, Any], shape: type[Input]) -> Input:
    """The arguments as `shape`; a ToolError names what is wrong."""
    try:
        return msgspec.convert(arguments, shape)
    except msgspec.ValidationError as error:
        raise ToolError(f"Invalid input for {name}: {error}.{_allowed(str(error), shape)}") from None


def _allowed(error: str, shape: type[msgspec.Struct]) -> str:
    """The values that would be right, where one of a few is wanted: what a model is not told it guesses again."""
    found = re.search(r" - at `\$(.*)`$", error)
    schema = schema_of(shape)
    for step in re.findall(r"\.(\w+)|\[", found[1]) if found else ():
        schema = schema.get("properties", {}).get(step, {}) if step else schema.get("items", {})
    return f" Expected one of: {', '.join(map(str, schema['enum']))}." if "enum" in schema else ""


class Kit(Protocol):
    @property
    def directory(self) -> Path:
        """The workspace's root, resolved."""
        ...

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment for child processes: none of our keys and tokens."""
        ...

    async def permit(self, need: Need) -> Allow:
        """Return if the call may do this, else raise ToolError with what the model is told. May ask the people attached
        and wait for them."""
        ...

    def deny_rules(self) -> tuple[Rule, ...]:
        """The rules that deny, as they are now: for walls around commands."""
        ...

    def hidden(self) -> Callable[[str], bool]:
        """What says of an absolute path whether a rule denies the view of it: for tools that show many files."""
        ...

    def output(self, text: str) -> None:
        """Show live output to the people attached. The model reads only the result."""
        ...

    async def note_read(self, path: Path, content: bytes) -> None:
        """This session has seen the file as it is (A3)."""
        ...

    async def check_read(self, path: Path, content: bytes) -> None:
        """Raise ToolError unless this session has read the file and it is unchanged since (A3)."""
        ...

    async def expect_change(self, path: Path, before: bytes | None, after: bytes | None) -> str:
        """Record a change for undo (A4) right before it is made; None is a file that is not there. Returns its key, for
        `note_change` or `forget_change`; if neither follows, undo looks at the file to see what became of it."""
        ...

    async def forget_change(self, key: str) -> None:
        """The change that was expected was not made."""
        ...

    async def note_change(self, key: str, path: Path, before: bytes | None, after: bytes | None) -> str:
        """The change that was expected is made: tell the people attached. Returns what language servers say of it, or
        nothing. Counts as a read too."""
        ...

    async def ask(self, text: str, *, choices: Sequence[str], multiple: bool) -> tuple[str, ...]:
        """Ask the people attached and wait for the first who answers."""
        ...

    async def put_todos(self, items: Sequence[TodoItem]) -> None:
        """The session's plan from now on, whole."""
        ...

    async def delegate(self, prompt: str, *, agent: str | None) -> str:
        """Let a sub-agent work on a session of its own, and return its answer."""
        ...

    async def facts(self) -> str:
        """What the agent may know of itself and of its server: no secrets."""
        ...
