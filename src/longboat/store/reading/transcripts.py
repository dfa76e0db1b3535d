"""Messages, turns and whole transcripts.

Owns which rows make them up. Must not know when they are asked for.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from longboat.core.history import calls_of, summary_mark
from longboat.core.stream import extend
from longboat.errors import NotFound, SessionDamaged, SessionNotFound
from longboat.store.protocol import Row
from longboat.store.queries import Reader
from longboat.store.records import ExportRecord, SessionHistory, Transcript, TurnRecord
from longboat.store.rows import (
    change_from_row,
    decode_readable,
    deltas_from_row,
    listed_session,
    message_from_row,
    revert_from_row,
    run_from_row,
    session_from_row,
    todo_items,
)
from longboat.wire.models import Message, Role, RunState

ALL = 2**31
"""More rows than anything has."""

# Messages


async def open_messages(reader: Reader, workspace_id: str) -> list[Message]:
    """The messages that are still being written, with everything streamed so far; without damaged ones."""
    rows = await reader.fetch("messages_open", workspace_id=workspace_id)
    return await _readable(reader, rows)


async def read_messages(reader: Reader, session_id: str, *, after: int, limit: int = ALL) -> list[Message]:
    """A page of the transcript; an open message comes as far as it has been streamed."""
    rows = await reader.fetch("messages_page", session_id=session_id, after=after, limit=limit)
    return [await _message(reader, row) for row in rows]


async def read_legible_messages(reader: Reader, session_id: str, left_out: list[str]) -> list[Message]:
    """The whole transcript without damaged messages, which are reported to `left_out`."""
    rows = await reader.fetch("messages_page", session_id=session_id, after=0, limit=ALL)
    return await _readable(reader, rows, left_out)


async def read_messages_before(reader: Reader, session_id: str, *, before: int, limit: int) -> list[Message]:
    """The same from its end, or from any place backwards; oldest first."""
    rows = await reader.fetch("messages_before", session_id=session_id, before=before, limit=limit)
    return [await _message(reader, row) for row in reversed(rows)]


async def _readable(reader: Reader, rows: Sequence[Row], left_out: list[str] | None = None) -> list[Message]:
    """Without damaged ones."""
    found: list[Message] = []
    for row in rows:
        try:
            found.append(await _message(reader, row))
        except SessionDamaged as error:
            if left_out is not None:
                left_out.append(error.what)
    return found


async def _message(reader: Reader, row: Row) -> Message:
    if row["finished_at"]:
        return message_from_row(row)
    batches = await reader.fetch("message_deltas", message_id=row["message_id"], whole_at=row["whole_at"])
    return extend(message_from_row(row), [delta for batch in batches for delta in deltas_from_row(batch)])


async def read_history(reader: Reader, session_id: str, *, after: int) -> SessionHistory:
    told = await reader.fetch("surroundings_of", session_id=session_id)
    rows = await reader.fetch("messages_page", session_id=session_id, after=after, limit=ALL)
    return SessionHistory(
        messages=[await _message(reader, row) for row in rows],
        surroundings={row["run_id"]: row["text"] for row in told},
        reverts=[revert_from_row(row) for row in await reader.fetch("reverts_of", session_id=session_id)],
        has_unsettled_changes=bool(await reader.fetch("changes_unsettled", session_id=session_id)),
        size=sum(len(row["parts"]) for row in rows),
    )


# Turns


async def newest_turn(reader: Reader, session_id: str) -> TurnRecord | None:
    messages = await read_messages(reader, session_id, after=0)
    last = next((message for message in reversed(messages) if message.role is not Role.USER), None)
    if last is None:
        return None
    first = next(message.seq for message in messages if message.run_id == last.run_id)
    turn = tuple(message for message in messages if message.seq >= first)
    return await _turn_of(reader, session_id, turn, first)


async def undone_turn(reader: Reader, session_id: str) -> TurnRecord | None:
    rows = await reader.fetch("messages_undone", session_id=session_id)
    if not rows:
        return None
    first = rows[0]["undone"]
    turn = tuple(message_from_row(row) for row in rows if row["undone"] == first)
    return await _turn_of(reader, session_id, turn, first)


async def _turn_of(reader: Reader, session_id: str, turn: tuple[Message, ...], first_seq: int) -> TurnRecord:
    runs = dict.fromkeys(message.run_id for message in turn)
    own = [row for run_id in runs for row in await reader.fetch("changes_of_run", session_id=session_id, run_id=run_id)]
    since = min((row["change_id"] for row in own), default=None)
    people = [] if since is None else await reader.fetch("changes_by_people", session_id=session_id, after=since)
    return TurnRecord(
        messages=turn,
        first_seq=first_seq,
        changes=tuple(change_from_row(row) for row in own),
        reverts=tuple(change_from_row(row) for row in people),
    )


# Transcripts


async def read_transcripts(
    reader: Reader, workspace_id: str, session_id: str, message_id: str | None
) -> tuple[Transcript, ...]:
    origin = await read_finished(reader, workspace_id, session_id)
    return await read_family(reader, workspace_id, replace(origin, messages=_up_to(origin, message_id)))


async def read_export(reader: Reader, workspace_id: str, session_id: str) -> ExportRecord:
    left_out: list[str] = []
    read = partial(read_legible, left_out=left_out)
    head = await read(reader, workspace_id, session_id)
    family = await read_family(reader, workspace_id, head, read=read)
    rows = await reader.fetch("changes_standing", session_id=session_id, run_id=None, path=None)
    changes = tuple(decode_readable(change_from_row, rows, left_out))
    return ExportRecord(transcripts=family, changes=changes, left_out=tuple(left_out))


async def read_finished(reader: Reader, workspace_id: str, session_id: str) -> Transcript:
    """A session without the turn that is under way, if one is."""
    left_out: list[str] = []
    transcript = await read_legible(reader, workspace_id, session_id, left_out)
    if left_out:
        raise SessionDamaged(session_id, left_out[0])
    return transcript


async def read_legible(reader: Reader, workspace_id: str, session_id: str, left_out: list[str]) -> Transcript:
    """The same without what is damaged; that goes to `left_out`."""
    rows = await reader.fetch("session_whole", session_id=session_id, workspace_id=workspace_id)
    if not rows:
        raise SessionNotFound(session_id)
    found = decode_readable(run_from_row, await reader.fetch("runs_of_session", session_id=session_id), left_out)
    unfinished = {run.run_id for run in found if run.state is not RunState.FINISHED}
    messages = tuple(
        message
        for message in await read_legible_messages(reader, session_id, left_out)
        if message.run_id not in unfinished
    )
    todos = decode_readable(todo_items, await reader.fetch("todos_of", session_id=session_id), left_out)
    decode_readable(session_from_row, rows, left_out)
    return Transcript(
        session=listed_session(rows[0]),
        messages=messages,
        summary_seq=summary_mark(messages, rows[0]["summary_seq"]),
        runs=tuple(run for run in found if run.state is RunState.FINISHED),
        todos=todos[0] if todos else (),
    )


ReadSession = Callable[[Reader, str, str], Awaitable[Transcript]]


async def read_family(
    reader: Reader, workspace_id: str, head: Transcript, *, read: ReadSession = read_finished
) -> tuple[Transcript, ...]:
    """The transcript and those of the sub-agents that its calls sent, and so on; each after the one that sent it."""
    family = [head]
    for sender in family:  # it grows while we go
        family += await _sent_by(reader, workspace_id, sender, read)
    return tuple(family)


async def _sent_by(reader: Reader, workspace_id: str, sender: Transcript, read: ReadSession) -> list[Transcript]:
    """Calls of turns that are undone or under way are not in the transcript, so their sub-agents are not either."""
    runs = {message.run_id for message in sender.messages}
    calls = {call.id for message in sender.messages for call in calls_of(message)}
    found: list[Transcript] = []
    for row in await reader.fetch("sessions_of_parent", parent_id=sender.session.id, workspace_id=workspace_id):
        child = await read(reader, workspace_id, row["session_id"])
        senders = {run.parent_run_id for run in child.runs if run.parent_run_id is not None}
        if child.session.parent_call_id in calls and senders <= runs:
            found.append(child)
    return found


def _up_to(origin: Transcript, message_id: str | None) -> tuple[Message, ...]:
    if message_id is None:
        return origin.messages
    for place, message in enumerate(origin.messages):
        if message.id == message_id:
            # The results of its calls belong to a message: no model takes a call without them.
            return origin.messages[: place + (2 if calls_of(message) else 1)]
    raise NotFound(
        f"This session has no finished message {message_id!r}. GET …/messages lists them.", code="message_not_found"
    )
