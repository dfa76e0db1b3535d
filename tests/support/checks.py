"""What must hold at the end of every test, whatever it did: the log, the ledger and the transcript agree.

Also the ways to make the real store fail.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from unittest.mock import patch

from running_app import RunningApp

from longboat.core.history import is_object
from longboat.core.stream import extend
from longboat.models.protocol import ModelRequest
from longboat.store.datadir import STORE_NAME
from longboat.wire.events import Change, Event
from longboat.wire.models import (
    AgentEventType,
    FinishPart,
    Message,
    MessageDelta,
    Outcome,
    Role,
    RunComplete,
    RunState,
    ToolCallPart,
    ToolResultPart,
)


def check_request(request: ModelRequest) -> None:
    """T3: a transcript that any provider accepts. Every call is answered by the very next message."""
    open_calls: list[str] = []
    for message in request.messages:
        assert message.parts
        assert not any(isinstance(part, FinishPart) for part in message.parts)
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        results = [part.tool_call_id for part in message.parts if isinstance(part, ToolResultPart)]
        assert results == open_calls
        assert (message.role is Role.TOOL) == bool(results)
        assert not calls or message.role is Role.ASSISTANT
        assert all(is_object(call.input) for call in calls)
        open_calls = [call.id for call in calls]
    assert not open_calls
    assert request.messages[-1].role is not Role.ASSISTANT


def check_requests(requests: Iterable[ModelRequest]) -> None:
    for request in requests:
        check_request(request)


async def check_ends(running: RunningApp) -> None:
    """E1, T5, E4: call it when all is done. Every run has one terminal event, the last that is heard of it."""
    events = running.watcher.events
    for run in await running.ledger():
        assert run.state is RunState.FINISHED
        places = [i for i, event in enumerate(events) if event.type == "run_complete" and _run_of(event) == run.run_id]
        assert len(places) == 1, f"{run.run_id} has {len(places)} terminal events"
        (place,) = places
        complete: RunComplete = events[place].payload
        assert (complete.outcome, complete.error) == (run.outcome, run.error or "")
        assert complete.folded_into == run.folded_into
        assert complete.cancelled == (run.outcome is Outcome.CANCELED)
        assert bool(complete.error) == (run.outcome in (Outcome.ERROR, Outcome.INTERRUPTED))
        later = [event.type for event in events[place + 1 :] if _run_of(event) == run.run_id]
        assert later == [], f"{later} of {run.run_id} after its terminal event"
        if run.outcome is Outcome.CANCELED:
            errors = [e for e in running.watcher.of("agent_event") if e.type is AgentEventType.ERROR]
            assert not [error for error in errors if error.run_id == run.run_id]
    messages = await running.messages()
    check_transcript(messages)
    assert replayed(events, running.session_id) == list(messages)


def check_transcript(messages: Sequence[Message]) -> None:
    """T2, T3: nothing is left open."""
    calls: list[str] = []
    results: list[str] = []
    for message in messages:
        assert message.finished_at is not None
        calls += [part.id for part in message.parts if isinstance(part, ToolCallPart) and part.finished]
        assert all(part.finished for part in message.parts if isinstance(part, ToolCallPart))
        results += [part.tool_call_id for part in message.parts if isinstance(part, ToolResultPart)]
    assert results == calls


def replayed(events: Iterable[Event], session_id: str) -> list[Message]:
    """The transcript as a client builds it that heard everything. Raises where a delta leaves a gap."""
    known: dict[str, Message] = {}
    for event in events:
        match event.payload:
            case Message() as message if message.session_id == session_id and event.change is Change.DELETED:
                del known[message.id]
            case Message() as message if message.session_id == session_id:
                known[message.id] = message
            case MessageDelta() as delta if delta.session_id == session_id:
                known[delta.message_id] = extend(known[delta.message_id], [delta])
    return sorted(known.values(), key=lambda message: message.seq)


def finish_of(message: Message) -> FinishPart:
    (finish,) = (part for part in message.parts if isinstance(part, FinishPart))
    return finish


def _run_of(event: Event) -> str | None:
    return getattr(event.payload, "run_id", None)


def _postgres() -> ModuleType:
    import postgres  # here: most tests need no server

    return postgres


@contextmanager
def locked_store(running: RunningApp) -> Iterator[None]:
    """Another process holds the write lock: every commit fails, at once, until this ends. Reads go on."""
    if running.app.settings.store is not None:
        with _postgres().locked_database(running.app.settings.store):
            yield
        return
    intruder = sqlite3.connect(running.app.settings.data_dir / STORE_NAME, isolation_level=None)
    try:
        with patch("longboat.store.sqlite.store.BUSY_TIMEOUT_S", 0):
            intruder.execute("BEGIN IMMEDIATE")
            yield
    finally:
        intruder.close()


@contextmanager
def full_disk(running: RunningApp) -> Iterator[None]:
    """The store cannot grow by one page."""
    if running.app.settings.store is not None:
        with _postgres().full_database(running.app.settings.store):
            yield
        return
    writer: sqlite3.Connection = running.app._store._connection  # type: ignore[attr-defined]
    ((pages,),) = writer.execute("PRAGMA page_count").fetchall()
    writer.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    try:
        yield
    finally:
        writer.execute("PRAGMA max_page_count = 1073741823").fetchall()
