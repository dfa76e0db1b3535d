"""Sessions with an unreadable row (D12): their runs are ended, and they can be deleted.

Owns how that is recorded without decoding the damaged row. Must not touch any other session.
"""

import logging
from contextlib import suppress
from functools import partial

import msgspec

from longboat.errors import LongboatError, SessionDamaged, SessionNotFound, StoreDamaged
from longboat.runtime.asks import Asks
from longboat.runtime.clock import now
from longboat.runtime.insistence import RESTORE_S, insist
from longboat.store.protocol import Entry, Reader, Row, Store, Unit, Write
from longboat.store.rows import legible, listed_session, open_messages, put_message, run_from_row
from longboat.wire.events import Change, encode_body
from longboat.wire.models import FinishPart, FinishReason, Message, Outcome, Role, RunComplete, RunState

logger = logging.getLogger(__name__)


TITLE = "The session is damaged"


async def end_runs(store: Store, workspace_id: str, session_id: str, why: LongboatError, *, asks: Asks) -> None:
    """End what is unfinished in a session that cannot be taken up: each run with one terminal event that says why."""
    logger.error("%s", why.message, extra={"session_id": session_id})
    runs = await store.read(lambda reader: _unfinished(reader, workspace_id, session_id))
    error, at = f"{TITLE}: {why.message}", now()
    ends = [_end(row, error, at) for row in runs]
    writes = [Write("run_give_up", {"seq": row["seq"], "error": error, "finished_at": at}, rows=1) for row in runs]
    entries = [entry for end in ends for entry in end]
    await asks.load()
    more_entries = [entry for row in runs for entry in asks.withdraw(legible(row["run_id"])).entries]
    more_writes: list[Write] = []
    for message in await _open_messages(store, workspace_id, session_id):
        closed = _closed(message, why.message, at)
        more_writes.append(put_message(closed))
        more_entries.append(Entry(bodies=(encode_body(Change.UPDATED, closed),), session_id=session_id))
    more_writes += [
        Write("messages_close", {"session_id": session_id, "finished_at": at}),
        Write("permissions_withdraw", {"session_id": session_id}),
        Write("questions_withdraw", {"session_id": session_id}),
    ]
    whole = Unit(workspace_id=workspace_id, writes=[*more_writes, *writes], entries=[*more_entries, *entries])
    bare = Unit(workspace_id=workspace_id, writes=writes, entries=entries)
    try:
        await insist(partial(store.submit, whole), for_s=RESTORE_S)
    except StoreDamaged:  # its messages or asks cannot be written: the runs end all the same
        await insist(partial(store.submit, bare), for_s=RESTORE_S)


async def delete(store: Store, workspace_id: str, session_id: str) -> None:
    """Delete a session whose own row is damaged, and which therefore has no actor."""
    where = {"session_id": session_id, "workspace_id": workspace_id}
    rows = await store.read(lambda reader: reader.fetch("session_whole", **where))
    if not rows:
        raise SessionNotFound(session_id)
    entry = Entry(bodies=(encode_body(Change.DELETED, listed_session(rows[0])),), session_id=session_id)
    write = Write("session_delete", {"session_id": session_id}, rows=1)
    await store.submit(Unit(workspace_id=workspace_id, writes=[write], entries=[entry]))


def _unfinished(reader: Reader, workspace_id: str, session_id: str) -> list[Row]:
    rows = reader.fetch("runs_without_end", workspace_id=workspace_id)
    return [row for row in rows if legible(row["session_id"]) == session_id]


def _end(row: Row, error: str, at: str) -> list[Entry]:
    """What is told of the end of a run; nothing if it has had its end before, and only its state is damaged."""
    if row["outcome"] is not None or row["terminals"]:
        return []
    session_id, parent = legible(row["session_id"]), row["parent_session_id"]
    parent = parent if isinstance(parent, str) else None
    bodies = []
    with suppress(SessionDamaged):  # of a run that cannot be read, its end is all there is to tell
        finished = {"state": RunState.FINISHED, "outcome": Outcome.ERROR, "error": error, "finished_at": at}
        run = msgspec.structs.replace(run_from_row(row), **finished)
        bodies.append(encode_body(Change.UPDATED, run, parent=parent))
    complete = RunComplete(run_id=legible(row["run_id"]), session_id=session_id, error=error, outcome=Outcome.ERROR)
    terminal = encode_body(Change.CREATED, complete, parent=parent)
    told = [Entry(bodies=tuple(bodies), session_id=session_id, parent_session_id=parent)] if bodies else []
    end = Entry(bodies=(terminal,), session_id=session_id, parent_session_id=parent, run_seq=row["seq"])
    return [*told, end]


async def _open_messages(store: Store, workspace_id: str, session_id: str) -> list[Message]:
    try:
        found = await store.read(lambda reader: open_messages(reader, workspace_id))
    except StoreDamaged:
        return []
    return [message for message in found if message.session_id == session_id]


def _closed(message: Message, detail: str, at: str) -> Message:
    finish = FinishPart(reason=FinishReason.ERROR, title=TITLE, detail=detail)
    parts = (*message.parts, finish) if message.role is Role.ASSISTANT else message.parts
    return msgspec.structs.replace(message, parts=parts, finished_at=at)
