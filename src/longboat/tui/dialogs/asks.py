"""What permissions and questions have in common: somebody else may answer first, and the dialog says so."""

from dataclasses import dataclass

from textual.widget import Widget

from longboat.wire.asks import PermissionAnswer
from longboat.wire.plain import plain_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """Nothing is to be sent: it was answered by somebody else, or its run ended. `sentence` was shown."""

    sentence: str


_SAID = {
    PermissionAnswer.ONCE: "allowed it once",
    PermissionAnswer.SESSION: "allowed it for this session",
    PermissionAnswer.ALWAYS: "allowed it for ever",
    PermissionAnswer.DENY: "denied it",
}


def told_permission(title: str, answered_by: str | None, answer: PermissionAnswer | None) -> str:
    """Who answered what; without an answer it was withdrawn."""
    if answer is None:
        return f"No answer is needed any more: {_short(title)}"
    return f"{_who(answered_by)} {_SAID[answer]}: {_short(title)}"


def told_question(text: str, answered_by: str | None, answer: tuple[str, ...] | None) -> str:
    if answer is None:
        return f"No answer is needed any more: {_short(text)}"
    return f"{_who(answered_by)} answered “{_short(', '.join(answer))}”: {_short(text)}"


def _who(answered_by: str | None) -> str:
    return plain_line(answered_by) if answered_by else "Somebody"


def _short(text: str) -> str:
    line = plain_line(text)
    return line if len(line) <= 80 else line[:79] + "…"


def tell(widget: Widget, sentence: str) -> None:
    """A notice that outlives the dialog. It names foreign things: never read as markup."""
    widget.notify(sentence, markup=False)
