"""A person redoes what a person undid of a session's changes: a change like the undo itself (A4)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from checks import check_requests
from crash import crashed
from other_processes import wait_until_replacing
from reviews import FILES, LINES, TWO, WITH_TWENTY, WITH_TWO, changed, changes, edit, revert, told
from running_app import launch
from scenario import Scene, call, open_scenario

from longboat.errors import RedoConflict, RevertNotFound, SessionBusy
from longboat.testing import Gate, Pause, Say, ScriptedModel
from longboat.tools.files.file_io import REPLACING
from longboat.wire.review import Reverted, UndoneChange

WITH_THREE = LINES.replace("\n3\n", "\nthree\n")


async def redo(scene: Scene, revert_id: str, by: str | None = "ben:web") -> Reverted:
    return await scene.workspace.redo_revert(scene.running.session_id, revert_id, by)


async def test_a_hunk_is_redone_recorded_and_announced_as_a_change_by_a_person(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, [TWO, [Say("done")]], files=FILES) as scene:
        await scene.turn("change", "r1")
        (before,) = await changed(scene)
        assert (await changes(scene)).undone == ()
        undone = await revert(scene, "a.txt", (0,), by="vera:tui")
        offered = UndoneChange(revert_id=undone.revert_id, path="a.txt", what="1 of 2 hunks", by="vera")
        assert (await changes(scene)).undone == (offered,)
        assert (await changes(scene, path="b.txt")).undone == ()
        assert (await scene.workspace.review.changes(session_id=None, run_id="r1")).undone == ()
        messages = await scene.running.messages()
        done = await redo(scene, undone.revert_id)
        assert scene.read("a.txt") == WITH_TWO
        assert (done.path, done.run_id, done.additions, done.deletions) == ("a.txt", "r1", 1, 1)
        assert (done.revert_id, done.file) == (undone.revert_id, before)
        assert (await changes(scene)).undone == ()
        await scene.watcher.until(lambda _: len(scene.watcher.of("file")) == 3)
        event = scene.watcher.of("file")[-1]
        assert (event.path, event.by, event.run_id) == ("a.txt", "ben:web", "r1")
        assert await scene.running.messages() == messages


async def test_what_was_undone_is_redone_in_any_order_and_can_be_undone_again(tmp_path: Path) -> None:
    parts: list[list[Any]] = [[*TWO, call("write", path="deep/new.txt", content="new\n")], [Say("done")]]
    async with open_scenario(tmp_path, parts, files=FILES) as scene:
        await scene.turn("change", "r1")
        ids = [(await revert(scene, "a.txt", (0,))).revert_id, (await revert(scene, "a.txt")).revert_id]
        ids.append((await revert(scene, "deep/new.txt")).revert_id)
        assert scene.git("status", "--porcelain") == ""
        assert [each.revert_id for each in (await changes(scene)).undone] == ids[::-1]
        await redo(scene, ids[0])
        assert scene.read("a.txt") == WITH_THREE
        await redo(scene, ids[2])
        assert scene.read("deep/new.txt") == "new\n"
        await redo(scene, ids[1])
        assert scene.read("a.txt") == WITH_TWO
        assert (await changes(scene)).undone == ()
        (again,) = {(await revert(scene, "a.txt", (1,))).revert_id} - set(ids)
        assert [each.revert_id for each in (await changes(scene)).undone] == [again]
        assert scene.read("a.txt") == WITH_THREE


async def test_the_next_prompt_tells_of_a_redo_if_the_model_was_told_of_the_undo(tmp_path: Path) -> None:
    parts: list[list[Any]] = [TWO, [Say("done")], [Say("heard")], [Say("heard")], [Say("heard")]]
    async with open_scenario(tmp_path, parts, files=FILES) as scene:
        await scene.turn("change", "r1")
        await redo(scene, (await revert(scene, "a.txt", (1,))).revert_id)
        undone = await revert(scene, "a.txt", (0,))
        await scene.turn("one", "r2")
        assert (len(told(scene)[1]), told(scene)[1][0].count("a.txt")) == (2, 1), "nothing of what was redone at once"
        assert "has undone some" in told(scene)[1][0]
        await redo(scene, undone.revert_id)
        await revert(scene, "a.txt", (1,))
        for prompt, run_id in (("two", "r3"), ("three", "r4")):
            await scene.turn(prompt, run_id)
            redone, again = told(scene)[2][0].splitlines()
            assert "has redone file changes of yours that they had undone: a.txt (1 of 2 hunks)." in redone
            assert "has undone some of your file changes since: a.txt (1 of 2 hunks)." in again
            assert told(scene)[2][1] == "two"
        assert told(scene)[3] == ["three"]
        check_requests(scene.model.requests)


async def test_undo_and_redo_of_the_turn_work_around_what_a_person_redid(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, [TWO, [Say("done")]], files=FILES) as scene:
        await scene.turn("change", "r1")
        session_id = scene.running.session_id
        first = await revert(scene, "a.txt", (0,))
        await revert(scene, "a.txt")
        await redo(scene, first.revert_id)
        for _ in range(2):
            await scene.workspace.undo_turn(session_id)
            assert (scene.read("a.txt"), await changed(scene)) == (LINES, ())
            await scene.workspace.redo_turn(session_id)
            assert scene.read("a.txt") == WITH_THREE
            (left,) = await changed(scene)
            assert (left.hunks, left.others) == (1, False)


async def test_a_redo_after_another_turn_brings_back_the_lines_of_the_first(tmp_path: Path) -> None:
    parts: list[list[Any]] = [TWO, [Say("done")], edit("a.txt", ("\n12", "\ntwelve")), [Say("done")]]
    async with open_scenario(tmp_path, parts, files=FILES) as scene:
        await scene.turn("first", "r1")
        undone = await revert(scene, "a.txt", (0,))
        await scene.turn("second", "r2")
        scene.fine()
        await redo(scene, undone.revert_id)
        with_all = WITH_TWO.replace("\n12\n", "\ntwelve\n")
        assert scene.read("a.txt") == with_all
        (file,) = await changed(scene)
        assert (file.hunks, file.additions, file.runs, file.undone_by) == (3, 3, ("r1", "r2"), ())
        await scene.workspace.undo_turn(scene.running.session_id)
        assert scene.read("a.txt") == WITH_TWO
        await scene.workspace.redo_turn(scene.running.session_id)
        assert scene.read("a.txt") == with_all
        await revert(scene, "a.txt")
        assert scene.read("a.txt") == LINES


async def test_what_others_wrote_meanwhile_stays_and_what_no_longer_fits_is_refused(tmp_path: Path) -> None:
    parts: list[list[Any]] = [[*TWO, call("write", path="new.txt", content="new\n")], [Say("done")]]
    async with open_scenario(tmp_path, parts, files=FILES) as scene:
        await scene.turn("change", "r1")
        hunk, file = (await revert(scene, "a.txt", (0,))).revert_id, (await revert(scene, "new.txt")).revert_id
        (scene.path / "a.txt").write_text(WITH_TWENTY.replace("\n3\n", "\nby hand\n"))
        (scene.path / "new.txt").write_text("by hand\n")
        assert (await changes(scene)).undone == ()
        for revert_id, name in ((hunk, "a.txt"), (file, "new.txt")):
            with pytest.raises(RedoConflict, match=f"undone in {name} no longer fits") as refused:
                await redo(scene, revert_id)
            assert refused.value.code == "redo_conflict"
            assert "by hand" in scene.read(name)
        (scene.path / "a.txt").write_text(WITH_TWENTY + "by hand\n")
        await redo(scene, hunk, by="anna")
        assert scene.read("a.txt") == WITH_TWO + "by hand\n"
        await scene.watcher.until(lambda _: any(event.by == "anna" for event in scene.watcher.of("file")))
        assert len(scene.watcher.of("file")) == 5, "what was refused was not announced"


async def test_an_editor_that_was_faster_loses_nothing(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, [TWO, [Say("done")]], files=FILES) as scene:
        await scene.turn("change")
        undone = await revert(scene, "a.txt", (0,))
        with REPLACING:
            redoing = asyncio.create_task(redo(scene, undone.revert_id))
            await wait_until_replacing(scene.path)
            (scene.path / "a.txt").write_text(WITH_TWENTY + "by hand\n")
        with pytest.raises(RedoConflict):
            await redoing
        assert scene.read("a.txt") == WITH_TWENTY + "by hand\n"
        await redo(scene, undone.revert_id)
        assert scene.read("a.txt") == WITH_TWO + "by hand\n"


async def test_it_is_redone_once_and_only_while_its_turn_stands(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, [TWO, [Say("done")]], files=FILES) as scene:
        await scene.turn("change")
        undone = await revert(scene, "a.txt", (0,))
        await scene.workspace.undo_turn(scene.running.session_id)
        assert (await changes(scene)).undone == ()
        for revert_id in (undone.revert_id, "nothing"):
            with pytest.raises(RevertNotFound, match=revert_id):
                await redo(scene, revert_id)
        assert scene.read("a.txt") == LINES
        await scene.workspace.redo_turn(scene.running.session_id)
        await redo(scene, undone.revert_id)
        with pytest.raises(RedoConflict, match=r"ben has already redone this in a\.txt"):
            await redo(scene, undone.revert_id, by=None)
        assert scene.read("a.txt") == WITH_TWO


async def test_a_session_at_work_refuses(tmp_path: Path) -> None:
    gate = Gate()
    async with open_scenario(tmp_path, [TWO, [Say("done")], [Say("so far"), Pause(gate)]], files=FILES) as scene:
        await scene.turn("change", "r1")
        undone = await revert(scene, "a.txt", (0,))
        await scene.start("more", "r2")
        with pytest.raises(SessionBusy):
            await redo(scene, undone.revert_id)
        gate.open()
        await scene.running.completed("r2")
        await redo(scene, undone.revert_id)
        assert scene.read("a.txt") == WITH_TWO


@pytest.mark.parametrize("is_made", [False, True])
async def test_after_a_crash_it_is_known_whether_it_was_redone(tmp_path: Path, is_made: bool) -> None:
    async with open_scenario(tmp_path, [TWO, [Say("done")]], files=FILES) as scene:
        await scene.turn("change")
        undone = await revert(scene, "a.txt", (0,))
        with REPLACING:
            redoing = asyncio.create_task(redo(scene, undone.revert_id))
            await wait_until_replacing(scene.path)
            left = await crashed(scene.running)
        await redoing
        if not is_made:
            (scene.path / "a.txt").write_text(WITH_TWENTY)
        model = ScriptedModel([[Say("told")]])
        async with launch(left, model, session_id=scene.running.session_id) as again:
            await again.submit("go on", "r2")
            await again.completed("r2")
            assert ("a.txt (1 of 2 hunks)" in str(model.requests[-1].messages)) != is_made
            page = await again.workspace.review.changes(session_id=again.session_id, run_id=None)
            assert (page.items[0].hunks, len(page.undone)) == ((2, 0) if is_made else (1, 1))
            if not is_made:
                await again.workspace.redo_revert(again.session_id, undone.revert_id, None)
            assert scene.read("a.txt") == WITH_TWO
