"""What the agent wants to know: its choices, and always words of one's own."""

import time
from dataclasses import dataclass
from typing import ClassVar

from textual import events, on
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from longboat.tui.dialogs.asks import Gone, tell, told_question
from longboat.tui.dialogs.fields import Field
from longboat.tui.dialogs.frame import GRACE_S, Clock, Dialog, keys_line
from longboat.tui.listing import Listing
from longboat.wire.asks import Question
from longboat.wire.plain import plain, plain_line

MAX_ANSWER = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered:
    answer: tuple[str, ...]
    """The choices as the agent wrote them, then one's own words."""


class AnswerList(Listing):
    # Where the arrows are heard: a key that the app heard first would overtake those pressed before it.
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "screen.send", "Send", show=False)]

    def __init__(self) -> None:
        super().__init__(id="choices", markup=False)
        self.strayed = False
        """Letters came here that were meant for one's own words: the focus was on its way there."""

    def on_key(self, event: events.Key) -> None:
        if isinstance(self.screen, Dialog) and self.screen.stray(event):
            return
        if event.is_printable and event.character not in (" ", "t") and not (event.character or "").isdigit():
            self.strayed = True


class QuestionDialog(Dialog[QuestionAnswered | Gone]):
    """Ends with an answer, with `Gone`, or with None: later."""

    HEADING = "Question"
    yielding = "#text"
    BINDINGS: ClassVar[list[BindingType]] = [
        *[Binding(str(number), f"number({number})", show=False) for number in range(1, 10)],
        Binding("space", "mark", "Choose"),
        Binding("t", "words", "Your own words"),
        Binding("pageup", "look(-1)", "Up", show=False, priority=True),
        Binding("pagedown", "look(1)", "Down", show=False, priority=True),
        Binding("down", "leave_words(1)", show=False),
        Binding("up", "leave_words(-1)", show=False),
    ]
    DEFAULT_CSS = """
    QuestionDialog {
        #text { height: auto; }
        #choices {
            height: auto; border: none; padding: 0; background: $surface;
            &:focus { border: none; }
        }
    }
    """

    def __init__(self, question: Question, *, grace_s: float = GRACE_S, clock: Clock = time.monotonic) -> None:
        super().__init__(grace_s=grace_s, clock=clock)
        self.question = question
        self._marked: set[int] = set()

    def body(self) -> list[Widget]:
        choices = [AnswerList()] if self.question.choices else []
        mark = [("space", "mark"), ("enter", "send")] if self.question.multiple else [("enter", "send")]
        return [
            VerticalScroll(Static(plain(self.question.text), markup=False), id="text", can_focus=False),
            *choices,
            Field(placeholder="Your own words", id="words", max_length=MAX_ANSWER),
            keys_line(
                *([("1–9", "choose"), *mark, ("t", "words")] if choices else [("enter", "send")]), ("esc", "later")
            ),
        ]

    def fit(self) -> None:
        """Many choices leave room for the question. In rows, as `_fit` counts."""
        for choices in self.query(AnswerList):
            choices.styles.max_height = max(3, self.size.height * 4 // 10)
        super().fit()

    def on_mount(self) -> None:
        if self.question.choices:
            self._draw()
            self.query_one("#choices").focus()
        else:
            self.query_one("#words").focus()

    @property
    def _choices(self) -> AnswerList:
        return self.query_one("#choices", AnswerList)

    def _draw(self) -> None:
        choices = self._choices
        at = choices.highlighted
        choices.set_options(map(self._option, range(len(self.question.choices))))
        choices.highlighted = at or 0

    def _option(self, index: int) -> Option:
        number = f"{index + 1}" if index < 9 else " "
        mark = f"[{'x' if index in self._marked else ' '}] " if self.question.multiple else ""
        return Option(Content.assemble((f"{number} ", "bold"), mark, plain_line(self.question.choices[index])))

    def action_number(self, number: int) -> None:
        """One choice is the answer; of several it is marked."""
        if number > len(self.question.choices):
            return
        self._choices.highlighted = number - 1
        if self.question.multiple:
            self.action_mark()
        else:
            self._send({number - 1})

    def action_mark(self) -> None:
        if self.question.choices and self.question.multiple and (at := self._choices.highlighted) is not None:
            self._marked ^= {at}
            self._draw()

    def action_words(self) -> None:
        self.query_one("#words").focus()

    def action_leave_words(self, step: int) -> None:
        """From one's own words back to the choices."""
        if self.question.choices:
            self._choices.focus()

    def action_look(self, pages: int) -> None:
        text = self.query_one("#text")
        text.scroll_relative(y=pages * max(1, text.size.height - 1), animate=False)

    @on(OptionList.OptionSelected, "#choices")
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        """By mouse: enter does not come here."""
        self.action_number(event.option_index + 1)

    @on(Input.Submitted, "#words")
    def _written(self) -> None:
        self.action_send()

    def action_send(self) -> None:
        if self.is_hasty():
            return
        if self.question.choices and self._choices.strayed:
            self._choices.strayed = False
            self.action_words()
            self.complain("Some of what you typed was lost: write your answer again.")
        elif not self.question.multiple and self.question.choices and self._choices.has_focus:
            self._send({self._choices.highlighted or 0})
        elif self._words or self._marked:
            self._send(self._marked)
        elif self.question.multiple and self.question.choices:
            self.complain("Mark what applies with space, or write your own words.")
        else:
            self.complain("Write an answer, or leave it for later with esc.")

    @property
    def _words(self) -> str:
        return self.query_one("#words", Input).value.strip()

    def _send(self, chosen: set[int]) -> None:
        words = (self._words,) if self._words else ()
        self.end(QuestionAnswered(answer=(*(self.question.choices[index] for index in sorted(chosen)), *words)))

    def withdrawn(self, answered_by: str | None, answer: tuple[str, ...] | None) -> None:
        """Somebody else answered it, or with no answer its run ended."""
        if not self._over:
            sentence = told_question(self.question.text, answered_by, answer)
            tell(self, sentence)
            self.end(Gone(sentence=sentence))
