"""Dialogs for a confirmation, and for entering one or several lines of text."""

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widget import Widget
from textual.widgets import Button, Input, Static, TextArea

from longboat.tui.dialogs.fields import Field, Lines
from longboat.tui.dialogs.frame import Dialog, keys_line
from longboat.wire.plain import mark_hidden, plain, plain_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """The result for yes; for no it is None."""


class ConfirmDialog(Dialog[Confirmed]):
    """Asks before something that cannot be undone. "No" has the focus, so that an accidental enter does nothing."""

    HEADING = "Confirm"
    yielding = "#sentence"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "yes", "Yes"),
        Binding("n", "later", "No"),
        Binding("left,right,up,down", "other", "Move", show=False),
    ]
    DEFAULT_CSS = """
    ConfirmDialog {
        & > .box { max-width: 70; }
        #sentence { height: auto; }
        Horizontal { height: auto; align-horizontal: right; }
        Button { margin-left: 1; }
    }
    """

    def __init__(self, sentence: str, *, yes: str = "Yes", no: str = "No") -> None:
        """`yes` and `no` are our own labels; the sentence may contain untrusted text."""
        super().__init__()
        self._sentence = sentence
        self._yes = yes
        self._no = no

    def body(self) -> list[Widget]:
        return [
            VerticalScroll(Static(plain(self._sentence), markup=False), id="sentence", can_focus=False),
            Horizontal(
                Button(self._no, id="no", compact=True), Button(self._yes, id="yes", variant="error", compact=True)
            ),
            keys_line(("y", self._yes.lower()), ("n", self._no.lower()), ("esc", "cancel")),
        ]

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def action_yes(self) -> None:
        self.end(Confirmed())

    def action_other(self) -> None:
        self.query_one("#no" if self.query_one("#yes").has_focus else "#yes").focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.end(Confirmed() if event.button.id == "yes" else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    text: str


class TextDialog(Dialog[Written]):
    """Asks for a text of one or several lines."""

    HEADING = "Text"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Save", priority=True),
        Binding("ctrl+j", "newline", "New line", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    TextDialog {
        TextArea { height: 1fr; min-height: 3; }
        #about { max-height: 4; }
        &.-lines > .box { height: 70%; }
        &.-narrow.-lines > .box { height: 100%; }
    }
    """

    def __init__(self, sentence: str, *, text: str = "", lines: bool = False, may_be_empty: bool = False) -> None:
        super().__init__()
        self._sentence = sentence
        self._text = text
        self._lines = lines
        self._may_be_empty = may_be_empty
        self.set_class(lines, "-lines")

    def body(self) -> list[Widget]:
        shown = mark_hidden(self._text)
        field: Widget = Lines(shown, id="field") if self._lines else Field(plain_line(shown), id="field")
        save = "ctrl+s" if self._lines else "enter"
        return [
            Static(plain(self._sentence), id="about", markup=False),
            field,
            keys_line((save, "save"), *([("enter", "new line")] if self._lines else []), ("esc", "cancel")),
        ]

    def on_mount(self) -> None:
        field = self.query_one("#field")
        field.focus()
        if isinstance(field, TextArea):
            field.move_cursor(field.document.end)

    @property
    def text(self) -> str:
        field = self.query_one("#field")
        return field.text if isinstance(field, TextArea) else self.query_one("#field", Input).value

    def action_newline(self) -> None:
        if self._lines:
            self.query_one("#field", TextArea).insert("\n")

    @on(Input.Submitted)
    def action_save(self) -> None:
        if not self.text.strip() and not self._may_be_empty:
            self.complain("The text cannot be empty.")
        else:
            self.end(Written(text=self.text if self._lines else self.text.strip()))
