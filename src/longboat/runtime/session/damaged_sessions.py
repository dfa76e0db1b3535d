"""Sessions with an unreadable row (D12): their runs are ended, and they can be deleted.

Owns how that is recorded without decoding the damaged row. Must not touch any other session.
"""

import logging
from dataclasses import replace
from functools import partial

import msgspec

from longboat.errors import LongboatError, SessionNotFound, StoreDamaged
from longboat.runtime.clock import now
from longboat.runtime.store_retry import RESTORE_S, retry_store
from longboat.runtime.turn.asks import Asks
from longboat.store.changes import close_messages, delete_session, give_up_run, put_message, withdraw_asks
from longboat.store.protocol import Entry, Store, Unit, Write
from longboat.store.records import RunWithoutEnd
from longboat.wire.events import Change
from longboat.wire.models import FinishPart, FinishReason, Message, Outcome, Role, RunComplete, RunState

logger = logging.getLogger(__name__)


TITLE = "The session is damaged"


async def end_runs(store: Store, workspace_id: str, session_id: str, why: LongboatError, *, asks: Asks) -> None:
    """End the unfinished runs of a session that cannot be opened, each with one terminal event that says why."""
    logger.error("%s", why.message, extra={"session_id": session_id})
    runs = await store.reads.runs_without_end(workspace_id, session_id)
    error, at = f"{TITLE}: {why.message}", now()
    ends = [_end(run, error, at) for run in runs]
    writes = [give_up_run(run.seq, error, at) for run in runs]
    entries = [entry for end in ends for entry in end]
    await asks.load()
    more_entries = [entry for run in runs for entry in asks.withdraw(run.run_id).entries]
    more_writes: list[Write] = []
    for message in await _open_messages(store, workspace_id, session_id):
        closed = _closed(message, why.message, at)
        more_writes.append(put_message(closed))
        more_entries.append(Entry.of(Change.UPDATED, closed, session_id=session_id))
    more_writes += [close_messages(session_id, at), *withdraw_asks(session_id)]
    whole = Unit(workspace_id=workspace_id, writes=[*more_writes, *writes], entries=[*more_entries, *entries])
    bare = Unit(workspace_id=workspace_id, writes=writes, entries=entries)
    try:
        await retry_store(partial(store.submit, whole), for_s=RESTORE_S)
    except StoreDamaged:  # its messages or asks cannot be written: the runs end all the same
        await retry_store(partial(store.submit, bare), for_s=RESTORE_S)


async def delete(store: Store, workspace_id: str, session_id: str) -> None:
    """Delete a session whose own row is damaged, and which therefore has no actor."""
    found = await store.reads.listed_session(workspace_id, session_id)
    if found is None:
        raise SessionNotFound(session_id)
    entry = Entry.of(Change.DELETED, found.session, session_id=session_id)
    await store.submit(Unit(workspace_id=workspace_id, writes=[delete_session(session_id)], entries=[entry]))


def _end(ended: RunWithoutEnd, error: str, at: str) -> list[Entry]:
    """The event for the end of a run; none if it has ended before and only its state is damaged."""
    if ended.was_ended:
        return []
    session_id, parent = ended.session_id, ended.parent_session_id
    told = []
    if ended.run is not None:  # of a run that cannot be read, its end is all there is to tell
        finished = {"state": RunState.FINISHED, "outcome": Outcome.ERROR, "error": error, "finished_at": at}
        run = msgspec.structs.replace(ended.run, **finished)
        told.append(Entry.of(Change.UPDATED, run, session_id=session_id, parent=parent))
    complete = RunComplete(run_id=ended.run_id, session_id=session_id, error=error, outcome=Outcome.ERROR)
    end = Entry.of(Change.CREATED, complete, session_id=session_id, parent=parent)
    return [*told, replace(end, run_seq=ended.seq)]


async def _open_messages(store: Store, workspace_id: str, session_id: str) -> list[Message]:
    try:
        found = await store.reads.open_messages(workspace_id)
    except StoreDamaged:
        return []
    return [message for message in found if message.session_id == session_id]


def _closed(message: Message, detail: str, at: str) -> Message:
    finish = FinishPart(reason=FinishReason.ERROR, title=TITLE, detail=detail)
    parts = (*message.parts, finish) if message.role is Role.ASSISTANT else message.parts
    return msgspec.structs.replace(message, parts=parts, finished_at=at)
