"""What the agent asks people: to be allowed something, or to be told something. Shapes of the wire."""

from enum import StrEnum

from longboat.wire.ids import person
from longboat.wire.shape import Shape


class AskState(StrEnum):
    """Where a permission or a question stands."""

    PENDING = "pending"
    """Somebody attached should answer; the first answer wins."""
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"
    """Its run ended first."""


class PermissionAnswer(StrEnum):
    ONCE = "once"
    SESSION = "session"
    """And everything that `grant` says, for the rest of the session."""
    ALWAYS = "always"
    """The same for ever: the rules are written to the project's longboat.json."""
    DENY = "deny"


class CallAnswer(Shape, frozen=True, kw_only=True):
    """Somebody's word about a call that asked."""

    answer: PermissionAnswer | None = None
    """Null for a question: the words that were given stand in the call's result."""
    answered_by: str | None = None
    """The client, if it said its name."""

    def told(self, *, mine: bool = False) -> str:
        """For people, such as `denied by ann`. `mine`: whoever reads it has said it."""
        who = "you" if mine else person(self.answered_by or "somebody")
        if self.answer is None:
            return f"answered by {who}"
        return f"{'denied' if self.answer is PermissionAnswer.DENY else f'allowed ({self.answer})'} by {who}"


class CommandPartKind(StrEnum):
    COMMAND = "command"
    """One simple command: its words, as bash makes them. What it hides behind (`timeout 5 …`, `sh -c '…'`) is gone."""
    REDIRECTION = "redirection"
    """A file that is read or written by `<` or `>`."""
    WHOLE = "whole"
    """Something about all of it: a part that cannot be parsed, a variable that it sets, where a link leads."""


class CommandPart(Shape, frozen=True, kw_only=True):
    """A part of a shell command, as the rules saw it."""

    kind: CommandPartKind
    text: str
    """Shortened if need be; empty for the whole."""
    why: str = ""
    """Why it is asked; empty if it is not."""
    rule: str = ""
    """The rule that allows it; empty also where it only looks, and needs none."""

    def told(self) -> str:
        """For people, on one line, with a mark if it is a reason to ask. It is foreign text."""
        note = self.why or (f"allowed by {self.rule}" if self.rule else "needs no approval")
        return " ".join(f"{'?' if self.why else '✓'} {self.text}{': ' if self.text else ''}{note}".split())


class Permission(Shape, frozen=True, kw_only=True):
    """A tool call that waits for somebody's word."""

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
    """Why it is asked."""
    grant: tuple[str, ...]
    """The rules that the answers session and always would add: exactly this. Empty where only once can be said."""
    wide: tuple[str, ...] = ()
    """A wider form of them, for an answer that says `wide`."""
    state: AskState = AskState.PENDING
    answer: PermissionAnswer | None = None
    granted: tuple[str, ...] = ()
    """The rules that the answer added."""
    reason: str = ""
    answered_by: str | None = None
    asked_at: str
    answered_at: str | None = None
    parent_run_id: str | None = None
    """A sub-agent's ask: the run that sent it, and that run's session."""
    parent_session_id: str | None = None
    parts: tuple[CommandPart, ...] = ()
    """What a shell command is made of, and which parts of it are the reason to ask. Empty for other tools."""
    more_parts: int = 0
    """So many were left out. Those that are asked are shown first then."""

    @property
    def beyond_title(self) -> str:
        """What the detail says and the title does not: nobody reads a command twice."""
        detail, argument = (self.detail or self.argument).strip(), self.argument.strip()
        if self.title.endswith(detail):
            return ""
        if argument and self.title.endswith(argument) and detail.startswith(argument + "\n"):
            return detail[len(argument) :].strip()
        return detail

    @property
    def told_parts(self) -> tuple[CommandPart, ...]:
        """The parts, where they say more than `why` does."""
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
    """What the agent asks the people attached. Free text is always allowed beside the choices."""

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
    """A sub-agent's question: the run that sent it, and that run's session."""
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
