"""A client's copy of a workspace: a snapshot, updated by the events after it.

Pure. Feed it every event of `Client.events` without a session filter, and show what it holds. Must not know how events
arrive or who displays them.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from longboat.wire.asks import Permission, PermissionNotification, Question, QuestionNotification
from longboat.wire.events import Change, Event
from longboat.wire.models import (
    ClientInfo,
    Message,
    MessageDelta,
    Part,
    ReasoningPart,
    Resync,
    Run,
    RunState,
    Session,
    Snapshot,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from longboat.wire.workspace_state import ConfigChanged, Job, LspEvent, McpEvent, TodoItem, Todos

Value = TypeVar("Value")


@dataclass(slots=True)
class Transcript:
    """The messages of one session that were read or streamed so far, in order."""

    messages: list[Message] = field(default_factory=list)
    stale: bool = True
    """The end of the transcript may be missing: read the newest page and `take` it."""
    life: int = 0
    """The number of the snapshot it is based on. Discard a page requested in an earlier life: its messages may be
    gone."""
    _dropped: set[str] = field(default_factory=set)

    def find(self, message_id: str) -> Message | None:
        """Return the message with this id, if it is here."""
        return next((message for message in reversed(self.messages) if message.id == message_id), None)

    def take(self, page: Iterable[Message], *, newest: bool = False, life: int | None = None) -> None:
        """Add messages that were read. `newest`: they are the end of the transcript. Messages from the stream are at
        least as new as messages that were read, unless events were missed. `life` is the life in which you requested
        them."""
        if life is not None and life != self.life:
            return
        for message in page:
            known = self.find(message.id)
            missed = known is None or (self.stale and _is_ahead(message, known))
            if missed and message.id not in self._dropped:
                self.put(message)
        self.stale = self.stale and not newest

    def put(self, message: Message) -> None:
        """Add a message, or replace the one with the same id."""
        at = bisect_left(self.messages, message.seq, key=lambda known: known.seq)
        if at < len(self.messages) and self.messages[at].id == message.id:
            self.messages[at] = message
        else:
            self.messages.insert(at, message)
        self._dropped.discard(message.id)  # a redo brings it back

    def drop(self, message: Message) -> None:
        """Remove a message."""
        self.messages = [known for known in self.messages if known.id != message.id]
        self._dropped.add(message.id)

    def extend(self, delta: MessageDelta) -> None:
        """Apply a delta. A known delta changes nothing; a gap before a delta makes the copy stale."""
        message = self.find(delta.message_id)
        grown = _grown(message, delta) if message is not None else None
        if grown is None:
            self.stale = True
        else:
            self.put(grown)

    def begin(self) -> None:
        """Start again from a new snapshot: events may have been missed."""
        self.messages = []
        self._dropped.clear()
        self.life += 1
        self.stale = True


@dataclass(slots=True)
class Mirror:
    """A workspace as its events describe it."""

    sessions: dict[str, Session] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    """Unfinished runs."""
    permissions: dict[str, Permission] = field(default_factory=dict)
    """Pending permissions."""
    questions: dict[str, Question] = field(default_factory=dict)
    """Pending questions."""
    clients: dict[str, ClientInfo] = field(default_factory=dict)
    todos: dict[str, tuple[TodoItem, ...]] = field(default_factory=dict)
    """By session; only those in events since the snapshot. `Client.todos` reads the others."""
    jobs: dict[str, Job] = field(default_factory=dict)
    """Only those in events since the snapshot, as for `mcp` and `lsp`. `Client.jobs`, `mcp` and `lsp` read all."""
    mcp: dict[str, McpEvent] = field(default_factory=dict)
    lsp: dict[tuple[str, str], LspEvent] = field(default_factory=dict)
    config: ConfigChanged | None = None
    """Which model answers, if that changed since the snapshot. `Client.offered_models` reads it at any time."""
    _transcripts: dict[str, Transcript] = field(default_factory=dict)

    def transcript(self, session_id: str) -> Transcript:
        """Start to keep the messages of a session. The transcript is stale until you read its newest page."""
        return self._transcripts.setdefault(session_id, Transcript())

    def forget(self, session_id: str) -> None:
        """Stop keeping the messages of a session."""
        self._transcripts.pop(session_id, None)

    def apply(self, event: Event) -> None:
        """Update the copy with an event."""
        gone = event.change is Change.DELETED
        match event.payload:
            case Snapshot() as snapshot:
                self._begin(snapshot)
            case Resync():
                pass  # a complete snapshot follows
            case Session() as session:
                _put(self.sessions, session.id, None if gone else session)
                if gone:
                    self._leave(session.id)
            case Run() as run:
                _put(self.runs, run.run_id, None if run.state is RunState.FINISHED else run)
            case Message() as message if message.session_id in self._transcripts:
                transcript = self._transcripts[message.session_id]
                transcript.drop(message) if gone else transcript.put(message)
            case MessageDelta() as delta if delta.session_id in self._transcripts:
                self._transcripts[delta.session_id].extend(delta)
            case ClientInfo() as client:
                _put(self.clients, client.client_id, None if gone else client)
            case _:
                self._hear(event.payload)

    def _hear(self, payload: Any) -> None:
        match payload:
            case Permission() as ask:
                self.permissions[ask.id] = ask
            case PermissionNotification() as told:
                self.permissions.pop(told.id, None)
            case Question() as ask:
                self.questions[ask.id] = ask
            case QuestionNotification() as told:
                self.questions.pop(told.id, None)
            case Todos() as todos:
                self.todos[todos.session_id] = todos.items
            case Job() as job:
                self.jobs[job.id] = job
            case McpEvent() as server:
                self.mcp[server.server] = server
            case LspEvent() as language:
                self.lsp[language.server, language.root] = language
            case ConfigChanged() as config:
                self.config = config

    def _begin(self, snapshot: Snapshot) -> None:
        """Replace everything that the snapshot contains, and clear what it does not: that may have changed
        unnoticed."""
        self.sessions = {session.id: session for session in snapshot.sessions}
        self.runs = {run.run_id: run for run in snapshot.runs}
        self.permissions = {ask.id: ask for ask in snapshot.permissions}
        self.questions = {ask.id: ask for ask in snapshot.questions}
        self.clients = {client.client_id: client for client in snapshot.clients}
        for told in (self.todos, self.jobs, self.mcp, self.lsp):
            told.clear()
        self.config = None
        for transcript in self._transcripts.values():
            transcript.begin()
        for message in snapshot.messages:
            if message.session_id in self._transcripts:
                self._transcripts[message.session_id].put(message)

    def _leave(self, session_id: str) -> None:
        self._transcripts.pop(session_id, None)
        self.todos.pop(session_id, None)


def _is_ahead(read: Message, known: Message) -> bool:
    if known.finished_at is not None or read.finished_at is not None:
        return known.finished_at is None
    return _size(read) > _size(known)


def _size(message: Message) -> int:
    return sum(len(getattr(part, _STREAMED[type(part)])) for part in message.parts if type(part) in _STREAMED)


def _put(into: dict[str, Value], key: str, value: Value | None) -> None:
    if value is None:
        into.pop(key, None)
    else:
        into[key] = value


def _grown(message: Message, delta: MessageDelta) -> Message | None:
    """Add a delta to a message; None if there is a gap before it."""
    if delta.part >= len(message.parts):
        return None
    part = message.parts[delta.part]
    name = _STREAMED.get(type(part))
    if name is None:
        return None
    text: str = getattr(part, name)
    if delta.offset > len(text):
        return None
    added = delta.text[len(text) - delta.offset :]
    if not added:
        return message
    changed: Part = msgspec.structs.replace(part, **{name: text + added})
    parts = (*message.parts[: delta.part], changed, *message.parts[delta.part + 1 :])
    return msgspec.structs.replace(message, parts=parts)


_STREAMED: dict[type, str] = {TextPart: "text", ReasoningPart: "text", ToolCallPart: "input", ToolResultPart: "content"}
"""The parts that grow while they stream, and the field that grows."""
