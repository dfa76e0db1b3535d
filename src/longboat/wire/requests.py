"""What clients send. Unknown fields are refused and named."""

from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec

from longboat.wire.models import Attachment, Delivery, PermissionAnswer


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all request bodies."""


Title = Annotated[str, msgspec.Meta(max_length=500)]


class CreateWorkspace(_Request, frozen=True, kw_only=True):
    path: str
    client_id: str | None = None


class CreateSession(_Request, frozen=True, kw_only=True):
    title: Title = ""


class UpdateSession(_Request, frozen=True, kw_only=True):
    title: Title


class ForkSession(_Request, frozen=True, kw_only=True):
    message_id: str | None = None
    """The last message to take along, with the results of its calls; without it, all that is finished."""


class Summarize(_Request, frozen=True, kw_only=True):
    """With a run_id of your own the request is safe to repeat."""

    run_id: str | None = None
    model: str | None = None
    client_id: str | None = None


class Approve(StrEnum):
    """Whether tools of this run ask before they act."""

    ASK = "ask"
    ALL = "all"


Effort = Literal["low", "medium", "high"]
"""How much a model thinks before it answers."""


class Submit(_Request, frozen=True, kw_only=True):
    """A prompt. Without run_id one is minted and `delivery` defaults to steer; with one, to queue."""

    session_id: str = ""
    prompt: str = ""
    run_id: str | None = None
    delivery: Delivery | None = None
    attachments: tuple[Attachment, ...] = ()
    model: str | None = None
    approve: Approve = Approve.ASK
    effort: Effort | None = None
    schema: dict[str, Any] | None = None
    """A JSON Schema: the answer is JSON that fits it, or the run ends in an error. Such a prompt is never folded."""
    client_id: str | None = None


class EditRun(_Request, frozen=True, kw_only=True):
    prompt: str | None = None
    delivery: Delivery | None = None


class AnswerPermission(_Request, frozen=True, kw_only=True):
    answer: PermissionAnswer
    wide: bool = False
    """session and always: add the wider rules that were offered."""
    reason: Annotated[str, msgspec.Meta(max_length=10_000)] = ""
    client_id: str | None = None


class AnswerQuestion(_Request, frozen=True, kw_only=True):
    answer: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=10_000)], ...], msgspec.Meta(max_length=100)]
    client_id: str | None = None


class Control(_Request, frozen=True, kw_only=True):
    command: Literal["shutdown"]
    if_idle: bool = False
