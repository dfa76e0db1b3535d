"""The services a tool may use during one call, and the error a tool raises."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from longboat.permissions.verdict import Allow, Need, Rule
from longboat.tools.schema import schema_of
from longboat.wire.workspace_state import TodoItem

Input = TypeVar("Input", bound=msgspec.Struct)


class ToolError(Exception):
    """An error result for the model: what is wrong, and what to do instead."""


def parse(name: str, arguments: Mapping[str, Any], shape: type[Input]) -> Input:
    """The arguments as `shape`; a ToolError names what is wrong."""
    try:
        return msgspec.convert(arguments, shape)
    except msgspec.ValidationError as error:
        raise ToolError(f"Invalid input for {name}: {error}.{_allowed(str(error), shape)}") from None


def _allowed(error: str, shape: type[msgspec.Struct]) -> str:
    """The fields of an object or the values of an enum, so that the model need not guess again."""
    found = re.search(r" - at `\$(.*)`$", error)
    schema = schema_of(shape)
    for step in re.findall(r"\.(\w+)|\[", found[1]) if found else ():
        schema = schema.get("properties", {}).get(step, {}) if step else schema.get("items", {})
    if "enum" in schema:
        return f" Expected one of: {', '.join(map(str, schema['enum']))}."
    required = schema.get("required", ())
    fields = [f"{name} (required)" if name in required else name for name in schema.get("properties", ())]
    return f" Fields: {', '.join(fields)}." if fields else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAnswer:
    approved: bool
    wish: str
    """What the person said instead of yes or no."""


class ToolContext(Protocol):
    @property
    def directory(self) -> Path:
        """The workspace's root, resolved."""
        ...

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment for child processes, without our keys and tokens."""
        ...

    async def permit(self, need: Need) -> Allow:
        """Return if the call is allowed, else raise ToolError with the reason. May ask the attached people and wait for
        them."""
        ...

    def deny_rules(self) -> tuple[Rule, ...]:
        """The current deny rules, for sandboxes around commands."""
        ...

    def hidden(self) -> Callable[[str], bool]:
        """A test whether a rule hides an absolute path, for tools that show many files."""
        ...

    def output(self, text: str) -> None:
        """Show live output to the attached people. The model reads only the result."""
        ...

    async def note_read(self, path: Path, content: bytes) -> None:
        """Record that this session has read the file with this content (A3)."""
        ...

    async def check_read(self, path: Path, content: bytes) -> None:
        """Raise ToolError unless this session has read the file and it is unchanged since (A3)."""
        ...

    async def expect_change(self, path: Path, before: bytes | None, after: bytes | None) -> str:
        """Record a change for undo (A4) right before it is made; None means that the file does not exist. Returns its
        key, for `note_change` or `forget_change`; if neither follows, undo looks at the file to see what happened."""
        ...

    def may_change(self) -> bool:
        """Whether this server may still change files of the workspace. Asked right before each change, perhaps by
        another thread."""
        ...

    async def forget_change(self, key: str) -> None:
        """The expected change was not made."""
        ...

    async def note_change(self, key: str, path: Path, before: bytes | None, after: bytes | None) -> str:
        """The expected change was made: tell the attached people. Returns the diagnostics of language servers, if any.
        Also counts as a read."""
        ...

    async def ask(
        self, text: str, *, choices: Sequence[str], multiple: bool, descriptions: Sequence[str] = ()
    ) -> tuple[str, ...] | None:
        """Ask the attached people and wait for the first answer. `descriptions` say what the choices mean, in their
        order. None if no one can answer."""
        ...

    async def propose(self, text: str, items: Sequence[TodoItem]) -> PlanAnswer | None:
        """Ask the attached people to approve a plan. If they do, its items become the session's todos, and the turn may
        change things from its next step on. None if no one can answer."""
        ...

    async def put_todos(self, items: Sequence[TodoItem]) -> None:
        """Replace the session's plan."""
        ...

    async def delegate(self, prompt: str, *, agent: str | None) -> str:
        """Let a sub-agent work in its own session, and return its answer."""
        ...

    async def facts(self) -> str:
        """What the agent may know about itself and its server, without secrets."""
        ...
