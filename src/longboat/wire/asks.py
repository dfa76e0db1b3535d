"""Shapes of what the agent asks people: permissions and questions."""

from enum import StrEnum

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
    """Null for a question: its answer is in the call's result."""
    answered_by: str | None = None
    """The client, if it gave its name."""

    def told(self, *, mine: bool = False) -> str:
        """For people, such as `denied by ann`. `mine`: the reader gave the answer."""
        who = "you" if mine else person(self.answered_by or "someone")
        if self.answer is None:
            return f"answered by {who}"
        return f"{'denied' if self.answer is PermissionAnswer.DENY else f'allowed ({self.answer})'} by {who}"


class CommandPartKind(StrEnum):
    COMMAND = "command"
    """One simple command: its words as bash reads them, without wrappers (`timeout 5 …`, `sh -c '…'`)."""
    REDIRECTION = "redirection"
    """A file that `<` reads or `>` writes."""
    WHOLE = "whole"
    """Concerns the whole command: a part that cannot be parsed, a variable that it sets, where a link leads."""


class CommandPart(Shape, frozen=True, kw_only=True):
    """A part of a shell command, as checked against the rules."""

    kind: CommandPartKind
    text: str
    """Shortened if it is long; empty for the whole command."""
    why: str = ""
    """Why it needs approval; empty if it does not."""
    rule: str = ""
    """The rule that allows it; also empty if it needs none because it only reads."""

    def told(self) -> str:
        """For people, on one line, with a mark if it needs approval. Contains untrusted text."""
        note = self.why or (f"allowed by {self.rule}" if self.rule else "needs no approval")
        return " ".join(f"{'?' if self.why else '✓'} {self.text}{': ' if self.text else ''}{note}".split())


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
    def shown_parts(self) -> tuple[CommandPart, ...]:
        """The parts, if they say more than `why`."""
        return self.parts if len(self.parts) > 1 else ()


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
    """A question from the agent. Free text is always allowed besides the choices."""

    id: str
    session_id: str
    run_id: str
    tool_call_id: str
    text: str
    choices: tuple[str, ...]
    multiple: bool
    state: AskState = AskState.PENDING
    answer: tuple[str, ...] = ()
    answered_by: str | None = None
    asked_at: str
    answered_at: str | None = None
    parent_run_id: str | None = None
    """For a sub-agent: the run that started it, and that run's session."""
    parent_session_id: str | None = None


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
