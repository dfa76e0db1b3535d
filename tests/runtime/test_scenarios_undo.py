"""Undo and redo after real tasks (A4): a run's own changes and nothing else. opencode #33940, #49732."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from crash import crashed, restarted
from other_processes import wait_until_replacing
from running_app import launch, unprivileged
from scenario import Parts, call, open_scenario

from longboat.errors import NothingToUndo, OwnerLost, UndoConflict
from longboat.testing import Say, ScriptedModel
from longboat.tools.files.file_io import REPLACING
from longboat.tools.files.restore import Restore, content_of, put_back
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
            await scene.workspace.undo_turn(scene.running.session_id)
        assert "a.txt" not in refused.value.message
        assert (scene.read("a.txt"), scene.read("b.txt")) == ("two\n", "two\nby hand\n")
        assert len(await scene.running.messages()) == 4
        (scene.path / "b.txt").write_text("two\n")
        assert (await scene.workspace.undo_turn(scene.running.session_id)).files == ("a.txt", "b.txt")
        assert scene.git("status", "--porcelain") == ""
        assert await scene.running.messages() == ()


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
        assert (await scene.workspace.undo_turn(scene.running.session_id)).files == ("a.txt",)
        assert [scene.read(name) for name in FILES] == ["one\n", "yours\n", "by hand\n"]
        assert len(await scene.running.messages(other)) == 4
        await scene.workspace.redo_turn(scene.running.session_id)
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
            await scene.workspace.undo_turn(scene.running.session_id)
        await scene.workspace.undo_turn(other)
        assert scene.read("a.txt") == "mine\n"
        await scene.workspace.undo_turn(scene.running.session_id)
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
        undone = await scene.workspace.undo_turn(scene.running.session_id)
        assert sorted(undone.files) == ["a.txt", "b.txt", "c.txt", "new.txt"]
        assert scene.git("status", "--porcelain") == ""
        redone = await scene.workspace.redo_turn(scene.running.session_id)
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
        await scene.workspace.undo_turn(scene.running.session_id)
        assert (await scene.turn("make it three", "r2")).text == "three it is"
        assert "two" not in str(scene.model.requests[-1].messages)
        assert scene.read("a.txt") == "three\n"
        with pytest.raises(NothingToUndo):
            await scene.workspace.redo_turn(scene.running.session_id)
        assert scene.read("a.txt") == "three\n"
        await scene.workspace.undo_turn(scene.running.session_id)
        with pytest.raises(NothingToUndo):
            await scene.workspace.undo_turn(scene.running.session_id)
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
        await scene.workspace.undo_turn(scene.running.session_id)
        await scene.turn("three", "r2")
        last = scene.results()[-1]
        assert (last.is_error, "View it again" in last.content) == (True, True)
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
            await scene.workspace.undo_turn(scene.running.session_id)
            assert (scene.read("run.sh"), (scene.path / "deep/new.sh").exists()) == ("one\n", False)
            await scene.workspace.redo_turn(scene.running.session_id)
            assert (scene.read("run.sh"), scene.read("deep/new.sh")) == ("three\n", "2\n")
        assert os.access(scene.path / "run.sh", os.X_OK)


async def test_undo_of_a_canceled_run_takes_back_what_it_had_done(tmp_path: Path) -> None:
    steps: list[list[Any]] = [edit("a.txt", "one", "two"), [call("bash", command="echo on; sleep 600")]]
    async with open_scenario(tmp_path, steps, files=FILES) as scene:
        await scene.start("edit")
        await scene.showing("on")
        assert (await scene.cancel()).outcome is Outcome.CANCELED
        await scene.check()
        assert (await scene.workspace.undo_turn(scene.running.session_id)).files == ("a.txt",)
        assert scene.git("status", "--porcelain") == ""


async def test_undo_refuses_where_a_person_changed_a_file_between_two_edits_of_the_turn(tmp_path: Path) -> None:
    """A4: what was theirs cannot be told from what was ours, so all of it stays."""
    steps: list[list[Any]] = [
        [*edit("a.txt", "one", "two"), *edit("b.txt", "one", "two")],
        [call("bash", command="echo by hand >> a.txt")],
        edit("a.txt", "two", "three"),
        [Say("done")],
    ]
    async with open_scenario(tmp_path, steps, files=FILES) as scene:
        await scene.turn("edit twice")
        scene.fine()
        with pytest.raises(UndoConflict, match=r"during the turn.*: a\.txt\."):
            await scene.workspace.undo_turn(scene.running.session_id)
        assert (scene.read("a.txt"), scene.read("b.txt")) == ("three\nby hand\n", "two\n")
        assert len(await scene.running.messages()) == 8


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _huge(path: Path) -> None:
    os.truncate(path, 6 << 30)


def _parent_link(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.symlink_to("moved")


def _parent_file(path: Path) -> None:
    path.unlink()
    path.parent.rmdir()
    path.parent.write_text("a file now")


@pytest.mark.parametrize("become", [_pipe, _directory, _link, _huge, _parent_link, _parent_file])
async def test_undo_refuses_a_path_that_became_something_else_and_never_waits_for_it(
    tmp_path: Path, become: Callable[[Path], None]
) -> None:
    """A4: also through a symlink nothing elsewhere is touched. The session goes on."""
    steps: list[list[Any]] = [
        [*edit("a.txt", "one", "two"), call("write", path="new/n.txt", content="new\n")],
        [Say("done")],
        [Say("again")],
    ]
    async with open_scenario(tmp_path, steps, files=FILES) as scene:
        await scene.turn("edit", "r1")
        become(scene.path / "new/n.txt")
        before = scene.git("status", "--porcelain", "--untracked-files=all")
        with pytest.raises(UndoConflict, match=r": new/n\.txt\."):
            await scene.workspace.undo_turn(scene.running.session_id)
        assert scene.read("a.txt") == "two\n"
        assert scene.git("status", "--porcelain", "--untracked-files=all") == before
        assert (await scene.turn("again", "r2")).text == "again"


async def test_a_file_that_a_person_writes_while_undo_works_stays_and_all_others_come_back(tmp_path: Path) -> None:
    """A4: each file is looked at again right before it is replaced; all or nothing."""
    steps: list[list[Any]] = [[*edit("a.txt", "one", "two"), *edit("b.txt", "one", "two")], [Say("done")]]
    async with open_scenario(tmp_path, steps, files=FILES) as scene:
        await scene.turn("edit both")
        with REPLACING:
            undo = asyncio.create_task(scene.workspace.undo_turn(scene.running.session_id))
            await wait_until_replacing(scene.path)
            (scene.path / "b.txt").write_text("by hand\n")
        with pytest.raises(UndoConflict, match=r": b\.txt\."):
            await undo
        assert (scene.read("a.txt"), scene.read("b.txt")) == ("two\n", "by hand\n")
        assert len(await scene.running.messages()) == 4
        assert not list(scene.path.glob(".longboat-*"))


def test_where_the_disk_does_not_take_one_file_the_others_stay_as_they_were_too() -> None:
    """A4: all or nothing."""
    with TemporaryDirectory() as name:
        place = Path(name).resolve()
        (place / "shut").mkdir()
        files = [place / "a.txt", place / "new.txt", place / "shut" / "b.txt"]
        for path in files:
            path.write_text("two\n")
        place.chmod(0o777)
        (place / "shut").chmod(0o555)
        contents = [b"one\n", None, b"one\n"]
        wanted = [Restore(path=path, now=b"two\n", then=then) for path, then in zip(files, contents, strict=True)]
        with unprivileged(), pytest.raises(PermissionError):
            put_back(wanted, lambda: True)
        assert [path.read_text() for path in files] == ["two\n"] * 3
        (place / "shut").chmod(0o777)
        put_back(wanted, lambda: True)
        assert [content_of(path, limit=9) for path in files] == contents
        assert sorted(os.listdir(place)) == ["a.txt", "shut"]


def test_g3_files_that_another_server_may_work_on_by_now_are_not_put_back(tmp_path: Path) -> None:
    """The lease ends between the first file and the second. What is left is for the next owner, rolling back too."""
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path in files:
        path.write_text("two\n")
    wanted = [Restore(path=path, now=b"two\n", then=b"one\n") for path in files]
    answers = iter([True, False])
    with pytest.raises(OwnerLost):
        put_back(wanted, lambda: next(answers))
    assert [path.read_text() for path in files] == ["one\n", "two\n"]
    put_back(wanted, lambda: True)
    assert [path.read_text() for path in files] == ["one\n", "one\n"]


async def test_a_crash_right_before_a_change_leaves_nothing_to_undo(tmp_path: Path) -> None:
    """A4: the change is on record and was never made."""
    async with open_scenario(tmp_path, [edit("a.txt", "one", "two"), [Say("done")]], files=FILES) as scene:
        with REPLACING:
            await scene.start("edit")
            await wait_until_replacing(scene.path)
            async with restarted(scene.running, ScriptedModel([])) as again:
                page = await again.workspace.browse.diff(session_id=again.session_id, run_id=None)
                assert page.items == ()
                assert (await again.workspace.undo_turn(again.session_id)).files == ()
                assert scene.watcher.of("file") == []
        await scene.running.completed("r1")
        assert scene.read("a.txt") == "two\n"


async def test_a_crash_right_after_a_change_does_not_hide_it_from_undo(tmp_path: Path) -> None:
    """A4: the file is replaced, and nobody came to say so."""
    async with open_scenario(tmp_path, [edit("a.txt", "one", "two"), [Say("done")]], files=FILES) as scene:
        with REPLACING:
            await scene.start("edit")
            await wait_until_replacing(scene.path)
            left = await crashed(scene.running)
        await scene.running.completed("r1")
        async with launch(left, ScriptedModel([]), session_id=scene.running.session_id) as again:
            assert (await again.workspace.undo_turn(again.session_id)).files == ("a.txt",)
            assert scene.read("a.txt") == "one\n"
            assert (await again.workspace.redo_turn(again.session_id)).files == ("a.txt",)
            assert scene.read("a.txt") == "two\n"


async def test_a_change_that_could_not_be_made_leaves_no_record(tmp_path: Path) -> None:
    """A person is faster: the agent reads why, views again and succeeds, and undo takes back its own change."""
    again = edit("a.txt", "by hand", "two")
    steps: list[list[Any]] = [edit("a.txt", "one", "two"), again, [Say("done")]]
    async with open_scenario(tmp_path, steps, files=FILES) as scene:
        with REPLACING:
            await scene.start("edit")
            await wait_until_replacing(scene.path)
            (scene.path / "a.txt").write_text("by hand\n")
        await scene.running.completed("r1")
        assert [result.is_error for result in scene.results()] == [False, True, False, False]
        await scene.workspace.undo_turn(scene.running.session_id)
        assert scene.read("a.txt") == "by hand\n"
