"""What a client shows before the first prompt: the branch, and things to try that fit the directory."""

import subprocess
from pathlib import Path

import pytest
from running_app import TITLES_OFF, launch

from longboat.testing import ScriptedModel
from longboat.wire.listings import Welcome


def git(directory: Path, *arguments: str) -> None:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=trunk")
    subprocess.run(["git", *settings, *arguments], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    return project


@pytest.fixture
def repository(project: Path) -> Path:
    (project / "longboat.json").write_text(TITLES_OFF)
    (project / "shop.py").write_text("price = 1\n")
    git(project, "init")
    git(project, "add", ".")
    git(project, "commit", "-m", "first")
    return project


async def welcome_in(project: Path) -> Welcome:
    async with launch(project.parent, ScriptedModel([])) as running:
        return await running.workspace.welcome()


def titles(found: Welcome) -> list[str]:
    return [each.title for each in found.suggestions]


async def test_an_empty_directory_is_offered_beginnings_and_no_tests(project: Path) -> None:
    found = await welcome_in(project)
    assert found.branch is None
    assert titles(found) == ["Start a Python project", "Build a web page", "Plan a new project"]


async def test_a_project_with_tests_is_offered_to_run_them(project: Path) -> None:
    (project / "README.md").write_text("# Shop\n")
    (project / "tests").mkdir()
    (project / "tests" / "test_shop.py").write_text("def test_price(): ...\n")
    assert titles(await welcome_in(project)) == ["Explain this project", "Run the tests", "Look for bugs"]


async def test_a_project_without_tests_and_readme_is_offered_both(project: Path) -> None:
    (project / "shop.py").write_text("price = 1\n")
    assert titles(await welcome_in(project)) == ["Explain this project", "Add tests", "Write a README"]


async def test_a_folder_without_code_is_no_project(project: Path) -> None:
    (project / "letter.txt").write_text("Dear Ann,\n")
    assert titles(await welcome_in(project))[0] == "Summarize these files"


async def test_a_repository_has_a_branch_and_its_changes_are_offered_for_review(repository: Path) -> None:
    clean = await welcome_in(repository)
    assert (clean.branch, "Review my changes" in titles(clean)) == ("trunk", False)
    (repository / "shop.py").write_text("price = 2\n")
    assert titles(await welcome_in(repository))[0] == "Review my changes"


async def test_a_repository_that_could_run_a_program_is_not_asked(repository: Path) -> None:
    """A stranger's configuration decides what git runs: a look at the first screen must not start it."""
    (repository / "shop.py").write_text("price = 2\n")
    started = repository.parent / "started"
    git(repository, "config", "core.fsmonitor", f"touch {started}; false")
    git(repository, "config", "filter.mine.clean", f"touch {started}; cat")
    (repository / ".git" / "info" / "attributes").write_text("* filter=mine\n")
    found = await welcome_in(repository)
    assert (found.branch, "Review my changes" in titles(found), started.exists()) == ("trunk", False, False)


async def test_a_branch_is_told_as_plain_text(repository: Path) -> None:
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/\x1b[2Jevil")
    assert "\x1b" not in str((await welcome_in(repository)).branch)
