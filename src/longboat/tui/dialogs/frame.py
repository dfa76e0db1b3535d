"""What all dialogs share: the box, the line of keys, ending exactly once, and not being answered by accident."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from longboat.tui.canvas import on_canvas

Result = TypeVar("Result")

Clock = Callable[[], float]

GRACE_S = 0.5
"""Somebody who is typing when a dialog opens by itself must not answer it: keys count after a pause of this length."""
HIGH = 20
"""Rows from which on a terminal is not short."""
STRAYED = "You were typing as this opened: it went into your prompt."


class Dialog(ModalScreen[Result], Generic[Result]):
    """A box in front of the rest. esc closes it and decides nothing."""

    @dataclass
    class Strayed(Message):
        """A key or a paste that was meant for what lies beneath. Its enter begins a line, and sends nothing unseen."""

        typed: events.Key | events.Paste

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-roomy")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (HIGH, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "later", "Close", show=False)]
    HEADING = ""
    """Our own words: foreign text never stands in a border, which reads markup."""
    yielding = ""
    """The part of the box that scrolls where not all of it fits: what can be answered never leaves the screen."""

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
        """When somebody was last heard typing; None once they paused."""
        self._strayed = False
        self._line_ended: events.Key | None = None
        """An enter after which nothing has come yet."""
        self._over = False
        self._kept: tuple[Result | None, ...] = ()

    def compose(self) -> ComposeResult:
        box = Vertical(*self.body(), Static("", markup=False, classes="trouble"), classes="box")
        box.border_title = self.HEADING
        yield box

    def body(self) -> list[Widget]:
        """What stands in the box, from top to bottom."""
        raise NotImplementedError

    @property
    def is_open(self) -> bool:
        """Its parts are there: not yet before it was drawn, and no more while it is being closed."""
        return bool(self.query(".box"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """No key means anything to one that is being closed."""
        return self.is_open and not self._over

    def on_mount(self) -> None:
        self._heard_at = self._clock()

    def on_key(self, event: events.Key) -> None:
        self.stray(event)

    def on_paste(self, event: events.Paste) -> None:
        if not self.stray(event) and self._grace_s:  # nobody here took it
            self._pass_on(event)

    def stray(self, event: events.Key | events.Paste) -> bool:
        """Whether this is of somebody who has not seen the dialog yet: it is passed on, and means nothing here. Fields
        ask before they take anything."""
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
            # Alone it is an answer that comes too soon: what waits in the composer is not to be sent by it.
            self._line_ended = event if self._strayed and event.key == "enter" else None
            return
        if self._line_ended is not None:
            self.post_message(self.Strayed(self._line_ended))
            self._line_ended = None
        self.post_message(self.Strayed(event))
        self._strayed = True
        self.complain(STRAYED)

    def is_hasty(self) -> bool:
        """Whether this comes too soon to be meant. Who goes on typing is asked to pause."""
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
        """Give the part that yields what the others leave, once they have been laid out."""
        if self.yielding:
            self.when_laid_out(self._fit)

    def when_laid_out(self, act: Callable[[], None]) -> None:
        """Do this after the next layout, unless it was closed by then."""
        self.call_after_refresh(lambda: act() if self.is_open else None)

    def _fit(self) -> None:
        box, part = self.query_one(".box"), self.query_one(self.yielding)
        whole = self.size.height if self.has_class("-narrow") else self.size.height * 9 // 10
        taken = sum(child.outer_size.height for child in box.children if child.display and child is not part)
        part.styles.max_height = max(2, whole - box.gutter.height - taken)

    def action_later(self) -> None:
        self.end(None)

    def end(self, result: Result | None) -> None:
        """Close with this, once: a second key that was pressed at the same time would close what lies beneath."""
        if self._over:
            return
        self._over = True
        if self.is_mounted and self.app.screen is self:
            self.dismiss(result)
        else:
            self._kept = (result,)

    def on_screen_resume(self) -> None:
        """What was decided before this one was drawn, or while another lay on it, happens now."""
        kept, self._kept = self._kept, ()
        for result in kept:
            self.dismiss(result)

    def complain(self, sentence: str) -> None:
        """Say in the box why something was not done; "" takes it away."""
        for line in self.query(".trouble").results(Static):
            line.update(Content(sentence))
            line.display = bool(sentence)
        self.fit()


def keys_line(*keys: tuple[str, str]) -> Static:
    """The keys and what they do, in our own words."""
    return Static(keys_content(*keys), markup=False, classes="keys")


def keys_content(*keys: tuple[str, str]) -> Content:
    parts: list[Content | tuple[str, str] | str] = []
    for key, what in keys:
        parts += ["  " if parts else "", (key, "bold $text-accent"), f"\N{NO-BREAK SPACE}{what}"]
    return Content.assemble(*parts)
