"""A card for a tool call: its subject, its state and the end of its output. A click expands it.

A single widget, so that a hundred of them cost little. Must not know where calls come from.
"""

from collections.abc import Iterator

from textual.content import Content
from textual.events import Click, Resize
from textual.widgets import Static

from longboat.client.subject import arguments_of, subject_of
from longboat.tui.content import line, one_line
from longboat.tui.panels.diff_rows import Kind, Row, read_rows
from longboat.tui.panels.looks import FAINT
from longboat.wire.amounts import duration
from longboat.wire.models import ToolCallPart, ToolResultPart
from longboat.wire.plain import plain
from longboat.wire.tools import Draw

TAIL = 5
"""Lines of output shown while the call runs, and in a collapsed card."""
WHOLE = 400
"""The most lines of an expanded card."""
DIFF = 14
"""Lines of a diff in a collapsed card."""
UNKNOWN_WIDTH = 80
"""Until the card has been laid out."""
ACTIVITY = 4
QUIET = (Draw.QUIET, Draw.FILE, Draw.PLAN)
"""Results that are for the model; people see them on demand."""


class ToolCard(Static):
    """`show_call` and `show_result` update it; `note` sets a remark, such as who allowed it."""

    DEFAULT_CSS = """
    ToolCard {
        height: auto; margin: 0 0 1 2; padding: 0 1;
        border-left: outer $panel-lighten-2;
        &.-running { border-left: outer $warning; }
        &.-waiting { border-left: outer $accent; }
        &.-failed { border-left: outer $error; }
        &:hover { background: $boost; }
    }
    """

    def __init__(
        self,
        call: ToolCallPart,
        result: ToolResultPart | None = None,
        remark: str = "",
        *,
        expanded: bool = False,
    ) -> None:
        super().__init__(markup=False)
        self.call = call
        self.result = result
        self.expanded = expanded
        self.over = False
        """Whether its turn has ended: a call without a result will not get one."""
        self._remark = remark
        self._activity: list[str] = []
        self._width, self._ansi = 0, False
        """The width of the text, once it is known, and whether the theme has only sixteen colours."""
        self._draw()

    def show_call(self, call: ToolCallPart) -> None:
        if call != self.call:
            self.call = call
            self._draw()

    def show_result(self, result: ToolResultPart) -> None:
        if result != self.result:
            self.result = result
            if result.finished:
                self._remark = "" if self._remark == WAITING else self._remark
            self._draw()

    def note(self, remark: str) -> None:
        """Set the remark: who answered, or that the call is waiting for an answer."""
        if remark != self._remark:
            self._remark = remark
            self._draw()

    def end(self) -> None:
        if not self.over:
            self.over = True
            self._draw()

    def tell(self, activity: str) -> None:
        """Show what the sub-agent of this call is doing."""
        if self._activity[-1:] != [activity]:
            self._activity = [*self._activity, activity][-ACTIVITY:]
            self._draw()

    def on_click(self, event: Click) -> None:
        event.stop()
        self.toggle()

    def toggle(self) -> None:
        self.set_expanded(expanded=not self.expanded)

    def set_expanded(self, *, expanded: bool) -> None:
        if expanded != self.expanded:
            self.expanded = expanded
            self._draw()

    # -- drawing

    @property
    def running(self) -> bool:
        return not self.over and (self.result is None or not self.result.finished)

    def _draw(self) -> None:
        failed = self.result is not None and self.result.finished and self.result.is_error
        self.set_class(self.running and self._remark != WAITING, "-running")
        self.set_class(self._remark == WAITING, "-waiting")
        self.set_class(failed, "-failed")
        lines = [self._head(failed), *self._body(failed)]
        self.update(Content("\n").join(lines))

    def _head(self, failed: bool) -> Content:
        mark, style = ("…", "$text-warning") if self.running else ("✓", "$text-success")
        if failed or (self.over and self.result is None):
            mark, style = "✗", "$text-error"
        subject = subject_of(self.call.input, self.call.traits).text
        parts = [Content.styled(mark + " ", style), line(self.call.name, "bold"), Content(" ")]
        parts.append(line(subject, "$text-muted", width=160))
        if self._remark:
            parts += [Content("  "), line(self._remark, "italic $text-accent")]
        if took := time_text(self.result):
            parts.append(Content.styled(f"  {took}", "dim"))
        return Content("").join(parts)

    def _body(self, failed: bool) -> list[Content]:
        if self.result is None or not self.result.finished:
            live = [] if self.result is None else _last(self.result.content, TAIL)
            return [*(line(what, "$text-muted", width=200) for what in self._activity), *map(Content, live)]
        text = plain(self.result.content)
        before, difference = _parted(text)
        if self.expanded:
            shown = [Content(row[:1000]) for row in before.splitlines()] if difference else _cut(text, WHOLE)
            return [*self._arguments(), *shown, *self._diff(difference, WHOLE)]
        if difference:
            return self._diff(difference, DIFF)
        if failed:
            return [Content.styled(row, "$text-error") for row in _last(text, TAIL)]
        if self.call.traits is not None and self.call.traits.draw in QUIET:
            return [_more(text)]
        shown = [Content(row) for row in _last(text, TAIL)]
        hidden = text.rstrip().count("\n") + 1 - len(shown)
        return [*([_hint(f"… {hidden} earlier line{'s' * (hidden != 1)}")] if hidden > 0 else []), *shown]

    def _diff(self, difference: str, most: int) -> list[Content]:
        if not difference:
            return []
        width = self._width or UNKNOWN_WIDTH
        return diff_lines(difference, width=width, most=most, whole=self.expanded, ansi=self._ansi)

    def on_resize(self, event: Resize) -> None:
        """Draw a diff again: its lines are as wide as the card."""
        if self._width != (width := self.content_size.width):
            self._width, self._ansi = width, self.app.native_ansi_color
            if self.result is not None and _parted(self.result.content)[1]:
                self._draw()

    def _arguments(self) -> list[Content]:
        given = arguments_of(self.call.input)
        return [
            Content(" ").join([line(f"{name}:", "$text-muted"), line(str(value), width=400)])
            for name, value in given.items()
            if name not in ("old_text", "new_text", "content", "edits")
        ]


WAITING = "waiting for your answer"


SHORTEST_S = 0.1
"""Shorter times are not worth a word."""


def time_text(result: ToolResultPart | None) -> str:
    """How long a finished call ran, and how long it waited for a person."""
    if result is None or not result.finished or result.ran_s is None:
        return ""
    ran = duration(result.ran_s) if result.ran_s >= SHORTEST_S else ""
    waited = f"waited {duration(result.waited_s)} for an answer" if result.waited_s >= 1 else ""
    return ", ".join(filter(None, (ran, waited)))


def _hint(text: str) -> Content:
    return Content.styled(text, "dim $text-muted")


def _more(text: str) -> Content:
    lines = text.rstrip().count("\n") + 1 if text.strip() else 0
    return _hint(f"{lines} lines" if lines != 1 else one_line(text, 200))


def _last(text: str, count: int) -> list[str]:
    end = plain(text[-400 * count :]).rstrip().splitlines()
    return [row[:400] for row in end[-count:]]


def _parted(text: str) -> tuple[str, str]:
    """A result as the text before the first hunk of a unified diff, and the diff from there on, if there is one."""
    start = 0 if text.startswith("--- ") else text.find("\n--- ") + 1
    if text.startswith("--- ") or start > 0:
        hunk = text.find("\n@@ ", start)
        if hunk >= 0:
            return text[:start], text[hunk + 1 :]
    return text, ""


def _cut(text: str, count: int) -> list[Content]:
    rows = text.rstrip().splitlines()
    shown = [Content(row[:1000]) for row in rows[:count]]
    return [*shown, _hint(f"… {len(rows) - count} more lines")] if len(rows) > count else shown


# The diff in a card: line numbers and a background for each line, as in the changes dialog

NARROW = 60
"""With fewer columns there is one line number per row instead of two."""
_STYLES = {
    Kind.ADDED: "on $success 20%",
    Kind.DELETED: "on $error 20%",
    Kind.HUNK: "$text-primary on $primary 15%",
    Kind.NOTE: f"{FAINT} italic",
    Kind.CONTEXT: "",
}
_ANSI = {Kind.ADDED: "$text-success", Kind.DELETED: "$text-error", Kind.HUNK: "$text-primary"}
"""With sixteen colours there are no light backgrounds."""


def diff_lines(diff: str, *, width: int, most: int, whole: bool = False, ansi: bool = False) -> list[Content]:
    """The first lines of a diff, each at most `width` columns wide. `whole`: long lines are folded instead of cut."""
    rows = read_rows(diff)
    digits = max(3, len(str(rows.last_number())))
    styles = _ANSI if ansi else _STYLES
    lines: list[Content] = []
    for row in rows.rows[:most]:
        head = _gutter(row, digits, narrow=width < NARROW)
        for number, piece in enumerate(_pieces(row.text, width - len(head), whole=whole)):
            lead = head if number == 0 else " " * len(head)
            text = Content.assemble((lead, FAINT), piece)
            pad = max(0, width - text.cell_length)
            lines.append(text.pad_right(pad).stylize_before(styles.get(row.kind, "")))
    if len(rows.rows) > most:
        lines.append(Content.styled(f"… {len(rows.rows) - most} more lines", FAINT))
    return lines


def _gutter(row: Row, digits: int, *, narrow: bool) -> str:
    if row.kind in (Kind.HUNK, Kind.NOTE):
        return ""
    numbers = (row.new if row.new is not None else row.old,) if narrow else (row.old, row.new)
    return "".join(f"{'' if number is None else number:>{digits}} " for number in numbers) + f"{row.sign} "


def _pieces(text: str, width: int, *, whole: bool) -> Iterator[Content]:
    line, width = Content(text), max(8, width)
    if line.cell_length <= width:
        yield line
    elif whole:
        yield from line.fold(width)
    else:
        yield line.truncate(width, ellipsis=True)
