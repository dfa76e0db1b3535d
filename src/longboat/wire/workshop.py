"""What a session and its workspace have besides messages: the plan, changed files, jobs, servers, skills. Shapes of the
wire."""

from enum import StrEnum

from longboat.wire.shape import Shape


class McpEvent(Shape, frozen=True, kw_only=True):
    """How an MCP server of the workspace is doing."""

    server: str
    transport: str
    phase: str
    reason: str = ""
    authorization_url: str | None = None
    """A page that a person must open before the server can be used."""
    tools: int = 0
    prompts: int = 0
    resources: int = 0


class LspEvent(Shape, frozen=True, kw_only=True):
    """How a language server of the workspace is doing."""

    server: str
    root: str
    state: str
    detail: str = ""


class TodoState(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class TodoItem(Shape, frozen=True, kw_only=True):
    text: str
    state: TodoState = TodoState.PENDING


class Todos(Shape, frozen=True, kw_only=True):
    """The plan of a session, whole."""

    session_id: str
    items: tuple[TodoItem, ...]


class FileChange(Shape, frozen=True, kw_only=True):
    """A file that a turn changed, or that undo or redo put back."""

    session_id: str
    run_id: str
    path: str
    additions: int
    deletions: int


class ConfigChanged(Shape, frozen=True, kw_only=True):
    """The configuration of a workspace says something else than before: who answers from now on."""

    large: str | None
    """The model of a prompt that names none, as provider/model; null where `problem` tells why."""
    small: str | None
    """The one that writes titles."""
    ready: bool
    problem: str | None = None
    """What to do before a prompt can be answered, when `ready` is false: a file that cannot be read, too."""


class JobState(StrEnum):
    """How a command in the background is doing."""

    RUNNING = "running"
    FINISHED = "finished"
    """It ended by itself."""
    KILLED = "killed"
    """Somebody ended it, or its workspace closed."""
    TIMED_OUT = "timed_out"
    """Its own time limit ended it."""


class Job(Shape, frozen=True, kw_only=True):
    """A command in the background of a workspace."""

    id: str
    command: str
    state: JobState
    exit_code: int | None = None
    seconds: float
    """How long it ran, or has been running."""
    killed_by: str | None = None
    """Who ended it: a client, or `agent`."""


class JobOutput(Shape, frozen=True, kw_only=True):
    """A job and a piece of its output."""

    job: Job
    text: str
    start: int
    """The place of the text's first character in all that was written. More than was asked for if what lies between is
    not kept in memory."""
    next: int
    """Read on `after` this."""


class JobPage(Shape, frozen=True, kw_only=True):
    items: tuple[Job, ...]
    next: str | None = None


class McpPage(Shape, frozen=True, kw_only=True):
    items: tuple[McpEvent, ...]


class LspPage(Shape, frozen=True, kw_only=True):
    items: tuple[LspEvent, ...]


class SkillInfo(Shape, frozen=True, kw_only=True):
    name: str
    description: str
    path: str


class CommandArgument(Shape, frozen=True, kw_only=True):
    name: str
    description: str = ""
    required: bool = False


class CommandInfo(Shape, frozen=True, kw_only=True):
    """A prompt kept in a file or by an MCP server: `/name arguments` in a prompt stands for it."""

    name: str
    description: str
    argument_hint: str
    server: str | None = None
    """The MCP server that keeps it; null for a file."""
    arguments: tuple[CommandArgument, ...] = ()
    """What the MCP server takes, in order: words, or `name=value`."""


class SkillPage(Shape, frozen=True, kw_only=True):
    """What the project's files offer: skills, commands and sub-agents, and what is wrong with them."""

    items: tuple[SkillInfo, ...]
    commands: tuple[CommandInfo, ...] = ()
    agents: tuple[SkillInfo, ...] = ()
    problems: tuple[str, ...] = ()


class FileFate(StrEnum):
    RESTORED = "restored"
    """It has its other content again."""
    RECREATED = "recreated"
    """It was not there, and is again."""
    REMOVED = "removed"
    """It was there, and is no more."""


class UndoneFile(Shape, frozen=True, kw_only=True):
    path: str
    fate: FileFate


class Undone(Shape, frozen=True, kw_only=True):
    """What undo or redo did: the run, and the files that were put back."""

    run_id: str
    files: tuple[str, ...]
    fates: tuple[UndoneFile, ...] = ()
    """What became of each of the files."""


class RenderedItem(Shape, frozen=True, kw_only=True):
    html: str
    """Safe: no scripts, no styles, nothing from elsewhere, links to http, https and mailto alone."""


class Rendered(Shape, frozen=True, kw_only=True):
    """The HTML of each item, in their order."""

    items: tuple[RenderedItem, ...]
