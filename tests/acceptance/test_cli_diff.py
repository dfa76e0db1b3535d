"""`longboat diff`: a patch for git in a pipe, colors at a terminal, numbers on request."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from cli_home import Home
from terminal import Terminal

from longboat.testing import CallTool, Say

pytestmark = pytest.mark.acceptance

NAMES = (
    "plain.txt",
    "with space.txt",
    'quo"te\\.txt',
    "tab\there.txt",
    "é.txt",
    "deep/er.txt",
    "crlf.txt",
    "no-end.txt",
)
BEFORE = "".join(f"{number}\n" for number in range(20))


def contents(name: str) -> tuple[str, str]:
    before = BEFORE.replace("\n", "\r\n") if name == "crlf.txt" else BEFORE
    after = before.replace("3", "three").replace("18", "eighteen")
    return before, after.removesuffix("\n") if name == "no-end.txt" else after


@pytest.fixture
def changed(home: Home, cwd: Path) -> str:
    """A session that changed files with difficult names, and made and emptied others."""
    steps = []
    for name in NAMES:
        before, after = contents(name)
        (cwd / name).parent.mkdir(exist_ok=True)
        (cwd / name).write_bytes(before.encode())
        steps += [CallTool("view", {"path": name}), CallTool("write", {"path": name, "content": after})]
    steps.append(CallTool("write", {"path": "new.txt", "content": "new\n"}))
    home.endpoint.script("change", steps, [Say("Done.")])
    assert home.longboat("run", "--yolo", "--run-id", "changes", "[[change]]", cwd=cwd).code == 0
    return str(json.loads(home.longboat("runs", "--limit", "1", "--format", "json", cwd=cwd).out)["session_id"])


def test_f1_the_diff_in_a_pipe_is_a_patch_that_git_takes(home: Home, cwd: Path, changed: str) -> None:
    done = home.longboat("diff", changed[:35], cwd=cwd)
    assert (done.code, done.err) == (0, "")
    assert done.out == home.longboat("diff", cwd=cwd).out == home.longboat("diff", "--run", "changes", cwd=cwd).out
    assert "\x1b" not in done.out
    raw, _ = home.start("diff", cwd=cwd, text=False).communicate()  # with its CRs
    subprocess.run(["git", "init", "--quiet"], cwd=cwd, check=True)
    subprocess.run(["git", "apply", "--reverse", "-"], cwd=cwd, input=raw, check=True)
    for name in NAMES:
        assert (cwd / name).read_bytes() == contents(name)[0].encode(), name
    assert not (cwd / "new.txt").exists()
    nothing = home.longboat("diff", cwd=cwd)
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "No changes.\n")


def test_f1_the_numbers_are_a_table_and_people_see_colors(home: Home, cwd: Path, changed: str) -> None:
    table = home.longboat("diff", "--stat", cwd=cwd)
    assert table.lines[0].split() == ["FILE", "ADDED", "REMOVED", "BY"]
    assert table.lines[1].split()[:3] == ["plain.txt", "+3", "-3"]
    assert table.lines[-1].split()[:4] == ["9", "files", "+26", "-25"]
    assert "\t" not in table.out
    terminal = Terminal(home, "diff", cwd=cwd, environ={"NO_COLOR": ""})
    assert terminal.finish() == 0
    assert "\x1b[32m+three" in terminal.seen
    assert "\x1b[31m-3" in terminal.seen


def test_f1_what_is_not_there_is_said(home: Home, cwd: Path) -> None:
    done = home.longboat("diff", cwd=cwd)
    assert (done.code, done.out) == (1, "")
    assert "No sessions in this directory yet" in done.err
    both = home.longboat("diff", "some", "--run", "other", cwd=cwd)
    assert both.code == 2
    assert os.listdir(cwd) == []
