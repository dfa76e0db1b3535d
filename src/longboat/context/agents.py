"""Sub-agents that a project or a user defines: a name, what it is for, its tools and its system prompt (A5)."""

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from longboat.context import front_matter
from longboat.context.file_cache import BadFile, FileCache, Found, cut, display_path, load_nearest
from longboat.context.locations import Locations

MAX_DESCRIPTION = 1_024
MAX_PROMPT = 60_000

_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    name: str
    description: str
    tools: tuple[str, ...] | None
    """None: all tools that a sub-agent may have."""
    model: str | None
    read_only: bool
    path: Path
    prompt: str


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None
    description: str = ""
    tools: str | list[str] | None = None
    model: str | None = None
    read_only: bool = True


def load(places: Locations, cache: FileCache) -> Found[Agent]:
    """The nearest of each name."""
    folders = places.folders("agents", ".agents/agents", "agents")
    return load_nearest(folders, cache, _agent, file_of=lambda name: name if name.endswith(".md") else None)


def _agent(path: Path, text: str) -> Agent | None:
    document = front_matter.parse(path, text)
    if document.head is None:
        return None  # many a project has a directory `agents` with pages of its own in it
    head = document.fields(_Head)
    description = " ".join(head.description.split())
    if not description:
        raise BadFile(
            path, "the agent has no description. Say in the front matter what it is for and when to use it.", line=1
        )
    if not document.body:
        raise BadFile(path, "the agent has no prompt. Write it below the front matter.", line=1)
    name = head.name or path.stem
    if not _NAME.fullmatch(name):
        message = f"name: {name!r} is not a valid name. Use at most 64 letters, digits, _ and -."
        raise BadFile(path, message, line=document.line("name"))
    return Agent(
        name=name,
        description=cut(description, MAX_DESCRIPTION, display_path(path)),
        tools=_tools(head.tools),
        model=document.model(head.model),
        read_only=head.read_only,
        path=path,
        prompt=cut(document.body, MAX_PROMPT, display_path(path)),
    )


def _tools(given: str | list[str] | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = given.split(",") if isinstance(given, str) else given
    return tuple(name.strip() for name in names if name.strip())
