"""Forks, exports and imports sessions of a workspace."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from longboat.core.history import summary_mark
from longboat.runtime.archive.exports import encode_export, export
from longboat.runtime.archive.imports import import_session
from longboat.runtime.archive.markdown import render
from longboat.runtime.archive.transcript import copy_message, new_session, unit_of_new_sessions
from longboat.store.changes import copy_reads
from longboat.store.protocol import Store
from longboat.store.records import Transcript
from longboat.wire.archive import SessionExport
from longboat.wire.ids import new_id
from longboat.wire.models import Session


class Archive:
    def __init__(self, store: Store, workspace_id: str, directory: Path) -> None:
        self._store = store
        self._workspace_id = workspace_id
        self._directory = directory

    async def fork(self, session_id: str, message_id: str | None = None) -> Session:
        return await fork(self._store, self._workspace_id, session_id, message_id)

    async def export(self, session_id: str) -> SessionExport:
        return await export(self._store, self._workspace_id, self._directory, session_id)

    async def document(self, session_id: str) -> bytes:
        """The export as JSON."""
        return await asyncio.to_thread(encode_export, await self.export(session_id))

    async def markdown(self, session_id: str) -> str:
        return await asyncio.to_thread(render, await self.export(session_id))

    async def take(self, raw: bytes | bytearray) -> Session:
        """Import a document."""
        return await import_session(self._store, self._workspace_id, self._directory, raw)


async def fork(store: Store, workspace_id: str, session_id: str, message_id: str | None) -> Session:
    """A turn in progress is left out: only what is finished can be continued."""

    family = await store.reads.transcripts(workspace_id, session_id, message_id)
    forked = _forked(workspace_id, family)
    reads = [copy_reads(copy.session.id, origin.session.id) for origin, copy in zip(family, forked, strict=True)]
    await store.submit(unit_of_new_sessions(forked, reads))
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
        messages = tuple(
            copy_message(message, session.id, runs.__getitem__, seq=message.seq) for message in origin.messages
        )
        mark = summary_mark(messages, origin.summary_seq)
        forked.append(replace(origin, session=session, messages=messages, summary_seq=mark, runs=()))
    return forked
