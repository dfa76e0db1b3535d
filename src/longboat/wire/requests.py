"""Request bodies. Unknown fields are refused by name."""

from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec

from longboat.wire.asks import PermissionAnswer
from longboat.wire.ids import OwnId, OwnSessionId
from longboat.wire.models import Attachment, Delivery


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all request bodies."""


# For the API description. Values that do not match are refused with their own error code.
AbsolutePath = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": "^/"})]
ModelName = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": "/"})]
NotEmpty = Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 1})]

Title = Annotated[str, msgspec.Meta(max_length=500)]


class CreateWorkspace(_Request, frozen=True, kw_only=True):
    path: AbsolutePath
    client_id: OwnId | None = None
    env: dict[str, str] | None = None
    """The client's environment, for the commands of its runs: at most 2,000 variables and 256 KB. Kept only in memory,
    until the workspace closes, and never shown."""
    node: str | None = None
    """In a cluster: the name of the node whose disk has the directory. Default: the node that gets the request."""


class MoveWorkspace(_Request, frozen=True, kw_only=True):
    node: str
    """The name of the node that is to work on the workspace."""
    force: bool = False
    """Move even if a run is active."""


class CreateSession(_Request, frozen=True, kw_only=True):
    """With your own session_id, the request is safe to repeat."""

    title: Title = ""
    session_id: OwnSessionId | None = None


class UpdateSession(_Request, frozen=True, kw_only=True):
    """What is left out stays as it is."""

    title: Title | None = None
    pinned: bool | None = None
    archived: bool | None = None


class ForkSession(_Request, frozen=True, kw_only=True):
    message_id: str | None = None
    """The last message to copy, with the results of its calls; without it, everything that is finished."""


class Summarize(_Request, frozen=True, kw_only=True):
    """With your own run_id, the request is safe to repeat."""

    run_id: OwnId | None = None
    model: ModelName | None = None
    client_id: OwnId | None = None


class RunShell(_Request, frozen=True, kw_only=True):
    """A shell command from a person. With your own run_id, the request is safe to repeat."""

    command: Annotated[str, msgspec.Meta(min_length=1, max_length=100_000)]
    run_id: OwnId | None = None
    client_id: OwnId | None = None


class Approve(StrEnum):
    """Whether tool calls of this run need approval."""

    ASK = "ask"
    ALL = "all"


Effort = Literal["low", "medium", "high"]
"""The reasoning effort of a model."""


class Submit(_Request, frozen=True, kw_only=True):
    """A prompt. Without run_id, one is generated and `delivery` defaults to steer; with one, to queue."""

    session_id: NotEmpty = ""
    prompt: str = ""
    run_id: OwnId | None = None
    delivery: Delivery | None = None
    attachments: tuple[Attachment, ...] = ()
    model: ModelName | None = None
    approve: Approve = Approve.ASK
    effort: Effort | None = None
    schema: dict[str, Any] | None = None
    """A JSON Schema: the answer is JSON that matches it, or the run fails. Such a prompt is never folded."""
    plan: bool = False
    """Plan first: until someone approves the agent's plan, it can read and ask, and change nothing. Such a prompt is
    never folded."""
    wait_for_answers: bool = False
    """Ask questions even if no client is attached where someone can answer; the run waits for the answers."""
    client_id: OwnId | None = None


class Revert(_Request, frozen=True, kw_only=True):
    """Undo a session's change to a file, or some of its hunks."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
    """As in `GET …/changes`."""
    digest: Annotated[str, msgspec.Meta(max_length=100)]
    """Identifies the change you saw: if it has changed since, nothing is undone."""
    hunks: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(min_length=1, max_length=100_000)] | (
        None
    ) = None
    """Their numbers in the diff, from 0; null: the whole file."""
    client_id: OwnId | None = None


class RedoRevert(_Request, frozen=True, kw_only=True):
    """Redo what a person undid in a file."""

    client_id: OwnId | None = None


class EditRun(_Request, frozen=True, kw_only=True):
    prompt: str | None = None
    delivery: Delivery | None = None


class AnswerPermission(_Request, frozen=True, kw_only=True):
    answer: PermissionAnswer
    wide: bool = False
    """For session and always: add the wider rules that were offered."""
    reason: Annotated[str, msgspec.Meta(max_length=10_000)] = ""
    client_id: OwnId | None = None


class AnswerQuestion(_Request, frozen=True, kw_only=True):
    answer: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=10_000)], ...], msgspec.Meta(max_length=100)]
    client_id: OwnId | None = None


class Control(_Request, frozen=True, kw_only=True):
    command: Literal["shutdown"]
    if_idle: bool = False


class McpLogin(_Request, frozen=True, kw_only=True):
    """Log in to an MCP server: first without an address, then with the one where the login page ended."""

    redirect_url: Annotated[str, msgspec.Meta(max_length=10_000)] | None = None


class RenderKind(StrEnum):
    MARKDOWN = "markdown"
    CODE = "code"
    DIFF = "diff"
    """A unified diff."""


class RenderItem(_Request, frozen=True, kw_only=True):
    kind: RenderKind
    text: Annotated[str, msgspec.Meta(max_length=400_000)]
    language: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    """For code and diffs; if missing, `path` decides."""
    path: Annotated[str, msgspec.Meta(max_length=4_096)] | None = None


class Render(_Request, frozen=True, kw_only=True):
    """Text to render for a page."""

    items: Annotated[tuple[RenderItem, ...], msgspec.Meta(max_length=64)]


ApiKey = Annotated[str, msgspec.Meta(min_length=1, max_length=8_192, extra_json_schema={"pattern": "^[!-~]+$"})]
BaseUrl = Annotated[
    str,
    msgspec.Meta(
        max_length=2_048, extra_json_schema={"pattern": "^https?://[A-Za-z0-9.-]+(:[0-9]{1,4})?(/[\\w.~/-]*)?$"}
    ),
]


class CheckProvider(_Request, frozen=True, kw_only=True):
    """What is left out is taken from where the server has it: configuration, environment, stored key."""

    api_key: ApiKey | None = None
    base_url: BaseUrl | None = None


class ConnectProvider(_Request, frozen=True, kw_only=True):
    """What is left out stays as it is."""

    api_key: ApiKey | None = None
    """Stored in the user's credentials file, or in the system's keyring. Never shown again."""
    base_url: BaseUrl | None = None
    """Goes into the user's own longboat.json, as does the model."""
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=500)] | None = None
    """The model's name at the provider: it becomes the default."""
    context_window: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None = None
    """The model's window in tokens, as the check reported it; used for your own endpoints."""
