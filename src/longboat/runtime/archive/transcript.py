"""Reads the finished part of a session, and creates a new session that begins with such a transcript.

Used by fork, export and import. Must not know where a transcript came from.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from longboat.runtime.clock import now
from longboat.store.changes import insert_session, put_message, put_todos, set_summary
from longboat.store.protocol import Entry, Unit, Write
from longboat.store.records import Transcript
from longboat.wire.events import Change
from longboat.wire.ids import new_id
from longboat.wire.models import Message, Session
from longboat.wire.workspace_state import Todos

TITLE_LENGTH = 500


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


def copy_message(message: Message, session_id: str, run_of: Callable[[str], str], *, seq: int) -> Message:
    """The same message of another session. Its run is another one too: of the first, nothing more is ever told."""
    return msgspec.structs.replace(message, id=new_id(), session_id=session_id, run_id=run_of(message.run_id), seq=seq)


def unit_of_new_sessions(family: Sequence[Transcript], more: Sequence[Write] = ()) -> Unit:
    """New sessions with all that they begin with, in one transaction, and told as if it had been said just now."""
    writes = [write for transcript in family for write in _writes(transcript)]
    entries = [entry for transcript in family for entry in _entries(transcript)]
    return Unit(workspace_id=family[0].session.workspace_id, writes=[*writes, *more], entries=entries)


def _writes(transcript: Transcript) -> Iterator[Write]:
    session = transcript.session
    yield insert_session(session)
    yield set_summary(session.id, transcript.summary_seq)
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
        yield Entry.of(change, event, session_id=session.id, parent=session.parent_id)
