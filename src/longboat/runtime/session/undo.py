"""Undo and redo (A4): reverts a turn's own file changes, and removes its messages from the transcript or restores them.

Owns which files and messages these are. A file that someone else has changed since is a conflict: then nothing changes,
and the error names the file. What people undid of the session's changes (`review.py`) stays undone, unless they redid
it. Must not be called while the session is busy.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from longboat.errors import NothingToUndo, SessionNotFound, UndoConflict
from longboat.runtime.archive.net_changes import stretches_by_path
from longboat.runtime.session.file_history import FileHistory
from longboat.store.changes import change_made, find_summary, forget_change, leave_inbox, redo_messages, undo_messages
from longboat.store.protocol import Entry, Store, Unit, Write
from longboat.store.records import FileChangeRecord, SessionRecord, TurnRecord
from longboat.tools.files.restore import Foreign, Restore, content_of, put_back, tidy
from longboat.tools.files.text import merge
from longboat.wire.events import Change, encode_body
from longboat.wire.models import Message, Role
from longboat.wire.workspace_state import FileFate, Undone, UndoneFile


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReversal:
    """A turn that can be undone or redone: its messages, and each file's content before and after."""

    messages: tuple[Message, ...]
    files: tuple[Restore, ...]
    broken: tuple[Path, ...]
    """Files that someone else changed during the turn, so that the changes cannot be separated."""

    @property
    def run_id(self) -> str:
        return next(message.run_id for message in self.messages if message.role is not Role.USER)


class UndoHistory:
    def __init__(self, store: Store, workspace_id: str, files: FileHistory) -> None:
        self._store = store
        self._workspace_id = workspace_id
        self._files = files

    async def undo(self, session_id: str) -> tuple[Undone, int]:
        """Undo the newest turn. Returns what was done and where the model's view now begins."""
        await self.settle(session_id)
        found = await self._store.reads.newest_turn(session_id)
        if found is None:
            raise NothingToUndo("There is no turn to undo in this session.")
        turn = await asyncio.to_thread(_turnabout, found, back=True)
        await self._put(turn)
        undone = undo_messages(session_id, found.first_seq, count=len(turn.messages))
        news = leave_inbox(session_id, [message.run_id for message in turn.messages])
        return await self._record(session_id, turn, [undone, news], Change.DELETED)

    async def redo(self, session_id: str) -> tuple[Undone, int]:
        """Redo what was undone last. Returns the same."""
        await self.settle(session_id)
        found = await self._store.reads.undone_turn(session_id)
        if found is None:
            raise NothingToUndo("There is no turn to redo in this session.")
        turn = await asyncio.to_thread(_turnabout, found, back=False)
        await self._put(turn)
        write = redo_messages(session_id, found.first_seq, count=len(turn.messages))
        return await self._record(session_id, turn, [write], Change.CREATED)

    async def settle(self, session_id: str) -> None:
        """Find out whether recorded changes were made: a crash can happen between the record and the change."""
        changes = await self._store.reads.unsettled_changes(session_id)
        if changes:
            writes = await asyncio.to_thread(_settle_changes, changes)
            await self._store.submit(Unit(workspace_id=self._workspace_id, writes=writes))

    async def _put(self, turn: TurnReversal) -> None:
        """Write all files or none."""
        if turn.broken:
            raise self._conflict("Someone else changed files during the turn", turn.broken)
        try:
            await asyncio.to_thread(put_back, turn.files, self._files.may_change)
            await asyncio.to_thread(tidy, turn.files, self._files.directory)
        except Foreign as error:
            raise self._conflict("Someone else has changed files since", error.paths) from None
        except OSError as error:
            why = error.strerror or str(error)
            raise UndoConflict(f"The files cannot be written, so nothing was changed: {why}.") from None

    def _conflict(self, what: str, paths: Sequence[Path]) -> UndoConflict:
        return UndoConflict(f"{what}, so nothing was changed: {', '.join(map(self._files.display_path, paths))}.")

    async def _record(
        self, session_id: str, turn: TurnReversal, writes: list[Write], change: Change
    ) -> tuple[Undone, int]:
        parent = (await self._session(session_id)).session.parent_id
        messages = Entry.of(change, *turn.messages, session_id=session_id, parent=parent)
        files = await asyncio.to_thread(self._file_events, session_id, turn, parent)
        entry = replace(messages, bodies=(*messages.bodies, *files))
        unit = Unit(workspace_id=self._workspace_id, writes=[*writes, find_summary(session_id)], entries=[entry])
        await self._store.submit(unit)
        fates = tuple(UndoneFile(path=self._files.display_path(file.path), fate=_fate_of(file)) for file in turn.files)
        undone = Undone(run_id=turn.run_id, files=tuple(each.path for each in fates), fates=fates)
        return undone, (await self._session(session_id)).summary_seq

    async def _session(self, session_id: str) -> SessionRecord:
        found = await self._store.reads.listed_session(self._workspace_id, session_id)
        if found is None:
            raise SessionNotFound(session_id)
        return found

    async def undone(self, session_id: str) -> int:
        """How many turns can be redone."""
        return await self._store.reads.undone_turns(session_id)

    def _file_events(self, session_id: str, turn: TurnReversal, parent: str | None) -> list[bytes]:
        events = (self._files.event(session_id, turn.run_id, file.path, file.now, file.then) for file in turn.files)
        return [encode_body(*event, parent=parent) for event in events]


def _fate_of(file: Restore) -> FileFate:
    if file.then is None:
        return FileFate.REMOVED
    return FileFate.RECREATED if file.now is None else FileFate.RESTORED


def _settle_changes(changes: Sequence[FileChangeRecord]) -> list[Write]:
    """Find out from the next change of the file, or else from the file itself, whether a change was made. Forget a
    change that was not made; if in doubt, it counts as made, and undo will refuse."""
    writes = []
    for place, change in enumerate(changes):
        if change.pending is None:
            continue
        later = next((each for each in changes[place + 1 :] if each.path == change.path), None)
        made = _is_made(change) if later is None else later.before != change.before
        writes.append(change_made(change.pending) if made else forget_change(change.pending))
    return writes


def _is_made(change: FileChangeRecord) -> bool:
    try:
        found = content_of(Path(change.path), limit=len(change.before or b""))
    except Foreign:
        return True
    return found != change.before


def _turnabout(turn: TurnRecord, *, back: bool) -> TurnReversal:
    """The net change of each file in the turn. Broken if someone else changed the file in between."""
    stretches = stretches_by_path((change.path, change.before, change.after) for change in turn.changes)
    lasting = without_redone(turn.reverts)
    files = []
    for path, (each, *more) in stretches.items():
        reverts = [change for change in lasting if change.path == path]
        with_turn, without_turn = _replay(each.after, reverts), _replay(each.before, reverts)
        now, then = (with_turn, without_turn) if back else (without_turn, with_turn)
        if not more and now != then:
            files.append(Restore(path=Path(path), now=now, then=then))
    broken = tuple(Path(path) for path, found in stretches.items() if len(found) > 1)
    return TurnReversal(messages=turn.messages, files=tuple(files), broken=broken)


def without_redone(changes: Sequence[FileChangeRecord]) -> list[FileChangeRecord]:
    """Leave out what people undid and then redid: together that is nothing."""
    pairs = {change.redoes for change in changes} & {change.revert_id for change in changes} - {None}
    return [change for change in changes if pairs.isdisjoint((change.revert_id, change.redoes))]


def _replay(content: bytes | None, reverts: Sequence[FileChangeRecord]) -> bytes | None:
    """Apply what people undid since to the content. Where that overlaps with the current content, the people's version
    wins."""
    for revert in reverts:
        content = merge(revert.before, revert.after, content, prefer_ours=True)
    return content
