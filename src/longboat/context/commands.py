"""Custom commands: prompts kept in files, with places for arguments (A5).

`.agents/commands/review.md` is the command `review`; `.agents/commands/git/tidy.md` is `git:tidy`.
"""

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import msgspec

from longboat.context import front_matter
from longboat.context.file_cache import MAX_ENTRIES, BadFile, FileCache, Found, collect, entries, too_many
from longboat.context.locations import Folder, Locations

MAX_DEPTH = 3
"""Directories between `commands` and a command's file."""

_PLACE = re.compile(r"\\\$|\$ARGUMENTS\b|\$\{ARGUMENTS\}|\$([1-9]\d?)(?!\d)|\$\{([1-9]\d?)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    name: str
    description: str
    argument_hint: str
    model: str | None
    """`provider/model` or a role, for this prompt alone."""
    agent: str | None
    """The sub-agent that is to do it."""
    path: Path
    template: str


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    description: str = ""
    argument_hint: str | list[str] = ""
    model: str | None = None
    agent: str | None = None


def load(places: Locations, cache: FileCache) -> Found[Command]:
    """The nearest of each name."""
    nearest: dict[str, Command] = {}
    problems: list[str] = []
    for folder in places.folders("commands", ".agents/commands"):
        found = collect(_paths(folder), cache, _command)
        problems += found.problems
        for command in found.items:
            name = _name(folder, command.path)
            nearest.setdefault(name, replace(command, name=name))
    return Found(items=tuple(nearest.values()), problems=tuple(problems))


def expand(command: Command, arguments: str) -> str:
    """The prompt: `$ARGUMENTS` is all that was given, `$1` its first word (quotes hold words together), `\\$` a dollar
    sign. Arguments that the command has no place for are added at its end."""
    arguments = arguments.strip()
    words = words_in(arguments)
    taken = False

    def fill(match: re.Match[str]) -> str:
        nonlocal taken
        if match[0] == "\\$":
            return "$"
        taken = True
        number = match[1] or match[2]
        if number is None:
            return arguments
        return words[int(number) - 1] if int(number) <= len(words) else ""

    # One pass: what an argument says is never expanded again.
    prompt = _PLACE.sub(fill, command.template)
    return prompt if taken or not arguments else f"{prompt}\n\n{arguments}"


def words_in(arguments: str) -> list[str]:
    """Quotes hold words together."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()  # a quote that is never closed is an apostrophe


def _paths(folder: Folder) -> Found[tuple[Path, Folder]]:
    paths = tuple(islice(_files(folder.path, MAX_DEPTH), MAX_ENTRIES + 1))
    problems = (too_many(folder.path),) if len(paths) > MAX_ENTRIES else ()
    return Found(items=tuple((path, folder) for path in paths[:MAX_ENTRIES]), problems=problems)


def _files(directory: Path, depth: int) -> Iterator[Path]:
    for name in entries(directory).items:
        path = directory / name
        if name.endswith(".md"):
            yield path
        elif depth and os.path.isdir(path):
            yield from _files(path, depth - 1)


def _name(folder: Folder, path: Path) -> str:
    return ":".join(path.relative_to(folder.path).with_suffix("").parts)


def _command(path: Path, text: str) -> Command:
    document = front_matter.parse(path, text)
    head = document.fields(_Head)
    if not document.body:
        raise BadFile(path, "the command is empty. Write its prompt below the front matter.", line=1)
    # An unquoted `[file]` is a list to YAML.
    hint = head.argument_hint if isinstance(head.argument_hint, str) else f"[{', '.join(head.argument_hint)}]"
    return Command(
        name=path.stem,
        description=" ".join(head.description.split()) or _first_line(document.body),
        argument_hint=hint,
        model=document.model(head.model),
        agent=head.agent,
        path=path,
        template=document.body,
    )


def _first_line(body: str) -> str:
    line = body.split("\n", 1)[0].lstrip("# ").strip()
    return line if len(line) <= 80 else f"{line[:79]}…"
