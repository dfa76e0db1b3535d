"""The system prompt: our base text and what the workspace adds. What changes most often comes last, so that providers
can cache the rest.

Must not know sessions or clocks: the date is passed in.
"""

import asyncio
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from longboat.context.file_cache import display_path
from longboat.context.git_head import read_head
from longboat.context.instructions import Instruction
from longboat.context.library import Agent, Skill

MAX_LIST = 16_000
"""Characters of the list of skills, and of that of sub-agents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFacts:
    """Where and when the agent works."""

    directory: Path
    date: str
    platform: str
    git: str | None
    """The branch; None outside of a repository."""


async def read_project_facts(directory: Path, *, date: str) -> ProjectFacts:
    return ProjectFacts(
        directory=directory,
        date=date,
        platform=f"{platform.system()} {platform.machine()}",
        git=await asyncio.to_thread(_describe_head, directory),
    )


def build_prompt(
    around: ProjectFacts,
    *,
    instructions: Iterable[Instruction] = (),
    skills: Iterable[Skill] = (),
    agents: Iterable[Agent] = (),
    base: str | None = None,
) -> str:
    """The prompt of a coding agent. `base` is a sub-agent's own text instead of ours."""
    parts = (
        base or _text("prompt.md"),
        *(instruction_block(each, around.directory) for each in instructions),
        _skills(tuple(skills), around.directory),
        _agents(tuple(agents)),
        _environment(around),
    )
    return "\n\n".join(part for part in parts if part)


def build_small_prompt(around: ProjectFacts) -> str:
    """For the local model, which a long prompt only confuses."""
    return f"{_text('prompt_small.md')}\nToday is {around.date}."


def instruction_block(instruction: Instruction, directory: Path) -> str:
    """Instructions as the model reads them, with the file that they come from."""
    return f'<instructions file="{_place(instruction.path, directory)}">\n{instruction.text}\n</instructions>'


def _skills(skills: tuple[Skill, ...], directory: Path) -> str:
    intro = "Skills: guides for particular tasks. If one fits the task, read its file first.\n"
    lines = (f"- {skill.name}: {skill.description} ({_place(skill.path, directory)})" for skill in skills)
    return intro + _format_list(lines) if skills else ""


def _agents(agents: tuple[Agent, ...]) -> str:
    intro = "Sub-agents that you can give a task:\n"
    return intro + _format_list(f"- {agent.name}: {agent.description}" for agent in agents) if agents else ""


def _format_list(lines: Iterable[str]) -> str:
    kept: list[str] = []
    left, omitted = MAX_LIST, 0
    for line in lines:
        left -= len(line) + 1
        if left >= 0:
            kept.append(line)
        else:
            omitted += 1
    return "\n".join([*kept, f"- … and {omitted} more"] if omitted else kept)


def _environment(around: ProjectFacts) -> str:
    lines = (
        f"Directory: {display_path(around.directory)}",
        f"Platform: {around.platform}",
        f"Date: {around.date}",
        f"Git when this turn began: {around.git}" if around.git else "No git repository.",
    )
    return "\n".join(lines)


def _place(path: Path, directory: Path) -> str:
    return display_path(path.relative_to(directory) if path.is_relative_to(directory) else path)


@cache
def _text(name: str) -> str:
    return files("longboat.context").joinpath(name).read_text("utf-8").strip()


def _describe_head(directory: Path) -> str | None:
    head = read_head(directory)
    return None if head is None else f"branch {head.name}" if head.is_branch else f"at {head.name}"
