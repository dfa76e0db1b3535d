"""A client's copy of a workspace, kept by the rules of http.md alone: a snapshot, then events."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from longboat.runtime.workspace.workspace import Workspace
from longboat.store.protocol import Row
from longboat.wire.events import Change, Event
from longboat.wire.models import (
    ClientInfo,
    Message,
    MessageDelta,
    ReasoningPart,
    Run,
    RunState,
    Session,
    Snapshot,
    TextPart,
    ToolCallPart,
)


@dataclass
class Mirror:
    """What is open: sessions, unfinished runs, messages being written, clients. Not places: they are derived."""

    sessions: dict[str, Session] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)
    clients: dict[str, ClientInfo] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Mirror":
        return cls(
            sessions={session.id: session for session in snapshot.sessions},
            runs={run.run_id: _without_place(run) for run in snapshot.runs},
            messages={message.id: message for message in snapshot.messages},
            clients={client.client_id: client for client in snapshot.clients},
        )

    def copy(self) -> "Mirror":
        return Mirror(dict(self.sessions), dict(self.runs), dict(self.messages), dict(self.clients))

    def apply(self, event: Event) -> None:
        gone = event.change is Change.DELETED
        match event.payload:
            case Session() as session:
                _put(self.sessions, session.id, None if gone else session)
                if gone:
                    self.messages = {k: v for k, v in self.messages.items() if v.session_id != session.id}
            case Run() as run:
                _put(self.runs, run.run_id, None if run.state is RunState.FINISHED else _without_place(run))
            case Message() as message:
                _put(self.messages, message.id, None if gone or message.finished_at else message)
            case MessageDelta() as delta:
                self.messages[delta.message_id] = grown(self.messages[delta.message_id], delta)
            case ClientInfo() as client:
                _put(self.clients, client.client_id, None if gone else client)


def grown(message: Message, delta: MessageDelta) -> Message:
    """The message with a delta added: never a gap, never a repeat."""
    part = message.parts[delta.part]
    match part:
        case TextPart() | ReasoningPart():
            assert len(part.text) == delta.offset
            part = msgspec.structs.replace(part, text=part.text + delta.text)
        case ToolCallPart():
            assert len(part.input) == delta.offset
            part = msgspec.structs.replace(part, input=part.input + delta.text)
        case _:
            raise AssertionError(f"{part} does not stream")
    parts = (*message.parts[: delta.part], part, *message.parts[delta.part + 1 :])
    return msgspec.structs.replace(message, parts=parts)


def number_of(cursor: str | None) -> int:
    assert cursor is not None
    return int(cursor.rpartition("/")[2])


def states(events: Sequence[Event]) -> dict[int, Mirror]:
    """A client's copy after each event, by the event's number; the first event is a snapshot."""
    first, *rest = events
    mirror = Mirror.of(first.payload)
    known = {number_of(first.payload.cursor): mirror.copy()}
    for event in rest:
        mirror.apply(event)
        known[number_of(event.cursor)] = mirror.copy()
    return known


def check_places(runs: Iterable[Run]) -> None:
    """Position 0 is the active run, then the others by seq; folded ones have none."""
    by_session: dict[str, list[Run]] = {}
    for run in runs:
        by_session.setdefault(run.session_id, []).append(run)
    for own in by_session.values():
        waiting = [run for run in own if run.state is not RunState.FOLDED]
        waiting.sort(key=lambda run: (run.state is not RunState.ACTIVE, run.seq))
        assert [run.position for run in waiting] == list(range(len(waiting)))
        assert all(run.position is None for run in own if run.state is RunState.FOLDED)


async def log_of(workspace: Workspace) -> list[Row]:
    """The entries of the log as the store has them."""
    return await workspace.store.read(
        lambda reader: reader.fetch("events_between", workspace_id=workspace.id, number=0, up_to=2**62, session_id=None)
    )


def frames_in(data: bytes) -> list[bytes]:
    return [frame + b"\n\n" for frame in data.split(b"\n\n") if frame]


def _without_place(run: Run) -> Run:
    return msgspec.structs.replace(run, position=None)


def _put(into: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        into.pop(key, None)
    else:
        into[key] = value
