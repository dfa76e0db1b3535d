"""What is finished of a session, read whole; and a new session that begins with such a transcript.

Shared by fork, export and import. Must not know where a transcript came from.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from longboat.core.history import calls_of
from longboat.errors import SessionDamaged, SessionNotFound
from longboat.runtime.clock import now
from longboat.store.protocol import Entry, Reader, Unit, Write
from longboat.store.rows import (
    insert_session,
    listed_session,
    put_message,
    put_todos,
    read_legible_messages,
    readable,
    run_from_row,
    session_from_row,
    todo_items,
)
from longboat.wire.events import Change, encode_body
from longboat.wire.ids import new_id
from longboat.wire.models import Message, Run, RunState, Session
from longboat.wire.workshop import TodoItem, Todos

TITLE_LENGTH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    session: Session
    messages: tuple[Message, ...]
    summary_seq: int
    """The seq of the message from which on the model sees it; 0: from the beginning."""
    runs: tuple[Run, ...] = ()
    todos: tuple[TodoItem, ...] = ()


def read_finished(reader: Reader, workspace_id: str, session_id: str) -> Transcript:
    """A session without the turn that is under way, if one is."""
    left_out: list[str] = []
    transcript = read_legible(reader, workspace_id, session_id, left_out)
    if left_out:
        raise SessionDamaged(session_id, left_out[0])
    return transcript


def read_legible(reader: Reader, workspace_id: str, session_id: str, left_out: list[str]) -> Transcript:
    """The same without what is damaged, which `left_out` is told."""
    rows = reader.fetch("session_whole", session_id=session_id, workspace_id=workspace_id)
    if not rows:
        raise SessionNotFound(session_id)
    found = readable(run_from_row, reader.fetch("runs_of_session", session_id=session_id), left_out)
    unfinished = {run.run_id for run in found if run.state is not RunState.FINISHED}
    messages = tuple(
        message for message in read_legible_messages(reader, session_id, left_out) if message.run_id not in unfinished
    )
    todos = readable(todo_items, reader.fetch("todos_of", session_id=session_id), left_out)
    readable(session_from_row, rows, left_out)
    return Transcript(
        session=listed_session(rows[0]),
        messages=messages,
        summary_seq=mark_in(messages, rows[0]["summary_seq"]),
        runs=tuple(run for run in found if run.state is RunState.FINISHED),
        todos=todos[0] if todos else (),
    )


ReadSession = Callable[[Reader, str, str], Transcript]


def read_family(
    reader: Reader, workspace_id: str, head: Transcript, *, read: ReadSession = read_finished
) -> tuple[Transcript, ...]:
    """The transcript and those of the sub-agents that its calls sent, and so on; each after the one that sent it."""
    family = [head]
    for sender in family:  # it grows while we go
        family += _sent_by(reader, workspace_id, sender, read)
    return tuple(family)


def _sent_by(reader: Reader, workspace_id: str, sender: Transcript, read: ReadSession) -> Iterator[Transcript]:
    """Calls of turns that are undone or under way are not in the transcript, so their sub-agents are not either."""
    runs = {message.run_id for message in sender.messages}
    calls = {call.id for message in sender.messages for call in calls_of(message)}
    for row in reader.fetch("sessions_of_parent", parent_id=sender.session.id, workspace_id=workspace_id):
        child = read(reader, workspace_id, row["session_id"])
        senders = {run.parent_run_id for run in child.runs if run.parent_run_id is not None}
        if child.session.parent_call_id in calls and senders <= runs:
            yield child


def mark_in(messages: Sequence[Message], mark: int) -> int:
    """Where the model's view of these messages begins, if that of more messages began at `mark`."""
    if mark == 0 or any(message.seq == mark for message in messages):
        return mark
    return max((message.seq for message in messages if message.summary and message.seq < mark), default=0)


def new_session(workspace_id: str, title: str, *, parent_id: str | None = None, call_id: str | None = None) -> Session:
    """Of a sub-agent: `parent_id` and `call_id` say who sent it."""
    at = now()
    return Session(
        id=new_id(),
        workspace_id=workspace_id,
        parent_id=parent_id,
        parent_call_id=call_id,
        title=title[:TITLE_LENGTH],
        created_at=at,
        updated_at=at,
        busy=False,
    )


def copied(message: Message, session_id: str, run_of: Callable[[str], str], *, seq: int) -> Message:
    """The same message of another session. Its run is another one too: of the first, nothing more is ever told."""
    return msgspec.structs.replace(message, id=new_id(), session_id=session_id, run_id=run_of(message.run_id), seq=seq)


def inscribe(family: Sequence[Transcript], more: Sequence[Write] = ()) -> Unit:
    """New sessions with all that they begin with, in one transaction, and told as if it had been said just now."""
    writes = [write for transcript in family for write in _writes(transcript)]
    entries = [entry for transcript in family for entry in _entries(transcript)]
    return Unit(workspace_id=family[0].session.workspace_id, writes=[*writes, *more], entries=entries)


def _writes(transcript: Transcript) -> Iterator[Write]:
    session = transcript.session
    yield insert_session(session)
    yield Write("session_summary", {"session_id": session.id, "seq": transcript.summary_seq}, rows=1)
    yield from map(put_message, transcript.messages)
    if transcript.todos:
        yield put_todos(session.id, transcript.todos)


def _entries(transcript: Transcript) -> Iterator[Entry]:
    session = transcript.session
    events: list[tuple[Change, msgspec.Struct]] = [(Change.CREATED, session)]
    events += ((Change.CREATED, message) for message in transcript.messages)
    if transcript.todos:
        events.append((Change.UPDATED, Todos(session_id=session.id, items=transcript.todos)))
    for change, event in events:
        body = encode_body(change, event, parent=session.parent_id)
        yield Entry(bodies=(body,), session_id=session.id, parent_session_id=session.parent_id)
