"""The instructions, skills, custom commands and sub-agents of one workspace, read again if their files changed (A5).

A custom command is a prompt in a file, with places for arguments: `.agents/commands/review.md` is called with
`/review`, `.agents/commands/git/tidy.md` with `/git:tidy`. A skill is a directory with a SKILL.md, which may refer to
other files there; only its name and description are listed. A sub-agent has a name, a purpose, tools and a system
prompt.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import msgspec

from longboat.context import front_matter, instructions
from longboat.context.file_cache import (
    MAX_ENTRIES,
    BadFile,
    FileCache,
    Found,
    collect,
    cut,
    display_path,
    entries,
    load_nearest,
    too_many,
)
from longboat.context.instructions import Instruction
from longboat.context.locations import Folder, Locations, find_locations
from longboat.context.stamps import Kept, Stamps

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


class _CommandHead(msgspec.Struct, frozen=True, kw_only=True):
    description: str = ""
    argument_hint: str | list[str] = ""
    model: str | None = None
    agent: str | None = None


def load_commands(places: Locations, cache: FileCache) -> Found[Command]:
    """The nearest of each name."""
    nearest: dict[str, Command] = {}
    problems: list[str] = []
    for folder in places.folders("commands", ".agents/commands"):
        found = collect(_paths(folder, cache), cache, _command)
        problems += found.problems
        for command in found.items:
            name = _command_name(folder, command.path)
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


def _paths(folder: Folder, cache: FileCache) -> Found[tuple[Path, Folder]]:
    paths = tuple(islice(_files(folder.path, MAX_DEPTH, cache), MAX_ENTRIES + 1))
    problems = (too_many(folder.path),) if len(paths) > MAX_ENTRIES else ()
    return Found(items=tuple((path, folder) for path in paths[:MAX_ENTRIES]), problems=problems)


def _files(directory: Path, depth: int, cache: FileCache) -> Iterator[Path]:
    for name in entries(directory, cache).items:
        path = directory / name
        if name.endswith(".md"):
            yield path
        elif depth:
            yield from _files(path, depth - 1, cache)


def _command_name(folder: Folder, path: Path) -> str:
    return ":".join(path.relative_to(folder.path).with_suffix("").parts)


def _command(path: Path, text: str) -> Command:
    document = front_matter.parse(path, text)
    head = document.fields(_CommandHead)
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


SKILL_FILE = "SKILL.md"
SKILL_FOLDERS = (".agents/skills", ".claude/skills")
"""Where skills are, in a project and in the user's home."""
MAX_DESCRIPTION = 1_024
MAX_SKILL = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    name: str
    description: str
    path: Path
    """Its SKILL.md."""
    body: str

    @property
    def text(self) -> str:
        """What the model reads of it."""
        return f"Skill {self.name}. Its files are in {display_path(self.path.parent)}.\n\n{self.body}"


class _SkillHead(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None
    description: str | None = None


def load_skills(places: Locations, cache: FileCache) -> Found[Skill]:
    """The nearest of each name."""
    folders = places.folders("skills", *SKILL_FOLDERS, own=SKILL_FOLDERS)
    return load_nearest(folders, cache, _skill, file_of=lambda name: f"{name}/{SKILL_FILE}")


def _skill(path: Path, text: str) -> Skill:
    document = front_matter.parse(path, text)
    head = document.fields(_SkillHead)
    description = " ".join((head.description or "").split())
    if not description:
        raise BadFile(
            path, "the skill has no description. Say in the front matter what it is for and when to use it.", line=1
        )
    return Skill(
        name=_skill_name(head.name) or path.parent.name,
        description=cut(description, MAX_DESCRIPTION, display_path(path)),
        path=path,
        body=cut(document.body, MAX_SKILL, display_path(path)),
    )


def _skill_name(given: str | None) -> str:
    return " ".join((given or "").split())[:64]


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


class _AgentHead(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None
    description: str = ""
    tools: str | list[str] | None = None
    model: str | None = None
    read_only: bool = True


def load_agents(places: Locations, cache: FileCache) -> Found[Agent]:
    """The nearest of each name."""
    folders = places.folders("agents", ".agents/agents", "agents")
    return load_nearest(folders, cache, _agent, file_of=lambda name: name if name.endswith(".md") else None)


def _agent(path: Path, text: str) -> Agent | None:
    document = front_matter.parse(path, text)
    if document.head is None:
        return None  # many a project has a directory `agents` with pages of its own in it
    head = document.fields(_AgentHead)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    instructions: tuple[Instruction, ...] = ()
    skills: tuple[Skill, ...] = ()
    commands: tuple[Command, ...] = ()
    agents: tuple[Agent, ...] = ()
    problems: tuple[str, ...] = ()
    """Files that could not be used, each as a sentence with its place."""


class Library:
    """Reads the disk: call it off the event loop."""

    def __init__(self, directory: Path, *, environ: Mapping[str, str], user_dir: Path) -> None:
        """`user_dir` is the user's home directory."""
        self._directory = directory
        self._environ = environ
        self._user_dir = user_dir
        self._cache = FileCache()
        self._context = Kept(self._load)

    def load(self) -> Context:
        return self._context.get()

    def peek(self) -> tuple[Context] | None:
        """What `load` would return, if a look at a few files can tell. The one method for the event loop."""
        return self._context.peek()

    def _load(self, stamps: Stamps) -> Context:
        cache = self._cache.for_reading(stamps)
        places = find_locations(self._directory, environ=self._environ, user_dir=self._user_dir, stamps=stamps)
        told = instructions.load(places, cache)
        known = load_skills(places, cache)
        prompts = load_commands(places, cache)
        helpers = load_agents(places, cache)
        return Context(
            instructions=told.items,
            skills=known.items,
            commands=prompts.items,
            agents=helpers.items,
            problems=(*told.problems, *known.problems, *prompts.problems, *helpers.problems),
        )

    def for_path(self, path: Path) -> Found[Instruction]:
        """What nested AGENTS.md say of a file or directory below the workspace; nothing for one elsewhere."""
        stamps = Stamps()
        places = find_locations(self._directory, environ=self._environ, user_dir=self._user_dir, stamps=stamps)
        return instructions.load_for(places, self._cache.for_reading(stamps), path)
