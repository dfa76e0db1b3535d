"""The changes of a session as they stand, one row per file, and what a person undoes of them (A4)."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checks import check_requests
from crash import crashed
from other_processes import wait_until_replacing
from reviews import FILES, LINES, TWO, WITH_TWENTY, WITH_TWO, changed, edit, revert, told
from running_app import launch
from scenario import Parts, Scene, call, open_scenario

from longboat.errors import BadInput, ChangeNotFound, RevertConflict, SessionBusy, UndoConflict
from longboat.testing import Gate, Pause, Say, ScriptedModel
from longboat.tools.files.file_io import REPLACING
from longboat.wire.events import Change
from longboat.wire.models import Role
from longboat.wire.requests import CreateSession, Revert
from longboat.wire.review import ChangedFile


async def test_a_file_that_was_edited_often_is_one_row_also_if_somebody_else_edited_it_in_between(
    tmp_path: Path,
) -> None:
    parts: list[list[Any]] = [
        edit("a.txt", ("\n3", "\nthree")),
        [Say("done")],
        edit("a.txt", ("three", "drei"), ("\n20", "\ntwenty")),
        [Say("done")],
    ]
    async with open_scenario(tmp_path, parts, files=FILES) as scene:
        await scene.turn("first", "r1", client_id="anna")
        (scene.path / "a.txt").write_text(scene.read("a.txt").replace("\n10\n", "\nby hand\n"))
        await scene.turn("second", "r2", client_id="ben")
        scene.fine()
        (file,) = await changed(scene)
        assert (file.path, file.change, file.additions, file.deletions) == ("a.txt", Change.UPDATED, 2, 2)
        assert (file.runs, file.by, file.others, file.hunks) == (("r1", "r2"), ("anna", "ben"), True, 2)
        assert "by hand" not in file.diff
        assert [line for line in file.diff.splitlines()[2:] if line[0] in "+-"] == ["-3", "+drei", "-20", "+twenty"]
        assert len((await scene.workspace.browse.diff(session_id=scene.running.session_id, run_id=None)).items) == 2
        (first,) = (await scene.workspace.review.changes(session_id=None, run_id="r1")).items
        assert (first.runs, first.by) == (("r1",), ("anna",))
        (brief,) = await changed(scene, diffs=False)
        assert (brief.diff, brief.additions, brief.digest) == ("", 2, file.digest)
        assert await changed(scene, path="b.txt") == ()
        # The whole file is undone, and the edit of the other stays.
        assert (await revert(scene, "a.txt")).file is None
        assert scene.read("a.txt") == LINES.replace("\n10\n", "\nby hand\n")
        assert await changed(scene) == ()


async def test_a_hunk_is_undone_by_a_person_recorded_announced_and_told_with_the_next_prompt(tmp_path: Path) -> None:
    parts: list[list[Any]] = [TWO, [Say("done")], [Say("understood")], [Say("again")]]
    async with open_scenario(tmp_path, parts, files=FILES) as scene:
        await scene.turn("change", "r1")
        before = await scene.running.messages()
        done = await revert(scene, "a.txt", (0,))
        assert scene.read("a.txt") == WITH_TWENTY
        assert (done.path, done.run_id, done.additions, done.deletions) == ("a.txt", "r1", 1, 1)
        assert done.file is not None
        assert (done.file.hunks, done.file.undone_by, done.file.others) == (1, ("vera",), False)
        await scene.watcher.until(lambda _: len(scene.watcher.of("file")) == 2)
        event = scene.watcher.of("file")[-1]
        assert (event.path, event.by, event.run_id) == ("a.txt", "vera", "r1")
        assert await scene.running.messages() == before
        for prompt, run_id in (("and now?", "r2"), ("once more", "r3")):
            await scene.turn(prompt, run_id)
            texts = told(scene)
            assert [len(each) for each in texts][:2] == [1, 2]
            assert "a.txt (1 of 2 hunks)" in texts[1][0]
            assert texts[1][1] == "and now?"
        assert told(scene)[2] == ["once more"]
        prompts = [message for message in await scene.running.messages() if message.role is Role.USER]
        assert [len(message.parts) for message in prompts] == [1, 1, 1]
        check_requests(scene.model.requests)


async def test_a_note_outlives_an_undo_of_the_turn_that_it_was_told_to(tmp_path: Path) -> None:
    parts: list[list[Any]] = [TWO, [Say("done")], [Say("heard")], [Say("heard again")]]
    async with open_scenario(tmp_path, parts, files=FILES) as scene:
        await scene.turn("change", "r1")
        await revert(scene, "a.txt", (0,))
        await scene.turn("hear", "r2")
        await scene.workspace.undo_turn(scene.running.session_id)
        await scene.turn("hear again", "r3")
        assert "a.txt (1 of 2 hunks)" in told(scene)[1][0]


async def test_what_was_undone_of_a_turn_that_stands_is_told_even_if_a_later_turn_is_undone(tmp_path: Path) -> None:
    parts: list[list[Any]] = [
        edit("a.txt", ("\n3", "\nthree")),
        [Say("done")],
        edit("a.txt", ("\n20", "\ntwenty")),
        [Say("done")],
        [Say("understood")],
    ]
    async with open_scenario(tmp_path, parts, files=FILES) as scene:
        await scene.turn("one", "r1")
        await scene.turn("two", "r2")
        await revert(scene, "a.txt", (0,))
        await scene.workspace.undo_turn(scene.running.session_id)
        assert scene.read("a.txt") == LINES, "what the first turn did stays undone"
        await scene.turn("three", "r3")
        assert "a.txt (1 of 2 hunks)" in str(scene.model.requests[-1].messages)


async def test_undo_and_redo_of_the_turn_work_around_what_a_person_undid(tmp_path: Path) -> None:
    parts: list[list[Any]] = [[*TWO, call("write", path="new.txt", content="new\n")], [Say("done")]]
    async with open_scenario(tmp_path, parts, files=FILES) as scene:
        await scene.turn("change", "r1")
        await revert(scene, "a.txt", (0,))
        await revert(scene, "new.txt")
        assert not (scene.path / "new.txt").exists()
        for _ in range(2):
            assert (await scene.workspace.undo_turn(scene.running.session_id)).files == ("a.txt",)
            assert scene.git("status", "--porcelain") == ""
            assert await changed(scene) == ()
            await scene.workspace.redo_turn(scene.running.session_id)
            assert (scene.read("a.txt"), (scene.path / "new.txt").exists()) == (WITH_TWENTY, False)


async def test_right_after_undo_and_redo_the_rows_the_lines_and_the_people_are_those_of_what_stands(
    tmp_path: Path,
) -> None:
    parts: list[list[Any]] = [
        edit("a.txt", ("\n3", "\nthree")),
        [Say("done")],
        [*edit("a.txt", ("\n20", "\ntwenty")), call("write", path="new.txt", content="a\nb\n")],
        [Say("done")],
    ]

    def rows(files: tuple[ChangedFile, ...]) -> list[tuple[Any, ...]]:
        return [
            (file.path, file.change, file.additions, file.deletions, file.by, file.runs, file.others) for file in files
        ]

    first = [("a.txt", Change.UPDATED, 1, 1, ("anna",), ("r1",), False)]
    both = [
        ("a.txt", Change.UPDATED, 2, 2, ("anna", "ben"), ("r1", "r2"), False),
        ("new.txt", Change.CREATED, 2, 0, ("ben",), ("r2",), False),
    ]
    async with open_scenario(tmp_path, parts, files=FILES) as scene:
        await scene.turn("first", "r1", client_id="anna")
        await scene.turn("second", "r2", client_id="ben")
        session_id = scene.running.session_id
        for _ in range(2):
            assert rows(await changed(scene)) == both
            await scene.workspace.undo_turn(session_id)
            assert rows(await changed(scene)) == first
            assert (await scene.workspace.review.changes(session_id=None, run_id="r2")).items == ()
            await scene.workspace.undo_turn(session_id)
            assert rows(await changed(scene)) == []
            await scene.workspace.redo_turn(session_id)
            assert rows(await changed(scene)) == first
            await scene.workspace.redo_turn(session_id)


async def test_undo_of_the_second_turn_keeps_what_a_person_undid_of_the_first(tmp_path: Path) -> None:
    parts: list[list[Any]] = [
        edit("a.txt", ("\n3", "\nthree"), ("\n20", "\ntwenty")),
        [Say("done")],
        edit("a.txt", ("three", "drei"), ("\n12", "\ntwelve")),
        [Say("done")],
    ]
    async with open_scenario(tmp_path, parts, files=FILES) as scene:
        await scene.turn("first", "r1")
        await scene.turn("second", "r2")
        scene.fine()
        await revert(scene, "a.txt", (0,))  # 3 → drei, by both
        both = scene.read("a.txt")
        assert both == WITH_TWENTY.replace("\n12\n", "\ntwelve\n")
        await scene.workspace.undo_turn(scene.running.session_id)
        assert scene.read("a.txt") == WITH_TWENTY
        await scene.workspace.redo_turn(scene.running.session_id)
        assert scene.read("a.txt") == both
        await scene.workspace.undo_turn(scene.running.session_id)
        (left,) = await changed(scene)
        assert (left.hunks, left.additions) == (1, 1)
        # What is undone while a turn is undone stays undone when that is redone.
        await revert(scene, "a.txt", None)
        await scene.workspace.redo_turn(scene.running.session_id)
        assert scene.read("a.txt") == LINES.replace("\n12\n", "\ntwelve\n")
        await scene.workspace.undo_turn(scene.running.session_id)
        await scene.workspace.undo_turn(scene.running.session_id)
        assert scene.git("status", "--porcelain") == ""


async def test_an_editor_that_was_faster_loses_nothing(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, [TWO, [Say("done")]], files=FILES) as scene:
        await scene.turn("change")
        (file,) = await changed(scene)
        (scene.path / "a.txt").write_text("by hand\n")
        wanted = Revert(path="a.txt", digest=file.digest, hunks=(0,))
        with pytest.raises(RevertConflict, match=r"a\.txt has changed since"):
            await scene.workspace.revert(scene.running.session_id, wanted)
        assert scene.read("a.txt") == "by hand\n"
        (scene.path / "a.txt").write_text(WITH_TWO)
        with REPLACING:
            undoing = asyncio.create_task(scene.workspace.revert(scene.running.session_id, wanted))
            await wait_until_replacing(scene.path)
            (scene.path / "a.txt").write_text("by hand\n")
        with pytest.raises(RevertConflict, match=r"a\.txt has changed since"):
            await undoing
        assert (scene.read("a.txt"), len(scene.watcher.of("file"))) == ("by hand\n", 1)
        (scene.path / "a.txt").write_text(WITH_TWO)
        assert (await scene.workspace.revert(scene.running.session_id, wanted)).file is not None
        assert scene.read("a.txt") == WITH_TWENTY


async def test_a_session_at_work_refuses_as_for_undo(tmp_path: Path) -> None:
    gate = Gate()
    async with open_scenario(tmp_path, [TWO, [Say("so far"), Pause(gate)]], files=FILES) as scene:
        await scene.start("change")
        await scene.watcher.until(lambda _: bool(scene.watcher.of("file")))
        with pytest.raises(SessionBusy):
            await revert(scene, "a.txt", (0,))
        gate.open()
        await scene.running.completed("r1")
        await revert(scene, "a.txt", (0,))
        assert scene.read("a.txt") == WITH_TWENTY


async def crashed_in_an_undo(scene: Scene, *, is_made: bool) -> Path:
    """What a crash leaves that comes between the record of an undo and the write, or right after the write."""
    await scene.turn("change")
    (file,) = await changed(scene)
    wanted = Revert(path="a.txt", digest=file.digest, hunks=(0,), client_id="vera")
    with REPLACING:
        undoing = asyncio.create_task(scene.workspace.revert(scene.running.session_id, wanted))
        await wait_until_replacing(scene.path)
        left = await crashed(scene.running)
    await undoing
    if not is_made:
        (scene.path / "a.txt").write_text(WITH_TWO)
    return left


@pytest.mark.parametrize("is_made", [False, True])
async def test_a_crash_between_the_record_and_the_write_hides_nothing(tmp_path: Path, is_made: bool) -> None:
    """A4: as for a change by a tool."""
    async with open_scenario(tmp_path, [TWO, [Say("done")]], files=FILES) as scene:
        left = await crashed_in_an_undo(scene, is_made=is_made)
        async with launch(left, ScriptedModel([[Say("told")]]), session_id=scene.running.session_id) as again:
            (now,) = (await again.workspace.review.changes(session_id=again.session_id, run_id=None)).items
            assert now.hunks == (1 if is_made else 2)
            assert (await again.workspace.undo_turn(again.session_id)).files == ("a.txt",)
            assert scene.read("a.txt") == LINES
            await again.workspace.redo_turn(again.session_id)
            assert scene.read("a.txt") == (WITH_TWENTY if is_made else WITH_TWO)


@pytest.mark.parametrize("is_made", [False, True])
async def test_after_a_crash_the_next_prompt_tells_of_an_undo_if_it_was_made(tmp_path: Path, is_made: bool) -> None:
    async with open_scenario(tmp_path, [TWO, [Say("done")]], files=FILES) as scene:
        left = await crashed_in_an_undo(scene, is_made=is_made)
        model = ScriptedModel([[Say("understood")]])
        async with launch(left, model, session_id=scene.running.session_id) as again:
            await again.submit("go on", "r2")
            await again.completed("r2")
            assert ("a.txt (1 of 2 hunks)" in str(model.requests[-1].messages)) == is_made
            (now,) = (await again.workspace.review.changes(session_id=again.session_id, run_id=None)).items
            assert now.undone_by == (("vera",) if is_made else ())


async def test_a_redo_after_a_crash_finds_out_what_became_of_an_undo_by_a_person(tmp_path: Path) -> None:
    """It took the person's own change for that of somebody else, and refused."""
    parts: list[list[Any]] = [
        edit("a.txt", ("\n3", "\nthree")),
        [Say("done")],
        edit("a.txt", ("\n20", "\ntwenty")),
        [Say("done")],
    ]
    async with open_scenario(tmp_path, parts, files=FILES) as scene:
        await scene.turn("one", "r1")
        await scene.turn("two", "r2")
        await scene.workspace.undo_turn(scene.running.session_id)
        (file,) = await changed(scene)
        wanted = Revert(path="a.txt", digest=file.digest, client_id="vera")
        with REPLACING:
            undoing = asyncio.create_task(scene.workspace.revert(scene.running.session_id, wanted))
            await wait_until_replacing(scene.path)
            left = await crashed(scene.running)
        await undoing
        async with launch(left, ScriptedModel([]), session_id=scene.running.session_id) as again:
            await again.workspace.redo_turn(again.session_id)
            assert scene.read("a.txt") == WITH_TWENTY


async def test_after_a_restart_all_of_it_is_still_known(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, [TWO, [Say("done")]], files=FILES) as scene:
        await scene.turn("change")
        await revert(scene, "a.txt", (0,))
        left = await crashed(scene.running)
        model = ScriptedModel([[Say("told")]])
        async with launch(left, model, session_id=scene.running.session_id) as again:
            (file,) = (await again.workspace.review.changes(session_id=again.session_id, run_id=None)).items
            assert (file.hunks, file.undone_by) == (1, ("vera",))
            await again.submit("go on", "r9")
            await again.completed("r9")
            assert "1 of 2 hunks" in str(model.requests[-1].messages)
            await again.workspace.undo_turn(again.session_id)
            await again.workspace.undo_turn(again.session_id)
            assert scene.read("a.txt") == LINES


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"a\n"),
        (b"a\r\nb\r\n", b"a\r\nB\r\n"),
        (b"a\nb", b"a\nb\nc"),
        (b"a\nb\n", b"a\nb"),
        ("é\n".encode("latin-1"), "ü\n".encode("latin-1")),
        ("a\nb\n".encode("utf-16"), "a\nB\n".encode("utf-16")),
        (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb\n"),
        (b"a\0b", b"a\0c"),
    ],
)
async def test_every_kind_of_content_comes_back_byte_by_byte(tmp_path: Path, before: bytes, after: bytes) -> None:
    async with open_scenario(tmp_path, [[Say("done")]], files=FILES) as scene:
        await scene.turn("nothing", "r1")
        path = scene.path / "kind.txt"
        path.write_bytes(before)
        record = await scene.workspace.ledger.record("r1")
        key = await scene.workspace.services.files.expect_change(record, path, before, after)
        path.write_bytes(after)
        await scene.workspace.services.files.note_change(record, key, path, before, after)
        (file,) = await changed(scene, path="kind.txt")
        assert file.hunks == (0 if after == b"a\0c" else 1)
        await revert(scene, "kind.txt", (0,) if file.hunks else None)
        assert path.read_bytes() == before


async def test_created_and_deleted_files_are_undone_and_directories_do_not_stay(tmp_path: Path) -> None:
    parts: list[list[Any]] = [[call("write", path="deep/er/new.txt", content="new\n")], [Say("done")]]
    async with open_scenario(tmp_path, parts, files=FILES) as scene:
        await scene.turn("write", "r1")
        (scene.path / "a.txt").unlink()
        record = await scene.workspace.ledger.record("r1")
        files, gone = scene.workspace.services.files, scene.path / "a.txt"
        await files.note_change(
            record, await files.expect_change(record, gone, LINES.encode(), None), gone, LINES.encode(), None
        )
        assert [(file.path, file.change) for file in await changed(scene)] == [
            ("deep/er/new.txt", Change.CREATED),
            ("a.txt", Change.DELETED),
        ]
        await revert(scene, "deep/er/new.txt", (0,))
        await revert(scene, "a.txt")
        assert scene.git("status", "--porcelain") == ""
        assert not (scene.path / "deep").exists()


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("become", [_link, _pipe])
async def test_a_path_that_became_something_else_is_shown_as_recorded_and_never_undone(
    tmp_path: Path, become: Callable[[Path], None]
) -> None:
    async with open_scenario(tmp_path, [TWO, [Say("done")]], files=FILES) as scene:
        await scene.turn("change")
        (before,) = await changed(scene)
        become(scene.path / "a.txt")
        (file,) = await changed(scene)
        assert (file.additions, file.digest) == (2, "")
        for digest in ("", before.digest):
            with pytest.raises(RevertConflict):
                await scene.workspace.revert(scene.running.session_id, Revert(path="a.txt", digest=digest))


async def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, [TWO, [Say("done")]], files=FILES) as scene:
        await scene.turn("change")
        session_id = scene.running.session_id
        for path in ("b.txt", "../a.txt", "/etc/passwd", "nothing"):
            with pytest.raises(ChangeNotFound):
                await scene.workspace.revert(session_id, Revert(path=path, digest="x"))
        with pytest.raises(BadInput, match="no hunk 2") as refused:
            await revert(scene, "a.txt", (0, 2))
        assert refused.value.code == "bad_hunk"
        assert scene.read("a.txt") == WITH_TWO


async def test_another_session_that_changed_the_same_file_is_left_alone(tmp_path: Path) -> None:
    parts: dict[str, list[list[Any]]] = {
        "mine": [edit("a.txt", ("\n3", "\nthree")), [Say("done")]],
        "yours": [edit("a.txt", ("\n20", "\ntwenty")), [Say("done")]],
    }
    async with open_scenario(tmp_path, Parts(parts), files=FILES) as scene:
        other = (await scene.workspace.create_session(CreateSession())).id
        await scene.turn("mine", "r1")
        await scene.turn("yours", "r2", session_id=other)
        (mine,) = await changed(scene)
        assert (mine.hunks, mine.others) == (1, True)
        await revert(scene, "a.txt")
        assert scene.read("a.txt") == WITH_TWENTY
        with pytest.raises(UndoConflict, match=r"a\.txt"):
            await scene.workspace.undo_turn(other)
        assert scene.read("a.txt") == WITH_TWENTY


async def test_the_text_of_a_file_is_shown_in_bounds_and_never_what_a_rule_hides(tmp_path: Path) -> None:
    config = {"permissions": {"deny": ["view(secret.txt)"]}}
    files = {**FILES, "secret.txt": "s\n", "long.txt": "é\n" * 200_000, "d/x.txt": "x\n"}
    async with open_scenario(tmp_path, [], files=files, config=config) as scene:
        browse = scene.workspace.browse
        shown = await browse.text("a.txt")
        assert (shown.path, shown.text, shown.size, shown.complete) == ("a.txt", LINES, len(LINES), True)
        long = await browse.text("./long.txt")
        assert (long.complete, long.size, set(long.text)) == (False, 600_000, set("é\n"))
        (scene.path / "raw").write_bytes(b"\0\1")
        (scene.path / "to-secret").symlink_to("secret.txt")
        os.mkfifo(scene.path / "pipe")
        refused = {
            "secret.txt": "path_hidden",
            "to-secret": "path_hidden",
            "d": "path_not_file",
            "pipe": "path_not_file",
            "raw": "path_not_text",
            "nothing": "path_not_found",
            "../other": "path_outside",
            "/etc/passwd": "path_outside",
            "": "bad_path",
        }
        for path, code in refused.items():
            with pytest.raises(BadInput) as error:
                await browse.text(path)
            assert error.value.code == code, path
