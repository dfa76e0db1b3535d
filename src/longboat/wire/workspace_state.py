"""Shapes of what a session and its workspace have besides messages: plan, changed files, jobs, servers, skills."""

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
    """The whole plan of a session."""

    session_id: str
    items: tuple[TodoItem, ...]


class FileChange(Shape, frozen=True, kw_only=True):
    """A file that a turn changed, that undo or redo restored, or in which a person undid or redid something."""

    session_id: str
    run_id: str
    path: str
    additions: int
    deletions: int
    by: str | None = None
    """The person who undid or redid part of the run's change; empty if they gave no name; null if no person did."""


class ConfigChanged(Shape, frozen=True, kw_only=True):
    """The configuration of a workspace changed: the models it uses from now on."""

    large: str | None
    """The default model, as provider/model; null if there is none, and `problem` says why."""
    small: str | None
    """The model that writes titles."""
    ready: bool
    problem: str | None = None
    """If `ready` is false: what to do before a prompt can be answered, also if a file cannot be read."""


class JobState(StrEnum):
    """The state of a background command."""

    RUNNING = "running"
    FINISHED = "finished"
    """It ended on its own."""
    KILLED = "killed"
    """Someone stopped it, or its workspace closed."""
    TIMED_OUT = "timed_out"
    """It reached its time limit."""


class Job(Shape, frozen=True, kw_only=True):
    """A background command of a workspace."""

    id: str
    command: str
    state: JobState
    exit_code: int | None = None
    seconds: float
    """How long it ran, or has been running."""
    killed_by: str | None = None
    """Who stopped it: a client, or `agent`."""


class JobOutput(Shape, frozen=True, kw_only=True):
    """A job and part of its output."""

    job: Job
    text: str
    start: int
    """The position of the text's first character in the whole output. Greater than requested if the part in between
    is no longer in memory."""
    next: int
    """Pass this as `after` to read on."""


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
    """A stored prompt, from a file or an MCP server: run it with `/name arguments`."""

    name: str
    description: str
    argument_hint: str
    server: str | None = None
    """The MCP server that has it; null for a file."""
    arguments: tuple[CommandArgument, ...] = ()
    """The arguments of an MCP prompt, in order: given as words or as `name=value`."""


class SkillPage(Shape, frozen=True, kw_only=True):
    """The skills, custom commands and sub-agents of the project, and the problems found in their files."""

    items: tuple[SkillInfo, ...]
    commands: tuple[CommandInfo, ...] = ()
    agents: tuple[SkillInfo, ...] = ()
    problems: tuple[str, ...] = ()


class FileFate(StrEnum):
    RESTORED = "restored"
    """Its other content was restored."""
    RECREATED = "recreated"
    """It was missing and was created again."""
    REMOVED = "removed"
    """It existed and was removed."""


class UndoneFile(Shape, frozen=True, kw_only=True):
    path: str
    fate: FileFate


class Undone(Shape, frozen=True, kw_only=True):
    """The result of undo or redo: the run and the restored files."""

    run_id: str
    files: tuple[str, ...]
    fates: tuple[UndoneFile, ...] = ()
    """What happened to each file."""


class RenderedItem(Shape, frozen=True, kw_only=True):
    html: str
    """Safe: no scripts, no styles, no external content; links only to http, https and mailto."""


class Rendered(Shape, frozen=True, kw_only=True):
    """The HTML of each item, in order."""

    items: tuple[RenderedItem, ...]
