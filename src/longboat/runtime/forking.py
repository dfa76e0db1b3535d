"""Fork: a new session that starts with a copy of another one, up to its end or to one of its messages.

Messages, the sessions of sub-agents and the record of read files are copied. Granted permissions are not, and the fork
cannot undo file changes of the original.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from longboat.core.history import calls_of
from longboat.errors import NotFound
from longboat.runtime.transcript import (
    Transcript,
    copied,
    inscribe,
    mark_in,
    new_session,
    read_family,
    read_finished,
)
from longboat.store.protocol import Reader, Store, Write
from longboat.wire.ids import new_id
from longboat.wire.models import Message, Session


async def fork(store: Store, workspace_id: str, session_id: str, message_id: str | None) -> Session:
    """A turn that is under way is left out: only what is finished can be gone on from."""

    def read(reader: Reader) -> tuple[Transcript, ...]:
        origin = read_finished(reader, workspace_id, session_id)
        return read_family(reader, workspace_id, replace(origin, messages=_up_to(origin, message_id)))

    family = await store.read(read)
    forked = _forked(workspace_id, family)
    reads = [
        Write("reads_copy", {"session_id": copy.session.id, "origin": origin.session.id})
        for origin, copy in zip(family, forked, strict=True)
    ]
    await store.submit(inscribe(forked, reads))
    return forked[0].session


def _forked(workspace_id: str, family: Sequence[Transcript]) -> list[Transcript]:
    runs: defaultdict[str, str] = defaultdict(new_id)
    sessions: dict[str | None, str] = {}
    forked = []
    for origin in family:
        known = origin.session
        if known.parent_id in sessions:
            session = new_session(
                workspace_id, known.title, parent_id=sessions[known.parent_id], call_id=known.parent_call_id
            )
        else:
            session = new_session(workspace_id, f"Fork of {known.title or 'an untitled session'}")
        sessions[known.id] = session.id
        messages = tuple(copied(message, session.id, runs.__getitem__, seq=message.seq) for message in origin.messages)
        mark = mark_in(messages, origin.summary_seq)
        forked.append(replace(origin, session=session, messages=messages, summary_seq=mark, runs=()))
    return forked


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
