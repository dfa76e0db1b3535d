"""What a turn reads before its first step: once, as it is then, and no more than it needs."""

import asyncio
import threading
from pathlib import Path

import pytest
from old_files import LaterClock, changed
from scenario import git, open_scenario

from longboat.context import stamps
from longboat.runtime.workspace.project_files import SharedReading
from longboat.testing import Say


async def test_a_prompt_sees_files_that_changed_since_the_prompt_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A5, although unchanged files are not read again."""
    monkeypatch.setattr(stamps, "time", LaterClock)
    files = {"AGENTS.md": "Be brief.", ".agents/skills/pdf/SKILL.md": "---\ndescription: forms\n---\n"}
    async with open_scenario(tmp_path, [[Say("one")], [Say("two")], [Say("three")]], files=files) as scene:
        await scene.turn("one", "r1")
        await scene.turn("two", "r2")
        (scene.path / "AGENTS.md").write_text("Be very brief.")
        (scene.path / ".agents/skills/pdf/SKILL.md").write_text("---\ndescription: all forms\n---\n")
        (scene.path / ".agents/agents").mkdir()
        (scene.path / ".agents/agents/critic.md").write_text("---\ndescription: finds mistakes\n---\nFind them.\n")
        changed(scene.path / ".agents/agents")
        git(scene.path, "checkout", "-q", "-b", "another")
        await scene.turn("three", "r3")
        before, same, after = (request.system for request in scene.model.requests)
        assert before == same
        assert ("Be very brief." in after, "- pdf: all forms" in after, "- critic: finds" in after) == (True,) * 3
        assert "Git: branch another" in str(scene.model.requests[-1].messages[-1].parts[0])


async def test_who_asks_during_a_reading_shares_the_next_one() -> None:
    """What is read begins after each of them asked."""
    may_end, count = threading.Semaphore(0), 0

    def read() -> int:
        nonlocal count
        count += 1
        mine = count
        may_end.acquire()
        return mine

    shared = SharedReading(read)
    first = shared.get()
    others = [shared.get(), shared.get()]
    may_end.release(2)
    assert await asyncio.gather(first, *others) == [1, 2, 2]
    may_end.release()
    assert await shared.get() == 3


async def test_a_reading_that_fails_fails_for_those_who_share_it_and_not_for_the_next() -> None:
    broken = [True, True]

    def read() -> str:
        if broken and broken.pop():
            raise OSError("broken")
        return "read"

    shared = SharedReading(read)
    found = await asyncio.gather(shared.get(), shared.get(), shared.get(), return_exceptions=True)
    assert [type(each) for each in found] == [OSError] * 3
    assert await shared.get() == "read"


async def test_a_turn_that_is_canceled_while_it_reads_leaves_the_others_alone() -> None:
    may_end = threading.Semaphore(0)

    def read() -> str:
        may_end.acquire()
        return "read"

    shared = SharedReading(read)
    first, second, third = shared.get(), shared.get(), shared.get()
    first.cancel()
    second.cancel()
    may_end.release(2)
    assert await third == "read"
    may_end.release()
    assert await shared.get() == "read"
