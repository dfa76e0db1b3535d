"""Input fields. Pasted text is often untrusted, so it is made safe like any other."""

from textual import events
from textual.widgets import Input, TextArea
from textual.widgets.text_area import Edit, EditResult

from longboat.tui.attachments import in_lines
from longboat.tui.dialogs.frame import Dialog
from longboat.tui.textual_fixes import run_key_binding
from longboat.wire.plain import mark_hidden, plain


class Field(Input):
    """A field of one line."""

    async def on_key(self, event: events.Key) -> None:
        if not (isinstance(self.screen, Dialog) and self.screen.stray(event)):
            await run_key_binding(self, event)

    def on_paste(self, event: events.Paste) -> None:
        if isinstance(self.screen, Dialog):
            self.screen.stray(event)

    def insert(self, text: str, index: int) -> None:
        super().insert(plain(text), index)

    def replace(self, text: str, start: int, end: int) -> None:
        super().replace(plain(text), start, end)


class Lines(TextArea):
    """A field of several lines."""

    async def on_key(self, event: events.Key) -> None:
        await run_key_binding(self, event)

    def edit(self, edit: Edit) -> EditResult:
        edit.text = mark_hidden(in_lines(edit.text))
        return super().edit(edit)
