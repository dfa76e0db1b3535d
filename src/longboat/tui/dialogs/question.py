"""The question dialog: the agent's choices, and always a field for the person's own answer."""

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
from longboat.tui.panels.looks import FAINT
from longboat.tui.textual_fixes import Listing
from longboat.wire.asks import Question
from longboat.wire.plain import plain, plain_line

MAX_ANSWER = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered:
    answer: tuple[str, ...]
    """The chosen choices as the agent wrote them, then the person's own answer."""


class AnswerList(Listing):
    # Bound here, like the arrows: handled by the app, the key would overtake those pressed before it.
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "screen.send", "Send", show=False)]

    def __init__(self) -> None:
        super().__init__(id="choices", markup=False)
        self.strayed = False
        """Whether letters arrived here that were meant for the text field, before it had the focus."""

    def on_key(self, event: events.Key) -> None:
        if isinstance(self.screen, Dialog) and self.screen.stray(event):
            return
        if event.is_printable and event.character not in (" ", "t") and not (event.character or "").isdigit():
            self.strayed = True


class QuestionDialog(Dialog[QuestionAnswered | Gone]):
    """Ends with an answer, with `Gone`, or with None: decide later."""

    HEADING = "Question"
    yielding = "#text"
    BINDINGS: ClassVar[list[BindingType]] = [
        *[Binding(str(number), f"number({number})", show=False) for number in range(1, 10)],
        Binding("space", "mark", "Choose"),
        Binding("t", "words", "Type an answer"),
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
            Field(placeholder="Your own answer", id="words", max_length=MAX_ANSWER),
            keys_line(
                *([("1–9", "choose"), *mark, ("t", "type an answer")] if choices else [("enter", "send")]),
                ("esc", "decide later"),
            ),
        ]

    def fit(self) -> None:
        """Limit the choices to leave room for the question. In rows, as in `_fit`."""
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
        meaning = plain_line(self.question.description_of(index))
        return Option(
            Content.assemble(
                (f"{number} ", "bold"),
                mark,
                plain_line(self.question.choices[index]),
                (f"\n{' ' * (2 + len(mark))}{meaning}" if meaning else "", FAINT),
            )
        )

    def action_number(self, number: int) -> None:
        """Send the choice, or mark it if several are allowed."""
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
        """Move from the text field back to the choices."""
        if self.question.choices:
            self._choices.focus()

    def action_look(self, pages: int) -> None:
        text = self.query_one("#text")
        text.scroll_relative(y=pages * max(1, text.size.height - 1), animate=False)

    @on(OptionList.OptionSelected, "#choices")
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        """Handle a mouse click; enter does not get here."""
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
            self.complain("Some of your typing was lost. Please type your answer again.")
        elif not self.question.multiple and self.question.choices and self._choices.has_focus:
            self._send({self._choices.highlighted or 0})
        elif self._words or self._marked:
            self._send(self._marked)
        elif self.question.multiple and self.question.choices:
            self.complain("Mark one or more choices with space, or type your own answer.")
        else:
            self.complain("Type an answer, or press esc to decide later.")

    @property
    def _words(self) -> str:
        return self.query_one("#words", Input).value.strip()

    def _send(self, chosen: set[int]) -> None:
        words = (self._words,) if self._words else ()
        self.end(QuestionAnswered(answer=(*(self.question.choices[index] for index in sorted(chosen)), *words)))

    def withdrawn(self, answered_by: str | None, answer: tuple[str, ...] | None) -> None:
        """Close the dialog: someone else answered, or the run ended (no answer)."""
        if not self.is_over:
            sentence = told_question(self.question.text, answered_by, answer)
            tell(self, sentence)
            self.end(Gone(sentence=sentence))
