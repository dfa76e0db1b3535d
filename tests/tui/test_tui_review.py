"""The review of changes in the terminal app: files, hunks, undo, comments (F2)."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from textual.widgets import Static
from tui_driver import local_server, open_tui
from tui_stage import DIFF, Stage, a_changed_file, picture, redo_nothing, some_changes, undo_nothing

from longboat.errors import RedoConflict, RevertConflict
from longboat.testing import CallTool, Say, ScriptedModel
from longboat.tui.dialogs.diffs import Comments, DiffDialog
from longboat.tui.panels.review import ReviewView
from longboat.wire.requests import Approve
from longboat.wire.review import ChangedFile, ChangesPage, UndoneChange


class Undoing:
    """Takes down what is undone; what is left is the second hunk."""

    def __init__(self, left: ChangesPage) -> None:
        self.left = left
        self.asked: list[tuple[str, Sequence[int] | None]] = []

    async def __call__(self, file: ChangedFile, hunks: Sequence[int] | None) -> ChangesPage:
        self.asked.append((file.path, hunks))
        return self.left


@pytest.mark.parametrize("key", ["escape", "q"])
async def test_changes_are_gone_through_file_by_file(key: str) -> None:
    app = Stage()
    async with app.run_test(size=(140, 30)) as pilot:
        await app.open(pilot, DiffDialog(some_changes(), undo_nothing, redo_nothing))
        assert "1/2 src/boat.py updated +3 -2 for anna" in picture(app)
        assert "+3 -2 src/boat.py for anna" in picture(app)
        await pilot.press("j")
        await pilot.pause()
        assert "2/2 logo.png created" in picture(app)
        assert "No lines to show" in picture(app)
        await pilot.press("tab")
        await pilot.pause()
        assert "1/2 src/boat.py" in picture(app)
        assert "s side by side" in picture(app).replace("\N{NO-BREAK SPACE}", " ")
        await pilot.press("s")
        await pilot.pause()
        assert app.screen.query_one(ReviewView).is_split
        assert "s unified" in picture(app).replace("\N{NO-BREAK SPACE}", " ")
        await pilot.press("k", "shift+tab", key)
        await pilot.pause()
        assert app.results == [None]


async def test_no_changes_are_said_once() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, DiffDialog(ChangesPage(items=(), complete=True), undo_nothing, redo_nothing))
        await pilot.press("j", "n", "u", "U", "r", "c")
        assert picture(app).count("No changes.") == 1
        assert "undo" not in picture(app)
        assert "r redo" not in shown_keys(app)
        await pilot.press("escape")
        await pilot.pause()
        assert app.results == [None]


async def test_a_hunk_is_undone_after_a_confirmation_and_the_list_follows() -> None:
    head, second = DIFF.split("@@ -40")[0].split("@@")[0], "@@ -40" + DIFF.split("@@ -40")[1]
    left = ChangesPage(items=(a_changed_file(diff=head + second, additions=1, deletions=1, hunks=1),), complete=True)
    undoing = Undoing(left)
    app = Stage()
    async with app.run_test(size=(120, 30)) as pilot:
        await app.open(pilot, DiffDialog(some_changes(), undoing, redo_nothing))
        view = app.screen.query_one(ReviewView)
        await pilot.press("n")
        assert view.hunk == 1
        await pilot.press("p")
        assert view.hunk == 0
        await pilot.press("u")
        await pilot.pause()
        assert "Undo hunk 1 of 2 in src/boat.py?" in picture(app)
        await pilot.press("n")
        await pilot.pause()
        assert undoing.asked == []
        await pilot.press("u", "y")
        await app.settled(pilot)
        assert undoing.asked == [("src/boat.py", [0])]
        assert "1/1 src/boat.py updated +1 -1" in picture(app)
        await pilot.press("U")
        await pilot.pause()
        assert "Undo all changes to src/boat.py?" in picture(app)
        await pilot.press("y")
        await app.settled(pilot)
        assert undoing.asked[1:] == [("src/boat.py", None)]


def shown_keys(app: Stage) -> str:
    return picture(app).replace("\N{NO-BREAK SPACE}", " ")


def an_undone_change(number: int, path: str) -> UndoneChange:
    return UndoneChange(revert_id=f"rev_{number}", path=path, what="1 of 3 hunks", by="anna")


async def test_what_was_undone_last_is_redone_after_a_confirmation_that_of_the_shown_file_first() -> None:
    page = some_changes()
    other, newer, older = (an_undone_change(3, "gone.py"), *(an_undone_change(n, "src/boat.py") for n in (2, 1)))
    left = [msgspec.structs.replace(page, undone=undone) for undone in ((other, older), (other,), ())]
    asked: list[UndoneChange] = []

    async def redo(undone: UndoneChange) -> ChangesPage:
        asked.append(undone)
        return left[len(asked) - 1]

    app = Stage()
    async with app.run_test(size=(120, 30)) as pilot:
        await app.open(
            pilot, DiffDialog(msgspec.structs.replace(page, undone=(other, newer, older)), undo_nothing, redo)
        )
        assert "r redo" in shown_keys(app)
        await pilot.press("r")
        await pilot.pause()
        assert "Redo 1 of 3 hunks in src/boat.py, undone by anna?" in picture(app)
        await pilot.press("n")
        await pilot.pause()
        assert asked == []
        for _ in range(3):
            await pilot.press("r", "y")
            await app.settled(pilot)
        assert asked == [newer, older, other]
        assert "r redo" not in shown_keys(app)
        await pilot.press("r")
        await pilot.pause()
        assert "There is nothing to redo." in picture(app)


async def test_what_no_longer_fits_is_not_redone_and_the_review_says_so() -> None:
    async def refuse(undone: UndoneChange) -> ChangesPage:
        raise RedoConflict("src/boat.py has changed since, so nothing was redone.")

    app = Stage()
    async with app.run_test(size=(120, 30)) as pilot:
        nothing_left = ChangesPage(items=(), complete=True, undone=(an_undone_change(1, "src/boat.py"),))
        await app.open(pilot, DiffDialog(nothing_left, undo_nothing, refuse))
        await pilot.press("r", "y")
        await app.settled(pilot)
        assert "nothing was redone" in picture(app)


async def test_a_refusal_is_said_and_the_review_stays() -> None:
    async def refuse(file: ChangedFile, hunks: Sequence[int] | None) -> ChangesPage:
        raise RevertConflict("src/boat.py has changed since, so nothing was undone.")

    app = Stage()
    async with app.run_test(size=(120, 30)) as pilot:
        await app.open(pilot, DiffDialog(some_changes(), refuse, redo_nothing))
        await pilot.press("u", "y")
        await app.settled(pilot)
        assert "has changed since" in picture(app)
        await pilot.press("j")
        await pilot.pause()
        assert "has changed since" not in picture(app)
        fixed = ChangesPage(items=(a_changed_file(diff=DIFF, hunks=2, digest=""),), complete=True)
        await app.open(pilot, DiffDialog(fixed, refuse, redo_nothing))
        await pilot.press("u")
        await pilot.pause()
        assert "cannot be undone" in picture(app)


@pytest.mark.parametrize("split", [False, True])
async def test_comments_on_lines_are_the_result(split: bool) -> None:
    app = Stage()
    async with app.run_test(size=(140, 30)) as pilot:
        await app.open(pilot, DiffDialog(some_changes(), undo_nothing, redo_nothing, split=split))
        await pilot.press("n", "down", *([] if split else ["down"]), "c")
        await pilot.pause()
        await pilot.press(*"why six", "enter")
        await pilot.pause()
        assert "1 comment" in str(app.screen.query_one("#name", Static).render())
        await pilot.press("escape")
        await pilot.pause()
        assert app.results == [Comments(text="In src/boat.py line 41: why six")]


async def test_the_cursor_stays_in_view() -> None:
    lines = "".join(f"+line {number}\n" for number in range(200))
    page = ChangesPage(items=(a_changed_file(diff=f"@@ -0,0 +1,200 @@\n{lines}", hunks=1),), complete=True)
    app = Stage()
    async with app.run_test(size=(80, 20)) as pilot:
        await app.open(pilot, DiffDialog(page, undo_nothing, redo_nothing))
        await pilot.press(*["down"] * 120)
        await pilot.pause()
        assert app.screen.query_one(ReviewView).line == 120
        assert "+ line 119" in picture(app)
        await pilot.press(*["up"] * 130)
        await pilot.pause()
        assert "@@ -0,0 +1,200 @@" in picture(app)


async def test_the_app_undoes_at_the_server_and_puts_comments_into_the_prompt(tmp_path: Path) -> None:
    steps = [
        [CallTool("write", {"path": name, "content": f"{name}\n"}) for name in ("a.txt", "b.txt")],
        [Say("Written.")],
    ]
    async with (
        local_server(tmp_path, ScriptedModel(steps)).serving() as server,
        open_tui(server, approve=Approve.ALL, size=(120, 30)) as tui,
    ):
        await tui.say("write them")
        await tui.until(lambda: tui.idle and tui.answers == ["Written."])
        await tui.say("/diff")
        await tui.until(lambda: "1/2 a.txt created +1 -0" in tui.screen)
        await tui.pilot.press("down", "c")
        await tui.until(lambda: "In a.txt line 1:" in tui.screen)
        await tui.pilot.press(*"more", "enter")
        await tui.until(lambda: "1 comment" in tui.screen)
        await tui.pilot.press("j", "u")
        await tui.until(lambda: "Undo all changes to b.txt?" in tui.screen)
        await tui.pilot.press("y")
        await tui.until(lambda: "1/1 a.txt" in tui.screen)
        assert not (Path(server.project) / "b.txt").exists()
        await tui.pilot.press("r")
        await tui.until(lambda: "Redo all changes in b.txt" in tui.screen)
        await tui.pilot.press("y")
        await tui.until(lambda: "1/2 a.txt" in tui.screen and "b.txt" in tui.screen)
        assert (Path(server.project) / "b.txt").read_text() == "b.txt\n"
        await tui.pilot.press("escape")
        await tui.until(lambda: tui.app.composer.input.text == "In a.txt line 1: more")
