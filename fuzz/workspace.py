"""A throw-away workspace: a git repository with a little history, and a directory of stubs for dangerous commands.

Owns what is in it and the environment that commands get there. Must not know the reader.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fuzz.vocabulary import DANGEROUS, REAL, STUBBED
from longboat.tools.process.bash import QUIET
from longboat.tools.sandbox.wall import walled_environ

UNKNOWN = ".unknown"
"""The stub that bash calls, with all words, for a command that is not there."""
HANDLER = "BASH_FUNC_command_not_found_handle%%"
"""The variable by which it knows."""

_FILES = {
    "a": "a x\nb\nc x\n",
    "b": "b\n",
    "README.md": "# x\n",
    "src/a.py": "x = 1\n\n\ndef f():\n    return x\n",
    "src/b.py": "import a\n",
    "x[a]b": "x\n",
    "list.gz": "x\n",
    "evil.sh": "#!/bin/sh\ntouch p\n",
}
_EARLIER = {"src/a.py": "x = 0\n"}
_AUTHOR = {
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    **{f"GIT_{who}_NAME": "A" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "a@example.org" for who in ("AUTHOR", "COMMITTER")},
}
_SIGNATURE = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n aaaa\n -----END PGP SIGNATURE-----\n"
"""Where git is made to check it, it runs gpg."""


@dataclass(frozen=True, slots=True)
class Workspace:
    root: Path

    @property
    def directory(self) -> Path:
        return self.root / "work"

    @property
    def stubs(self) -> Path:
        return self.root / "bin"

    @property
    def temp(self) -> Path:
        return self.root / "tmp"

    def environ(self, path: str) -> dict[str, str]:
        """What the bash tool gives a command that runs unasked."""
        given = {"PATH": path, "HOME": str(self.root / "home"), "LC_ALL": "C.UTF-8"}
        settings = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "false"}
        return {**walled_environ(given, workspace=self.directory, temp=self.temp), **QUIET, **settings}

    def environ_with_stubs(self) -> dict[str, str]:
        return {**self.environ(str(self.stubs)), HANDLER: f'() {{ {self.stubs / UNKNOWN} "$@"; }}'}


def make_workspace(root: Path) -> Workspace:
    workspace = Workspace(root)
    for place in (workspace.directory, workspace.stubs, workspace.temp, root / "home"):
        place.mkdir()
    _put_stubs(workspace.stubs)
    _put_files(workspace.directory, {**_FILES, **_EARLIER})
    git = _Git(workspace)
    git.run("init", "--quiet", "--initial-branch=main")
    git.run("add", ".")
    git.run("commit", "--quiet", "--message=first")
    _put_files(workspace.directory, _FILES)
    git.run("commit", "--quiet", "--all", "--message=second")
    git.run("tag", "v1")
    git.sign_last_commit()
    git.run("remote", "add", "origin", "https://example.invalid/x.git")
    (workspace.directory / "b").write_text("changed\n")
    # Git would like to write down that this file has not changed.
    os.utime(workspace.directory / "a", (1, 1))
    (workspace.directory / "evil.sh").chmod(0o755)
    return workspace


def _put_stubs(place: Path) -> None:
    nothing = shutil.which("true") or "/bin/true"
    for name in (*DANGEROUS, *STUBBED, UNKNOWN):
        (place / name).symlink_to(nothing)
    for name in REAL:
        if real := shutil.which(name):
            (place / name).symlink_to(real)


def _put_files(place: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)


class _Git:
    def __init__(self, workspace: Workspace) -> None:
        self._directory = workspace.directory
        self._environ = workspace.environ(os.environ["PATH"]) | _AUTHOR

    def run(self, *words: str, text: str = "") -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=self._directory,
            env=self._environ,
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def sign_last_commit(self) -> None:
        headers, _, message = self.run("cat-file", "commit", "HEAD").partition("\n\n")
        signed = self.run("hash-object", "-t", "commit", "-w", "--stdin", text=f"{headers}\n{_SIGNATURE}\n{message}\n")
        self.run("reset", "--quiet", "--soft", signed)
