"""What clients show of a workspace: a directory, matching files, the changes of a session, the available models."""

from enum import StrEnum

from longboat.wire.events import Change
from longboat.wire.shape import Shape


class FileKind(StrEnum):
    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    """A symbolic link, whatever its target."""
    OTHER = "other"
    """A socket, a pipe, a device."""


class FileEntry(Shape, frozen=True, kw_only=True):
    """`path` is relative to the workspace."""

    name: str
    path: str
    kind: FileKind
    size: int | None = None
    """In bytes, for a file."""


class FilePage(Shape, frozen=True, kw_only=True):
    """A directory, sorted by name; without hidden and git-ignored files unless all were requested."""

    path: str
    items: tuple[FileEntry, ...]
    complete: bool
    """False if there are more entries than listed."""


class FoundPage(Shape, frozen=True, kw_only=True):
    """Files whose path matches, best match first, relative to the workspace."""

    items: tuple[str, ...]
    complete: bool
    """False if there are more than listed, or if not every file was checked."""


class FileDiff(Shape, frozen=True, kw_only=True):
    """How the agent's own tools changed a file. If someone else changed it in between, the file has several."""

    path: str
    change: Change
    additions: int
    deletions: int
    diff: str
    """A unified diff that `git apply` accepts; empty for binary files."""
    complete: bool = True
    """False if the diff was too long and was cut off."""


class DiffPage(Shape, frozen=True, kw_only=True):
    items: tuple[FileDiff, ...]
    complete: bool
    """False if there are more files than shown."""


class ModelInfo(Shape, frozen=True, kw_only=True):
    """A model that a prompt can name."""

    name: str
    """As provider/model."""
    ready: bool
    problem: str | None = None
    """What to do before it can be used."""
    context_window: int | None = None
    """In tokens; null if unknown."""
    images: bool = True
    effort: bool = True
    """Whether it accepts a reasoning effort. Assumed true if unknown."""


class ModelPage(Shape, frozen=True, kw_only=True):
    items: tuple[ModelInfo, ...]
    """Ready models first."""
    large: str | None
    """The model for a prompt that names none; null if none; `problem` says why."""
    small: str | None
    """The model that writes titles."""
    problem: str | None = None
    advice: str | None = None
    """Set if `large` is only a fallback because nothing is configured: what it can do, how to get a better one."""
