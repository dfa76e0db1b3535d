"""A session as one document: what export writes and import reads."""

from longboat.wire.models import Message, Run, Session
from longboat.wire.shape import Shape
from longboat.wire.workshop import TodoItem

FORMAT = "longboat-session"
FORMAT_VERSION = 1
"""Increased when a reader of the previous version would misunderstand the document."""


class FileContent(Shape, frozen=True, kw_only=True):
    """A file's content: `text`, or `data` in base64 if it is not UTF-8."""

    text: str | None = None
    data: str | None = None


class ExportedChange(Shape, frozen=True, kw_only=True):
    """A file change made by a run. Null means that the file does not exist."""

    run_id: str
    path: str
    """Relative to the workspace if it is inside."""
    before: FileContent | None
    after: FileContent | None


class ExportedSubAgent(Shape, frozen=True, kw_only=True):
    """A sub-agent's session. `parent_id` and `parent_call_id` name the session and the tool call that started it. Its
    file changes are listed with those of the exported session."""

    session: Session
    summary_seq: int
    messages: tuple[Message, ...]
    runs: tuple[Run, ...]
    todos: tuple[TodoItem, ...] = ()


class SessionExport(Shape, frozen=True, kw_only=True):
    """The finished part of a session and of its sub-agents. Unfinished and undone turns are left out."""

    format: str
    """Always `longboat-session`."""
    version: int
    """1."""
    exported_at: str
    session: Session
    summary_seq: int
    """The seq of the first message that the model sees; 0: from the beginning."""
    messages: tuple[Message, ...]
    runs: tuple[Run, ...]
    todos: tuple[TodoItem, ...] = ()
    changes: tuple[ExportedChange, ...] = ()
    sub_agents: tuple[ExportedSubAgent, ...] = ()
    """Each after its parent."""
    left_out: tuple[str, ...] = ()
    """What is missing from the document because it is damaged in the store."""
