"""The system prompt: our base text and what the workspace adds to it. What changes most often comes last, so that
providers can keep the rest.

Must not know sessions or clocks: the date is passed in.
"""

import asyncio
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from longboat.context import process
from longboat.context.agents import Agent
from longboat.context.instructions import Instruction
from longboat.context.shelf import shown
from longboat.context.skills import Skill

GIT_S = 2.0
MAX_CHANGES = 30
MAX_LIST = 16_000
"""Characters of the list of skills, and of that of sub-agents."""

_GIT = (
    "git",
    *("-c", "core.fsmonitor=false"),  # a program that the repository names would run
    *("-c", "core.quotePath=false"),
    *("-c", "status.relativePaths=true"),
    *("status", "--short", "--branch", "--ignore-submodules=all", "--no-renames", "--", "."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where and when the agent works."""

    directory: Path
    date: str
    platform: str
    git: str | None
    """The branch and what is changed; None outside of a repository."""


async def surroundings(directory: Path, *, date: str, environ: Mapping[str, str]) -> Surroundings:
    """`environ` is the environment for git: none of our keys and tokens."""
    return Surroundings(
        directory=directory,
        date=date,
        platform=f"{platform.system()} {platform.machine()}",
        git=await _git(directory, environ),
    )


def build(
    around: Surroundings,
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


def build_small(around: Surroundings) -> str:
    """For the local model, which a long prompt only confuses."""
    return f"{_text('prompt_small.md')}\nToday is {around.date}."


def instruction_block(instruction: Instruction, directory: Path) -> str:
    """Instructions as the model reads them, with the file that they come from."""
    return f'<instructions file="{_place(instruction.path, directory)}">\n{instruction.text}\n</instructions>'


def _skills(skills: tuple[Skill, ...], directory: Path) -> str:
    intro = "Skills: guides for particular tasks. When a task fits one, read its file first.\n"
    lines = (f"- {skill.name}: {skill.description} ({_place(skill.path, directory)})" for skill in skills)
    return intro + _listed(lines) if skills else ""


def _agents(agents: tuple[Agent, ...]) -> str:
    intro = "Sub-agents that you can hand a task to:\n"
    return intro + _listed(f"- {agent.name}: {agent.description}" for agent in agents) if agents else ""


def _listed(lines: Iterable[str]) -> str:
    kept: list[str] = []
    left, omitted = MAX_LIST, 0
    for line in lines:
        left -= len(line) + 1
        if left >= 0:
            kept.append(line)
        else:
            omitted += 1
    return "\n".join([*kept, f"- … and {omitted} more"] if omitted else kept)


def _environment(around: Surroundings) -> str:
    lines = (
        f"Directory: {shown(around.directory)}",
        f"Platform: {around.platform}",
        f"Date: {around.date}",
        f"Git when this turn began:\n{around.git}" if around.git else "No git repository.",
    )
    return "\n".join(lines)


def _place(path: Path, directory: Path) -> str:
    return shown(path.relative_to(directory) if path.is_relative_to(directory) else path)


@cache
def _text(name: str) -> str:
    return files("longboat.context").joinpath(name).read_text("utf-8").strip()


async def _git(directory: Path, environ: Mapping[str, str]) -> str | None:
    if not await asyncio.to_thread(_in_repository, directory):
        return None  # a process for nothing would make every turn begin later
    # GIT_DIR and its like would lead to another repository.
    clean = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}
    try:
        done = await process.run(_GIT, directory=directory, environ=clean | quiet, timeout_s=GIT_S)
    except OSError:
        return None
    if done.code is None:
        return f"(git status took longer than {GIT_S:g} s)"
    if done.code != 0 and not done.is_cut:
        return None
    head, *changes = done.stdout.decode("utf-8", "replace").strip("\n").split("\n")
    more = len(changes) - MAX_CHANGES
    tail = [f"… and {more}{' or more' if done.is_cut else ''} others"] if more > 0 else []
    return "\n".join([f"branch {head.removeprefix('## ')}", *changes[:MAX_CHANGES], *(tail if changes else ["clean"])])


def _in_repository(directory: Path) -> bool:
    return any((above / ".git").exists() for above in (directory, *directory.parents))
