"""What faces draw of a workspace: a directory, names that match, what a session changed, which models there are."""

from enum import StrEnum

from longboat.wire.events import Change
from longboat.wire.shape import Shape


class FileKind(StrEnum):
    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    """A symbolic link, whatever it leads to."""
    OTHER = "other"
    """A socket, a pipe, a device."""


class FileEntry(Shape, frozen=True, kw_only=True):
    """`path` is relative to the workspace."""

    name: str
    path: str
    kind: FileKind
    size: int | None = None
    """Bytes, of a file."""


class FilePage(Shape, frozen=True, kw_only=True):
    """A directory, sorted by name; without hidden names and what `.gitignore` excludes, unless all was asked for."""

    path: str
    items: tuple[FileEntry, ...]
    complete: bool
    """False: there are more than are listed."""


class FoundPage(Shape, frozen=True, kw_only=True):
    """Files whose path matches, the best first, relative to the workspace."""

    items: tuple[str, ...]
    complete: bool
    """False: there are more than are listed, or not every file was looked at."""


class FileDiff(Shape, frozen=True, kw_only=True):
    """What became of a file by what the agent's own tools did. Where somebody else changed it in between, it has
    several."""

    path: str
    change: Change
    additions: int
    deletions: int
    diff: str
    """Unified, as `git apply` takes it; empty for what is no text."""
    complete: bool = True
    """False: the diff is too long and was cut."""


class DiffPage(Shape, frozen=True, kw_only=True):
    items: tuple[FileDiff, ...]
    complete: bool
    """False: there are more files than are shown."""


class ModelInfo(Shape, frozen=True, kw_only=True):
    """A model that a prompt can name."""

    name: str
    """As provider/model."""
    ready: bool
    problem: str | None = None
    """What to do before it can be used."""
    context_window: int | None = None
    """Tokens; null where it is not known."""
    images: bool = True
    effort: bool = True
    """Whether it takes a reasoning effort. What is not known is assumed."""


class ModelPage(Shape, frozen=True, kw_only=True):
    items: tuple[ModelInfo, ...]
    """Those that are ready first."""
    large: str | None
    """The one that answers a prompt which names none; null where `problem` tells why."""
    small: str | None
    """The one that writes titles."""
    problem: str | None = None
    advice: str | None = None
    """That nobody chose `large`, as nothing is configured, what it is good for, and how to get a better one."""
