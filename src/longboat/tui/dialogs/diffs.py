"""The dialog to review a session's changes: one row per file, undo by file or hunk, comments for the next prompt."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual import events, on
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from longboat.errors import LongboatError
from longboat.tui.dialogs.confirm import ConfirmDialog, Confirmed, TextDialog, Written
from longboat.tui.dialogs.frame import Dialog, keys_content
from longboat.tui.editor import NotEdited
from longboat.tui.panels.diff_rows import Comment, Row
from longboat.tui.panels.looks import FAINT
from longboat.tui.panels.review import ReviewView
from longboat.wire.plain import plain_line
from longboat.wire.review import ChangedFile, ChangesPage, UndoneChange

Undo = Callable[[ChangedFile, Sequence[int] | None], Awaitable[ChangesPage]]
"""Undoes these hunks of a file, or all of it, and returns the changes that stand."""
Redo = Callable[[UndoneChange], Awaitable[ChangesPage]]
"""Redoes what was undone, and returns the changes that stand."""
Edit = Callable[[ChangedFile, int], Awaitable[ChangesPage]]
"""Opens a file in the person's editor, at a line, and returns the changes that stand afterwards."""

LIST_WIDTH = 140
"""The columns needed for the list of files beside the diff: the diff keeps enough for side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comments:
    """What to put into the prompt."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remark:
    """A comment on a line of a file."""

    path: str
    place: str
    row: Row
    text: str


class DiffDialog(Dialog[Comments]):
    """j and k switch files; u undoes the hunk at the cursor, r redoes what was undone."""

    HEADING = "Changes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,tab", "file(1)", "Next file", priority=True),
        Binding("k,shift+tab", "file(-1)", "Previous file", priority=True),
        Binding("u", "undo_hunk", "Undo the hunk"),
        Binding("U", "undo_file", "Undo the file"),
        Binding("r", "redo", "Redo what was undone"),
        Binding("o", "edit", "Open in the editor"),
        Binding("c", "comment", "Comment on the line"),
        Binding("delete,backspace,d", "remove_comment", "Remove the comment"),
        Binding("q", "later", show=False),
    ]
    DEFAULT_CSS = """
    DiffDialog {
        & > .box { width: 100%; max-width: 100%; height: 100%; max-height: 100%; padding: 0; }
        #review { height: 1fr; layout: vertical; }
        #files { height: auto; max-height: 30%; border: none; text-wrap: nowrap; text-overflow: ellipsis; }
        #review.-beside { layout: horizontal; }
        #review.-beside #files { width: 34; height: 100%; max-height: 100%; border-right: solid $border-blurred; }
        ReviewView { height: 1fr; width: 1fr; }
        #name { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    def __init__(self, page: ChangesPage, undo: Undo, redo: Redo, edit: Edit, *, split: bool = False) -> None:
        super().__init__()
        self._page = page
        self._undo = undo
        self._redo = redo
        self._edit = edit
        self._split = split
        self._at = 0
        self._comments: list[_Remark] = []

    def body(self) -> list[Widget]:
        return [
            Static("", id="name", markup=False),
            Container(
                OptionList(id="files", markup=False),
                ReviewView("", "", split=self._split),
                id="review",
            ),
            Static("", id="keys", markup=False, classes="keys"),
        ]

    def on_mount(self) -> None:
        self._files.can_focus = False
        self._view.focus()
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        self.query_one("#review").set_class(self.size.width >= LIST_WIDTH, "-beside")
        self.when_laid_out(self._draw_keys)

    @property
    def _view(self) -> ReviewView:
        return self.query_one(ReviewView)

    @property
    def _files(self) -> OptionList:
        return self.query_one("#files", OptionList)

    @property
    def _file(self) -> ChangedFile | None:
        return self._page.items[self._at] if self._page.items else None

    # Drawing

    def _draw(self) -> None:
        """The list and the file: the page is new."""
        self._at = max(0, min(self._at, len(self._page.items) - 1))
        self._files.set_options([Option(_row(file)) for file in self._page.items])
        self.query_one("#review").display = bool(self._page.items)
        self._show_file()

    def _show_file(self) -> None:
        file = self._file
        if file is not None:
            self._files.highlighted = self._at
            self._view.show(file.diff, file.path)
        self._show_comments()

    def _show_comments(self) -> None:
        if (file := self._file) is not None:
            here = [(number, each) for number, each in enumerate(self._comments) if each.path == file.path]
            self._view.show_comments([Comment(number=number, row=each.row, text=each.text) for number, each in here])
        self.query_one("#name", Static).update(self._headline())
        self._draw_keys()

    def _draw_keys(self) -> None:
        keys = [("esc", "close")]
        if self._file is not None:
            split = "unified" if self._view.is_split else "side by side"
            keys = [("j k", "file"), ("n p", "hunk"), ("↑↓", "line"), ("s", split), ("c", "comment"), *keys]
            keys[-1:-1] = [("del", "remove comment")] if self._comments else []
            keys[-1:-1] = [("o", "editor")]
            keys.insert(3, ("u U", "undo hunk, file"))
        if self._page.undone:
            keys.insert(-1, ("r", "redo"))
        self.query_one("#keys", Static).update(keys_content(*keys))

    def _headline(self) -> Content:
        file = self._file
        if file is None:
            return Content("No changes.")
        more = "" if self._page.complete else "+"
        count = len(self._comments)
        return Content.assemble(
            (f"{self._at + 1}/{len(self._page.items)}{more} ", FAINT),
            (plain_line(file.path), "bold"),
            f" {file.change.value} ",
            *_numbers(file),
            (_who(file), FAINT),
            ("" if file.complete else " (truncated)", "$text-warning"),
            (f"  {count} comment{'' if count == 1 else 's'}" if count else "", "$text-accent"),
        )

    # Keys

    def action_file(self, step: int) -> None:
        if self._page.items:
            self._at = (self._at + step) % len(self._page.items)
            self.complain("")
            self._show_file()

    @on(OptionList.OptionSelected, "#files")
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self._at = event.option_index
        self._show_file()
        self._view.focus()

    @on(ReviewView.Switched)
    def _switched(self) -> None:
        self._draw_keys()

    def action_undo_hunk(self) -> None:
        file, hunk = self._file, self._view.hunk
        if file is None:
            return
        if hunk is None or file.hunks < 2:
            self.action_undo_file()
        else:
            self._confirm(file, [hunk], f"Undo hunk {hunk + 1} of {file.hunks} in {plain_line(file.path)}?")

    def action_undo_file(self) -> None:
        if (file := self._file) is not None:
            self._confirm(file, None, f"Undo all changes to {plain_line(file.path)}?")

    def _confirm(self, file: ChangedFile, hunks: Sequence[int] | None, question: str) -> None:
        if not file.digest:
            self.complain("This change cannot be undone: it was made elsewhere, or the file was moved or replaced.")
            return
        dialog = ConfirmDialog(question, yes="Undo")
        self.app.push_screen(dialog, lambda answer: self._confirmed(answer, partial(self._undo, file, hunks)))

    def action_redo(self) -> None:
        """What was undone last: in the file that is shown, or in any if nothing was undone there."""
        path = self._file.path if self._file is not None else ""
        undone = sorted(self._page.undone, key=lambda each: each.path != path)
        if not undone:
            self.complain("There is nothing to redo.")
            return
        by = f", undone by {undone[0].by}" if undone[0].by else ""
        question = f"Redo {plain_line(undone[0].what)} in {plain_line(undone[0].path)}{plain_line(by)}?"
        dialog = ConfirmDialog(question, yes="Redo")
        self.app.push_screen(dialog, lambda answer: self._confirmed(answer, partial(self._redo, undone[0])))

    def _confirmed(self, answer: Confirmed | None, change: Callable[[], Awaitable[ChangesPage]]) -> None:
        if answer is not None:
            self.app.run_worker(self._changed(change), group="review")

    async def _changed(self, change: Callable[[], Awaitable[ChangesPage]]) -> None:
        """An error is shown in the box, which stays open."""
        try:
            page = await change()
        except (LongboatError, NotEdited) as error:
            if self.is_open:
                self.complain(plain_line(str(error)))
            else:
                self.app.notify(plain_line(str(error)), severity="error", markup=False)
            return
        if self.is_open:
            hunk = self._view.hunk
            path = self._file.path if self._file is not None else ""
            self._page = page
            self.complain("")
            self._draw()
            if hunk and self._file is not None and self._file.path == path:
                self._view.move_to_hunk(hunk)

    def action_edit(self) -> None:
        if (file := self._file) is not None:
            self.complain("")
            self.app.run_worker(self._changed(partial(self._edit, file, self._view.line_now)), group="review")

    def action_comment(self) -> None:
        if (file := self._file) is None:
            return
        row, line = self._view.row, self._view.line
        place = f"In {plain_line(file.path)}" + (f" line {line}" if line is not None else "")
        self.app.push_screen(TextDialog(f"{place}:"), lambda written: self._commented(file.path, place, row, written))

    def _commented(self, path: str, place: str, row: Row, written: Written | None) -> None:
        if written is not None:
            self._comments.append(_Remark(path=path, place=place, row=row, text=written.text))
            self._show_comments()

    def action_remove_comment(self) -> None:
        number = self._view.comment if self._file is not None else None
        if number is None:
            self.complain("There is no comment on this line.")
            return
        del self._comments[number]
        self.complain("")
        self._show_comments()

    def action_later(self) -> None:
        lines = [f"{each.place}: {each.text}" for each in self._comments]
        self.end(Comments(text="\n".join(lines)) if lines else None)


def _row(file: ChangedFile) -> Content:
    return Content.assemble(*_numbers(file), " ", plain_line(file.path), (_who(file), FAINT))


def _numbers(file: ChangedFile) -> tuple[tuple[str, str], str, tuple[str, str]]:
    return (f"+{file.additions}", "$text-success"), " ", (f"-{file.deletions}", "$text-error")


def _who(file: ChangedFile) -> str:
    prompted = f" for {', '.join(map(plain_line, file.by))}" if file.by else ""
    undone = f", partly undone by {', '.join(map(plain_line, file.undone_by))}" if file.undone_by else ""
    return prompted + undone + (", also edited by others" if file.others else "")
