"""The types of the full-text search over sessions."""

from longboat.wire.models import Role
from longboat.wire.shape import Shape


class Snippet(Shape, frozen=True, kw_only=True):
    """An excerpt around the first matching words. Plain text: neither Markdown nor HTML."""

    text: str
    matches: tuple[tuple[int, int], ...] = ()
    """Start and end of each match in `text`, counted in Unicode code points."""


class SearchHit(Shape, frozen=True, kw_only=True):
    workspace_id: str
    workspace_path: str
    session_id: str
    session_title: str
    archived: bool = False
    """Whether the session is archived."""
    message_id: str | None = None
    """The message that matches; null if the session's title matches."""
    role: Role | None = None
    """Who wrote the message; null for a title."""
    at: str
    """When the message was written, or the session created."""
    snippet: Snippet


class SearchPage(Shape, frozen=True, kw_only=True):
    items: tuple[SearchHit, ...]
    next: str | None = None
    """Pass it as `before` for older matches."""
    complete: bool = True
    """False while the index is still being built: older messages may be missing."""
