"""Text for permission requests and questions at the command line, and parsing of typed answers. Pure, except styles."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from longboat.cli.console import one_line, safe
from longboat.wire.asks import (
    AskState,
    CommandPart,
    Mark,
    Permission,
    PermissionAnswer,
    PermissionNotification,
    Question,
    QuestionNotification,
)
from longboat.wire.ids import person
from longboat.wire.typed_answers import is_number_in, pieces_of

Ask = Permission | Question
Notification = PermissionNotification | QuestionNotification

MAX_LINES = 40
MAX_CHARACTERS = 4_000
"""How much of a permission request's detail is shown at first; `?` shows all of it."""

_ANSWERS = {
    "o": PermissionAnswer.ONCE,
    "y": PermissionAnswer.ONCE,
    "yes": PermissionAnswer.ONCE,
    "s": PermissionAnswer.SESSION,
    "a": PermissionAnswer.ALWAYS,
    "d": PermissionAnswer.DENY,
    "n": PermissionAnswer.DENY,
    "no": PermissionAnswer.DENY,
} | {answer.value: answer for answer in PermissionAnswer}


_LETTERS = ("o", "y", "s", "a", "sw", "aw")
"""Too short to allow a dangerous call: a slip must not."""
_GRANTING = ("s", "session", "a", "always", "sw", "aw")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """An answer to a permission."""

    answer: PermissionAnswer
    wide: bool = False
    reason: str = ""


def title_of(ask: Ask) -> str:
    return safe(ask.title if isinstance(ask, Permission) else ask.text)


def render_ask(ask: Ask, *, whole: bool = False, parts: bool = False) -> Iterator[str]:
    """A request as styled lines for a person. `parts`: also each part of a command with its reason."""
    if isinstance(ask, Permission) and ask.is_command:
        first, *more = _command(ask, whole=whole)
        yield click.style("? Run ", bold=True) + first
        yield from (f"    {line}" for line in more)
    else:
        first, *more = title_of(ask).splitlines() or [""]
        yield click.style(f"? {first}", bold=True)
        yield from (f"  {line}" for line in more)
    if ask.parent_run_id is not None:
        yield "    (asked by a sub-agent)"
    if isinstance(ask, Permission):
        yield from _permission(ask, whole=whole, parts=parts)
    else:
        yield from _choices(ask)


def _choices(ask: Question) -> Iterator[str]:
    width = len(str(len(ask.choices)))
    for number, choice in enumerate(ask.choices, 1):
        yield f"    {number:>{width}}. {safe(choice)}"
        if meaning := one_line(ask.description_of(number - 1)):
            yield f"    {' ' * width}  {click.style(meaning, dim=True)}"


def _permission(ask: Permission, *, whole: bool, parts: bool) -> Iterator[str]:
    if not ask.is_command:
        yield from (f"    {_colored(line)}" for line in _detail(ask, whole=whole))
    yield from (f"    {line}" for line in _reasons(ask))
    if parts:
        yield from (f"      {_describe_part(part)}" for part in ask.shown_parts)
        yield from [f"      … and {ask.more_parts} more"] if ask.more_parts else []
    if ask.grant:
        yield f"    session, always: will allow {one_line(', '.join(ask.told_rules()))}"
    if ask.wide:
        yield f"    wider rules:     will allow {one_line(', '.join(ask.wide))}"
    if ask.rules_file:
        yield f"    always adds the rules to {one_line(ask.rules_file)}"


def _reasons(ask: Permission) -> Iterator[str]:
    """Why it is dangerous, with the parts that are; else why it needs approval."""
    if not ask.danger:
        yield from [f"why: {safe(ask.why)}"] if ask.why else []
        return
    yield click.style(f"⚠ Dangerous. {safe(ask.danger)}", fg="red", bold=True)
    for text in dict.fromkeys(part.text for part in ask.parts if part.danger and len(ask.parts) > 1):
        yield click.style(f"  ⚠ {one_line(text)}", fg="red")


def _command(ask: Permission, *, whole: bool) -> Iterator[str]:
    """The command with its risky parts underlined, and what is said about where it runs."""
    if is_cut(ask) and not whole:
        yield from _detail(ask, whole=False)
        return
    styles: dict[Mark, dict[str, Any]] = {
        Mark.NONE: {},
        Mark.ASKED: {"underline": True},
        Mark.DANGEROUS: {"fg": "red", "bold": True, "underline": True},
    }
    marked = [
        "\n".join(click.style(line, **styles[mark]) if line else "" for line in safe(text).split("\n"))
        for text, mark in ask.pieces()
    ]
    yield from "".join(marked).splitlines() or [""]
    yield from safe(ask.notes).splitlines()


def choices_of(ask: Ask) -> str:
    """The possible answers, on one line."""
    if isinstance(ask, Question):
        own = "Type a number or your own answer" if ask.choices else "Type your answer"
        return f"  {own}{', or several numbers: 1,3' if ask.multiple and ask.choices else ''}"
    if ask.danger:
        words = ["[yes] once"]
        words += ["[session]", "[always]"] if ask.grant else []
        words += ["[session wide], [always wide]"] if ask.wide else []
    else:
        words = ["[y]es, once"]
        words += ["[s]ession", "[a]lways"] if ask.grant else []
        words += ["[sw], [aw] wider rules"] if ask.wide else []
    words += ["[d]eny (reason optional)"]
    words += ["[?] show all" if is_cut(ask) else "[?] help"]
    return "  " + "  ".join(words)


def how_to_answer(ask: Ask) -> str:
    """The command that answers it, from any directory, ready to be copied, and the other possible answers."""
    if isinstance(ask, Question):
        said, else_ = ("1", "another number, or your own answer") if ask.choices else ('"…"', "")
        else_ += "; several: 1 3" if ask.multiple and ask.choices else ""
        command = f"longboat questions answer {ask.id} {said}"
    else:
        else_ = "session, always, deny --reason TEXT" if ask.grant or ask.wide else "deny --reason TEXT"
        else_ += "; --wide for the wider rules" if ask.wide else ""
        command = f"longboat permissions answer {ask.id} once"
    return f"answer: {command}{f'   (or {else_})' if else_ else ''}"


def help_of(ask: Ask) -> Iterator[str]:
    """What each answer does."""
    if isinstance(ask, Question):
        if ask.choices:
            yield f"  1 to {len(ask.choices)}: that choice{'; several with commas: 1,3' if ask.multiple else ''}"
        yield "  anything else: your answer, as typed"
        return
    yield f"  {'yes' if ask.danger else 'y'}, once: allow this call only"
    if ask.grant:
        yield f"  {'' if ask.danger else 's, '}session: allow it for the rest of this session"
        file = one_line(ask.rules_file) or "its longboat.json"
        yield f"  {'' if ask.danger else 'a, '}always: always allow it in this project (adds the rules to {file})"
    if ask.wide:
        yield f"  {'session wide, always wide' if ask.danger else 'sw, aw'}: session or always, with the wider rules"
    yield '  d, deny: deny the call; "d use the test database" also tells the agent what to do instead'
    yield "  Ctrl-C: cancel the run"


def describe_misreading(ask: Ask, line: str) -> str:
    """Why a line is not a valid answer, and what is."""
    given = one_line(line, 40)
    if not given:
        return "Type an answer."
    if isinstance(ask, Question):
        return no_choice(ask, given)
    key = given.split()[0].lower()
    if key in _GRANTING and not (ask.grant or ask.wide):
        allow = "yes" if ask.danger else "y"
        return f"{given!r} is not available: this call can only be allowed once. Type {allow} to allow or d to deny it."
    if key in ("sw", "aw") and not ask.wide:
        return f"{given!r} is not available: this call has no wider rules."
    if ask.danger and key in _LETTERS:
        return f"{given!r} does not allow a dangerous call: type the whole word, such as yes. d denies it."
    return f"{given!r} is not an answer: type one of the letters, then Enter. ? explains them."


def is_cut(ask: Permission) -> bool:
    """Whether `shown` omits something."""
    return len(ask.detail) > MAX_CHARACTERS or ask.detail.count("\n") >= MAX_LINES


def word_of(ask: Permission, line: str) -> Word | None:
    """The answer that a line stands for; None if this permission does not accept it."""
    key, _, rest = line.strip().partition(" ")
    key, rest = key.lower(), rest.strip()
    if ask.danger and key in _LETTERS:
        return None
    wide = bool(ask.wide) and (key in ("sw", "aw") or rest == "wide")
    answer = _ANSWERS.get(key.removesuffix("w") if wide else key)
    match answer:
        case PermissionAnswer.DENY:
            return Word(answer=answer, reason=rest)
        case PermissionAnswer.SESSION | PermissionAnswer.ALWAYS if wide or (ask.grant and not rest):
            return Word(answer=answer, wide=wide)
        case PermissionAnswer.ONCE if not rest:
            return Word(answer=answer)
        case _:
            return None


def is_answer(ask: Ask, line: str) -> bool:
    return word_of(ask, line) is not None if isinstance(ask, Permission) else not is_slip(ask, line)


def is_slip(question: Question, line: str) -> bool:
    """Whether the line has only numbers and one of them is not a choice. A choice may be a number itself."""
    pieces = pieces_of(question, line)
    numbers = all(piece.isascii() and piece.isdigit() for piece in pieces)
    known = all(is_number_in(question, piece) or piece in question.choices for piece in pieces)
    return bool(question.choices) and numbers and not known


def no_choice(question: Question, line: str) -> str:
    """The message for a number that is not a choice."""
    count = len(question.choices)
    numbers = "The only choice is 1" if count == 1 else f"The choices are 1 to {count}"
    return f"{line.strip()!r} is not a choice. {numbers}; anything else is taken as your own answer."


def describe_answer(answered: Permission) -> str:
    """What an answer did."""
    if answered.answer is PermissionAnswer.DENY:
        return "Denied."
    return "\n".join(["Allowed.", *(f"  now allowed: {one_line(rule)}" for rule in answered.granted)])


def describe_end(told: Notification) -> str:
    """How a request was settled elsewhere."""
    if told.state is AskState.WITHDRAWN:
        return "No longer needs an answer, because the run ended."
    who = safe(person(told.answered_by or "Someone"))
    if isinstance(told, QuestionNotification):
        return f"{who} answered: {safe(', '.join(told.answer))}"
    return f"{who} answered: {told.answer}{f' ({safe(told.reason)})' if told.reason else ''}"


def _detail(ask: Permission, *, whole: bool) -> Iterator[str]:
    """What the call would do. Lines are never shortened: people approve what they see, or read that there is more."""
    if whole or not is_cut(ask):
        yield from safe(ask.beyond_title).splitlines()
        return
    lines = safe(ask.detail[:MAX_CHARACTERS]).splitlines()[:MAX_LINES]
    yield from lines
    left = len(ask.detail.splitlines()) - len(lines)
    yield f"… {left} more lines" if left > 0 else "… more"


def _describe_part(part: CommandPart) -> str:
    line = one_line(part.describe())
    return click.style(line, fg="yellow") if part.why else line


def _colored(line: str) -> str:
    if line.startswith("+"):
        return click.style(line, fg="green")
    return click.style(line, fg="red") if line.startswith("-") else line
