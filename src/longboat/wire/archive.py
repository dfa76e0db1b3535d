"""A session as one document: what export writes and import reads."""

from longboat.wire.models import Message, Run, Session
from longboat.wire.shape import Shape
from longboat.wire.workspace_state import TodoItem

FORMAT = "longboat-session"
FORMAT_VERSION = 1
"""Increased when older readers would misunderstand the document."""


class FileContent(Shape, frozen=True, kw_only=True):
    """A file's content: `text`, or `data` in base64 if it is not UTF-8."""

    text: str | None = None
    data: str | None = None


class ExportedChange(Shape, frozen=True, kw_only=True):
    """A file change by a run. Null means that the file does not exist."""

    run_id: str
    path: str
    """Relative to the workspace if it is inside."""
    before: FileContent | None
    after: FileContent | None


class ExportedSubAgent(Shape, frozen=True, kw_only=True):
    """A sub-agent's session. Its `parent_id` and `parent_call_id` name the session in the document and the call that
    started it. Its file changes are among the changes of the main session."""

    session: Session
    summary_seq: int
    messages: tuple[Message, ...]
    runs: tuple[Run, ...]
    todos: tuple[TodoItem, ...] = ()


class SessionExport(Shape, frozen=True, kw_only=True):
    """The finished turns of a session and of its sub-agents. Unfinished and undone turns are left out."""

    format: str
    """Always `longboat-session`."""
    version: int
    """1."""
    exported_at: str
    session: Session
    summary_seq: int
    """The seq of the first message that the model sees; 0 for all messages."""
    messages: tuple[Message, ...]
    runs: tuple[Run, ...]
    todos: tuple[TodoItem, ...] = ()
    changes: tuple[ExportedChange, ...] = ()
    sub_agents: tuple[ExportedSubAgent, ...] = ()
    """Each one after the one that started it."""
    left_out: tuple[str, ...] = ()
    """What is missing because it is damaged in the store."""
