"""Shapes of what the agent asks people: permissions and questions."""

from enum import StrEnum
from itertools import pairwise

from longboat.wire.ids import person
from longboat.wire.shape import Shape


class AskState(StrEnum):
    """The state of a permission or a question."""

    PENDING = "pending"
    """Waiting for an answer; the first one wins."""
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"
    """Its run ended before anyone answered."""


class PermissionAnswer(StrEnum):
    ONCE = "once"
    SESSION = "session"
    """Allow it and everything in `grant`, for the rest of the session."""
    ALWAYS = "always"
    """The same permanently: the rules are written to the project's longboat.json."""
    DENY = "deny"


class CallAnswer(Shape, frozen=True, kw_only=True):
    """A person's answer to a call that asked."""

    answer: PermissionAnswer | None = None
    """Null for a question: its answer is in the call's result. For a plan `once` if it was approved, else null."""
    answered_by: str | None = None
    """The client, if it gave its name."""

    def describe(self, *, mine: bool = False) -> str:
        """For people, such as `denied by ann`. `mine`: the reader gave the answer."""
        who = "you" if mine else person(self.answered_by or "someone")
        if self.answer is None:
            return f"answered by {who}"
        return f"{'denied' if self.answer is PermissionAnswer.DENY else f'allowed ({self.answer})'} by {who}"


NEEDS_APPROVAL = "needs approval"
"""The reason of a part that no rule allows, if there is no other."""


EXACTLY = "exactly this command"


class CommandPartKind(StrEnum):
    COMMAND = "command"
    """One simple command: its words as bash reads them, without wrappers (`timeout 5 …`, `sh -c '…'`)."""
    REDIRECTION = "redirection"
    """A file that `<` reads or `>` writes."""
    WHOLE = "whole"
    """Concerns the whole command: a part that cannot be parsed, a variable that it sets, where a link leads."""


class Mark(StrEnum):
    """How a piece of a command is marked where it is shown."""

    NONE = "none"
    ASKED = "asked"
    """It needs approval."""
    DANGEROUS = "dangerous"


class CommandPart(Shape, frozen=True, kw_only=True):
    """A part of a shell command, as checked against the rules."""

    kind: CommandPartKind
    text: str
    """Shortened if it is long; empty for the whole command."""
    why: str = ""
    """Why it needs approval; empty if it does not."""
    rule: str = ""
    """The rule that allows it; also empty if it needs none because it only reads."""
    danger: str = ""
    """Why it is dangerous, in one sentence; empty if it is not."""
    start: int | None = None
    """Where it is in the permission's argument, in code points, up to `end`. For a command inside a wrapper, where the
    wrapper is. Null for the whole command, and if the place is not known."""
    end: int | None = None

    def describe(self) -> str:
        """For people, on one line, with a mark if it needs approval. Contains untrusted text."""
        note = self.why or (f"allowed by {self.rule}" if self.rule else "needs no approval")
        if self.danger:  # a reason of a few words would say the same again
            note = f"{self.danger} {self.why}" if self.why.endswith(".") else self.danger
        sign = "⚠" if self.danger else "?" if self.why else "✓"
        return " ".join(f"{sign} {self.text}{': ' if self.text else ''}{note}".split())


class Permission(Shape, frozen=True, kw_only=True):
    """A tool call that waits for approval."""

    id: str
    session_id: str
    run_id: str
    tool_call_id: str
    tool: str
    action: str
    argument: str
    title: str
    detail: str
    """What it would do: a diff, or the whole command."""
    why: str
    """Why it needs approval."""
    grant: tuple[str, ...]
    """The exact rules that the answers session and always would add. Empty if it can only be allowed once."""
    wide: tuple[str, ...] = ()
    """Wider rules, for an answer with `wide`."""
    state: AskState = AskState.PENDING
    answer: PermissionAnswer | None = None
    granted: tuple[str, ...] = ()
    """The rules that the answer added."""
    reason: str = ""
    answered_by: str | None = None
    asked_at: str
    answered_at: str | None = None
    parent_run_id: str | None = None
    """For a sub-agent: the run that started it, and that run's session."""
    parent_session_id: str | None = None
    parts: tuple[CommandPart, ...] = ()
    """The parts of a shell command, and which of them need approval. Empty for other tools."""
    more_parts: int = 0
    """How many parts were left out. If any, those that need approval come first."""
    danger: str = ""
    """Why the call is dangerous, in one sentence: it deletes, publishes, writes outside the workspace and so on. Empty
    if it is not."""
    rules_file: str = ""
    """The file to which the answer always adds its rules. Empty if it can only be allowed once."""
    automatic: bool = False
    """Answered by the server: when `answered_by` answered another request, their answer also covered this one. The
    permission rules are checked once more before the call runs."""

    @property
    def beyond_title(self) -> str:
        """The part of the detail that the title does not show already."""
        detail, argument = (self.detail or self.argument).strip(), self.argument.strip()
        if self.title.endswith(detail):
            return ""
        if argument and self.title.endswith(argument) and detail.startswith(argument + "\n"):
            return detail[len(argument) :].strip()
        return detail

    @property
    def is_command(self) -> bool:
        """Whether the argument is a shell command."""
        return bool(self.parts)

    @property
    def notes(self) -> str:
        """What the detail of a command says beyond the command itself."""
        return self.detail[len(self.argument) :].strip() if self.detail.startswith(self.argument) else ""

    def told_rules(self, *, wide: bool = False) -> tuple[str, ...]:
        """The rules that session and always would add, for people: the text of the command is not repeated."""
        exact = f"{self.tool}(= {self.argument.strip()})"
        return tuple(EXACTLY if rule == exact else rule for rule in (self.wide if wide else self.grant))

    def pieces(self) -> tuple[tuple[str, Mark], ...]:
        """The argument in pieces, with a mark on those that need approval or are dangerous. Contains untrusted text."""
        length = len(self.argument)
        marked = [
            (part.start, min(part.end, length), Mark.DANGEROUS if part.danger else Mark.ASKED)
            for part in self.parts
            if part.start is not None and part.end is not None and (part.danger or part.why)
            # Marking all of it would say nothing.
            if part.danger or (part.start, part.end) != (0, length)
        ]
        cuts = sorted({0, length, *(at for start, end, _ in marked for at in (start, end))})
        pieces: list[tuple[str, Mark]] = []
        for start, end in pairwise(cuts):
            here = {mark for first, last, mark in marked if first <= start < last}
            mark = Mark.DANGEROUS if Mark.DANGEROUS in here else Mark.ASKED if here else Mark.NONE
            if pieces and pieces[-1][1] is mark:
                pieces[-1] = (pieces[-1][0] + self.argument[start:end], mark)
            else:
                pieces.append((self.argument[start:end], mark))
        return tuple(pieces)

    @property
    def shown_parts(self) -> tuple[CommandPart, ...]:
        """The parts, if they say more than `why`."""
        return self.parts if len(self.parts) > 1 else ()

    @property
    def noted_parts(self) -> tuple[CommandPart, ...]:
        """Those parts of which a mark in the command does not say enough."""
        return tuple(part for part in self.shown_parts if part.danger or part.why not in ("", NEEDS_APPROVAL))


class PermissionNotification(Shape, frozen=True, kw_only=True):
    """A permission was answered or withdrawn."""

    id: str
    session_id: str
    run_id: str
    state: AskState
    answer: PermissionAnswer | None
    reason: str
    answered_by: str | None
    parent_run_id: str | None = None
    parent_session_id: str | None = None


class Question(Shape, frozen=True, kw_only=True):
    """A question from the agent. Free text is always allowed in addition to the choices."""

    id: str
    session_id: str
    run_id: str
    tool_call_id: str
    """Empty if no tool call asks: the turn reached a limit."""
    text: str
    choices: tuple[str, ...]
    descriptions: tuple[str, ...] = ()
    """What each choice means, in the order of the choices; shorter, or with empty texts, where nothing is said."""
    multiple: bool
    state: AskState = AskState.PENDING
    answer: tuple[str, ...] = ()
    answered_by: str | None = None
    asked_at: str
    answered_at: str | None = None
    parent_run_id: str | None = None
    """For a sub-agent: the run that started it, and that run's session."""
    parent_session_id: str | None = None

    def description_of(self, index: int) -> str:
        """What a choice means; empty if nothing is said."""
        return self.descriptions[index] if index < len(self.descriptions) else ""


class QuestionNotification(Shape, frozen=True, kw_only=True):
    """A question was answered or withdrawn."""

    id: str
    session_id: str
    run_id: str
    state: AskState
    answer: tuple[str, ...]
    answered_by: str | None
    parent_run_id: str | None = None
    parent_session_id: str | None = None


class PermissionPage(Shape, frozen=True, kw_only=True):
    items: tuple[Permission, ...]
    next: str | None = None


class QuestionPage(Shape, frozen=True, kw_only=True):
    items: tuple[Question, ...]
    next: str | None = None
