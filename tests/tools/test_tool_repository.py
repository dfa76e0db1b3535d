"""What a git repository would run when somebody only looks at it (A2)."""

import os
import subprocess
from pathlib import Path

import pytest

from longboat.tools.process.git_config import MAX_CONFIG, find_doubt


@pytest.fixture
def project(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "project")
    return tmp_path / "project"


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "protocol.file.allow=always", *arguments], cwd=directory, check=True)


def test_a_usual_repository_is_no_matter(project: Path) -> None:
    git(project, "remote", "add", "origin", "https://example.org/x.git")
    git(project, "config", "branch.main.merge", "refs/heads/main")
    git(project, "config", "user.name", "A # [core]")
    git(project, "config", "core.hooksPath", ".husky/_")
    (project / "sub").mkdir()
    assert find_doubt(project) == find_doubt(project / "sub") == ""


def test_where_there_is_no_repository_there_is_no_doubt(tmp_path: Path) -> None:
    assert find_doubt(tmp_path) == ""


@pytest.mark.parametrize(
    "key",
    [
        *("core.fsmonitor", "core.pager", "core.sshCommand", "core.worktree", "diff.external", "diff.x.textconv"),
        *("diff.x.command", "filter.x.clean", "alias.status", "include.path", "includeIf.gitdir:/.path", "pager.log"),
        *("gpg.program", "lfs.extension.x.clean", "merge.x.driver", "core.hooksPath", "anything.else"),
    ],
)
def test_a_key_that_is_not_known_to_be_harmless_is_a_doubt(project: Path, key: str) -> None:
    git(project, "config", key, "touch PWNED")
    (project / "sub").mkdir()
    assert "which may run a program" in find_doubt(project)
    assert "which may run a program" in find_doubt(project / "sub")


@pytest.mark.parametrize(
    "text",
    [
        "[core]fsmonitor=x",
        "[CORE]\n\tFsMonitor = x",
        "[user]\nname = a\n[core] fsmonitor = x",
        "[diff.x]\ntextconv = x",
        '[user "a]b"] # [x\n[core]\nfsmonitor=x',
        "[user]\nname = a \\\n[core]",
        "[core]\n# \u2028[user]\nfsmonitor = x",
        "[core]\n# \x0c[user]\nfsmonitor = x",
        "[user]\nname = a\n" * (MAX_CONFIG // 16 + 1),
    ],
)
def test_no_way_of_writing_hides_a_key(project: Path, text: str) -> None:
    (project / ".git" / "config").write_text(text)
    assert find_doubt(project)


def test_worktrees_hooks_submodules_and_what_is_no_file_are_looked_at(project: Path, tmp_path: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    git(project, *who, "commit", "-q", "--allow-empty", "-m", "x")
    git(project, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert find_doubt(tmp_path / "tree") == ""
    git(project, "config", "core.fsmonitor", "x")
    assert "core.fsmonitor" in find_doubt(tmp_path / "tree")
    git(project, "config", "--unset", "core.fsmonitor")
    git(project, "submodule", "--quiet", "add", str(project), "inner")
    assert "submodules" in find_doubt(project)
    git(project, "rm", "-q", "-f", "inner")
    git(project, "config", "--remove-section", "submodule.inner")
    assert find_doubt(project) == ""
    (project / ".git" / "hooks").mkdir(exist_ok=True)
    (project / ".git" / "hooks" / "post-index-change").touch()
    assert "post-index-change" in find_doubt(project)
    (project / ".git" / "hooks" / "post-index-change").unlink()
    (project / ".git" / "config").unlink()
    os.mkfifo(project / ".git" / "config")
    assert find_doubt(project) == "git's configuration cannot be read"


def test_a_bare_repository_is_one(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare")
    git(tmp_path / "bare", "config", "core.fsmonitor", "x")
    assert "core.fsmonitor" in find_doubt(tmp_path / "bare")
