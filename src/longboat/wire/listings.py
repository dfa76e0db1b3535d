"""Shapes of lists: directories, matching files, changes of a session, models."""

from enum import StrEnum

from longboat.wire.events import Change
from longboat.wire.shape import Shape


class Archived(StrEnum):
    """Whether a list of sessions has archived ones."""

    LEFT_OUT = "false"
    INCLUDED = "true"
    ONLY = "only"


class SessionOrder(StrEnum):
    PINNED = "pinned"
    """Pinned sessions first, then the others; each newest first."""
    NEWEST = "newest"
    """Newest first, pinned or not."""


class FileKind(StrEnum):
    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    """A symbolic link, wherever it points."""
    OTHER = "other"
    """A socket, a pipe, a device."""


class FileEntry(Shape, frozen=True, kw_only=True):
    """`path` is relative to the workspace."""

    name: str
    path: str
    kind: FileKind
    size: int | None = None
    """In bytes; only for files."""


class FilePage(Shape, frozen=True, kw_only=True):
    """A directory, sorted by name. Hidden and git-ignored files are left out unless `all` was requested."""

    path: str
    items: tuple[FileEntry, ...]
    complete: bool
    """False if there are more entries than listed."""


class FoundPage(Shape, frozen=True, kw_only=True):
    """Paths of matching files, relative to the workspace, best match first."""

    items: tuple[str, ...]
    complete: bool
    """False if there are more, or not every file was searched."""


class FileDiff(Shape, frozen=True, kw_only=True):
    """The changes that the agent's own tools made to a file. It has several entries if someone else changed it in
    between."""

    path: str
    change: Change
    additions: int
    deletions: int
    diff: str
    """Unified, usable with `git apply`; empty for files that are not text."""
    complete: bool = True
    """False if the diff was cut because it is too long."""


class DiffPage(Shape, frozen=True, kw_only=True):
    items: tuple[FileDiff, ...]
    complete: bool
    """False if there are more files."""


class ModelPrice(Shape, frozen=True, kw_only=True):
    """US dollars for a million tokens."""

    input: float
    output: float


class LocalModelInfo(Shape, frozen=True, kw_only=True):
    """A model on the server's machine."""

    downloaded: bool
    size: int
    """Of its file, in bytes."""
    memory: int
    """About how much memory it needs there, in bytes."""
    solved: int | None = None
    """How many of Longboat's own tasks it solved; null: not measured."""
    tasks: int | None = None
    """How many tasks it got."""
    tokens_per_s: float | None = None
    """How fast it wrote when it was measured, with one thread on a processor of its own."""


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
    """Whether it supports a reasoning effort. True if unknown."""
    price: ModelPrice | None = None
    """Null if unknown."""
    default_effort: str | None = None
    """The reasoning effort that the configuration sets for it: `low`, `medium` or `high`. Null: the provider's own."""
    local: LocalModelInfo | None = None
    """For a model of the provider `local`."""


class ModelCooldown(Shape, frozen=True, kw_only=True):
    """A model that failed. Until then, new prompts use the next model of its list."""

    name: str
    until: str
    why: str
    """In a few words, such as `Too many requests`."""


class NodeState(StrEnum):
    RUNNING = "running"
    LEAVING = "leaving"
    """It accepts no more workspaces."""
    GONE = "gone"


class NodeInfo(Shape, frozen=True, kw_only=True):
    """A server: one of several that share a database, or the only one."""

    name: str
    url: str | None
    """Where the other nodes reach it. Null if it listens only on its unix socket."""
    version: str
    started_at: str
    seen_at: str
    """When it was last heard of."""
    state: NodeState
    leaving: bool
    """It accepts no more workspaces."""
    owns: int
    """How many workspaces it works on now."""
    home_of: int
    """How many workspaces have their directory on its disk."""
    runs_active: int
    runs_waiting: int
    """Accepted or queued."""
    answering: bool
    """This node has answered the request."""


class NodePage(Shape, frozen=True, kw_only=True):
    items: tuple[NodeInfo, ...]
    """By name."""


class ModelPage(Shape, frozen=True, kw_only=True):
    items: tuple[ModelInfo, ...]
    """The ready ones first."""
    large: str | None
    """The default model; null if there is none, and `problem` says why."""
    small: str | None
    """The model that writes titles."""
    large_list: tuple[str, ...] = ()
    """All models that may answer prompts, in order of preference: where one fails, the next one continues. `large` is
    the one that answers now."""
    small_list: tuple[str, ...] = ()
    """The same for titles."""
    cooldowns: tuple[ModelCooldown, ...] = ()
    """Models of these lists that are skipped for now."""
    problem: str | None = None
    advice: str | None = None
    """If nothing is configured and `large` is a fallback: what it can do, and how to get a better model."""


class Suggestion(Shape, frozen=True, kw_only=True):
    """Something to try: `title` is for a button, `prompt` goes into the composer."""

    title: str
    prompt: str


class Welcome(Shape, frozen=True, kw_only=True):
    """For the screen before the first prompt."""

    branch: str | None
    """The git branch, or the beginning of the commit's id if no branch is checked out; null outside a repository."""
    suggestions: tuple[Suggestion, ...]
    """Three that fit the directory."""
