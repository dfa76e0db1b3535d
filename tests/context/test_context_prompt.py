"""The system prompt: short, our own, with what the workspace adds (A5)."""

import os
import subprocess
from pathlib import Path

import pytest

from longboat.context.instructions import Instruction
from longboat.context.library import Agent, Library, Skill
from longboat.context.prompt import MAX_LIST, ProjectFacts, build_prompt, build_small_prompt, read_project_facts

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
AROUND = ProjectFacts(directory=Path("/w"), date="2026-11-15", platform="Linux x86_64", git="branch main")


def git(directory: Path, *arguments: str) -> None:
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    subprocess.run(["git", *arguments], cwd=directory, env=ENVIRON | identity, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-b", "trunk")
    (tmp_path / "a.txt").write_text("a")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    return tmp_path


async def git_of(directory: Path) -> str | None:
    return (await read_project_facts(directory, date="2026-11-15")).git


def skill(name: str, description: str = "d", path: str = "/w/.agents/skills/x/SKILL.md") -> Skill:
    return Skill(name=name, description=description, path=Path(path), body="")


def test_a_prompt_has_its_parts_in_order_the_changing_ones_last() -> None:
    prompt = build_prompt(
        AROUND,
        instructions=[
            Instruction(path=Path("/w/AGENTS.md"), text="Use tabs."),
            Instruction(path=Path("/u.md"), text="x"),
        ],
        skills=[skill("pdf", "Fill in forms")],
        agents=[
            Agent(
                name="reviewer",
                description="Reviews",
                tools=None,
                model=None,
                read_only=True,
                path=Path("/x"),
                prompt="p",
            )
        ],
    )
    base, rest = prompt.split("\n\n<instructions", 1)
    assert base == build_prompt(AROUND).split("\n\nDirectory: ", 1)[0]
    assert f"<instructions{rest}" == (
        '<instructions file="AGENTS.md">\nUse tabs.\n</instructions>\n\n'
        '<instructions file="/u.md">\nx\n</instructions>\n\n'
        "Skills: guides for particular tasks. If one fits the task, read its file first.\n"
        "- pdf: Fill in forms (.agents/skills/x/SKILL.md)\n\n"
        "Sub-agents that you can give a task:\n- reviewer: Reviews\n\n"
        "Directory: /w\nPlatform: Linux x86_64\nDate: 2026-11-15\nGit when this turn began: branch main"
    )


def test_the_base_text_is_short() -> None:
    """Every token of it is paid in every step."""
    assert len(build_prompt(AROUND)) < 2_500


def test_a_sub_agents_own_text_takes_the_place_of_ours() -> None:
    prompt = build_prompt(AROUND, base="You review.")
    assert prompt.startswith("You review.\n\nDirectory: /w")


def test_the_local_model_is_told_almost_nothing() -> None:
    prompt = build_small_prompt(AROUND)
    assert len(prompt) < 200
    assert "2026-11-15" in prompt


def test_a_long_list_of_skills_is_bounded_and_said() -> None:
    prompt = build_prompt(AROUND, skills=[skill(f"s{number}", "d" * 1_000) for number in range(40)])
    listed = prompt.count("\n- s")
    assert f"- … and {40 - listed} more\n" in prompt
    assert len(prompt) < len(build_prompt(AROUND)) + MAX_LIST + 300


def test_what_is_loaded_for_a_workspace_goes_into_its_prompt(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be kind.")
    context = Library(tmp_path, environ={}, user_dir=tmp_path / "home").load()
    prompt = build_prompt(AROUND, instructions=context.instructions, skills=context.skills, agents=context.agents)
    assert "Be kind." in prompt


async def test_git_tells_the_branch(repository: Path) -> None:
    assert await git_of(repository) == "branch trunk"
    (repository / "below").mkdir()
    assert await git_of(repository / "below") == "branch trunk"
    git(repository, "checkout", "-b", "feature/x")
    assert await git_of(repository) == "branch feature/x"


async def test_a_detached_head_and_a_worktree_are_told_too(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tree = tmp_path_factory.mktemp("trees") / "second"
    git(repository, "worktree", "add", "-b", "other", str(tree))
    assert await git_of(tree) == "branch other"
    git(repository, "checkout", "--detach")
    told = await git_of(repository)
    assert told is not None
    assert told.startswith("at ")
    assert len(told) == len("at ") + 12


async def test_a_repository_without_commits_has_a_branch_too(tmp_path: Path) -> None:
    git(tmp_path, "init", "-b", "trunk")
    assert await git_of(tmp_path) == "branch trunk"


async def test_outside_of_a_repository_there_is_none(tmp_path: Path) -> None:
    assert await git_of(Path("/")) is None
    (tmp_path / ".git").write_bytes(b"\xff")
    assert await git_of(tmp_path) is None
    assert "No git repository." in build_prompt(ProjectFacts(directory=tmp_path, date="d", platform="p", git=None))


async def test_nothing_that_a_repository_names_is_run(repository: Path) -> None:
    """A2: a filter, a monitor or a pager of its configuration would be a program that nobody was asked about."""
    program = f"sh -c 'touch {repository}/ran; cat'"
    git(repository, "config", "filter.evil.clean", program)
    git(repository, "config", "core.fsmonitor", program)
    (repository / ".gitattributes").write_text("*.txt filter=evil\n")
    (repository / "a.txt").write_text("changed")
    assert await git_of(repository) == "branch trunk"
    assert not (repository / "ran").exists()
