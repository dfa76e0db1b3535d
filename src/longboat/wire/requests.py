"""What clients send. Unknown fields are refused and named."""

from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from longboat.wire.models import Attachment, Delivery


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


class Approve(StrEnum):
    """Whether tools of this run ask before they act."""

    ASK = "ask"
    ALL = "all"


class Submit(_Request, frozen=True, kw_only=True):
    """A prompt. Without run_id one is minted and `delivery` defaults to steer; with one, to queue."""

    session_id: str = ""
    prompt: str = ""
    run_id: str | None = None
    delivery: Delivery | None = None
    attachments: tuple[Attachment, ...] = ()
    model: str | None = None
    approve: Approve = Approve.ASK
    client_id: str | None = None


class EditRun(_Request, frozen=True, kw_only=True):
    prompt: str | None = None
    delivery: Delivery | None = None


class Control(_Request, frozen=True, kw_only=True):
    command: Literal["shutdown"]
    if_idle: bool = False
