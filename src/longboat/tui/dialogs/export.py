"""The dialog for exporting a session: file and format."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input, Static

from longboat.tui.dialogs.fields import Field
from longboat.tui.dialogs.frame import Dialog, keys_line
from longboat.tui.dialogs.one_of import OneOf
from longboat.wire.plain import plain_line

Format = Literal["json", "markdown"]
FORMATS: tuple[Format, ...] = ("markdown", "json")
_ENDINGS = {"markdown": ".md", "json": ".json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportChoice:
    format: Format
    path: str


class ExportDialog(Dialog[ExportChoice]):
    """Markdown is for people; JSON has everything and can be imported."""

    HEADING = "Export"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+t", "form", "Format", priority=True)]
    DEFAULT_CSS = """
    ExportDialog {
        & > .box { max-width: 80; }
        #about { max-height: 4; }
    }
    """

    def __init__(self, title: str, *, path: str) -> None:
        """`path`: the suggested file, ending in .md."""
        super().__init__()
        self._title = title
        self._path = path
        self._format: Format = FORMATS[0]

    def body(self) -> list[Widget]:
        return [
            Static(f"Save “{plain_line(self._title)}” to a file:", id="about", markup=False),
            Field(plain_line(self._path), id="path"),
            OneOf("", ("Markdown, for reading", "JSON, for importing"), id="form"),
            keys_line(("enter", "save"), ("ctrl+t", "format"), ("esc", "cancel")),
        ]

    def on_mount(self) -> None:
        self.query_one("#path").focus()

    def action_form(self) -> None:
        self.query_one(OneOf).action_step(1)

    @on(OneOf.Changed)
    def _changed(self, event: OneOf.Changed) -> None:
        """Change the file's extension with the format, unless the person chose another."""
        before, self._format = self._format, FORMATS[event.index]
        field = self.query_one("#path", Input)
        if field.value.endswith(_ENDINGS[before]):
            field.value = field.value.removesuffix(_ENDINGS[before]) + _ENDINGS[self._format]

    @on(Input.Submitted)
    def _write(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.end(ExportChoice(format=self._format, path=event.value.strip()))
        else:
            self.complain("Enter a file name.")
