"""The inbox: pending requests and ended runs in all workspaces of a server. Its shapes, the frames of its stream, and
the shapes of push subscriptions.

Pure. The stream is not a log: each connection begins with the first page, so its frames have no ids.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

from longboat.wire.asks import Permission, Question
from longboat.wire.ids import OwnId
from longboat.wire.models import Outcome
from longboat.wire.shape import Shape


class InboxKind(StrEnum):
    PERMISSION = "permission"
    """A tool call needs approval. Leaves the inbox once it is answered or withdrawn."""
    QUESTION = "question"
    """The agent asks something. Leaves the inbox once it is answered or withdrawn."""
    FAILED = "failed"
    """A run failed or was interrupted. Leaves the inbox after seven days."""
    FINISHED = "finished"
    """A run completed. Leaves the inbox after seven days."""

    @property
    def waits(self) -> bool:
        """Whether it needs an answer."""
        return self in (InboxKind.PERMISSION, InboxKind.QUESTION)


class InboxItem(Shape, frozen=True, kw_only=True):
    """A pending request, or a run that has ended. Does not include canceled runs, folded prompts and runs of
    sub-agents, but does include what sub-agents ask."""

    id: str
    """Newer items have higher numbers."""
    kind: InboxKind
    workspace_id: str
    workspace_path: str
    session_id: str
    """The session that people see: for a sub-agent, the one that started it."""
    session_title: str
    run_id: str
    client_id: str | None = None
    """The client that sent the prompt."""
    at: str
    seen: bool
    """Whether this person has seen it in any of their clients."""
    text: str
    """The prompt, shortened."""
    permission: Permission | None = None
    question: Question | None = None
    outcome: Outcome | None = None
    error: str | None = None


class InboxPage(Shape, frozen=True, kw_only=True):
    """Newest first."""

    items: tuple[InboxItem, ...]
    next: str | None = None
    waiting: int
    """How many items of the whole inbox need an answer, seen or not."""
    unseen: int
    """How many ended runs in the whole inbox this person has not seen."""


class InboxChange(Shape, frozen=True, kw_only=True):
    """What changed in the inbox since the last frame."""

    changed: tuple[InboxItem, ...] = ()
    """New and changed items, newest first. You can ignore items older than the pages you have loaded."""
    removed: tuple[str, ...] = ()
    """The ids of items that are no longer in the inbox."""
    waiting: int
    unseen: int


InboxEvent = InboxPage | InboxChange

InboxId = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,18}$")]


class MarkSeen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The items that a person has seen: these, or with `up_to` this one and all older ones."""

    client_id: OwnId
    ids: Annotated[tuple[InboxId, ...], msgspec.Meta(max_length=500)] = ()
    up_to: InboxId | None = None


class PushInfo(Shape, frozen=True, kw_only=True):
    """How a browser subscribes to this server's notifications."""

    public_key: str
    """The server's VAPID key for `applicationServerKey`: base64url without padding."""


PushKey = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{16,128}=*$")]


class PushKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The browser's keys, which encrypt what is pushed to it: base64url."""

    p256dh: PushKey
    auth: PushKey


class Subscribe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A browser's push subscription, as `PushSubscription.toJSON()` returns it, with its owner."""

    client_id: OwnId
    endpoint: Annotated[str, msgspec.Meta(min_length=1, max_length=2_048)]
    keys: PushKeys


_NAMES: dict[type[InboxEvent], bytes] = {InboxPage: b"inbox", InboxChange: b"inbox_change"}
_SHAPES = {name.decode(): msgspec.json.Decoder(shape) for shape, name in _NAMES.items()}
_encoder = msgspec.json.Encoder()


class _Frame(msgspec.Struct):
    type: str
    payload: msgspec.Raw


_frame = msgspec.json.Decoder(_Frame)


def encode_inbox(event: InboxEvent) -> bytes:
    """A whole frame of the stream."""
    name = _NAMES[type(event)]
    return b'event: %b\ndata: {"type":"%b","payload":%b}\n\n' % (name, name, _encoder.encode(event))


def decode_inbox(data: bytes) -> InboxEvent | None:
    """The event in a frame's data, or None for a type this client is too old to know."""
    frame = _frame.decode(data)
    decoder = _SHAPES.get(frame.type)
    event: InboxEvent | None = None if decoder is None else decoder.decode(frame.payload)
    return event
