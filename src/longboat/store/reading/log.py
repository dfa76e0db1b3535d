"""The log and the committed state, for those who watch."""

from collections.abc import Sequence

import msgspec

from longboat.errors import StoreDamaged
from longboat.store.queries import Reader
from longboat.store.reading.transcripts import open_messages
from longboat.store.reads import Ask
from longboat.store.records import LogPage
from longboat.store.rows import ask_from_row, client_from_row, decode_readable, is_intact, listed_session, run_from_row
from longboat.wire.asks import Permission, Question
from longboat.wire.ids import Cursor
from longboat.wire.models import Message, Run, RunState, Snapshot

PENDING: dict[type, str] = {Permission: "permissions_pending", Question: "questions_pending"}


async def read_pending(reader: Reader, workspace_id: str, shape: type[Ask]) -> list[Ask]:
    """What waits for an answer, oldest first; without what is damaged."""
    rows = await reader.fetch(PENDING[shape], workspace_id=workspace_id)
    return decode_readable(lambda row: ask_from_row(row, shape), rows)


async def read_log_page(
    reader: Reader, *, workspace_id: str, after: int, session_id: str | None, entries: int, size: int
) -> LogPage | None:
    ahead = await reader.fetch("events_ahead", workspace_id=workspace_id, number=after, limit=entries)
    if not ahead or ahead[0]["first"] > after + 1:
        return None
    up_to, taken = after, 0
    for row in ahead:
        if (
            session_id is None
            or row["session_id"] is None
            or session_id in (row["session_id"], row["parent_session_id"])
        ):
            if taken and taken + row["size"] > size:
                break
            taken += row["size"]
        up_to = row["last"]
    stretch = {"workspace_id": workspace_id, "number": after, "up_to": up_to, "session_id": session_id}
    rows = await reader.fetch("events_between", **stretch)
    if not all(is_intact(row, workspace_id) for row in rows):
        raise StoreDamaged("the log is damaged")
    return LogPage(up_to, b"".join(_cut(row["frames"], row["first"], after) for row in rows))


def _cut(frames: bytes, first: int, number: int) -> bytes:
    """The frames of an entry that come after `number`. JSON has no raw line ends: a blank line ends a frame."""
    if first > number:
        return frames
    return frames.split(b"\n\n", number - first + 1)[-1]


async def read_snapshot(
    reader: Reader, workspace_id: str, session_id: str | None, sessions: int
) -> tuple[int, Snapshot]:
    newest = await reader.fetch("event_newest", workspace_id=workspace_id)
    number, epoch = (newest[0]["last"], newest[0]["epoch"]) if newest else (0, 0)
    if session_id is None:
        rows = await reader.fetch("sessions_page", workspace_id=workspace_id, before=2**62, limit=sessions)
    else:
        rows = await reader.fetch("session_family", workspace_id=workspace_id, session_id=session_id)
    unfinished = await reader.fetch("runs_unfinished", workspace_id=workspace_id)
    # Without those that a cancel has taken out of the queue: only their ends are left to be told.
    runs = with_positions(decode_readable(run_from_row, [row for row in unfinished if not row["covered"]]))
    messages: list[Message] = await open_messages(reader, workspace_id)
    clients = tuple(client_from_row(row) for row in await reader.fetch("clients_of", workspace_id=workspace_id))
    permissions = await read_pending(reader, workspace_id, Permission)
    questions = await read_pending(reader, workspace_id, Question)
    if session_id is not None:
        family = {row["session_id"] for row in rows}
        runs = [run for run in runs if run.session_id in family]
        messages = [message for message in messages if message.session_id in family]
        permissions = [ask for ask in permissions if session_id in (ask.session_id, ask.parent_session_id)]
        questions = [ask for ask in questions if session_id in (ask.session_id, ask.parent_session_id)]
    snapshot = Snapshot(
        cursor=str(Cursor(workspace_id, epoch, number)),
        sessions=tuple(map(listed_session, rows)),
        runs=tuple(runs),
        messages=tuple(messages),
        permissions=tuple(permissions),
        questions=tuple(questions),
        clients=clients,
    )
    return number, snapshot


def with_positions(runs: Sequence[Run]) -> list[Run]:
    """Unfinished runs, given in order of seq, with their places in the queues of their sessions."""
    busy = {run.session_id for run in runs if run.state is RunState.ACTIVE}
    places: dict[str, int] = {}
    placed: list[Run] = []
    for run in runs:
        position: int | None = None
        if run.state is RunState.ACTIVE:
            position = 0
        elif run.state is not RunState.FOLDED:
            position = places.get(run.session_id, int(run.session_id in busy))
            places[run.session_id] = position + 1
        placed.append(msgspec.structs.replace(run, position=position))
    return placed
