"""The types on the wire (http.md, "Shapes"). One definition serves requests, responses, events, storage and OpenAPI.

Must not know how any of them is stored or sent. Times are RFC 3339 UTC strings with microseconds; nothing is ever
ordered by them.
"""

from enum import StrEnum

import msgspec

from longboat.wire.asks import CallAnswer, Permission, Question
from longboat.wire.shape import Shape
from longboat.wire.tools import ToolTraits


class RunState(StrEnum):
    """The state of a run. There is no "canceling": see `Run.cancel_requested`."""

    ACCEPTED = "accepted"
    """Durable and answered with 202; not in its session's queue yet."""
    QUEUED = "queued"
    """Waiting behind the active run."""
    ACTIVE = "active"
    """Its turn is running."""
    FOLDED = "folded"
    """Merged into another run's turn; ends with it."""
    FINISHED = "finished"
    """Ended: `outcome` says how, and its one terminal event is in the log."""


class Outcome(StrEnum):
    """How a run ended."""

    END_TURN = "end_turn"
    """The turn completed."""
    CANCELED = "canceled"
    """A cancel stopped it, or prevented it from starting."""
    ERROR = "error"
    """It failed; `error` says why."""
    INTERRUPTED = "interrupted"
    """The server stopped or crashed while the run was active."""


class Delivery(StrEnum):
    """What happens to a prompt if its session is busy."""

    STEER = "steer"
    """Merged into the running turn at its next step."""
    QUEUE = "queue"
    """Runs as a separate turn after the earlier ones."""


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class FinishReason(StrEnum):
    """Why a turn's last message ended; a message that continues with tool calls has no finish part.

    `max_tokens` and `content_filter` have the outcome end_turn, `limit` has the outcome error.
    """

    END_TURN = "end_turn"
    CANCELED = "canceled"
    ERROR = "error"
    INTERRUPTED = "interrupted"
    MAX_TOKENS = "max_tokens"
    CONTENT_FILTER = "content_filter"
    LIMIT = "limit"
    """The turn reached a limit on steps, failures in a row or time; `detail` says which."""


class TextPart(Shape, frozen=True, kw_only=True, tag_field="type", tag="text"):
    text: str


class ReasoningPart(Shape, frozen=True, kw_only=True, tag_field="type", tag="reasoning"):
    text: str
    signature: str | None = None
    """A value that the provider needs back with it, if any."""


class ToolCallPart(Shape, frozen=True, kw_only=True, tag_field="type", tag="tool_call"):
    id: str
    name: str
    input: str
    """The arguments as the model wrote them: JSON text, complete once `finished`."""
    finished: bool = False
    traits: ToolTraits | None = None
    """What the tool declares about itself: draw the call by it. Null if the tool was unknown."""


class Image(Shape, frozen=True, kw_only=True):
    media_type: str
    """image/png, image/jpeg, image/gif or image/webp."""
    data: str
    """Base64."""


class ToolResultPart(Shape, frozen=True, kw_only=True, tag_field="type", tag="tool_result"):
    tool_call_id: str
    name: str = ""
    """The tool. While it runs, a snapshot has this message but not the finished one with the call."""
    content: str
    """What the model reads; while the tool runs, its output so far."""
    is_error: bool = False
    command_failed: bool = False
    """It is an error because the command that the tool ran failed, as red tests do: a result for the model."""
    finished: bool = True
    images: tuple[Image, ...] = ()
    """Images that the model sees too: at most 5 MB each."""
    answers: tuple[CallAnswer, ...] = ()
    """Who allowed or denied the call, or answered its question, in order. The model does not see it."""
    began_at: str | None = None
    """When the call was made; null for calls from before this was recorded."""
    waited_s: float = 0.0
    """Seconds that it waited for people's answers; while one is pending, without that wait."""
    ran_s: float | None = None
    """Seconds that the tool itself took: the time since `began_at` without `waited_s`. Null while it runs."""

    @property
    def tool_failed(self) -> bool:
        """The tool could not do what it was called for."""
        return self.is_error and not self.command_failed


class FilePart(Shape, frozen=True, kw_only=True, tag_field="type", tag="file"):
    name: str
    media_type: str
    text: str | None = None
    data: str | None = None
    """Base64."""


class FinishPart(Shape, frozen=True, kw_only=True, tag_field="type", tag="finish"):
    reason: FinishReason
    title: str = ""
    detail: str = ""
    code: str = ""
    """Of the error, for programs."""


Part = TextPart | ReasoningPart | ToolCallPart | ToolResultPart | FilePart | FinishPart


class Message(Shape, frozen=True, kw_only=True):
    id: str
    session_id: str
    run_id: str
    seq: int
    role: Role
    parts: tuple[Part, ...]
    model: str | None = None
    provider: str | None = None
    summary: bool = False
    """Not an answer but a summary of everything before it, from which the model continues."""
    created_at: str
    finished_at: str | None = None


class Attachment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file attached to a prompt: `text`, or `data` in base64."""

    name: str
    media_type: str
    text: str | None = None
    data: str | None = None


class Usage(Shape, frozen=True, kw_only=True):
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    """Dollars for the tokens whose price is known; null if that is none of them."""
    unpriced_tokens: int = 0
    """Tokens, in and out, whose price is unknown. If there are any, `cost` is only a lower limit."""

    @classmethod
    def of(cls, *, input_tokens: int, output_tokens: int, cost: float, unpriced_tokens: int) -> "Usage":
        """With an unknown cost instead of $0 if no price is known."""
        known = cost if cost or not unpriced_tokens else None
        return cls(input_tokens=input_tokens, output_tokens=output_tokens, cost=known, unpriced_tokens=unpriced_tokens)

    def __add__(self, other: "Usage") -> "Usage":
        return Usage.of(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=(self.cost or 0.0) + (other.cost or 0.0),
            unpriced_tokens=self.unpriced_tokens + other.unpriced_tokens,
        )


class Session(Shape, frozen=True, kw_only=True):
    id: str
    workspace_id: str
    parent_id: str | None = None
    """For a sub-agent: the session that started it, and the tool call there."""
    parent_call_id: str | None = None
    title: str
    created_at: str
    updated_at: str
    busy: bool = False
    usage: Usage = Usage()
    context_tokens: int = 0
    """How much of the model's context window the newest request and its answer used, as counted by the provider."""
    last_outcome: Outcome | None = None
    """How its last turn ended; null if none has. Prompts that were canceled in the queue do not count."""
    pinned: bool = False
    """Listed before all others."""
    archived: bool = False
    """Left out of lists unless asked for. A new prompt brings it back."""


class Run(Shape, frozen=True, kw_only=True):
    run_id: str
    seq: int
    session_id: str
    state: RunState
    outcome: Outcome | None = None
    delivery: Delivery
    prompt: str
    plan: bool = False
    """Plan first: it changes nothing until someone approves its plan."""
    position: int | None = None
    """The number of unfinished runs before it in the session; 0 is the active one; null once folded or finished."""
    cancel_requested: bool = False
    canceled_by: str | None = None
    """The client that canceled it, if it gave its name."""
    folded_into: str | None = None
    error: str | None = None
    accepted_at: str
    started_at: str | None = None
    finished_at: str | None = None
    waited_s: float = 0.0
    """Seconds that it waited for people's answers; 0 until it is finished."""
    client_id: str | None = None
    parent_run_id: str | None = None
    """For a sub-agent: the run that started it, and that run's session."""
    parent_session_id: str | None = None


class RunComplete(Shape, frozen=True, kw_only=True):
    """The terminal event of a run. `message_id` and `text` belong to its turn's last assistant message."""

    run_id: str
    session_id: str
    message_id: str | None = None
    text: str = ""
    error: str = ""
    cancelled: bool = False
    outcome: Outcome
    folded_into: str | None = None


class MessageDelta(Shape, frozen=True, kw_only=True):
    """Text that was added to a part. `offset` counts characters, which reveals gaps and repeats."""

    message_id: str
    session_id: str
    run_id: str
    part: int
    offset: int
    text: str


class AgentEventType(StrEnum):
    AGENT_FINISHED = "agent_finished"
    """A turn ended; the terminal events say how."""
    ERROR = "error"
    """An error message for people; waiting clients need only the terminal event."""
    NOTICE = "notice"
    """A problem that does not stop the run: a skill that cannot be read, a hook that fails."""
    RETRYING = "retrying"
    """A model request failed and is being retried."""
    SUMMARIZING = "summarizing"
    """The context window is nearly full and the run continues after a summary; or someone asked for one."""
    LOADING = "loading"
    """A local model is being downloaded or loaded, or reads a long prompt."""


class AgentEvent(Shape, frozen=True, kw_only=True):
    type: AgentEventType
    session_id: str
    run_id: str
    message: str = ""
    detail: str = ""


class ClientInfo(Shape, frozen=True, kw_only=True):
    """A client that keeps the workspace open."""

    client_id: str
    attached_at: str


class Workspace(Shape, frozen=True, kw_only=True):
    id: str
    path: str
    created_at: str
    ready: bool
    """The directory exists and its configuration can be used. In the list of workspaces: as far as is known without
    opening it."""
    busy: bool
    clients: tuple[ClientInfo, ...] = ()
    used_at: str | None = None
    """When one of its sessions was last worked on. Only in the list of workspaces."""
    waiting: int = 0
    """How many permissions and questions need an answer. Only in the list of workspaces."""
    home: str | None = None
    """The node whose disk has the directory. Null: every node has it, or there is only one server."""
    owner: str | None = None
    """The node that works on it now. Null: none does, or there is only one server."""
    away: bool = False
    """The directory is on a node that is down or stopping. Prompts are queued until it is back."""
    away_since: str | None = None
    """When that node was last heard of; null: never."""
    home_stopping: bool = False
    """That node is not down yet: it finishes its active runs and takes no more work."""


class Snapshot(Shape, frozen=True, kw_only=True):
    """The committed state of a workspace exactly at `cursor`."""

    cursor: str
    sessions: tuple[Session, ...]
    runs: tuple[Run, ...]
    messages: tuple[Message, ...]
    permissions: tuple[Permission, ...] = ()
    questions: tuple[Question, ...] = ()
    clients: tuple[ClientInfo, ...] = ()


class Resync(Shape, frozen=True, kw_only=True):
    """The client's cursor is not in the log: a snapshot follows."""

    reason: str


class Accepted(Shape, frozen=True, kw_only=True):
    """The response to an accepted prompt."""

    run_id: str
    seq: int
    state: RunState
    position: int | None


class AgentInfo(Shape, frozen=True, kw_only=True):
    model: str | None
    provider: str | None
    ready: bool
    busy: bool
    problem: str | None = None
    """If `ready` is false: what to do before a prompt can be answered."""
    problem_code: str | None = None
    """Its stable code, such as `model_not_configured` or `config_invalid`."""
    advice: str | None = None
    """If nothing is configured and this model is a fallback: what it can do, and how to get a better model."""


class SessionStatus(Shape, frozen=True, kw_only=True):
    session_id: str
    busy: bool
    active_run_id: str | None
    queued: int
    undone: int = 0
    """Undone turns that can be redone."""


class Canceled(Shape, frozen=True, kw_only=True):
    canceled: tuple[str, ...]


class Health(Shape, frozen=True, kw_only=True):
    status: str
    """`ok`, `degraded` (the store fails, is missing, is damaged or cannot be reached; `detail` says which) or
    `leaving`."""
    detail: str = ""


class Version(Shape, frozen=True, kw_only=True):
    version: str
    protocol: int


class BrowserAddress(Shape, frozen=True, kw_only=True):
    """The address for a browser on the server's machine."""

    url: str


class ErrorBody(Shape, frozen=True, kw_only=True):
    code: str
    message: str


class WorkspacePage(Shape, frozen=True, kw_only=True):
    items: tuple[Workspace, ...]
    next: str | None = None


class SessionPage(Shape, frozen=True, kw_only=True):
    items: tuple[Session, ...]
    next: str | None = None


class MessagePage(Shape, frozen=True, kw_only=True):
    items: tuple[Message, ...]
    next: str | None = None


class RunPage(Shape, frozen=True, kw_only=True):
    items: tuple[Run, ...]
    next: str | None = None


PROTOCOL = 1
"""Increased when older clients could no longer talk to this server."""
