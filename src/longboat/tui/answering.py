"""Typed answers: while a request of this session waits, what is sent from the composer answers the oldest one. A line
above the composer says what enter will do.

Owns what a typed text means for a request. Must not know the dialogs, nor how an answer is sent.
"""

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widgets import Static

from longboat.tui.content import line
from longboat.tui.dialogs.permission import PermissionDecision
from longboat.tui.dialogs.question import QuestionAnswered
from longboat.wire.asks import Permission, PermissionAnswer, Question
from longboat.wire.plain import plain_line
from longboat.wire.typed_answers import answer_in, texts_in

Ask = Permission | Question
INSTEAD = "alt+enter send as a prompt instead"
_EFFECTS = {
    PermissionAnswer.ONCE: "allows this call once",
    PermissionAnswer.SESSION: "allows it for this session",
    PermissionAnswer.ALWAYS: "always allows it",
    PermissionAnswer.DENY: "denies this call",
}


def is_answer(text: str) -> bool:
    """Whether a text can be an answer: it is neither empty nor a command."""
    return bool(text.strip()) and not text.startswith(("/", "!"))


def decide(ask: Ask, text: str) -> PermissionDecision | QuestionAnswered:
    """What a typed text answers."""
    if isinstance(ask, Question):
        return QuestionAnswered(answer=texts_in(ask, text))
    answer = answer_in(ask, text)
    if answer is None:
        return PermissionDecision(answer=PermissionAnswer.DENY, reason=text.strip())
    granting = answer in (PermissionAnswer.SESSION, PermissionAnswer.ALWAYS)
    return PermissionDecision(answer=answer, wide=granting and not ask.grant)


def effect(ask: Ask, text: str) -> str:
    """What enter will do. Contains untrusted text."""
    if isinstance(ask, Question):
        if not is_answer(text):
            return "Type your answer to the question and press enter. ctrl+g shows the question."
        return f"enter answers the question with “{_short(', '.join(texts_in(ask, text)))}”"
    if not is_answer(text):
        return "Type what to do instead, or type yes to allow this call; then press enter. ctrl+g shows the call."
    answer = answer_in(ask, text)
    return f"enter {_EFFECTS[answer]}" if answer else "enter denies this call and tells the agent what to do instead"


def _short(text: str) -> str:
    told = plain_line(text)
    return told if len(told) <= 60 else f"{told[:59]}…"


class AnswerLine(Vertical):
    """Shown while a request waits and its dialog is closed."""

    DEFAULT_CSS = """
    AnswerLine {
        height: auto; display: none; padding: 0 1;
        & > Static { height: auto; color: $text-warning; }
        &.-dangerous > #effect { color: $text-error; }
        & > #instead { width: auto; color: $text-accent; text-style: underline; }
    }
    """

    @dataclass
    class PromptWanted(Message):
        """Send the text as a prompt instead."""

    def compose(self) -> ComposeResult:
        yield Static("", id="effect", markup=False)
        yield Static(INSTEAD, id="instead", markup=False)

    def show(self, ask: Ask | None, text: str) -> None:
        command = bool(text.strip()) and not is_answer(text)
        self.display = ask is not None and not command
        if ask is None or command:
            return
        dangerous = isinstance(ask, Permission) and bool(ask.danger)
        self.set_class(dangerous, "-dangerous")
        self.query_one("#effect", Static).update(Content.assemble("⚠ " if dangerous else "", line(effect(ask, text))))
        self.query_one("#instead").display = is_answer(text)

    @on(Click, "#instead")
    def _clicked(self) -> None:
        self.post_message(self.PromptWanted())
