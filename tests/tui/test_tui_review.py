"""The review of changes in the terminal app: files, hunks, undo, comments (F2)."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from textual.drivers.headless_driver import HeadlessDriver
from textual.widgets import Static
from tui_driver import local_server, open_tui
from tui_stage import DIFF, Stage, a_changed_file, edit_nothing, picture, redo_nothing, some_changes, undo_nothing

from longboat.errors import RedoConflict, RevertConflict
from longboat.testing import CallTool, Say, ScriptedModel
from longboat.tui import editor
from longboat.tui.dialogs.diffs import Comments, DiffDialog
from longboat.tui.editor import NotEdited
from longboat.tui.panels.diff_rows import Comment, read_rows, with_comments
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
        await app.open(pilot, DiffDialog(some_changes(), undo_nothing, redo_nothing, edit_nothing))
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
    no_changes = ChangesPage(items=(), complete=True)
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, DiffDialog(no_changes, undo_nothing, redo_nothing, edit_nothing))
        await pilot.press("j", "n", "u", "U", "r", "o", "c", "delete")
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
        await app.open(pilot, DiffDialog(some_changes(), undoing, redo_nothing, edit_nothing))
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
            pilot,
            DiffDialog(msgspec.structs.replace(page, undone=(other, newer, older)), undo_nothing, redo, edit_nothing),
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
        await app.open(pilot, DiffDialog(nothing_left, undo_nothing, refuse, edit_nothing))
        await pilot.press("r", "y")
        await app.settled(pilot)
        assert "nothing was redone" in picture(app)


async def test_a_refusal_is_said_and_the_review_stays() -> None:
    async def refuse(file: ChangedFile, hunks: Sequence[int] | None) -> ChangesPage:
        raise RevertConflict("src/boat.py has changed since, so nothing was undone.")

    app = Stage()
    async with app.run_test(size=(120, 30)) as pilot:
        await app.open(pilot, DiffDialog(some_changes(), refuse, redo_nothing, edit_nothing))
        await pilot.press("u", "y")
        await app.settled(pilot)
        assert "has changed since" in picture(app)
        await pilot.press("j")
        await pilot.pause()
        assert "has changed since" not in picture(app)
        fixed = ChangesPage(items=(a_changed_file(diff=DIFF, hunks=2, digest=""),), complete=True)
        await app.open(pilot, DiffDialog(fixed, refuse, redo_nothing, edit_nothing))
        await pilot.press("u")
        await pilot.pause()
        assert "cannot be undone" in picture(app)


@pytest.mark.parametrize("split", [False, True])
async def test_comments_on_lines_are_the_result(split: bool) -> None:
    app = Stage()
    async with app.run_test(size=(140, 30)) as pilot:
        await app.open(pilot, DiffDialog(some_changes(), undo_nothing, redo_nothing, edit_nothing, split=split))
        await pilot.press("n", "down", *([] if split else ["down"]), "c")
        await pilot.pause()
        await pilot.press(*"why six", "enter")
        await pilot.pause()
        assert "1 comment" in str(app.screen.query_one("#name", Static).render())
        await pilot.press("escape")
        await pilot.pause()
        assert app.results == [Comments(text="In src/boat.py line 41: why six")]


@pytest.mark.parametrize("split", [False, True])
async def test_comments_stand_below_their_lines_and_can_be_removed(split: bool) -> None:
    app = Stage()
    async with app.run_test(size=(140, 40)) as pilot:
        dialog = DiffDialog(some_changes(), undo_nothing, redo_nothing, edit_nothing, split=split)
        await app.open(pilot, dialog)
        await pilot.press("n", "down", *([] if split else ["down"]))
        for text in ("why six", "or seven"):
            await pilot.press("c")
            await pilot.pause()
            await pilot.press(*text, "enter")
            await pilot.pause()
        below = [line.strip(" │▏") for line in picture(app).splitlines()]
        places = [next(at for at, line in enumerate(below) if words in line) for words in ("╰ why six", "╰ or seven")]
        assert "41" in below[places[0] - 1]
        assert places[1] == places[0] + 1
        assert app.screen.query_one(ReviewView).line == 41
        await pilot.press("j", "delete")
        await pilot.pause()
        assert "why six" not in picture(app)
        assert "There is no comment on this line." in picture(app)
        await pilot.press("k", "n", "down", *([] if split else ["down"]), "down", "down", "delete")
        await pilot.pause()
        assert "or seven" not in picture(app)
        assert "1 comment" in str(app.screen.query_one("#name", Static).render())
        await pilot.press("delete")
        await pilot.pause()
        assert "why six" not in picture(app)
        await pilot.press("escape")
        await pilot.pause()
        assert app.results == [None]


def test_a_comment_follows_its_line_and_stays_if_the_line_is_gone() -> None:
    before = read_rows("@@ -1,2 +1,3 @@\n+new\n a\n b\n@@ -40,2 +41,2 @@\n a\n-x\n+y\n").rows
    after = read_rows("@@ -40,2 +40,2 @@\n a\n-x\n+y\n")
    rows = with_comments(
        after,
        [
            Comment(number=0, row=before[1], text="on new"),
            Comment(number=1, row=before[5], text="on a"),
            Comment(number=2, row=before[7], text="on y\x1b"),
        ],
    )
    assert [row.text for row in rows.rows] == [
        *("╰ line 1: on new", "@@ -40,2 +40,2 @@", "a", "╰ on a", "x", "y", "╰ on y␛")
    ]


async def test_a_file_opens_in_the_editor_at_the_cursor() -> None:
    asked: list[tuple[str, int]] = []

    async def edit(file: ChangedFile, line: int) -> ChangesPage:
        asked.append((file.path, line))
        if len(asked) > 2:
            raise NotEdited("The editor failed (3).")
        return some_changes()

    app = Stage()
    async with app.run_test(size=(120, 30)) as pilot:
        await app.open(pilot, DiffDialog(some_changes(), undo_nothing, redo_nothing, edit))
        for keys in (("o",), ("n", "o"), ("j", "o")):
            await pilot.press(*keys)
            await app.settled(pilot)
        assert asked == [("src/boat.py", 1), ("src/boat.py", 41), ("logo.png", 1)]
        assert "The editor failed (3)." in picture(app)


@pytest.mark.parametrize(
    ("named", "given"),
    [
        ("vi", ["+7", "{file}"]),
        ("/usr/bin/nano -w", ["-w", "+7", "{file}"]),
        ("code --wait", ["--wait", "--goto", "{file}:7"]),
        ("hx", ["{file}:7"]),
        ("mystery", ["{file}"]),
    ],
)
def test_each_editor_is_told_the_line_in_its_own_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, given: list[str]
) -> None:
    file = tmp_path / "-a b.txt"
    file.touch()
    started: list[list[str]] = []
    monkeypatch.setattr(editor, "_lend", lambda app, command: started.append(command) or 0)
    editor.open_file(Stage(), file, 7, {"EDITOR": named})
    assert started == [[named.split(maxsplit=1)[0], *(each.format(file=file) for each in given)]]
    with pytest.raises(NotEdited, match="not a file on this machine"):
        editor.open_file(Stage(), tmp_path / "gone", 7, {"EDITOR": named})


async def test_the_cursor_stays_in_view() -> None:
    lines = "".join(f"+line {number}\n" for number in range(200))
    page = ChangesPage(items=(a_changed_file(diff=f"@@ -0,0 +1,200 @@\n{lines}", hunks=1),), complete=True)
    app = Stage()
    async with app.run_test(size=(80, 20)) as pilot:
        await app.open(pilot, DiffDialog(page, undo_nothing, redo_nothing, edit_nothing))
        await pilot.press(*["down"] * 120)
        await pilot.pause()
        assert app.screen.query_one(ReviewView).line == 120
        assert "+ line 119" in picture(app)
        await pilot.press(*["up"] * 130)
        await pilot.pause()
        assert "@@ -0,0 +1,200 @@" in picture(app)


async def test_the_app_opens_the_file_in_the_editor_and_shows_what_was_changed_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HeadlessDriver, "can_suspend", property(lambda driver: True))
    monkeypatch.setenv("VISUAL", "sh -c 'echo mine >> \"$0\"'")
    steps = [[CallTool("write", {"path": "a.txt", "content": "a\n"})], [Say("Written.")]]
    async with (
        local_server(tmp_path, ScriptedModel(steps)).serving() as server,
        open_tui(server, approve=Approve.ALL, size=(120, 30)) as tui,
    ):
        await tui.say("write it")
        await tui.until(lambda: tui.idle and tui.answers == ["Written."])
        await tui.say("/diff")
        await tui.until(lambda: "1/1 a.txt created +1 -0" in tui.screen)
        await tui.pilot.press("o")
        await tui.until(lambda: "also edited by others" in tui.screen)
        assert (Path(server.project) / "a.txt").read_text() == "a\nmine\n"
        await tui.pilot.press("escape")


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
