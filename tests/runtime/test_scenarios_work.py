"""Whole coding tasks in real git repositories: a bug fixed, a name changed everywhere, a module written (A1–A4)."""

import sys
from pathlib import Path
from typing import Any

import pytest
from scenario import PLAIN, call, open_scenario

from longboat.testing import Say, Think
from longboat.wire.models import Outcome

TEST = f"{sys.executable} -B -m unittest -q"

BASKET = """def total(prices, discount=0):
    result = 0
    for price in prices:
        result = price
    return result * (1 - discount)
"""
TEST_BASKET = """import unittest
from basket import total


class Total(unittest.TestCase):
    def test_all_prices_count(self):
        self.assertEqual(total([1, 2, 3]), 6)

    def test_a_discount(self):
        self.assertEqual(total([10], 0.5), 5)
"""


async def test_a_failing_test_is_found_and_fixed(tmp_path: Path) -> None:
    """A1, A3: run, look, edit, run again; the repository has exactly that change."""
    steps: list[list[Any]] = [
        [Think("First see it fail."), Say("I run the tests."), call("bash", command=TEST)],
        [call("grep", pattern="result ="), call("view", path="basket.py"), call("view", path="test_basket.py")],
        [call("edit", path="basket.py", old_text="        result = price", new_text="        result += price")],
        [call("bash", command=TEST)],
        [Say("Fixed: the prices were not added up.")],
    ]
    files = {"basket.py": BASKET, "test_basket.py": TEST_BASKET}
    async with open_scenario(tmp_path, steps, files=files) as scene:
        assert (await scene.turn("find the failing test and fix it")).text == "Fixed: the prices were not added up."
        first, *_, last = scene.results()
        assert first.is_error
        assert "test_all_prices_count" in first.content
        assert (last.is_error, "OK" in last.content) == (False, True)
        assert scene.git("diff", "--stat", "--", "*.py").endswith("1 insertion(+), 1 deletion(-)")
        assert "+        result += price" in scene.git("diff")
        (change,) = scene.watcher.of("file")
        assert (change.path, change.additions, change.deletions) == ("basket.py", 1, 1)
        await scene.check()


SHOP = {
    "shop/__init__.py": "from shop.prices import calc\n",
    "shop/prices.py": "def calc(items):\n    return sum(items)\n\n\ndef calculator():\n    return calc\n",
    "shop/till.py": "from shop.prices import calc\n\n\ndef pay(items):\n    print('calc')\n    return calc(items)\n",
    "test_shop.py": (
        "import unittest\nfrom shop import add_up\nfrom shop.till import pay\n\n\nclass Shop(unittest.TestCase):\n"
        "    def test_pay(self):\n        self.assertEqual(pay([1, 2]), add_up([3]))\n"
    ),
}


async def test_a_name_is_changed_across_files_by_hand(tmp_path: Path) -> None:
    """A1, A3: found with grep, read, changed with edit and multiedit; an edit of what was not read is refused."""
    steps: list[list[Any]] = [
        [call("grep", pattern=r"\bcalc\b", mode="files")],
        [call("edit", path="shop/till.py", old_text="calc", new_text="add_up", replace_all=True)],
        [call("view", path=name) for name in ("shop/__init__.py", "shop/prices.py", "shop/till.py")],
        [
            call("edit", path="shop/__init__.py", old_text="import calc", new_text="import add_up"),
            call(
                "multiedit",
                path="shop/prices.py",
                edits=[
                    {"old_text": "def calc(items)", "new_text": "def add_up(items)"},
                    {"old_text": "return calc\n", "new_text": "return add_up\n"},
                ],
            ),
            call(
                "multiedit",
                path="shop/till.py",
                edits=[
                    {"old_text": "import calc", "new_text": "import add_up"},
                    {"old_text": "return calc(", "new_text": "return add_up("},
                ],
            ),
        ],
        [call("bash", command=TEST)],
        [Say("Renamed.")],
    ]
    async with open_scenario(tmp_path, steps, files=SHOP) as scene:
        assert (await scene.turn("rename calc to add_up")).outcome is Outcome.END_TURN
        found, unread, *rest = scene.results()
        assert {"shop/__init__.py", "shop/prices.py", "shop/till.py"} <= set(found.content.split())
        assert (unread.is_error, "has not been read" in unread.content) == (True, True)
        assert [part.is_error for part in rest] == [False] * 7
        assert scene.read("shop/prices.py").count("add_up") == 2
        assert "calculator" in scene.read("shop/prices.py")
        assert "print('calc')" in scene.read("shop/till.py")
        assert scene.git("diff", "--name-only").split() == ["shop/__init__.py", "shop/prices.py", "shop/till.py"]
        await scene.check()


async def test_a_name_is_changed_across_files_by_a_language_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A1: `rename` through a real basedpyright; strings and names that look alike stay; undo takes it all back."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)  # else ours is taken out of the PATH again
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    steps: list[list[Any]] = [
        [call("rename", path="shop/prices.py", symbol="calc", new_name="add_up", line=1)],
        [call("bash", command=TEST)],
        [Say("Renamed.")],
    ]
    lsp = {**PLAIN["lsp"], "basedpyright": {}}
    async with open_scenario(tmp_path, steps, files=SHOP, config={"lsp": lsp}) as scene:
        assert (await scene.turn("rename calc to add_up")).outcome is Outcome.END_TURN
        scene.fine()
        assert scene.read("shop/__init__.py") == "from shop.prices import add_up\n"
        assert "print('calc')" in scene.read("shop/till.py")
        assert sorted(change.path for change in scene.watcher.of("file")) == [
            "shop/__init__.py",
            "shop/prices.py",
            "shop/till.py",
        ]
        assert [event.state for event in scene.watcher.of("lsp_event")][:2] == ["starting", "ready"]
        await scene.check()
        await scene.workspace.undo_turn(scene.running.session_id)
        assert scene.git("status", "--porcelain", "--", "*.py") == ""


async def test_a_module_is_written_with_its_tests(tmp_path: Path) -> None:
    """A1: new files in new directories, run, listed; the plan is shown; undo removes them."""
    module = "def slug(text):\n    return '-'.join(text.lower().split())\n"
    test = (
        "import unittest\nfrom words.slugs import slug\n\n\nclass Slug(unittest.TestCase):\n"
        "    def test_it(self):\n        self.assertEqual(slug('Two Words'), 'two-words')\n"
    )
    steps: list[list[Any]] = [
        [
            call("todos", items=[{"text": "write", "state": "in_progress"}, {"text": "test"}]),
            call("write", path="words/slugs.py", content=module),
            call("write", path="words/__init__.py", content=""),
            call("write", path="tests/test_slugs.py", content=test),
        ],
        [call("bash", command=f"{TEST} tests.test_slugs"), call("glob", pattern="**/*.py"), call("ls", path=".")],
        [call("todos", items=[{"text": "write", "state": "completed"}, {"text": "test", "state": "completed"}])],
        [Say("There it is.")],
    ]
    async with open_scenario(tmp_path, steps, files={"README.md": "# Words\n"}) as scene:
        assert (await scene.turn("write a slug module with tests")).outcome is Outcome.END_TURN
        scene.fine()
        assert scene.read("words/slugs.py") == module
        assert sorted(change.path for change in scene.watcher.of("file")) == [
            "tests/test_slugs.py",
            "words/__init__.py",
            "words/slugs.py",
        ]
        assert [[item.state for item in todos.items] for todos in scene.watcher.of("todo")] == [
            ["in_progress", "pending"],
            ["completed", "completed"],
        ]
        await scene.check()
        await scene.workspace.undo_turn(scene.running.session_id)
        left = scene.git("status", "--porcelain", "--untracked-files=all", "--", "*.py")
        assert left == "", left
