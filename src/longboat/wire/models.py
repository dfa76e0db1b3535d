"""The shapes on the wire (http.md, "Shapes"). One definition serves requests, responses, events, storage and OpenAPI.

Must not know how any of them is stored or sent. Instants are RFC 3339 UTC strings with microseconds; nothing is ever
ordered by them.
"""

from enum import StrEnum

import msgspec


class RunState(StrEnum):
    """Where a run is in its life. There is no "canceling": see `Run.cancel_requested`."""

    ACCEPTED = "accepted"
    """Durable and answered 202; not yet entered into its session."""
    QUEUED = "queued"
    """Waiting behind the active run."""
    ACTIVE = "active"
    """Its turn is under way."""
    FOLDED = "folded"
    """Taken into another run's turn; ends with it."""
    FINISHED = "finished"
    """Over: `outcome` tells how, and its one terminal event is in the log."""


class Outcome(StrEnum):
    """How a run ended."""

    END_TURN = "end_turn"
    """The turn came to its end."""
    CANCELED = "canceled"
    """A cancel stopped it, or kept it from starting."""
    ERROR = "error"
    """It failed, and `error` says how."""
    INTERRUPTED = "interrupted"
    """The server stopped or crashed while the run was active."""


class Delivery(StrEnum):
    """What becomes of a prompt that finds its session busy."""

    STEER = "steer"
    """Folded into the running turn at its next step."""
    QUEUE = "queue"
    """Runs as a turn of its own when the earlier ones are done."""


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class FinishReason(StrEnum):
    """Why a turn's last message is complete; a message that goes on to tool calls has no finish part.

    `max_tokens` and `content_filter` are outcome end_turn.
    """

    END_TURN = "end_turn"
    CANCELED = "canceled"
    ERROR = "error"
    INTERRUPTED = "interrupted"
    MAX_TOKENS = "max_tokens"
    CONTENT_FILTER = "content_filter"


class _Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what the server sends: clients ignore fields they do not know."""


class TextPart(_Shape, frozen=True, kw_only=True, tag_field="type", tag="text"):
    text: str


class ReasoningPart(_Shape, frozen=True, kw_only=True, tag_field="type", tag="reasoning"):
    text: str
    signature: str | None = None
    """What the provider wants back with it, if anything."""


class ToolCallPart(_Shape, frozen=True, kw_only=True, tag_field="type", tag="tool_call"):
    id: str
    name: str
    input: str
    """The arguments as the model wrote them: JSON text, complete when `finished`."""
    finished: bool = False


class Image(_Shape, frozen=True, kw_only=True):
    media_type: str
    """image/png, image/jpeg, image/gif or image/webp."""
    data: str
    """Base64."""


class ToolResultPart(_Shape, frozen=True, kw_only=True, tag_field="type", tag="tool_result"):
    tool_call_id: str
    name: str = ""
    """The tool: a snapshot has this message while the tool runs, and not the finished one with the call."""
    content: str
    """What the model reads; while the tool runs, what it has shown so far."""
    is_error: bool = False
    finished: bool = True
    images: tuple[Image, ...] = ()
    """What the model sees besides: 5 MB each at most."""


class FilePart(_Shape, frozen=True, kw_only=True, tag_field="type", tag="file"):
    name: str
    media_type: str
    text: str | None = None
    data: str | None = None
    """Base64."""


class FinishPart(_Shape, frozen=True, kw_only=True, tag_field="type", tag="finish"):
    reason: FinishReason
    title: str = ""
    detail: str = ""


Part = TextPart | ReasoningPart | ToolCallPart | ToolResultPart | FilePart | FinishPart


class Message(_Shape, frozen=True, kw_only=True):
    id: str
    session_id: str
    run_id: str
    seq: int
    role: Role
    parts: tuple[Part, ...]
    model: str | None = None
    provider: str | None = None
    summary: bool = False
    """Stands for all that was said before it: no answer, but what the model goes on from."""
    created_at: str
    finished_at: str | None = None


class Attachment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file sent along with a prompt: `text`, or `data` in base64."""

    name: str
    media_type: str
    text: str | None = None
    data: str | None = None


class Usage(_Shape, frozen=True, kw_only=True):
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=self.cost + other.cost,
        )


class Session(_Shape, frozen=True, kw_only=True):
    id: str
    workspace_id: str
    parent_id: str | None = None
    """A sub-agent's session: the session that sent it, and the tool call there."""
    parent_call_id: str | None = None
    title: str
    created_at: str
    updated_at: str
    busy: bool = False
    usage: Usage = Usage()
    context_tokens: int = 0
    """How much of the model's window the newest request and its answer took, as the provider counted."""


class Run(_Shape, frozen=True, kw_only=True):
    run_id: str
    seq: int
    session_id: str
    state: RunState
    outcome: Outcome | None = None
    delivery: Delivery
    prompt: str
    position: int | None = None
    """How many unfinished runs of the session go first; 0 is the active one; null once folded or finished."""
    cancel_requested: bool = False
    folded_into: str | None = None
    error: str | None = None
    accepted_at: str
    started_at: str | None = None
    finished_at: str | None = None
    client_id: str | None = None
    parent_run_id: str | None = None
    """A sub-agent's run: the run that sent it, and that run's session."""
    parent_session_id: str | None = None


class RunComplete(_Shape, frozen=True, kw_only=True):
    """The terminal event of a run. `message_id` and `text` are those of its turn's last assistant message."""

    run_id: str
    session_id: str
    message_id: str | None = None
    text: str = ""
    error: str = ""
    cancelled: bool = False
    outcome: Outcome
    folded_into: str | None = None


class MessageDelta(_Shape, frozen=True, kw_only=True):
    """Text that was added to a part. `offset` counts characters: a gap or a repeat shows."""

    message_id: str
    session_id: str
    run_id: str
    part: int
    offset: int
    text: str


class AgentEventType(StrEnum):
    AGENT_FINISHED = "agent_finished"
    """A turn is over; the terminal events tell how."""
    ERROR = "error"
    """A notice for people; waiting clients need only the terminal event."""
    NOTICE = "notice"
    """Something is not as it should be, and the run goes on: a skill that cannot be read, a hook that fails."""
    RETRYING = "retrying"
    """A model request failed and is tried again."""
    SUMMARIZING = "summarizing"
    """The context window is nearly full, and the same run goes on after the summary; or somebody asked for one."""
    LOADING = "loading"
    """The local model is being fetched or loaded."""


class AgentEvent(_Shape, frozen=True, kw_only=True):
    type: AgentEventType
    session_id: str
    run_id: str
    message: str = ""
    detail: str = ""


class ClientInfo(_Shape, frozen=True, kw_only=True):
    """A client that holds the workspace open."""

    client_id: str
    attached_at: str


class McpEvent(_Shape, frozen=True, kw_only=True):
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


class LspEvent(_Shape, frozen=True, kw_only=True):
    """How a language server of the workspace is doing."""

    server: str
    root: str
    state: str
    detail: str = ""


class AskState(StrEnum):
    """Where a permission or a question stands."""

    PENDING = "pending"
    """Somebody attached should answer; the first answer wins."""
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"
    """Its run ended first."""


class PermissionAnswer(StrEnum):
    ONCE = "once"
    SESSION = "session"
    """And everything that `grant` says, for the rest of the session."""
    ALWAYS = "always"
    """The same for ever: the rules are written to the project's longboat.json."""
    DENY = "deny"


class Permission(_Shape, frozen=True, kw_only=True):
    """A tool call that waits for somebody's word."""

    id: str
    session_id: str
    run_id: str
    tool_call_id: str
    tool: str
    action: str
    argument: str
    title: str
    detail: str
    """What it would do: a diff, or the whole command."""
    why: str
    """Why it is asked."""
    grant: tuple[str, ...]
    """The rules that the answers session and always would add: exactly this. Empty where only once can be said."""
    wide: tuple[str, ...] = ()
    """A wider form of them, for an answer that says `wide`."""
    state: AskState = AskState.PENDING
    answer: PermissionAnswer | None = None
    granted: tuple[str, ...] = ()
    """The rules that the answer added."""
    reason: str = ""
    answered_by: str | None = None
    asked_at: str
    answered_at: str | None = None
    parent_run_id: str | None = None
    """A sub-agent's ask: the run that sent it, and that run's session."""
    parent_session_id: str | None = None


class PermissionNotification(_Shape, frozen=True, kw_only=True):
    """A permission was answered or withdrawn."""

    id: str
    session_id: str
    run_id: str
    state: AskState
    answer: PermissionAnswer | None
    reason: str
    answered_by: str | None
    parent_run_id: str | None = None
    parent_session_id: str | None = None


class Question(_Shape, frozen=True, kw_only=True):
    """What the agent asks the people attached. Free text is always allowed beside the choices."""

    id: str
    session_id: str
    run_id: str
    tool_call_id: str
    text: str
    choices: tuple[str, ...]
    multiple: bool
    state: AskState = AskState.PENDING
    answer: tuple[str, ...] = ()
    answered_by: str | None = None
    asked_at: str
    answered_at: str | None = None
    parent_run_id: str | None = None
    """A sub-agent's question: the run that sent it, and that run's session."""
    parent_session_id: str | None = None


class QuestionNotification(_Shape, frozen=True, kw_only=True):
    """A question was answered or withdrawn."""

    id: str
    session_id: str
    run_id: str
    state: AskState
    answer: tuple[str, ...]
    answered_by: str | None
    parent_run_id: str | None = None
    parent_session_id: str | None = None


class TodoState(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class TodoItem(_Shape, frozen=True, kw_only=True):
    text: str
    state: TodoState = TodoState.PENDING


class Todos(_Shape, frozen=True, kw_only=True):
    """The plan of a session, whole."""

    session_id: str
    items: tuple[TodoItem, ...]


class FileChange(_Shape, frozen=True, kw_only=True):
    """A file that a turn changed, or that undo or redo put back."""

    session_id: str
    run_id: str
    path: str
    additions: int
    deletions: int


class JobState(StrEnum):
    """How a command in the background is doing."""

    RUNNING = "running"
    FINISHED = "finished"
    """It ended by itself."""
    KILLED = "killed"
    """Somebody ended it, or its workspace closed."""
    TIMED_OUT = "timed_out"
    """Its own time limit ended it."""


class Job(_Shape, frozen=True, kw_only=True):
    """A command in the background of a workspace."""

    id: str
    command: str
    state: JobState
    exit_code: int | None = None
    seconds: float
    """How long it ran, or has been running."""
    killed_by: str | None = None
    """Who ended it: a client, or `agent`."""


class JobOutput(_Shape, frozen=True, kw_only=True):
    """A job and a piece of its output."""

    job: Job
    text: str
    start: int
    """The place of the text's first character in all that was written. More than was asked for if what lies between is
    not kept in memory."""
    next: int
    """Read on `after` this."""


class Workspace(_Shape, frozen=True, kw_only=True):
    id: str
    path: str
    created_at: str
    ready: bool
    busy: bool
    clients: tuple[ClientInfo, ...] = ()


class Snapshot(_Shape, frozen=True, kw_only=True):
    """The committed state of a workspace exactly at `cursor`."""

    cursor: str
    sessions: tuple[Session, ...]
    runs: tuple[Run, ...]
    messages: tuple[Message, ...]
    permissions: tuple[Permission, ...] = ()
    questions: tuple[Question, ...] = ()
    clients: tuple[ClientInfo, ...] = ()


class Resync(_Shape, frozen=True, kw_only=True):
    """The cursor the client brought is not in the log: a snapshot follows."""

    reason: str


class Accepted(_Shape, frozen=True, kw_only=True):
    """The answer to an accepted prompt."""

    run_id: str
    seq: int
    state: RunState
    position: int | None


class AgentInfo(_Shape, frozen=True, kw_only=True):
    model: str | None
    provider: str | None
    ready: bool
    busy: bool
    problem: str | None = None
    """What to do before a prompt can be answered, when `ready` is false."""


class SessionStatus(_Shape, frozen=True, kw_only=True):
    session_id: str
    busy: bool
    active_run_id: str | None
    queued: int
    undone: int = 0
    """Turns that are undone and can be redone."""


class Canceled(_Shape, frozen=True, kw_only=True):
    canceled: tuple[str, ...]


class Health(_Shape, frozen=True, kw_only=True):
    status: str
    """`ok`, `degraded` (the store fails; writes are being retried) or `leaving`."""
    detail: str = ""


class Version(_Shape, frozen=True, kw_only=True):
    version: str
    protocol: int


class WebDoor(_Shape, frozen=True, kw_only=True):
    """Where a browser on the server's machine reaches it."""

    url: str


class ErrorBody(_Shape, frozen=True, kw_only=True):
    code: str
    message: str


class WorkspacePage(_Shape, frozen=True, kw_only=True):
    items: tuple[Workspace, ...]
    next: str | None = None


class SessionPage(_Shape, frozen=True, kw_only=True):
    items: tuple[Session, ...]
    next: str | None = None


class MessagePage(_Shape, frozen=True, kw_only=True):
    items: tuple[Message, ...]
    next: str | None = None


class RunPage(_Shape, frozen=True, kw_only=True):
    items: tuple[Run, ...]
    next: str | None = None


class PermissionPage(_Shape, frozen=True, kw_only=True):
    items: tuple[Permission, ...]
    next: str | None = None


class QuestionPage(_Shape, frozen=True, kw_only=True):
    items: tuple[Question, ...]
    next: str | None = None


class JobPage(_Shape, frozen=True, kw_only=True):
    items: tuple[Job, ...]
    next: str | None = None


class McpPage(_Shape, frozen=True, kw_only=True):
    items: tuple[McpEvent, ...]


class LspPage(_Shape, frozen=True, kw_only=True):
    items: tuple[LspEvent, ...]


class SkillInfo(_Shape, frozen=True, kw_only=True):
    name: str
    description: str
    path: str


class CommandArgument(_Shape, frozen=True, kw_only=True):
    name: str
    description: str = ""
    required: bool = False


class CommandInfo(_Shape, frozen=True, kw_only=True):
    """A prompt kept in a file or by an MCP server: `/name arguments` in a prompt stands for it."""

    name: str
    description: str
    argument_hint: str
    server: str | None = None
    """The MCP server that keeps it; null for a file."""
    arguments: tuple[CommandArgument, ...] = ()
    """What the MCP server takes, in order: words, or `name=value`."""


class SkillPage(_Shape, frozen=True, kw_only=True):
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


class UndoneFile(_Shape, frozen=True, kw_only=True):
    path: str
    fate: FileFate


class Undone(_Shape, frozen=True, kw_only=True):
    """What undo or redo did: the run, and the files that were put back."""

    run_id: str
    files: tuple[str, ...]
    fates: tuple[UndoneFile, ...] = ()
    """What became of each of the files."""


class RenderedItem(_Shape, frozen=True, kw_only=True):
    html: str
    """Safe: no scripts, no styles, nothing from elsewhere, links to http, https and mailto alone."""


class Rendered(_Shape, frozen=True, kw_only=True):
    """The HTML of each item, in their order."""

    items: tuple[RenderedItem, ...]


PROTOCOL = 1
"""Raised when a client of the former number could not talk to this server."""
