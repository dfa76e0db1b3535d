"""The files that sessions have read and changed (A3), announced to clients and kept for undo (A4).

Owns the rule that an edit needs a prior read of the unchanged file. Must not touch the files themselves.
"""

import asyncio
import difflib
import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from longboat.store.changes import change_made, expect_change, forget_change, put_read
from longboat.store.protocol import Entry, Store, Unit, Write
from longboat.store.records import FileChangeRecord, RunRecord
from longboat.tools.context import ToolError
from longboat.wire.events import Change
from longboat.wire.ids import new_id
from longboat.wire.workspace_state import FileChange

MAX_COMPARED = 4_000_000
"""The largest product of old and new lines to compare, because difflib's time grows with it. Beyond that, lines are
only counted."""


class FileHistory:
    """The file records of one workspace."""

    def __init__(self, store: Store, workspace_id: str, directory: Path, *, may_change: Callable[[], bool]) -> None:
        """`may_change`: see `longboat.tools.context.ToolContext`."""
        self.may_change = may_change
        self._store = store
        self._workspace_id = workspace_id
        self.directory = directory

    async def note_read(self, session_id: str, path: Path, content: bytes) -> None:
        write = _read(session_id, path, content)
        await self._store.submit(Unit(workspace_id=self._workspace_id, writes=[write], durable=False))

    async def check_read(self, session_id: str, path: Path, content: bytes) -> None:
        known = await self._store.reads.last_read(session_id, str(path))
        if known is None:
            raise ToolError(f"{self.display_path(path)} has not been read in this session. View it first.")
        if known != _digest(content):
            raise ToolError(f"{self.display_path(path)} has changed since it was read. View it again.")

    async def expect_change(self, record: RunRecord, path: Path, before: bytes | None, after: bytes | None) -> str:
        """Record a change on disk before the file is touched, and return its key. A sub-agent's change belongs to the
        turn that started it, and undo reverts it with that turn."""
        session_id, run_id = _owner(record)
        key = new_id()
        change = FileChangeRecord(
            session_id=session_id, run_id=run_id, path=str(path), before=before, after=after, pending=key
        )
        await self._store.submit(Unit(workspace_id=self._workspace_id, writes=[expect_change(change)]))
        return key

    async def expect_revert(self, change: FileChangeRecord) -> None:
        """The same for a change by a person."""
        await self._store.submit(Unit(workspace_id=self._workspace_id, writes=[expect_change(change)]))

    async def forget_change(self, key: str) -> None:
        await self._store.submit(Unit(workspace_id=self._workspace_id, writes=[forget_change(key)]))

    async def note_change(
        self, record: RunRecord, key: str, path: Path, before: bytes | None, after: bytes | None
    ) -> None:
        """Record that the change was made and announce it, in one transaction, before the model learns of it."""
        session_id, run_id = _owner(record)
        change, event = await asyncio.to_thread(self.event, session_id, run_id, path, before, after)
        entry = Entry.of(change, event, session_id=session_id)
        read = _read(record.run.session_id, path, after or b"")
        writes = [change_made(key), read]
        await self._store.submit(Unit(workspace_id=self._workspace_id, writes=writes, entries=[entry]))

    async def note_revert(self, change: FileChangeRecord) -> FileChange:
        """Record that a person's change was made. The session has not read the file as it is now, so the next edit
        needs a fresh read."""
        assert change.pending is not None, "it was expected first"
        path = Path(change.path)
        kind, event = await asyncio.to_thread(
            self.event, change.session_id, change.run_id, path, change.before, change.after
        )
        event = msgspec.structs.replace(event, by=change.author)
        entry = Entry.of(kind, event, session_id=change.session_id)
        writes = [change_made(change.pending)]
        await self._store.submit(Unit(workspace_id=self._workspace_id, writes=writes, entries=[entry]))
        return event

    def event(
        self, session_id: str, run_id: str, path: Path, before: bytes | None, after: bytes | None
    ) -> tuple[Change, FileChange]:
        """Make the event of a change. Counts lines: call it off the event loop."""
        change = Change.CREATED if before is None else Change.DELETED if after is None else Change.UPDATED
        additions, deletions = _counts(before or b"", after or b"")
        event = FileChange(
            session_id=session_id, run_id=run_id, path=self.display_path(path), additions=additions, deletions=deletions
        )
        return change, event

    def display_path(self, path: Path) -> str:
        """Return the path for people and models: relative to the workspace if it is inside."""
        return str(path.relative_to(self.directory)) if path.is_relative_to(self.directory) else str(path)


def _read(session_id: str, path: Path, content: bytes) -> Write:
    return put_read(session_id, str(path), _digest(content))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _owner(record: RunRecord) -> tuple[str, str]:
    """The session and the run that a change belongs to."""
    run = record.run
    return run.parent_session_id or run.session_id, run.parent_run_id or run.run_id


def _counts(before: bytes, after: bytes) -> tuple[int, int]:
    """Count added and removed lines. In a large rewrite, lines that only moved count as neither."""
    old, new = before.splitlines(), after.splitlines()
    while old and new and old[-1] == new[-1]:
        old.pop(), new.pop()
    start = next((place for place, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None)
    start = min(len(old), len(new)) if start is None else start
    old, new = old[start:], new[start:]
    if len(old) * len(new) > MAX_COMPARED:
        same = (Counter(old) & Counter(new)).total()
    else:
        same = sum(block.size for block in difflib.SequenceMatcher(None, old, new).get_matching_blocks())
    return len(new) - same, len(old) - same
