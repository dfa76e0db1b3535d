"""The built-in tools, found by their files: every NAME.py below this folder that has a NAME.md beside it is a tool.

Such a module has one class with a `spec`. A tool that needs something of its workspace has a classmethod
`build(services)`, which may return None to leave the tool out; the others are made without arguments. Importing them
all takes a moment: call these functions off the loop for the first time. Knows no tool by name.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import ClassVar, Protocol

from longboat.core.tool import ToolSpec
from longboat.tools.context import ToolContext
from longboat.tools.protocol import Tool, ToolCall, ToolResult
from longboat.tools.services import ToolServices
from longboat.wire.tools import ToolTraits

_PACKAGE = __name__.rpartition(".")[0]


class BuiltInTool(Protocol):
    """A tool whose spec is known before there is one."""

    spec: ClassVar[ToolSpec]

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult: ...


def build_tools(services: ToolServices) -> list[Tool]:
    """One of each, in the order of their files."""
    made = (_build(each, services) for each in _built_in())
    return [tool for tool in made if tool is not None]


@cache
def built_in_traits() -> Mapping[str, ToolTraits]:
    """The traits of every built-in tool by its name, whether a workspace has it or not."""
    return {each.spec.name: each.spec.traits for each in _built_in()}


@cache
def _built_in() -> tuple[type[BuiltInTool], ...]:
    return tuple(find_tools(_PACKAGE, Path(__file__).parent))


def find_tools(package: str, folder: Path) -> Iterator[type[BuiltInTool]]:
    """The tool classes of a package and of the packages in it."""
    for file in sorted(folder.rglob("*.md")):
        if file.with_suffix(".py").is_file():
            parts = file.relative_to(folder).with_suffix("").parts
            yield _tool_of(import_module(".".join((package, *parts))))


def _tool_of(module: ModuleType) -> type[BuiltInTool]:
    found = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == module.__name__ and hasattr(each, "spec")
    ]
    if len(found) != 1:
        raise TypeError(f"{module.__name__} has a description beside it, but {len(found)} classes with a spec: not one")
    return found[0]


def _build(tool: type[BuiltInTool], services: ToolServices) -> Tool | None:
    build = getattr(tool, "build", None)
    return tool() if build is None else build(services)
