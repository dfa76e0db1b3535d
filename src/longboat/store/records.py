"""What a store holds, as the runtime knows it: values that every implementation of the store gives back.

Owns these types and nothing else. Must not know rows or SQL.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from longboat.errors import SessionDamaged
from longboat.wire.model_requests import PartName, ToolMode
from longboat.wire.models import Attachment, ClientInfo, Message, Run, Session, Usage
from longboat.wire.requests import Approve, Effort
from longboat.wire.workspace_state import TodoItem


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRecord:
    workspace_id: str
    home: str
    """The node whose disk has the directory; empty: every node has it."""
    path: str
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceActivity:
    used_at: str | None = None
    """When one of its sessions was last worked on."""
    waiting: int = 0
    """How many permissions and questions need an answer."""
    busy: bool = False
    """A run is active."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedClient:
    workspace_id: str
    client: ClientInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session with what the wire does not show."""

    session: Session
    last_message: int
    """The seq of its newest message, undone ones included."""
    summary_seq: int
    """The seq of the message from which on the model sees the transcript; 0: from the beginning."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The options of a run besides its model."""

    agent: str | None = None
    """The sub-agent that does it, by the name the project gives it."""
    effort: Effort | None = None
    schema: dict[str, Any] | None = None
    """What its answer must fit."""
    plan: bool = False
    """It changes nothing until someone approves its plan. A sub-agent with this changes nothing at all."""
    wait_for_answers: bool = False
    """Ask even where nobody is there who can answer: someone will come."""
    summarize: bool = False
    """No prompt to answer: the conversation is to be summarized, and its prompt is only what people read."""
    shell: str | None = None
    """No prompt either: a command that a person runs; the model reads of it with the next prompt."""
    traceparent: str | None = None
    """The span of the request that submitted it, as W3C Trace Context writes it."""


NO_OPTIONS = RunOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run with the fields that are not on the wire."""

    run: Run
    attachments: tuple[Attachment, ...]
    fingerprint: str
    model: str | None
    approve: Approve
    options: RunOptions = NO_OPTIONS
    tries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedRuns:
    """What a crash or a restart left."""

    runs: Mapping[str, Sequence[RunRecord]]
    """By session."""
    damaged: Mapping[str, SessionDamaged]
    """Sessions that cannot be opened, because a run or one of its asks cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWithoutEnd:
    """A run of a damaged session that the store does not show as finished."""

    seq: int
    run_id: str
    session_id: str
    parent_session_id: str | None
    run: Run | None
    """None if it cannot be read."""
    was_ended: bool
    """It has had its terminal event: only its state is damaged."""


class FileChangeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A file change of a run: the contents before and after; None means that the file does not exist."""

    session_id: str
    run_id: str
    path: str
    before: bytes | None
    after: bytes | None
    pending: str | None
    """The key of a change that may not have been made; None once it was."""
    author: str | None = None
    """The person who undid something of the run, or redid it, "" for one without a name; None: the run changed the
    file."""
    remark: str | None = None
    """How much a person undid or redid."""
    revert_id: str | None = None
    """Names what a person undid."""
    redoes: str | None = None
    """The `revert_id` of what a person redid."""
    imported: bool = False
    """It came with an imported session: the file of this name here is not the one that was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertRecord:
    """What a person undid in a file of a session, or redid."""

    path: str
    remark: str
    revert_id: str
    is_redo: bool
    """Whether this redid what `revert_id` names."""
    told_run: str | None
    """The run whose prompt told the model; None if none has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHistory:
    """What a turn must know of its session before its first step."""

    messages: Sequence[Message]
    surroundings: Mapping[str, str]
    """What the model was told of the day and the repository in these runs, first to last."""
    reverts: Sequence[RevertRecord]
    has_unsettled_changes: bool
    """A crash came between the record of a file's change and the change itself. `reverts` may be wrong until it is
    known whether the change was made."""
    size: int = field(default=0, compare=False)
    """Of the messages' parts in the store, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """A turn that can be undone or redone: its messages and its file changes, in order."""

    messages: tuple[Message, ...]
    first_seq: int
    changes: tuple[FileChangeRecord, ...]
    reverts: tuple[FileChangeRecord, ...] = ()
    """What people undid and redid in the session's files since the first of its changes, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What is finished of a session."""

    session: Session
    messages: tuple[Message, ...]
    summary_seq: int
    """The seq of the message from which on the model sees it; 0: from the beginning."""
    runs: tuple[Run, ...] = ()
    todos: tuple[TodoItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRecord:
    """A session with its sub-agents, each after the one that sent it; what is damaged is left out and named."""

    transcripts: tuple[Transcript, ...]
    changes: tuple[FileChangeRecord, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogPage:
    """Whole frames of the log, up to and including the event with this number."""

    last: int
    frames: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSubscription:
    """A browser that has subscribed to notifications."""

    endpoint: str
    person: str
    p256dh: str
    auth: str


class RequestFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a request when it is sent."""

    model: str
    sent_at: str
    tool_mode: ToolMode = "native"
    exact: bool = True
    summary: bool = False
    sizes: dict[PartName, int]


class RequestAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a request. Without `usage` it failed."""

    seconds: float
    usage: Usage | None = None
    cached_tokens: int = 0
    stop_reason: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """A request to a model. Its body is in pieces, which are named by their digests."""

    request_id: str
    run_id: str
    frame: bytes
    """The body without its messages."""
    same: int
    """How many messages of the run's request before it are the first of this one; the others are `messages`."""
    messages: tuple[bytes, ...]
    facts: RequestFacts
    answer: RequestAnswer | None = None
    """None as long as there is none; for ever, if the server was killed first."""
