"""The system prompt: our base text and what the workspace adds. It stays the same over the turns of a session, so that
providers can cache it and all that follows.

Must not know sessions or clocks.
"""

import platform
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path

from longboat.context.file_cache import display_path
from longboat.context.instructions import Instruction
from longboat.context.library import Agent, Skill

MAX_LIST = 16_000
"""Characters of the list of skills, and of that of sub-agents."""


def build_prompt(
    directory: Path,
    *,
    instructions: Iterable[Instruction] = (),
    skills: Iterable[Skill] = (),
    agents: Iterable[Agent] = (),
    base: str | None = None,
) -> str:
    """The prompt of a coding agent. `base` is a sub-agent's own text instead of ours."""
    parts = (
        base or _text("prompt.md"),
        _instructions(tuple(instructions), directory),
        _skills(tuple(skills), directory),
        _agents(tuple(agents)),
        f"Workspace: {display_path(directory)}\nPlatform: {platform.system()} {platform.machine()}",
    )
    return "\n\n".join(part for part in parts if part)


def build_short_prompt(directory: Path, *, instructions: Iterable[Instruction] = ()) -> str:
    """For a coding agent with a small window."""
    parts = (
        _text("prompt_short.md"),
        _instructions(tuple(instructions), directory),
        f"Workspace: {display_path(directory)}",
    )
    return "\n\n".join(part for part in parts if part)


def build_small_prompt(date: str) -> str:
    """For a model that can only talk."""
    return f"{_text('prompt_small.md')}\nToday is {date}."


def instruction_block(instruction: Instruction, directory: Path) -> str:
    """Instructions as the model reads them, with the file that they come from."""
    return f'<instructions file="{_place(instruction.path, directory)}">\n{instruction.text}\n</instructions>'


def _instructions(instructions: tuple[Instruction, ...], directory: Path) -> str:
    blocks = [instruction_block(each, directory) for each in instructions]
    return "\n\n".join(["Instructions from the people you work for:", *blocks]) if blocks else ""


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


def _place(path: Path, directory: Path) -> str:
    return display_path(path.relative_to(directory) if path.is_relative_to(directory) else path)


@cache
def _text(name: str) -> str:
    return files("longboat.context").joinpath(name).read_text("utf-8").strip()
