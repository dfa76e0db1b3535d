"""The instructions, skills, commands and sub-agents of one workspace, refreshed for each turn if files changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from longboat.context import agents, commands, instructions, skills
from longboat.context.agents import Agent
from longboat.context.commands import Command
from longboat.context.file_cache import FileCache, Found
from longboat.context.instructions import Instruction
from longboat.context.locations import find_locations
from longboat.context.skills import Skill


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

    def load(self) -> Context:
        places = find_locations(self._directory, environ=self._environ, user_dir=self._user_dir)
        told = instructions.load(places, self._cache)
        known = skills.load(places, self._cache)
        prompts = commands.load(places, self._cache)
        helpers = agents.load(places, self._cache)
        return Context(
            instructions=told.items,
            skills=known.items,
            commands=prompts.items,
            agents=helpers.items,
            problems=(*told.problems, *known.problems, *prompts.problems, *helpers.problems),
        )

    def for_path(self, path: Path) -> Found[Instruction]:
        """What nested AGENTS.md say of a file or directory below the workspace; nothing for one elsewhere."""
        places = find_locations(self._directory, environ=self._environ, user_dir=self._user_dir)
        return instructions.load_for(places, self._cache, path)
