"""The events on the stream: `EVENTS` is the manifest that code, docs and clients share.

Owns the envelope `{"type": T, "payload": {"type": created|updated|deleted, "payload": {…}}}`. Must not know how cursors
are stored or who listens.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from longboat.wire import asks, models, workspace_state


class Change(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class EventSpec:
    """One row of the manifest."""

    payload: type[msgspec.Struct]
    changes: tuple[Change, ...]
    meaning: str


_ANY = (Change.CREATED, Change.UPDATED, Change.DELETED)

EVENTS: dict[str, EventSpec] = {
    "session": EventSpec(models.Session, _ANY, "A session was created, renamed, became busy or idle, or was deleted."),
    "message": EventSpec(
        models.Message,
        _ANY,
        "A whole message (new, restructured, withdrawn, finished); it replaces the client's copy.",
    ),
    "message_delta": EventSpec(models.MessageDelta, (Change.UPDATED,), "Text was added to one part of a message."),
    "run": EventSpec(models.Run, (Change.CREATED, Change.UPDATED), "A run was accepted, changed or edited."),
    "run_complete": EventSpec(models.RunComplete, (Change.CREATED,), "The only terminal event of a run."),
    "agent_event": EventSpec(models.AgentEvent, (Change.CREATED,), "A notice from the agent; nothing depends on it."),
    "permission_request": EventSpec(asks.Permission, (Change.CREATED,), "A tool call waits for approval."),
    "permission_notification": EventSpec(
        asks.PermissionNotification, (Change.UPDATED,), "A permission was answered, or withdrawn with its run."
    ),
    "question_request": EventSpec(asks.Question, (Change.CREATED,), "The agent asks a question."),
    "question_notification": EventSpec(
        asks.QuestionNotification, (Change.UPDATED,), "A question was answered, or withdrawn with its run."
    ),
    "file": EventSpec(
        workspace_state.FileChange,
        _ANY,
        "A turn, an undo, a redo or a person who undid or redid something changed a file.",
    ),
    "todo": EventSpec(workspace_state.Todos, (Change.UPDATED,), "The whole plan of a session."),
    "job": EventSpec(workspace_state.Job, (Change.CREATED, Change.UPDATED), "A background command started or ended."),
    "mcp_event": EventSpec(
        workspace_state.McpEvent, (Change.UPDATED,), "An MCP server connected, failed or needs a login."
    ),
    "lsp_event": EventSpec(
        workspace_state.LspEvent, (Change.UPDATED,), "A language server started, is ready, or failed."
    ),
    "config_changed": EventSpec(
        workspace_state.ConfigChanged,
        (Change.UPDATED,),
        "The workspace's configuration changed: the models used now, or what is wrong with it.",
    ),
    "workspace": EventSpec(
        models.Workspace,
        (Change.UPDATED,),
        "Another node works on the workspace now. `away` says whether its directory is on a node that is down.",
    ),
    "client": EventSpec(
        models.ClientInfo, (Change.CREATED, Change.DELETED), "A client attached (created) or detached (deleted)."
    ),
}

UNLOGGED = {"snapshot": models.Snapshot, "resync": models.Resync}
"""Sent to one connection as `{type, payload}`, without an id: they are not part of the log."""

EVENT_TYPES: dict[type[msgspec.Struct], str] = {spec.payload: name for name, spec in EVENTS.items()}


@dataclass(frozen=True, slots=True)
class Event:
    """A typed event as clients see it. `cursor` is None for snapshot and resync."""

    type: str
    change: Change | None
    payload: Any
    cursor: str | None = None
    parent_session_id: str | None = None
    """For events of a sub-agent's session: the session that started it."""


_encoder = msgspec.json.Encoder()


def encode_body(change: Change, payload: msgspec.Struct, *, parent: str | None = None) -> bytes:
    """The frame of a logged event without its `id:` line, which only the log can provide.

    `parent`: for events of a sub-agent's session, the session that started it; sent beside the type.
    """
    name = EVENT_TYPES[type(payload)].encode()
    return b'event: %b\ndata: {"type":"%b",%b"payload":{"type":"%b","payload":%b}}\n\n' % (
        name,
        name,
        b'"parent_session_id":%b,' % _encoder.encode(parent) if parent is not None else b"",
        change.value.encode(),
        _encoder.encode(payload),
    )


def encode_unlogged(payload: models.Snapshot | models.Resync) -> bytes:
    """A whole frame for one connection."""
    name = type(payload).__name__.lower().encode()
    return b'event: %b\ndata: {"type":"%b","payload":%b}\n\n' % (name, name, _encoder.encode(payload))


class _Inner(msgspec.Struct):
    type: Change
    payload: msgspec.Raw


class _Outer(msgspec.Struct):
    type: str
    payload: msgspec.Raw
    parent_session_id: str | None = None


_outer = msgspec.json.Decoder(_Outer)
_inner = msgspec.json.Decoder(_Inner)
_payloads = {name: msgspec.json.Decoder(spec.payload) for name, spec in EVENTS.items()} | {
    name: msgspec.json.Decoder(payload) for name, payload in UNLOGGED.items()
}


def decode_event(data: bytes, cursor: str | None = None) -> Event | None:
    """The event in a frame's data, or None for a type this client is too old to know."""
    outer = _outer.decode(data)
    decoder = _payloads.get(outer.type)
    if decoder is None:
        return None
    if outer.type in UNLOGGED:
        return Event(outer.type, None, decoder.decode(outer.payload))
    inner = _inner.decode(outer.payload)
    return Event(outer.type, inner.type, decoder.decode(inner.payload), cursor, outer.parent_session_id)
