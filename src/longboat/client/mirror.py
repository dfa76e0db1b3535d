"""A client's copy of a workspace, kept by a snapshot and the events after it.

Pure, for whoever shows a workspace: feed it every event of `Client.events` without a session filter. Must not know how
events arrive or who looks.
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
from longboat.wire.workshop import ConfigChanged, Job, LspEvent, McpEvent, TodoItem, Todos

Value = TypeVar("Value")


@dataclass(slots=True)
class Transcript:
    """The messages of one session, as far as they were read or heard of, in order."""

    messages: list[Message] = field(default_factory=list)
    stale: bool = True
    """What is here may not be all up to its end: read the newest page and `take` it."""
    life: int = 0
    """Which snapshot it goes back to. A page that was asked for in a former life tells of things that may be gone."""
    _dropped: set[str] = field(default_factory=set)

    def find(self, message_id: str) -> Message | None:
        return next((message for message in reversed(self.messages) if message.id == message_id), None)

    def take(self, page: Iterable[Message], *, newest: bool = False, life: int | None = None) -> None:
        """Messages that were read; `newest`: they are the end of the transcript. What the stream has told is at least
        as new as what was read, unless something was missed. `life`: that of the moment when they were asked for."""
        if life is not None and life != self.life:
            return
        for message in page:
            known = self.find(message.id)
            missed = known is None or (self.stale and _is_ahead(message, known))
            if missed and message.id not in self._dropped:
                self.put(message)
        self.stale = self.stale and not newest

    def put(self, message: Message) -> None:
        at = bisect_left(self.messages, message.seq, key=lambda known: known.seq)
        if at < len(self.messages) and self.messages[at].id == message.id:
            self.messages[at] = message
        else:
            self.messages.insert(at, message)
        self._dropped.discard(message.id)  # a redo brings it back

    def drop(self, message: Message) -> None:
        self.messages = [known for known in self.messages if known.id != message.id]
        self._dropped.add(message.id)

    def extend(self, delta: MessageDelta) -> None:
        """A delta that is known already changes nothing; one that leaves a gap makes the copy stale."""
        message = self.find(delta.message_id)
        grown = _grown(message, delta) if message is not None else None
        if grown is None:
            self.stale = True
        else:
            self.put(grown)

    def begin(self) -> None:
        """Anything may have happened unheard."""
        self.messages = []
        self._dropped.clear()
        self.life += 1
        self.stale = True


@dataclass(slots=True)
class Mirror:
    sessions: dict[str, Session] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    """Those that are not finished."""
    permissions: dict[str, Permission] = field(default_factory=dict)
    """Those that wait for an answer, as do the questions."""
    questions: dict[str, Question] = field(default_factory=dict)
    clients: dict[str, ClientInfo] = field(default_factory=dict)
    todos: dict[str, tuple[TodoItem, ...]] = field(default_factory=dict)
    """By session, as far as they were told since the snapshot; `Client.todos` reads the others."""
    jobs: dict[str, Job] = field(default_factory=dict)
    """As the servers: those that were told of since the snapshot. `Client.jobs`, `mcp` and `lsp` read all."""
    mcp: dict[str, McpEvent] = field(default_factory=dict)
    lsp: dict[tuple[str, str], LspEvent] = field(default_factory=dict)
    config: ConfigChanged | None = None
    """Who answers, if that changed since the snapshot; `Client.offered_models` tells it at any time."""
    _transcripts: dict[str, Transcript] = field(default_factory=dict)

    def transcript(self, session_id: str) -> Transcript:
        """The messages of a session, kept from now on. At first it is stale: nothing has been read yet."""
        return self._transcripts.setdefault(session_id, Transcript())

    def forget(self, session_id: str) -> None:
        """Nobody looks at this session's messages any more."""
        self._transcripts.pop(session_id, None)

    def apply(self, event: Event) -> None:
        gone = event.change is Change.DELETED
        match event.payload:
            case Snapshot() as snapshot:
                self._begin(snapshot)
            case Resync():
                pass  # the snapshot that follows says all
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
        """All that a snapshot tells is as it tells it; what it does not tell may have changed unheard."""
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
    """The message with a delta added; None if there is a gap before it."""
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
"""The parts that grow, and the field of each that does."""
