"""The base of all dialogs: the box, the line of keys, ending exactly once, and protection from accidental answers."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from longboat.tui.textual_fixes import Listing, on_canvas

Result = TypeVar("Result")

Clock = Callable[[], float]

GRACE_S = 0.5
"""A dialog that opens unprompted ignores keys until nothing was typed for this long, so that no one answers it by
accident."""
HIGH = 20
"""A terminal with fewer rows is short."""
STRAYED = "You were typing when this opened. The text went into your prompt."


class Dialog(ModalScreen[Result], Generic[Result]):
    """A modal box. esc closes it without a decision."""

    @dataclass
    class Strayed(Message):
        """A key or a paste meant for the prompt below. An enter starts a new line there: nothing is sent unseen."""

        typed: events.Key | events.Paste

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-roomy")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (HIGH, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "later", "Close", show=False)]
    HEADING = ""
    """Our own text only: a border parses markup, so it must not contain untrusted text."""
    yielding = ""
    """The part of the box that shrinks and scrolls if the box does not fit: the answers always stay visible."""

    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        & > .box {
            width: 90%;
            max-width: 100;
            height: auto;
            max-height: 90%;
            padding: 0 1;
            background: $surface;
            color: $foreground;
            border: round $primary;
            border-title-color: $text-primary;
            border-title-style: bold;
        }
        &.-narrow > .box {
            width: 100%;
            max-height: 100%;
            padding: 0;
        }
        .keys {
            height: auto;
            color: $text-muted;
        }
        .trouble {
            height: auto;
            color: $text-error;
            display: none;
        }
        Input, TextArea, OptionList {
            border: tall $border-blurred;
            &:focus {
                border: tall $border;
            }
        }
    }
    """

    def __init__(self, *, grace_s: float = 0.0, clock: Clock = time.monotonic) -> None:
        super().__init__()
        on_canvas(self)
        self._grace_s = grace_s
        self._clock = clock
        self._heard_at: float | None = clock()
        """The time of the last key; None once there was a pause."""
        self._strayed = False
        self._line_ended: events.Key | None = None
        """An enter that nothing has followed yet."""
        self.is_over = False
        self._kept: tuple[Result | None, ...] = ()

    def compose(self) -> ComposeResult:
        box = Vertical(*self.body(), _Trouble(self.fit), classes="box")
        box.border_title = self.HEADING
        yield box

    def body(self) -> list[Widget]:
        """The content of the box, from top to bottom."""
        raise NotImplementedError

    @property
    def is_open(self) -> bool:
        """Whether all its widgets exist: not while they are being made, nor while it is being closed."""
        return self.is_mounted and bool(self.query(".box"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Ignore all keys while the dialog is being closed."""
        return self.is_open and not self.is_over

    def on_mount(self) -> None:
        self._heard_at = self._clock()

    def on_key(self, event: events.Key) -> None:
        self.stray(event)

    def on_paste(self, event: events.Paste) -> None:
        if not self.stray(event) and self._grace_s:  # no field took it
            self._pass_on(event)

    def stray(self, event: events.Key | events.Paste) -> bool:
        """Whether the person cannot have seen the dialog yet: then the input is passed on to the prompt. Fields check
        this before they take input."""
        typing = isinstance(event, events.Paste) or event.is_printable or event.key in ("enter", "escape", "backspace")
        hasty = self.is_hasty() and typing
        if hasty:
            event.stop()
            event.prevent_default()
            self._pass_on(event)
        elif self._strayed and typing:
            self._strayed = False
            self.complain("")
        return hasty

    def _pass_on(self, event: events.Key | events.Paste) -> None:
        if isinstance(event, events.Key) and event.key in ("enter", "escape"):
            # On its own it is an answer that came too soon; it must not send what is in the composer.
            self._line_ended = event if self._strayed and event.key == "enter" else None
            return
        if self._line_ended is not None:
            self.post_message(self.Strayed(self._line_ended))
            self._line_ended = None
        self.post_message(self.Strayed(event))
        self._strayed = True
        self.complain(STRAYED)

    def is_hasty(self) -> bool:
        """Whether a key comes too soon to be intended. It takes a pause in typing to end this."""
        if self._heard_at is None:
            return False
        before, self._heard_at = self._heard_at, self._clock()
        if self._heard_at - before < self._grace_s:
            return True
        self._heard_at = None
        return False

    def on_resize(self, event: events.Resize) -> None:
        self.fit()

    def fit(self) -> None:
        """Resize the `yielding` part to the room left by the others, after the next layout."""
        if self.yielding:
            self.when_laid_out(self._fit)

    def when_laid_out(self, act: Callable[[], None]) -> None:
        """Call `act` after the next layout, unless the dialog is closed by then."""
        self.call_after_refresh(lambda: act() if self.is_open else None)

    def _fit(self) -> None:
        box, part = self.query_one(".box"), self.query_one(self.yielding)
        whole = self.size.height if self.has_class("-narrow") else self.size.height * 9 // 10
        taken = sum(child.outer_size.height for child in box.children if child.display and child is not part)
        part.styles.max_height = max(2, whole - box.gutter.height - taken)

    def action_later(self) -> None:
        self.end(None)

    def end(self, result: Result | None) -> None:
        """Close with this result, only once: a second key pressed at the same time would close the screen below."""
        if self.is_over:
            return
        self.is_over = True
        if self.is_mounted and self.app.screen is self:
            self.dismiss(result)
        else:
            self._kept = (result,)

    def on_screen_resume(self) -> None:
        """Close now if a result was set before this dialog was drawn, or while another one covered it."""
        kept, self._kept = self._kept, ()
        for result in kept:
            self.dismiss(result)

    def complain(self, sentence: str) -> None:
        """Show an error in the box; "" removes it."""
        for line in self.query(_Trouble):
            line.update(Content(sentence))
            line.display = bool(sentence)
        self.fit()


class ListDialog(Dialog[Result]):
    """A dialog with one list, which fills the box. The keys that move in it also work while a field has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move('cursor_down')", show=False),
        Binding("up", "move('cursor_up')", show=False),
        Binding("pagedown", "move('page_down')", show=False),
        Binding("pageup", "move('page_up')", show=False),
    ]
    DEFAULT_CSS = """
    ListDialog {
        & > .box { height: 80%; max-height: 40; }
        &.-narrow > .box { height: 100%; }
        &.-short > .box { height: 100%; max-height: 100%; }
        &.-short Listing { border: none; }
        Listing { height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    @property
    def listing(self) -> Listing:
        return self.query_one(Listing)

    def action_move(self, how: str) -> None:
        getattr(self.listing, f"action_{how}")()


class _Trouble(Static):
    """The line for an error. `make_room` is called when its size is known."""

    def __init__(self, make_room: Callable[[], None]) -> None:
        super().__init__("", markup=False, classes="trouble")
        self._make_room = make_room

    def on_resize(self) -> None:
        self._make_room()


class KeysLine(Static):
    """Keys and what they do, in our own text. A key stays on one line with what it does: Textual would part them, and
    wraps at no-break spaces too."""

    def __init__(self, *keys: tuple[str, str], id: str | None = None) -> None:
        super().__init__(id=id, markup=False, classes="keys")
        self._pairs = [keys_content(key) for key in keys]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines(width))

    def render(self) -> Content:
        return Content("\n").join(self._lines(self.content_size.width))

    def _lines(self, width: int) -> list[Content]:
        lines = [self._pairs[0]]
        for pair in self._pairs[1:]:
            joined = Content.assemble(lines[-1], "  ", pair)
            if joined.cell_length <= width:
                lines[-1] = joined
            else:
                lines.append(pair)
        return lines


def keys_line(*keys: tuple[str, str]) -> KeysLine:
    return KeysLine(*keys)


def keys_content(*keys: tuple[str, str]) -> Content:
    parts: list[Content | tuple[str, str] | str] = []
    for key, what in keys:
        parts += ["  " if parts else "", (key, "bold $text-accent"), f"\N{NO-BREAK SPACE}{what}"]
    return Content.assemble(*parts)
