"""Forks, exports and imports sessions of a workspace."""

import asyncio
from pathlib import Path

from longboat.runtime.exports import encoded, export
from longboat.runtime.forking import fork
from longboat.runtime.imports import import_session
from longboat.runtime.markdown import render
from longboat.store.protocol import Store
from longboat.wire.archive import SessionExport
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
        return await asyncio.to_thread(encoded, await self.export(session_id))

    async def markdown(self, session_id: str) -> str:
        return await asyncio.to_thread(render, await self.export(session_id))

    async def take(self, raw: bytes | bytearray) -> Session:
        """Import a document."""
        return await import_session(self._store, self._workspace_id, self._directory, raw)
