"""A coding task from the shell, as a script would: `longboat run --yolo` in a git repository, then `longboat undo`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import Site, ended, open_site
from sessions import check_request

from longboat.testing import CallTool, Say

pytestmark = pytest.mark.acceptance

SUMS = "def add(a, b):\n    return a - b\n"
TEST = (
    "import unittest\nfrom sums import add\n\n\nclass Add(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(2, 2), 4)\n"
)
RUN_TESTS = (
    f"{sys.executable} -B -m unittest -q"  # no bytecode: an edit within a second of the last run would not be seen
)


def call(name: str, /, **arguments: Any) -> CallTool:
    return CallTool(name, json.dumps(arguments))


def git(path: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=path, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def check_tests(directory: Path) -> bool:
    return subprocess.run(RUN_TESTS.split(), cwd=directory, check=False, capture_output=True).returncode == 0


def repository(site: Site) -> Path:
    directory = site.project()
    (directory / "sums.py").write_text(SUMS)
    (directory / "test_sums.py").write_text(TEST)
    git(directory, "init", "--quiet")
    (directory / ".gitignore").write_text("__pycache__/\n")
    git(directory, "add", ".")
    git(directory, "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "--quiet", "-m", "begin")
    return directory


async def test_a_failing_test_is_fixed_from_a_script_and_undo_takes_back_exactly_that() -> None:
    """A1–A4, R1, R2: one JSON line per event, exit 0, the tests pass; undo and redo from the shell."""
    async with open_site() as site:
        await site.serve()
        site.model.add(
            [call("bash", command=RUN_TESTS)],
            [call("view", path="sums.py")],
            [call("edit", path="sums.py", old_text="a - b", new_text="a + b")],
            [call("bash", command=RUN_TESTS)],
            [Say("Fixed.")],
            name="fix",
        )
        directory = repository(site)
        run = ["run", "--yolo", "--format", "json", "find the failing test and fix it [[fix]]"]
        done = await ended(await site.longboat(*run, cwd=directory))
        assert done.code == 0, done
        events = [json.loads(line) for line in done.out.splitlines()]
        (complete,) = (event for event in events if event["type"] == "run_complete")
        assert complete["payload"]["payload"]["text"] == "Fixed."
        (change,) = (event["payload"]["payload"] for event in events if event["type"] == "file")
        assert (change["path"], change["additions"], change["deletions"]) == ("sums.py", 1, 1)
        assert not [event for event in events if event["type"] == "permission_request"]
        assert git(directory, "diff", "--name-only") == "sums.py"
        assert check_tests(directory)
        for exchange in site.model.requests:
            check_request(exchange.body)
        undone = await ended(await site.longboat("undo", cwd=directory))
        assert (undone.code, "sums.py" in undone.out) == (0, True)
        assert git(directory, "status", "--porcelain") == ""
        redone = await ended(await site.longboat("redo", cwd=directory))
        assert (redone.code, (directory / "sums.py").read_text()) == (0, SUMS.replace("-", "+"))
        (directory / "sums.py").write_text("by hand\n")
        refused = await ended(await site.longboat("undo", cwd=directory))
        assert (refused.code, "sums.py" in refused.err) == (1, True)
        assert (directory / "sums.py").read_text() == "by hand\n"


async def test_a_run_that_nobody_can_answer_for_ends_with_a_clear_message() -> None:
    """A2: it does not hang, nothing was done, and it says what would help."""
    async with open_site() as site:
        await site.serve()
        site.model.add([call("bash", command="touch made")], [Say("never")], name="ask")
        directory = repository(site)
        done = await ended(await site.longboat("run", "[[ask]]", cwd=directory))
        assert done.code == 1, done
        assert ("touch made" in done.err, "--yolo" in done.err) == (True, True)
        assert not (directory / "made").exists()
