"""Lists the parts of a shell command for the person who is asked, and the reason beside each part that needs approval.

Owns how parts are written, and how many. Must not decide anything: the assessment says what needs approval and why.
"""

import shlex
from collections.abc import Iterator

from msgspec.structs import replace

from longboat.permissions.assessment import Gap
from longboat.permissions.danger import danger_of_command, danger_of_redirection
from longboat.permissions.rules import Rule
from longboat.permissions.shell.assessment import ShellAssessment
from longboat.permissions.shell.script import Command, Redirection, Word
from longboat.permissions.shell.syntax import Span
from longboat.wire.asks import CommandPart, CommandPartKind

MAX_PARTS = 30
"""No one reads more."""
MAX_TEXT = 200


def describe_parts(assessment: ShellAssessment) -> tuple[tuple[CommandPart, ...], int]:
    """The parts, and how many were left out. Parts that need no approval are left out first, dangerous ones last."""
    parts = tuple(dict.fromkeys(_parts(assessment)))
    if len(parts) <= MAX_PARTS:
        return parts, 0
    asked_first = sorted(parts, key=lambda part: (not part.danger, not part.why))
    return tuple(asked_first[:MAX_PARTS]), len(parts) - MAX_PARTS


def _parts(assessment: ShellAssessment) -> Iterator[CommandPart]:
    script = assessment.script
    found = set(script.commands)
    blamed = {command: why for command, why in script.suspects if command in found}
    # What is said beside a command need not be said of the whole.
    told = f"This command cannot be checked: {script.opaque}." if script.opaque in blamed.values() else ""
    for command in script.commands:
        why = blamed.get(command) or _why(assessment.command_gaps(command))
        rule = None if why else assessment.rule_for(command)
        part = _part(CommandPartKind.COMMAND, _of_command(command), why, rule)
        yield _placed(part, danger_of_command(assessment, command), command.span)
    for redirection in script.redirections:
        why = _why(assessment.redirection_gaps(redirection))
        rule = None if why else assessment.rule_for_redirection(redirection)
        part = _part(CommandPartKind.REDIRECTION, _of_redirection(redirection), why, rule)
        yield _placed(part, danger_of_redirection(assessment, redirection), redirection.span)
    for gap in assessment.gaps_of_all():
        if gap.why != told:
            yield _part(CommandPartKind.WHOLE, "", gap.why, None)


def _why(gaps: Iterator[Gap]) -> str:
    gap = next(gaps, None)
    return (gap.brief or gap.why) if gap else ""


def _part(kind: CommandPartKind, text: str, why: str, rule: Rule | None) -> CommandPart:
    return CommandPart(kind=kind, text=_cut(text), why=_cut(why), rule=_cut(rule.text) if rule else "")


def _placed(part: CommandPart, danger: str, span: Span | None) -> CommandPart:
    start, end = span or (None, None)
    return replace(part, danger=danger, start=start, end=end)


def _of_command(command: Command) -> str:
    settings = [f"{each.name}={_as_written(each.value)}" for each in command.assignments]
    return " ".join([*settings, *map(_as_written, command.words)])


def _of_redirection(redirection: Redirection) -> str:
    return f"{'>' if redirection.writes else '<'} {_as_written(redirection.target)}"


def _as_written(word: Word) -> str:
    """A word that is only known when it runs is shown as its source."""
    return shlex.quote(word.text) if word.literal else word.text


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
