"""A session as one document: what export writes and import reads."""

from longboat.wire.models import Message, Run, Session
from longboat.wire.shape import Shape
from longboat.wire.workshop import TodoItem

FORMAT = "longboat-session"
FORMAT_VERSION = 1
"""Raised when a reader of the former number would misunderstand the document."""


class FileContent(Shape, frozen=True, kw_only=True):
    """A file's content: `text`, or `data` in base64 for what is not UTF-8."""

    text: str | None = None
    data: str | None = None


class ExportedChange(Shape, frozen=True, kw_only=True):
    """A file change that a run made. Null is a file that is not there."""

    run_id: str
    path: str
    """Relative to the workspace if it is below it."""
    before: FileContent | None
    after: FileContent | None


class ExportedSubAgent(Shape, frozen=True, kw_only=True):
    """A sub-agent's session. Its `parent_id` and `parent_call_id` name the session of the document, and the call there,
    that sent it. What it changed in files is among the changes of the session itself."""

    session: Session
    summary_seq: int
    messages: tuple[Message, ...]
    runs: tuple[Run, ...]
    todos: tuple[TodoItem, ...] = ()


class SessionExport(Shape, frozen=True, kw_only=True):
    """All that is finished of a session and of its sub-agents. What an unfinished turn has done is left out, and so are
    undone turns."""

    format: str
    """Always `longboat-session`."""
    version: int
    """1."""
    exported_at: str
    session: Session
    summary_seq: int
    """The seq of the message from which on the model sees the session; 0: from the beginning."""
    messages: tuple[Message, ...]
    runs: tuple[Run, ...]
    todos: tuple[TodoItem, ...] = ()
    changes: tuple[ExportedChange, ...] = ()
    sub_agents: tuple[ExportedSubAgent, ...] = ()
    """Each after the one that sent it."""
    left_out: tuple[str, ...] = ()
    """What is damaged in the store and therefore not in the document."""
