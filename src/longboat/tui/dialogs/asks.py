"""Shared by the permission and question dialogs: someone else may answer first, and the dialog says so."""

from dataclasses import dataclass

from textual.widget import Widget

from longboat.wire.asks import PermissionAnswer
from longboat.wire.ids import person
from longboat.wire.plain import plain_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """No answer is needed: someone else answered, or the run ended. `sentence` was shown."""

    sentence: str


_SAID = {
    PermissionAnswer.ONCE: "allowed it once",
    PermissionAnswer.SESSION: "allowed it for this session",
    PermissionAnswer.ALWAYS: "always allowed it",
    PermissionAnswer.DENY: "denied it",
}


def told_permission(title: str, answered_by: str | None, answer: PermissionAnswer | None) -> str:
    """A sentence on who answered what; without an answer, the request was withdrawn."""
    if answer is None:
        return f"No longer needs an answer: {_short(title)}"
    return f"{_who(answered_by)} {_SAID[answer]}: {_short(title)}"


def told_question(text: str, answered_by: str | None, answer: tuple[str, ...] | None) -> str:
    if answer is None:
        return f"No longer needs an answer: {_short(text)}"
    return f"{_who(answered_by)} answered “{_short(', '.join(answer))}”: {_short(text)}"


def _who(answered_by: str | None) -> str:
    return plain_line(person(answered_by)) if answered_by else "Someone"


def _short(text: str) -> str:
    line = plain_line(text)
    return line if len(line) <= 80 else line[:79] + "…"


def tell(widget: Widget, sentence: str) -> None:
    """Show a notification that outlives the dialog. It contains untrusted text, so it is never parsed as markup."""
    widget.notify(sentence, markup=False)
