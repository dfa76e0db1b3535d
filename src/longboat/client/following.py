"""Follows one run to its end: a procedure that asks for I/O and never does any.

`follow()` yields steps; the async and the sync client carry them out and send back the responses, or throw the errors.
So the order (open the stream, then submit; read the run after a resync) is written once and tested without a server.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from longboat.client import calls
from longboat.client.call import Call
from longboat.wire.asks import Permission, PermissionNotification, Question, QuestionNotification
from longboat.wire.events import Change, Event
from longboat.wire.models import (
    AgentEvent,
    Message,
    MessageDelta,
    Outcome,
    Role,
    Run,
    RunComplete,
    RunState,
    Snapshot,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from longboat.wire.requests import Submit
from longboat.wire.workspace_state import FileChange

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Open:
    """Stream the events of this session instead of any other."""

    workspace_id: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Next:
    """Wait for the next event of the stream and send it back."""


Step = Call[Any] | Open | Next | Event
Procedure = Generator[Step, Any, T]
Asking = Generator[Call[Any], Any, T]
"""A procedure that needs no stream."""


def follow(
    workspace_id: str,
    session_id: str,
    run_id: str,
    submit: Submit | None = None,
    *,
    sub_agents: bool = False,
    asks_ahead: bool = False,
) -> Procedure[None]:
    """Yield the events of the run; the last one is its terminal event (R1). Submits `submit` first, if given.
    `sub_agents` includes the events of the run's sub-agents; `asks_ahead`, the permissions and questions of the
    session's other runs until this one starts."""
    own = _Own(run_id=run_id, session_id=session_id, sub_agents=sub_agents, asks_ahead=asks_ahead)
    yield Open(workspace_id, session_id)
    while True:
        event: Event = yield Next()
        if event.type != "snapshot":
            if own.belongs(event):
                yield event
            if own.ended_by(event):
                return
            continue
        yield from _calls_under_way(workspace_id, own, event.payload)
        yield from own.restored(event.payload)
        if submit is not None:
            # The stream is open and its cursor known, so no event of this run can be missed.
            over = (yield from ask(calls.submit(workspace_id, submit))).state is RunState.FINISHED
            submit = None
        else:
            over = not own.unfinished_in(event.payload)
        if over and (complete := (yield from _result(workspace_id, own.run_id))) is not None:
            yield Event("run_complete", Change.CREATED, complete)
            return


def _calls_under_way(workspace_id: str, own: "_Own", snapshot: Snapshot) -> Procedure[None]:
    """Yield the messages with the tool calls that are running now. They are finished, so no snapshot has them, but
    without them a reader cannot tell which call the output belongs to."""
    for run in snapshot.runs:
        own.belongs(Event("run", Change.UPDATED, run))  # a folded run has its host's calls
    known = {part.id for message in snapshot.messages for part in message.parts if isinstance(part, ToolCallPart)}
    unknown: dict[str, set[str]] = {}
    for message in snapshot.messages:
        if own.has_part_in(message.run_id):
            made = {part.tool_call_id for part in message.parts if isinstance(part, ToolResultPart)}
            unknown.setdefault(message.session_id, set()).update(made - known)
    for session_id, call_ids in unknown.items():
        if call_ids:
            yield from _makers(workspace_id, own, session_id, call_ids)


def _makers(workspace_id: str, own: "_Own", session_id: str, call_ids: set[str]) -> Procedure[None]:
    """Yield the messages of a session that contain these calls."""
    after = None
    while True:
        page = yield from ask(calls.messages(workspace_id, session_id, limit=500, after=after))
        for message in page.items:
            made = {part.id for part in message.parts if isinstance(part, ToolCallPart)}
            if own.has_part_in(message.run_id) and made & call_ids:
                yield own.make_event("message", message)
        after = page.next
        if after is None:
            return


def ask(call: Call[T]) -> Asking[T]:
    """Send one request."""
    answer: T = yield call
    return answer


def _result(workspace_id: str, run_id: str) -> Asking[RunComplete | None]:
    """Build the terminal event from the run and the transcript; None while the run is unfinished."""
    run = yield from ask(calls.get_run(workspace_id, run_id))
    if run.state is not RunState.FINISHED:
        return None
    last = yield from _last_message(workspace_id, run)
    return RunComplete(
        run_id=run.run_id,
        session_id=run.session_id,
        message_id=last.id if last else None,
        text="".join(part.text for part in last.parts if isinstance(part, TextPart)) if last else "",
        error=run.error or "",
        cancelled=run.outcome is Outcome.CANCELED,
        outcome=run.outcome or Outcome.INTERRUPTED,
        folded_into=run.folded_into,
    )


def _last_message(workspace_id: str, run: Run) -> Asking[Message | None]:
    last, after = None, None
    turns = {run.run_id, run.folded_into}
    while True:
        page = yield from ask(calls.messages(workspace_id, run.session_id, limit=500, after=after))
        for message in page.items:
            if message.role is Role.ASSISTANT and message.run_id in turns:
                last = message
        after = page.next
        if after is None:
            return last


@dataclass(slots=True, kw_only=True)
class _Own:
    """Tells a run's own events from all others. A folded run shares the turn of its host."""

    run_id: str
    session_id: str
    sub_agents: bool = False
    asks_ahead: bool = False
    started: bool = False
    turns: set[str] = field(default_factory=set)
    sent_by: dict[str, str] = field(default_factory=dict)
    """For each sub-agent's run, the run that started it."""

    def __post_init__(self) -> None:
        self.turns.add(self.run_id)

    def belongs(self, event: Event) -> bool:
        match event.payload:
            case Run() as run:
                return self._knows(run)
            case RunComplete() as complete:
                return complete.run_id == self.run_id or self.has_sent(complete.run_id)
            case Message() | MessageDelta() | FileChange() as part:
                return self.has_part_in(part.run_id)
            case Permission() | PermissionNotification() | Question() | QuestionNotification() as ask:
                own = ask.run_id in self.turns or ask.parent_run_id in self.turns  # or a sub-agent of the run asks
                return own or self._is_ahead(ask)
            case AgentEvent() as notice:
                return self.has_part_in(notice.run_id) or (not notice.run_id and notice.session_id == self.session_id)
            case _:
                return False

    def _knows(self, run: Run) -> bool:
        if run.run_id == self.run_id and run.folded_into:
            self.turns.add(run.folded_into)
        if run.run_id == self.run_id:
            self.started = run.state not in (RunState.ACCEPTED, RunState.QUEUED)
        if run.parent_run_id is not None and self.sub_agents:
            self.sent_by[run.run_id] = run.parent_run_id  # the sender may be our host, which we may not know yet
        return run.run_id == self.run_id or self.has_sent(run.run_id)

    def _is_ahead(self, ask: Permission | PermissionNotification | Question | QuestionNotification) -> bool:
        """Whether the caller wants it because this run cannot start until someone answers."""
        return self.asks_ahead and not self.started and self.session_id in (ask.session_id, ask.parent_session_id)

    def has_part_in(self, run_id: str) -> bool:
        return run_id in self.turns or self.has_sent(run_id)

    def has_sent(self, run_id: str) -> bool:
        """Whether this is the run of a sub-agent, and the caller wants those."""
        return self.sent_by.get(run_id) in self.turns

    def ended_by(self, event: Event) -> bool:
        return isinstance(event.payload, RunComplete) and event.payload.run_id == self.run_id

    def unfinished_in(self, snapshot: Snapshot) -> bool:
        return any(run.run_id == self.run_id for run in snapshot.runs)

    def restored(self, snapshot: Snapshot) -> Iterator[Event]:
        """Yield what the snapshot knows about the run as events. A whole message replaces the reader's copy."""
        for name, payloads in (("run", snapshot.runs), ("message", snapshot.messages)):
            for payload in payloads:
                event = self.make_event(name, payload)
                if self.belongs(event):
                    yield event
        asks: tuple[Permission | Question, ...] = (*snapshot.permissions, *snapshot.questions)
        for ask in asks:
            name = "permission_request" if isinstance(ask, Permission) else "question_request"
            event = Event(name, Change.CREATED, ask, parent_session_id=ask.parent_session_id)
            if self.belongs(event):
                yield event

    def make_event(self, name: str, payload: Run | Message) -> Event:
        """Make the event for something that was read."""
        parent = self.session_id if self.has_sent(payload.run_id) else None
        return Event(name, Change.UPDATED, payload, parent_session_id=parent)
