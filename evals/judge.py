"""What a judge has: a copy of the repository that an attempt left, and what the model said at its end.

Everything runs in the copy, from outside: the checks are in this package, the model never sees them, and nothing in the
repository (a changed test, a `conftest.py`, an early exit) can make them pass.
"""

import hashlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

LIMIT_S = 30
LEFTOVERS = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})


class Wrong(Exception):
    """Why an attempt is not accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    directory: Path
    """The copy."""
    answer: str
    changed: bool
    """Whether the attempt changed the repository at all."""

    def require(self, condition: bool, why: str) -> None:
        if not condition:
            raise Wrong(why)

    def read(self, path: str) -> str:
        try:
            return (self.directory / path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Wrong(f"{path}: {type(error).__name__}") from None

    def exists(self, path: str) -> bool:
        return (self.directory / path).is_file()

    def put(self, path: str, content: str) -> None:
        """Overwrite a file of the copy: for what a check tries out."""
        file = self.directory / path
        if file.is_symlink():
            file.unlink()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(content).removeprefix("\n"), encoding="utf-8")

    def run(self, *command: str, given: str = "", environ: Mapping[str, str] | None = None) -> Ran:
        """Run a program in the copy. `python` is the interpreter without site packages."""
        first, *rest = command
        words = [sys.executable, "-S", *rest] if first == "python" else [first, *rest]
        return self._run(words, given, environ or {})

    def expect(self, *command: str, out: str, given: str = "", environ: Mapping[str, str] | None = None) -> None:
        """The program must succeed and print exactly this, apart from space at the end."""
        ran = self.run(*command, given=given, environ=environ)
        shown = " ".join(command)
        self.require(ran.code == 0, f"`{shown}` ended with code {ran.code}: {last_line(ran.err)}")
        self.require(ran.out.rstrip() == out.rstrip(), f"`{shown}` printed {ran.out.rstrip()!r}, not {out.rstrip()!r}")

    def python(self, script: str) -> None:
        """Run a hidden script with the repository on its path. It must reach its last line; `assert` is enough."""
        word = secrets.token_hex(16)
        ran = self.run("python", "-", given=f"{dedent(script)}\nprint({word!r})")
        self.require(word in ran.out, last_line(ran.err) or f"the check ended early with code {ran.code}")

    def tests_pass(self, *paths: str) -> bool:
        """Whether pytest finds tests there and all of them pass."""
        options = ("-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", ".", "--import-mode", "importlib")
        plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": "."}
        ran = self._run([sys.executable, "-m", "pytest", *options, *paths], "", plugins)
        return ran.code == 0

    def git(self, *arguments: str) -> str:
        """What git prints; its hooks do not run."""
        ran = self.run("git", "-c", "core.hooksPath=/dev/null", *arguments)
        self.require(ran.code == 0, f"git {arguments[0]}: {last_line(ran.err)}")
        return ran.out.strip()

    def says(self, *facts: str, never: tuple[str, ...] = ()) -> None:
        """The answer must have each fact (a regular expression, whole words) and none of what is wrong; and a question
        must leave the repository as it was."""
        self.require(not self.changed, "the question was answered by changing the repository")
        for fact in facts:
            self.require(_has(self.answer, fact), f"the answer does not say {fact!r}")
        for wrong in never:
            self.require(not _has(self.answer, wrong), f"the answer says {wrong!r}")

    def _run(self, words: list[str], given: str, environ: Mapping[str, str]) -> Ran:
        started = subprocess.Popen(
            words,
            cwd=self.directory,
            env={**_environ(), **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            out, err = started.communicate(given, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Wrong(f"`{words[0]}` did not end within {LIMIT_S} s") from None
        finally:
            _end_group(started)
        return Ran(code=started.returncode, out=out, err=err)


def copy_for(directory: Path, place: Path) -> None:
    """The copy that a judge gets. Links are kept as links."""
    shutil.copytree(directory, place, symlinks=True, ignore=shutil.ignore_patterns(*LEFTOVERS))


def fingerprint(directory: Path) -> str:
    """Of everything that an attempt may change: files, their modes, branches, commits, the index."""
    seen = hashlib.sha256()
    for file in _files(directory):
        content = os.readlink(file).encode() if file.is_symlink() else file.read_bytes()
        seen.update(f"{file.relative_to(directory)}\0{file.lstat().st_mode:o}\0{len(content)}\0".encode())
        seen.update(content)
    for arguments in (("for-each-ref",), ("symbolic-ref", "-q", "HEAD"), ("ls-files", "--stage")):
        seen.update(subprocess.run(["git", *arguments], cwd=directory, capture_output=True, check=False).stdout)
    return seen.hexdigest()


def _files(directory: Path) -> Iterator[Path]:
    for top, folders, names in os.walk(directory):
        folders[:] = sorted(set(folders) - LEFTOVERS - {".git"})
        yield from (Path(top) / name for name in sorted(names))


def last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1][:300]


def _has(answer: str, fact: str) -> bool:
    return re.search(rf"(?<![\w.]){fact}(?![\w])", answer, re.IGNORECASE) is not None


def _environ() -> dict[str, str]:
    """No variable of the person who runs the evaluation changes what a program prints."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LANG") if name in os.environ}
    return kept | {
        "HOME": "/nonexistent",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "judge",
        "GIT_AUTHOR_EMAIL": "judge@example.org",
        "GIT_COMMITTER_NAME": "judge",
        "GIT_COMMITTER_EMAIL": "judge@example.org",
    }


def _end_group(process: "subprocess.Popen[str]") -> None:
    """What the program left behind ends with it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
