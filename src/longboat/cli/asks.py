"""How permissions and questions read at the command line, and what a typed line answers. Pure, but for the styles."""

from collections.abc import Iterator
from dataclasses import dataclass

import click

from longboat.cli.console import one_line, safe
from longboat.wire.asks import (
    AskState,
    CommandPart,
    Permission,
    PermissionAnswer,
    PermissionNotification,
    Question,
    QuestionNotification,
)

Ask = Permission | Question
Notification = PermissionNotification | QuestionNotification

MAX_LINES = 40
MAX_CHARACTERS = 4_000
"""Of what a permission would do: whoever wants to see more asks for it."""

_ANSWERS = {
    "o": PermissionAnswer.ONCE,
    "s": PermissionAnswer.SESSION,
    "a": PermissionAnswer.ALWAYS,
    "d": PermissionAnswer.DENY,
} | {answer.value: answer for answer in PermissionAnswer}


_GRANTING = ("s", "session", "a", "always", "sw", "aw")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """An answer to a permission."""

    answer: PermissionAnswer
    wide: bool = False
    reason: str = ""


def title_of(ask: Ask) -> str:
    return safe(ask.title if isinstance(ask, Permission) else ask.text)


def render_ask(ask: Ask, *, whole: bool = False) -> Iterator[str]:
    """What is asked, for a person: styled lines."""
    first, *more = title_of(ask).splitlines() or [""]
    yield click.style(f"? {first}", bold=True)
    yield from (f"  {line}" for line in more)
    if ask.parent_run_id is not None:
        yield "    (a sub-agent asks)"
    if isinstance(ask, Question):
        yield from (f"    {number}. {safe(choice)}" for number, choice in enumerate(ask.choices, 1))
        return
    yield from (f"    {_colored(line)}" for line in _detail(ask, whole=whole))
    if ask.why:
        yield f"    why: {safe(ask.why)}"
    yield from (f"      {_told(part)}" for part in ask.shown_parts)
    if ask.more_parts:
        yield f"      … and {ask.more_parts} more"
    if ask.grant:
        yield f"    session, always: would allow {one_line(', '.join(ask.grant))}"
    if ask.wide:
        yield f"    the wide form:   would allow {one_line(', '.join(ask.wide))}"


def choices_of(ask: Ask) -> str:
    """What may be typed."""
    if isinstance(ask, Question):
        own = "a number or your own words" if ask.choices else "your own words"
        return f"  {own}{', or several numbers: 1,3' if ask.multiple and ask.choices else ''}"
    words = ["[o]nce"]
    words += ["[s]ession", "[a]lways"] if ask.grant else []
    words += ["[sw], [aw] the wide form"] if ask.wide else []
    words += ["[d]eny, with a reason if you like"]
    words += ["[?] all of it" if is_cut(ask) else "[?] help"]
    return "  " + "  ".join(words)


def how_to_answer(ask: Ask, there: str = "") -> str:
    """The command that answers it, ready to be copied, and what else may be said. `there`: the option that names the
    directory, if it is needed."""
    if isinstance(ask, Question):
        said, else_ = ("1", "another number, or your own words") if ask.choices else ('"…"', "")
        else_ += "; several: 1 3" if ask.multiple and ask.choices else ""
        command = f"longboat questions answer {ask.id}{there} {said}"
    else:
        else_ = "session, always, deny --reason TEXT" if ask.grant or ask.wide else "deny --reason TEXT"
        else_ += "; --wide: the wide form" if ask.wide else ""
        command = f"longboat permissions answer {ask.id}{there} once"
    return f"answer: {command}{f'   (or {else_})' if else_ else ''}"


def help_of(ask: Ask) -> Iterator[str]:
    """What each answer does, for whoever asks."""
    if isinstance(ask, Question):
        if ask.choices:
            yield f"  1 to {len(ask.choices)}: that choice{'; several with commas: 1,3' if ask.multiple else ''}"
        yield "  anything else: is the answer, as you type it"
        return
    yield "  o, once: this call alone"
    if ask.grant:
        yield "  s, session: what it would allow, until the end of this session"
        yield "  a, always: what it would allow, from now on in this project (a rule in its longboat.json)"
    if ask.wide:
        yield "  sw, aw: the same, with the wide form"
    yield "  d, deny: the call is not made; d use the test database: and the agent is told why"
    yield "  Ctrl-C: cancels the run"


def describe_misreading(ask: Ask, line: str) -> str:
    """Why a line is no answer, and what is."""
    given = one_line(line, 40)
    if not given:
        return "Nothing was typed."
    if isinstance(ask, Question):
        return no_choice(ask, given)
    key = given.split()[0].lower()
    if key in _GRANTING and not (ask.grant or ask.wide):
        return f"{given!r} cannot be answered here: this call can be allowed only once. Type o, or d to deny it."
    if key in ("sw", "aw") and not ask.wide:
        return f"{given!r} cannot be answered here: no wide form is offered."
    if key in ("y", "yes", "n", "no"):
        return f"{given!r} is not enough: o allows it once, d denies it."
    return f"{given!r} was not understood: type one of the letters, then Enter. ? explains them."


def is_cut(ask: Permission) -> bool:
    """Whether `shown` leaves something out."""
    return len(ask.detail) > MAX_CHARACTERS or ask.detail.count("\n") >= MAX_LINES


def word_of(ask: Permission, line: str) -> Word | None:
    """The answer that a line stands for; None if it is none that this permission takes."""
    key, _, rest = line.strip().partition(" ")
    key, rest = key.lower(), rest.strip()
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


def texts_of(question: Question, line: str) -> tuple[str, ...]:
    """Numbers stand for choices, several where several may be taken; whatever else is the answer itself."""
    line, pieces = line.strip(), _pieces(question, line)
    if all(_is_number_in(question, piece) for piece in pieces):
        return tuple(dict.fromkeys(question.choices[int(piece) - 1] for piece in pieces))
    return (line,)


def is_slip(question: Question, line: str) -> bool:
    """Whether it is a number, or several, of which one stands for no choice. A choice may be a number itself."""
    pieces = _pieces(question, line)
    numbers = all(piece.isascii() and piece.isdigit() for piece in pieces)
    known = all(_is_number_in(question, piece) or piece in question.choices for piece in pieces)
    return bool(question.choices) and numbers and not known


def no_choice(question: Question, line: str) -> str:
    """What to say of a slip."""
    count = len(question.choices)
    numbers = "The only choice is 1" if count == 1 else f"The choices are 1 to {count}"
    return f"{line.strip()!r} is none of them. {numbers}; anything but a number is taken as your own words."


def describe_end(told: Notification) -> str:
    """How it ended without us, in words."""
    if told.state is AskState.WITHDRAWN:
        return "It is not asked any more."
    who = safe(told.answered_by or "Somebody")
    if isinstance(told, QuestionNotification):
        return f"{who} answered: {safe(', '.join(told.answer))}"
    return f"{who} answered: {told.answer}{f' ({safe(told.reason)})' if told.reason else ''}"


def _pieces(question: Question, line: str) -> list[str]:
    return [piece.strip() for piece in line.split(",")] if question.multiple else [line.strip()]


def _is_number_in(question: Question, text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= len(question.choices)


def _detail(ask: Permission, *, whole: bool) -> Iterator[str]:
    """What it would do. Lines are never cut short: what is approved is what is shown, or it is said that there is
    more."""
    if whole or not is_cut(ask):
        yield from safe(ask.beyond_title).splitlines()
        return
    lines = safe(ask.detail[:MAX_CHARACTERS]).splitlines()[:MAX_LINES]
    yield from lines
    left = len(ask.detail.splitlines()) - len(lines)
    yield f"… there is more{f': {left} lines' if left > 0 else ''}"


def _told(part: CommandPart) -> str:
    line = one_line(part.told())
    return click.style(line, fg="yellow") if part.why else line


def _colored(line: str) -> str:
    if line.startswith("+"):
        return click.style(line, fg="green")
    return click.style(line, fg="red") if line.startswith("-") else line
