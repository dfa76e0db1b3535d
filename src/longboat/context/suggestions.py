"""Three prompts to begin with that fit a directory. From names and package files alone: no model, no program."""

import os
from collections.abc import Iterator
from pathlib import Path

from longboat.context.project_files import ProjectFiles
from longboat.context.survey import survey
from longboat.context.toolchain import find_toolchain
from longboat.wire.listings import Suggestion

COUNT = 3
MAX_FILES = 500
"""Files that are looked at: enough to tell a project from a folder of papers."""
_EMPTY = (
    Suggestion(
        title="Start a Python project",
        prompt="Set up a small Python project here: a package, a first test, a README and a .gitignore.",
    ),
    Suggestion(title="Build a web page", prompt="Build a simple web page here with plain HTML, CSS and JavaScript."),
    Suggestion(
        title="Plan a new project", prompt="I want to start a new project here. Ask me what it should do, then plan it."
    ),
)
_CHANGES = Suggestion(
    title="Review my changes", prompt="Review the uncommitted changes. List problems, the most important first."
)
_TESTS = Suggestion(title="Run the tests", prompt="Run the tests and fix any failures.")
_NO_TESTS = Suggestion(title="Add tests", prompt="Find the most important code without tests and add tests for it.")
_STRUCTURE = Suggestion(title="Explain this project", prompt="Explain how this project is structured.")
_README = Suggestion(title="Write a README", prompt="Write a short README for this project.")
_BUGS = Suggestion(title="Look for bugs", prompt="Look for likely bugs in this project and suggest fixes.")
_FILES = (
    Suggestion(title="Summarize these files", prompt="Summarize what is in this directory."),
    Suggestion(title="Suggest an order", prompt="Suggest a clearer structure for the files in this directory."),
    Suggestion(title="Write a script", prompt="I want to automate something here. Ask me what, then write a script."),
)


def suggest(directory: Path, *, has_changes: bool) -> tuple[Suggestion, ...]:
    """Reads the disk: call it off the loop. `has_changes`: git knows of uncommitted changes."""
    try:
        names = [name for name in os.listdir(directory) if not name.startswith(".") and name != "longboat.json"]
    except OSError:
        names = []
    if not names:
        return _EMPTY
    return (*dict.fromkeys(_fitting(directory, names, has_changes=has_changes)),)[:COUNT]


def _fitting(directory: Path, names: list[str], *, has_changes: bool) -> Iterator[Suggestion]:
    """The most useful first."""
    files = ProjectFiles(directory)
    has_tests = any("test" in f"{step.command} {step.purpose}" for step in find_toolchain(files).steps)
    has_code = has_tests or bool(survey(directory, most=MAX_FILES).languages)
    if has_changes:
        yield _CHANGES
    if not has_code:
        yield from _FILES
        return
    yield _STRUCTURE
    yield _TESTS if has_tests or not {"test", "tests", "spec"}.isdisjoint(names) else _NO_TESTS
    if not any(name.lower().startswith("readme") for name in names):
        yield _README
    yield _BUGS
