"""Undo and redo after real tasks (A4): a run's own changes and nothing else. opencode #33940, #49732."""

import os
from pathlib import Path
from typing import Any

import pytest
from scenario import Parts, call, open_scenario

from longboat.errors import NothingToUndo, UndoConflict
from longboat.testing import Say
from longboat.wire.models import Outcome
from longboat.wire.requests import CreateSession

FILES = {"a.txt": "one\n", "b.txt": "one\n", "c.txt": "one\n"}


def edit(name: str, old: str, new: str) -> list[Any]:
    return [call("view", path=name), call("edit", path=name, old_text=old, new_text=new)]


async def test_undo_refuses_where_a_person_changed_a_file_since_says_which_and_touches_nothing(tmp_path: Path) -> None:
    steps: list[list[Any]] = [[*edit("a.txt", "one", "two"), *edit("b.txt", "one", "two")], [Say("done")]]
    async with open_scenario(tmp_path, steps, files=FILES) as scene:
        await scene.turn("edit both")
        scene.fine()
        await scene.check()
        (scene.path / "b.txt").write_text("two\nby hand\n")
        with pytest.raises(UndoConflict, match=r"b\.txt") as refused:
            await scene.workspace.undo_turn(scene.boat.session_id)
        assert "a.txt" not in refused.value.message
        assert (scene.read("a.txt"), scene.read("b.txt")) == ("two\n", "two\nby hand\n")
        assert len(await scene.boat.messages()) == 4
        (scene.path / "b.txt").write_text("two\n")
        assert (await scene.workspace.undo_turn(scene.boat.session_id)).files == ("a.txt", "b.txt")
        assert scene.git("status", "--porcelain") == ""
        assert await scene.boat.messages() == ()


async def test_undo_leaves_other_sessions_and_people_alone(tmp_path: Path) -> None:
    """Two sessions and a person in one directory: each file is as its last own writer left it."""
    parts: dict[str, list[list[Any]]] = {
        "mine": [edit("a.txt", "one", "mine"), [Say("done")]],
        "yours": [edit("b.txt", "one", "yours"), [Say("done")]],
    }
    async with open_scenario(tmp_path, Parts(parts), files=FILES) as scene:
        other = (await scene.workspace.create_session(CreateSession())).id
        await scene.turn("mine", "r1")
        await scene.turn("yours", "r2", session_id=other)
        (scene.path / "c.txt").write_text("by hand\n")
        await scene.check()
        assert (await scene.workspace.undo_turn(scene.boat.session_id)).files == ("a.txt",)
        assert [scene.read(name) for name in FILES] == ["one\n", "yours\n", "by hand\n"]
        assert len(await scene.boat.messages(other)) == 4
        await scene.workspace.redo_turn(scene.boat.session_id)
        assert [scene.read(name) for name in FILES] == ["mine\n", "yours\n", "by hand\n"]


async def test_undo_of_a_file_that_another_session_changed_after_is_refused(tmp_path: Path) -> None:
    parts: dict[str, list[list[Any]]] = {
        "mine": [edit("a.txt", "one", "mine"), [Say("done")]],
        "yours": [edit("a.txt", "mine", "yours"), [Say("done")]],
    }
    async with open_scenario(tmp_path, Parts(parts), files=FILES) as scene:
        other = (await scene.workspace.create_session(CreateSession())).id
        await scene.turn("mine", "r1")
        await scene.turn("yours", "r2", session_id=other)
        with pytest.raises(UndoConflict, match=r"a\.txt"):
            await scene.workspace.undo_turn(scene.boat.session_id)
        await scene.workspace.undo_turn(other)
        assert scene.read("a.txt") == "mine\n"
        await scene.workspace.undo_turn(scene.boat.session_id)
        assert scene.git("status", "--porcelain") == ""


async def test_undo_of_a_run_takes_back_what_its_sub_agents_changed(tmp_path: Path) -> None:
    hand = "---\ndescription: Edits.\nread_only: false\n---\nYou edit.\n"
    parts: dict[str, list[list[Any]]] = {
        "split": [
            [call("agent", prompt="left", agent="hand"), call("agent", prompt="right", agent="hand")],
            edit("c.txt", "one", "top"),
            [Say("all done")],
        ],
        "left": [edit("a.txt", "one", "left"), [Say("left done")]],
        "right": [[*edit("b.txt", "one", "right"), call("write", path="new.txt", content="n\n")], [Say("right done")]],
    }
    files = {**FILES, ".agents/agents/hand.md": hand}
    async with open_scenario(tmp_path, Parts(parts), files=files) as scene:
        assert (await scene.turn("split")).text == "all done"
        scene.fine()
        assert [scene.read(name) for name in FILES] == ["left\n", "right\n", "top\n"]
        assert {change.run_id for change in scene.watcher.of("file")} == {"r1"}
        await scene.check()
        undone = await scene.workspace.undo_turn(scene.boat.session_id)
        assert sorted(undone.files) == ["a.txt", "b.txt", "c.txt", "new.txt"]
        assert scene.git("status", "--porcelain") == ""
        redone = await scene.workspace.redo_turn(scene.boat.session_id)
        assert sorted(redone.files) == ["a.txt", "b.txt", "c.txt", "new.txt"]
        assert [scene.read(name) for name in (*FILES, "new.txt")] == ["left\n", "right\n", "top\n", "n\n"]


async def test_a_new_prompt_after_an_undo_starts_from_there_and_redo_is_over(tmp_path: Path) -> None:
    """What was undone is not shown to the model, and cannot come back over newer work."""
    steps: list[list[Any]] = [
        edit("a.txt", "one", "two"),
        [Say("two it is")],
        edit("a.txt", "one", "three"),
        [Say("three it is")],
    ]
    async with open_scenario(tmp_path, steps, files=FILES) as scene:
        await scene.turn("make it two", "r1")
        await scene.workspace.undo_turn(scene.boat.session_id)
        assert (await scene.turn("make it three", "r2")).text == "three it is"
        assert "two" not in str(scene.model.requests[-1].messages)
        assert scene.read("a.txt") == "three\n"
        with pytest.raises(NothingToUndo):
            await scene.workspace.redo_turn(scene.boat.session_id)
        assert scene.read("a.txt") == "three\n"
        await scene.workspace.undo_turn(scene.boat.session_id)
        with pytest.raises(NothingToUndo):
            await scene.workspace.undo_turn(scene.boat.session_id)
        assert scene.git("status", "--porcelain") == ""


async def test_after_an_undo_an_edit_needs_a_fresh_look_at_the_file(tmp_path: Path) -> None:
    """A3: what the session had read is not what is there now."""
    steps: list[list[Any]] = [
        edit("a.txt", "one", "two"),
        [Say("done")],
        [call("edit", path="a.txt", old_text="one", new_text="three")],
        [Say("refused")],
    ]
    async with open_scenario(tmp_path, steps, files=FILES) as scene:
        await scene.turn("two", "r1")
        await scene.workspace.undo_turn(scene.boat.session_id)
        await scene.turn("three", "r2")
        last = scene.results()[-1]
        assert (last.is_error, "view it again" in last.content) == (True, True)
        assert scene.read("a.txt") == "one\n"


async def test_several_changes_of_one_file_are_one_in_the_end(tmp_path: Path) -> None:
    """Made, changed, and a file's mode: all as before after undo, all as after it after redo."""
    steps: list[list[Any]] = [
        [call("write", path="deep/new.sh", content="1\n")],
        [call("edit", path="deep/new.sh", old_text="1", new_text="2")],
        [call("view", path="run.sh"), call("edit", path="run.sh", old_text="one", new_text="two")],
        [call("edit", path="run.sh", old_text="two", new_text="three")],
        [Say("done")],
    ]
    async with open_scenario(tmp_path, steps, files={"run.sh": "one\n"}) as scene:
        (scene.path / "run.sh").chmod(0o755)
        await scene.turn("change")
        scene.fine()
        await scene.check()
        for _ in range(2):
            await scene.workspace.undo_turn(scene.boat.session_id)
            assert (scene.read("run.sh"), (scene.path / "deep/new.sh").exists()) == ("one\n", False)
            await scene.workspace.redo_turn(scene.boat.session_id)
            assert (scene.read("run.sh"), scene.read("deep/new.sh")) == ("three\n", "2\n")
        assert os.access(scene.path / "run.sh", os.X_OK)


async def test_undo_of_a_canceled_run_takes_back_what_it_had_done(tmp_path: Path) -> None:
    steps: list[list[Any]] = [edit("a.txt", "one", "two"), [call("bash", command="echo on; sleep 600")]]
    async with open_scenario(tmp_path, steps, files=FILES) as scene:
        await scene.start("edit")
        await scene.showing("on")
        assert (await scene.cancel()).outcome is Outcome.CANCELED
        await scene.check()
        assert (await scene.workspace.undo_turn(scene.boat.session_id)).files == ("a.txt",)
        assert scene.git("status", "--porcelain") == ""
