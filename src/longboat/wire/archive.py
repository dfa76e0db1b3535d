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


class SessionExport(Shape, frozen=True, kw_only=True):
    """All that is finished of a session: what an unfinished turn has done, and what was undone, is left out. So are
    the sessions of its sub-agents."""

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
