"""What a task is: a small repository, a prompt, a judge, and attempts by which the judge itself is tested.

Must not know how a task is run. An attempt is a list of moves; `scripted` plays it as a model would.
"""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from textwrap import dedent

from evals.judge import Judge

GIT_ENVIRON = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_DATE": "2026-01-05T09:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-05T09:00:00Z",
}
"""The same task has the same hashes everywhere."""


class Kind(StrEnum):
    FIX = "fix"
    ADD = "add"
    REFACTOR = "refactor"
    TEST = "test"
    ANSWER = "answer"
    """A question: nothing is to be changed."""
    GIT = "git"
    FILES = "files"
    """Configuration, documentation, data, scripts."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace a text in a file, wherever it occurs."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Write:
    """Create a file, or replace all of it."""

    path: str
    content: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", text(self.content))


@dataclass(frozen=True, slots=True)
class Shell:
    command: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The last words. Without them an attempt ends with "Done."."""

    text: str


Move = Edit | Write | Shell | Answer
Attempt = tuple[Move, ...]

IDLE: Attempt = (Answer("Done. I made the change and all tests pass."),)
"""Claims everything and does nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    name: str
    kind: Kind
    prompt: str
    files: Mapping[str, str]
    """By path. Common indentation is removed."""
    check: Callable[[Judge], None]
    """Raises `Wrong` unless the repository is as it should be."""
    solution: Attempt
    mistakes: Mapping[str, Attempt]
    """Plausible attempts that are wrong, by what is wrong with them."""
    prepare: Callable[[Path], None] | None = None
    """Further commits, branches or a merge that stopped, after the first commit."""
    quick: bool = False
    """One of ten for slow machines and small models: one short file, or a question about one."""
    executable: frozenset[str] = field(default_factory=frozenset)

    def make(self, directory: Path) -> None:
        """The repository, with everything committed."""
        for path, content in self.files.items():
            file = directory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text(content), encoding="utf-8")
            if path in self.executable:
                file.chmod(0o755)
        git(directory, "init", "--quiet", "--initial-branch=main")
        git(directory, "config", "user.name", "Robin")
        git(directory, "config", "user.email", "robin@example.org")
        commit(directory, "First version")
        if self.prepare is not None:
            self.prepare(directory)


def text(content: str) -> str:
    """A text that was written indented between triple quotes."""
    return dedent(content).removeprefix("\n")


def git(directory: Path, *arguments: str, may_fail: bool = False) -> None:
    subprocess.run(
        ["git", *arguments], cwd=directory, check=not may_fail, capture_output=True, env=_environ(), timeout=60
    )


def commit(directory: Path, message: str) -> None:
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message", message)


def _environ() -> dict[str, str]:
    import os

    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | GIT_ENVIRON
