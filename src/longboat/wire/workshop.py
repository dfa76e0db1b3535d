"""Wire types of a session and its workspace besides messages: the plan, changed files, jobs, servers, skills."""

from enum import StrEnum

from longboat.wire.shape import Shape


class McpEvent(Shape, frozen=True, kw_only=True):
    """The state of an MCP server of the workspace."""

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
    """The state of a language server of the workspace."""

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
    """The complete plan of a session."""

    session_id: str
    items: tuple[TodoItem, ...]


class FileChange(Shape, frozen=True, kw_only=True):
    """A file that a turn changed, or that undo or redo restored."""

    session_id: str
    run_id: str
    path: str
    additions: int
    deletions: int


class ConfigChanged(Shape, frozen=True, kw_only=True):
    """The configuration of a workspace changed: the model that answers from now on."""

    large: str | None
    """The model for a prompt that names none, as provider/model; null if none; `problem` says why."""
    small: str | None
    """The model that writes titles."""
    ready: bool
    problem: str | None = None
    """What to do before prompts can be answered, if `ready` is false; also names a file that cannot be read."""


class JobState(StrEnum):
    """The state of a background job."""

    RUNNING = "running"
    FINISHED = "finished"
    """It ended on its own."""
    KILLED = "killed"
    """Someone ended it, or its workspace closed."""
    TIMED_OUT = "timed_out"
    """Its own time limit ended it."""


class Job(Shape, frozen=True, kw_only=True):
    """A background job of a workspace."""

    id: str
    command: str
    state: JobState
    exit_code: int | None = None
    seconds: float
    """How long it ran, or has been running."""
    killed_by: str | None = None
    """Who ended it: a client, or `agent`."""


class JobOutput(Shape, frozen=True, kw_only=True):
    """A job and part of its output."""

    job: Job
    text: str
    start: int
    """The position of the text's first character in the whole output. Larger than requested if the output in between is
    no longer in memory."""
    next: int
    """Pass this as `after` to continue."""


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
    """A prompt from a file or an MCP server: `/name arguments` in a prompt stands for it."""

    name: str
    description: str
    argument_hint: str
    server: str | None = None
    """The MCP server it comes from; null for a file."""
    arguments: tuple[CommandArgument, ...] = ()
    """The arguments that the MCP server accepts, in order: words, or `name=value`."""


class SkillPage(Shape, frozen=True, kw_only=True):
    """The skills, commands and sub-agents from the project's files, and problems with them."""

    items: tuple[SkillInfo, ...]
    commands: tuple[CommandInfo, ...] = ()
    agents: tuple[SkillInfo, ...] = ()
    problems: tuple[str, ...] = ()


class FileFate(StrEnum):
    RESTORED = "restored"
    """The file has its other content again."""
    RECREATED = "recreated"
    """The file did not exist and was restored."""
    REMOVED = "removed"
    """The file existed and was removed."""


class UndoneFile(Shape, frozen=True, kw_only=True):
    path: str
    fate: FileFate


class Undone(Shape, frozen=True, kw_only=True):
    """What undo or redo did: the run, and the restored files."""

    run_id: str
    files: tuple[str, ...]
    fates: tuple[UndoneFile, ...] = ()
    """What happened to each file."""


class RenderedItem(Shape, frozen=True, kw_only=True):
    html: str
    """Safe: no scripts, no styles, no external resources, links only to http, https and mailto."""


class Rendered(Shape, frozen=True, kw_only=True):
    """The HTML of each item, in order."""

    items: tuple[RenderedItem, ...]
