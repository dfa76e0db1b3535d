"""The prompt editor: text, attachments, history, and the keys that send the prompt.

Owns what is being typed. Must not know the server: it posts `Composed` and asks for completions with `Completing`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea
from textual.widgets.text_area import Edit, EditResult

from longboat.tui.attachments import chip, from_paste, in_lines
from longboat.tui.clipboard import NoPicture, Reader, picture_on_clipboard, readers
from longboat.tui.completion import Choice, Choices, Wanted, find_wanted
from longboat.tui.content import line
from longboat.tui.history import History
from longboat.tui.keys import prompt_bindings
from longboat.tui.textual_fixes import run_key_binding
from longboat.wire.models import Attachment
from longboat.wire.plain import mark_hidden

PASTE_TEXT = "To paste text, use your terminal's own key, often ctrl+shift+v."
NO_READER = "To paste images, install wl-clipboard (Wayland), xclip (X11) or pngpaste (macOS). " + PASTE_TEXT


class PromptInput(TextArea):
    """The text of the prompt. enter sends it, ctrl+j starts a new line, ↑ and ↓ at its ends recall earlier prompts."""

    BINDINGS: ClassVar[list[BindingType]] = prompt_bindings()

    class Sent(Message):
        def __init__(self, *, queue: bool, as_prompt: bool = False) -> None:
            super().__init__()
            self.queue = queue
            self.as_prompt = as_prompt

    class Pasted(Message):
        def __init__(self, attachment: Attachment) -> None:
            super().__init__()
            self.attachment = attachment

    class PictureWanted(Message):
        """A paste without text: there may be an image on the clipboard."""

    class Emptied(Message):
        """backspace in an empty prompt, which removes an attachment."""

    class HelpWanted(Message):
        """? in an empty prompt."""

    class LeaveAsked(Message):
        """ctrl+c, or ctrl+d in an empty composer."""

        def __init__(self, *, end: bool) -> None:
            super().__init__()
            self.end = end

    def __init__(self, history: History, choices: Choices) -> None:
        super().__init__(id="prompt", soft_wrap=True, compact=True, highlight_cursor_line=False, tab_behavior="focus")
        self.placeholder = "Type a prompt. @ file, / command, ! shell command"
        self._history = history
        self._choices = choices
        self.attached = 0
        self.answers = False
        """Whether what is sent answers a request."""

    # -- keys

    async def _on_key(self, event: events.Key) -> None:  # Textual calls the base class's handler afterwards
        act = self._acts_on(event.key)
        if act is None:
            await run_key_binding(self, event)
        else:
            event.stop()
            event.prevent_default()
            act()

    def _acts_on(self, key: str) -> Callable[[], object] | None:
        if key == "enter":
            return self.choose
        if key == "backspace" and not self.text:
            return lambda: self.post_message(self.Emptied())
        if key == "question_mark" and not self.text:
            return lambda: self.post_message(self.HelpWanted())
        if key == "escape" and self._choices.is_open:
            return self._choices.close
        return None

    def _on_paste(self, event: events.Paste) -> None:  # type: ignore[override]
        attachment = from_paste(event.text, self.attached)
        if attachment is not None or not event.text:
            event.stop()
            event.prevent_default()
            self.post_message(self.PictureWanted() if attachment is None else self.Pasted(attachment))

    def take(self, typed: events.Key | events.Paste) -> None:
        """Insert what was typed while a dialog was opening. enter starts a new line."""
        if isinstance(typed, events.Paste):
            if (attachment := from_paste(typed.text, self.attached)) is not None:
                self.post_message(self.Pasted(attachment))
            else:
                self._replace_via_keyboard(typed.text, *self.selection)
        elif typed.key == "backspace":
            self.action_delete_left()
        else:
            self._replace_via_keyboard("\n" if typed.key == "enter" else typed.character or "", *self.selection)

    def choose(self) -> None:
        """Send the prompt, or insert the highlighted choice; a command without arguments is sent as well."""
        word = self.wanted
        chosen = self._choices.chosen_for(word)
        if chosen is not None and word is not None and chosen.text.strip() != self.text.strip():
            alone = len(self.text.strip()) == word.length
            meant = chosen.whole and alone and self._choices.is_meant
            self.action_complete()
            if not meant:
                return
        self._choices.close()
        self.post_message(self.Sent(queue=False))

    def action_newline(self) -> None:
        self._replace_via_keyboard("\n", *self.selection)

    def action_queue(self) -> None:
        self.post_message(self.Sent(queue=True, as_prompt=True))

    def action_as_prompt(self) -> None:
        """Steer although a request waits for an answer; queue if none does."""
        self.post_message(self.Sent(queue=not self.answers, as_prompt=True))

    def action_leave(self) -> None:
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(self.LeaveAsked(end=True))

    def action_copy(self) -> None:
        if self.selected_text:
            super().action_copy()
        else:
            self.post_message(self.LeaveAsked(end=False))

    def action_paste(self) -> None:
        """Handle ctrl+v: look for an image. Terminals paste text with another key."""
        self.post_message(self.PictureWanted())

    def paste_own(self) -> bool:
        """Insert what was cut or copied in this app; False if there is nothing."""
        if self.app.clipboard:
            super().action_paste()
        return bool(self.app.clipboard)

    def action_complete(self) -> None:
        word = self.wanted
        chosen = self._choices.chosen_for(word)
        if chosen is None or word is None:
            if not self._choices.is_open:
                self.screen.focus_next()
            return
        row, column = self.cursor_location
        self.replace(f"{chosen.text} ", (row, column - word.length), (row, column))
        self._choices.close()

    def action_cursor_up(self, select: bool = False) -> None:
        if self._choices.is_open:
            self._choices.action_cursor_up()
        elif select or not self.navigator.is_first_wrapped_line(self.cursor_location):
            super().action_cursor_up(select)
        elif (older := self._history.older(self.text)) is not None:
            self.put(older)

    def action_cursor_down(self, select: bool = False) -> None:
        if self._choices.is_open:
            self._choices.action_cursor_down()
        elif select or not self.navigator.is_last_wrapped_line(self.cursor_location):
            super().action_cursor_down(select)
        elif (newer := self._history.newer()) is not None:
            self.put(newer)

    def action_cursor_page_up(self) -> None:
        self.app.query_one("#transcript").scroll_page_up()

    def action_cursor_page_down(self) -> None:
        self.app.query_one("#transcript").scroll_page_down()

    def edit(self, edit: Edit) -> EditResult:
        """Make all input safe to draw, whether typed, pasted or completed."""
        edit.text = mark_hidden(in_lines(edit.text))
        return super().edit(edit)

    def load_text(self, text: str) -> None:
        """Make the text safe to draw: it may be another client's prompt."""
        super().load_text(mark_hidden(text))

    def put(self, text: str) -> None:
        """Replace the text and put the cursor at its end."""
        self.text = text
        self.move_cursor(self.document.end)

    @property
    def wanted(self) -> Wanted | None:
        """The word that can be completed at the cursor."""
        row, column = self.cursor_location
        return find_wanted(self.document[row][:column], first_line=row == 0)


Place = tuple[str | None, int]
"""A session id, or None and the number of a draft."""


@dataclass
class Composed(Message):
    """A prompt to be sent. The composer has been cleared."""

    text: str
    attachments: tuple[Attachment, ...]
    queue: bool
    place: Place
    """The session or draft it was written in."""
    as_prompt: bool = False
    """It is a prompt even if a request waits for an answer."""


@dataclass
class Drafted(Message):
    """The text of the prompt changed."""


@dataclass
class Completing(Message):
    """A request for completions; `Composer.offer` takes the answer."""

    wanted: Wanted


class Composer(Vertical):
    DEFAULT_CSS = """
    Composer {
        height: auto; border: round $border-blurred; padding: 0 1; margin: 0;
        border-subtitle-color: $text-muted;
        border-title-color: $text-accent;
        &:focus-within { border: round $border; }
        &.-plan { border: round $accent; }
        & > #chips { height: auto; display: none; color: $text-accent; }
        & > PromptInput {
            height: auto; max-height: 10; min-height: 1; min-width: 8; background: transparent; border: none;
        }
    }
    """

    def __init__(self, place: Callable[[], Place]) -> None:
        super().__init__(id="composer")
        self._place = place
        self.history = History()
        self.choices = Choices()
        self.input = PromptInput(self.history, self.choices)
        self.attachments: list[Attachment] = []
        self._reading = False
        """Whether an image is being read from the clipboard."""
        self._held: list[Composed] = []
        """Prompts sent meanwhile. The first one gets the image; the others wait to keep their order."""

    def compose(self) -> ComposeResult:
        yield self.choices
        yield Static("", id="chips", markup=False)
        yield self.input

    def hint(self, words: str) -> None:
        """Show key hints at the lower edge."""
        self.border_subtitle = words

    def show_plan(self, *, on: bool) -> None:
        """Show at the upper edge whether the next prompt plans first."""
        self.border_title = "Plan first · shift+tab off" if on else ""
        self.set_class(on, "-plan")

    def offer(self, asked: Wanted, choices: list[Choice]) -> None:
        """Take the answer to `Completing`; ignored if the word has changed since."""
        if self.input.wanted == asked:
            self.choices.offer(asked, choices)

    def attach(self, attachment: Attachment) -> None:
        self.attachments.append(attachment)
        self._draw_chips()

    def put(self, text: str, attachments: tuple[Attachment, ...] = ()) -> None:
        """Replace the prompt, to be edited and sent."""
        self.input.put(text)
        self.attachments = list(attachments)
        self._draw_chips()

    def give_back(self, attachments: tuple[Attachment, ...], text: str = "") -> None:
        """Put back what was not sent, before what has been typed since."""
        if text or attachments:
            self.put("\n".join(filter(None, (text, self.input.text))), (*attachments, *self.attachments))

    def suggest(self, text: str) -> None:
        """Put a suggested prompt before what has been typed, to be edited and sent."""
        self.give_back((), text)
        self.input.focus()

    def clear(self) -> bool:
        """Clear the prompt; False if there was nothing. The history keeps the text."""
        if not self.input.text and not self.attachments:
            return False
        self.history.add(self.input.text)
        self.put("")
        return True

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self.post_message(Drafted())
        word = self.input.wanted
        if word is None:
            self.choices.close()
        else:
            self.post_message(Completing(word))

    def on_prompt_input_sent(self, event: PromptInput.Sent) -> None:
        event.stop()
        text, attachments = self.input.text, tuple(self.attachments)
        if text.strip() or attachments or (self._reading and not self._held):
            self.clear()
            self._send(Composed(text.strip("\n"), attachments, event.queue, self._place(), event.as_prompt))

    def _send(self, prompt: Composed) -> None:
        if self._reading:
            self._held.append(prompt)
            self._draw_chips()
        elif prompt.text.strip() or prompt.attachments:
            self.post_message(prompt)

    def on_prompt_input_pasted(self, event: PromptInput.Pasted) -> None:
        event.stop()
        self.attach(event.attachment)

    def on_prompt_input_picture_wanted(self, event: PromptInput.PictureWanted) -> None:
        event.stop()
        found = readers()
        if found and not self._reading:
            self._reading = True
            self.run_worker(self._read_picture(found), name="clipboard")
        elif not found and not self.input.paste_own():
            self.notify(NO_READER, markup=False)

    async def _read_picture(self, found: list[Reader]) -> None:
        number = len(self.attachments)
        try:
            self._attach_read(await picture_on_clipboard(found, number))
        except NoPicture as why:
            if self._held or not self.input.paste_own():
                self.notify(f"{why} {PASTE_TEXT}", markup=False)
        finally:
            self._reading, held, self._held = False, self._held, []
            for prompt in held:
                self._send(prompt)
            self._draw_chips()

    def _attach_read(self, picture: Attachment) -> None:
        if self._held:
            self._held[0].attachments += (picture,)
        else:
            self.attach(picture)

    def on_option_list_option_selected(self, event: Choices.OptionSelected) -> None:
        event.stop()  # a click works like enter
        self.input.choose()
        self.input.focus()

    def on_prompt_input_emptied(self, event: PromptInput.Emptied) -> None:
        event.stop()
        if self.attachments:
            self.attachments.pop()
            self._draw_chips()

    def _draw_chips(self) -> None:
        self.input.attached = len(self.attachments)
        chips = self.query_one("#chips", Static)
        told = [f"⊕ {chip(each)}" for each in self.attachments]
        if self._held:
            told.insert(0, "… will be sent when the clipboard has been read")
        chips.display = bool(told)
        chips.update(Content("  ").join(line(each, width=60) for each in told))
