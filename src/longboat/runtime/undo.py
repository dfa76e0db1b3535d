"""Undo and redo (A4): a turn's own file changes are put back, and its messages leave the transcript or return.

Owns which files and messages that are. A file that somebody changed since is a conflict: then nothing is touched, and
the refusal says which. Must not be called while the session is busy.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from longboat.errors import NothingToUndo, UndoConflict
from longboat.runtime.files import FileBook
from longboat.runtime.netting import drawn
from longboat.store.protocol import Entry, Reader, Row, Store, Unit, Write
from longboat.store.rows import FileChangeRecord, change_from_row, message_from_row, read_messages
from longboat.tools.restore import Foreign, Restore, content_of, put_back, tidy
from longboat.wire.events import Change, encode_body
from longboat.wire.models import Message, Role
from longboat.wire.workshop import FileFate, Undone, UndoneFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Turnabout:
    """A turn that can be undone or redone: its messages, and each file's content there and back."""

    messages: tuple[Message, ...]
    mark: int
    files: tuple[Restore, ...]
    broken: tuple[Path, ...]
    """Files that somebody else changed in the midst of the turn: what was theirs cannot be told from ours."""

    @property
    def run_id(self) -> str:
        return next(message.run_id for message in self.messages if message.role is not Role.USER)


class UndoBook:
    def __init__(self, store: Store, workspace_id: str, files: FileBook) -> None:
        self._store = store
        self._workspace_id = workspace_id
        self._files = files

    async def undo(self, session_id: str) -> tuple[Undone, int]:
        """Take the newest turn back. Returns what was done and where the model's view now begins."""
        await self._settle(session_id)
        turn = await self._store.read(lambda reader: _newest(reader, session_id))
        if turn is None:
            raise NothingToUndo("There is no turn to undo in this session.")
        await self._put(turn)
        params = {"session_id": session_id, "mark": turn.mark, "from_seq": turn.mark}
        write = Write("messages_undo", params, rows=len(turn.messages))
        return await self._record(session_id, turn, write, Change.DELETED)

    async def redo(self, session_id: str) -> tuple[Undone, int]:
        """Bring back what was undone last. Returns the same."""
        turn = await self._store.read(lambda reader: _undone(reader, session_id))
        if turn is None:
            raise NothingToUndo("There is no turn to redo in this session.")
        await self._put(turn)
        write = Write("messages_redo", {"session_id": session_id, "mark": turn.mark}, rows=len(turn.messages))
        return await self._record(session_id, turn, write, Change.CREATED)

    async def _settle(self, session_id: str) -> None:
        """A crash can come between the record of a change and the change: find out whether it was made."""
        rows = await self._store.read(lambda reader: reader.fetch("changes_unsettled", session_id=session_id))
        if rows:
            writes = await asyncio.to_thread(_settled, [change_from_row(row) for row in rows])
            await self._store.submit(Unit(workspace_id=self._workspace_id, writes=writes))

    async def _put(self, turn: Turnabout) -> None:
        """All or nothing."""
        if turn.broken:
            raise self._conflict("Changed by somebody else in the midst of the turn", turn.broken)
        try:
            await asyncio.to_thread(put_back, turn.files)
            await asyncio.to_thread(tidy, turn.files, self._files.directory)
        except Foreign as error:
            raise self._conflict("Changed since by somebody else", error.paths) from None
        except OSError as error:
            why = error.strerror or str(error)
            raise UndoConflict(f"The disk does not take it, so nothing was touched: {why}.") from None

    def _conflict(self, what: str, paths: Sequence[Path]) -> UndoConflict:
        return UndoConflict(f"{what}, so nothing was touched: {', '.join(map(self._files.shown, paths))}.")

    async def _record(self, session_id: str, turn: Turnabout, write: Write, change: Change) -> tuple[Undone, int]:
        parent = (await self._session(session_id))["parent_id"]
        bodies = [encode_body(change, message, parent=parent) for message in turn.messages]
        bodies += await asyncio.to_thread(self._told, session_id, turn, parent)
        entry = Entry(bodies=tuple(bodies), session_id=session_id, parent_session_id=parent)
        writes = [write, Write("session_view", {"session_id": session_id}, rows=1)]
        await self._store.submit(Unit(workspace_id=self._workspace_id, writes=writes, entries=[entry]))
        fates = tuple(UndoneFile(path=self._files.shown(file.path), fate=_fate(file)) for file in turn.files)
        undone = Undone(run_id=turn.run_id, files=tuple(each.path for each in fates), fates=fates)
        return undone, (await self._session(session_id))["summary_seq"]

    async def _session(self, session_id: str) -> Row:
        where = {"workspace_id": self._workspace_id, "session_id": session_id}
        return (await self._store.read(lambda reader: reader.fetch("session_whole", **where)))[0]

    async def undone(self, session_id: str) -> int:
        """How many turns can be redone."""
        rows = await self._store.read(lambda reader: reader.fetch("turns_undone", session_id=session_id))
        return int(rows[0]["turns"])

    def _told(self, session_id: str, turn: Turnabout, parent: str | None) -> list[bytes]:
        events = (self._files.event(session_id, turn.run_id, file.path, file.now, file.then) for file in turn.files)
        return [encode_body(*event, parent=parent) for event in events]


def _fate(file: Restore) -> FileFate:
    if file.then is None:
        return FileFate.REMOVED
    return FileFate.RECREATED if file.now is None else FileFate.RESTORED


def _settled(changes: Sequence[FileChangeRecord]) -> list[Write]:
    """The next change of the file tells what became of one, or else the file itself. One that was not made is
    forgotten; in doubt it was made, and undo will refuse."""
    writes = []
    for place, change in enumerate(changes):
        if change.pending is None:
            continue
        later = next((each for each in changes[place + 1 :] if each.path == change.path), None)
        made = _is_made(change) if later is None else later.before != change.before
        writes.append(Write("change_made" if made else "change_forget", {"pending": change.pending}, rows=1))
    return writes


def _is_made(change: FileChangeRecord) -> bool:
    try:
        found = content_of(Path(change.path), limit=len(change.before or b""))
    except Foreign:
        return True
    return found != change.before


def _newest(reader: Reader, session_id: str) -> Turnabout | None:
    messages = read_messages(reader, session_id, after=0)
    last = next((message for message in reversed(messages) if message.role is not Role.USER), None)
    if last is None:
        return None
    first = next(message.seq for message in messages if message.run_id == last.run_id)
    turn = tuple(message for message in messages if message.seq >= first)
    return _turnabout(reader, session_id, turn, mark=first, back=True)


def _undone(reader: Reader, session_id: str) -> Turnabout | None:
    rows = reader.fetch("messages_undone", session_id=session_id)
    if not rows:
        return None
    mark = rows[0]["undone"]
    turn = tuple(message_from_row(row) for row in rows if row["undone"] == mark)
    return _turnabout(reader, session_id, turn, mark=mark, back=False)


def _turnabout(reader: Reader, session_id: str, turn: tuple[Message, ...], *, mark: int, back: bool) -> Turnabout:
    """The net change of each file in the turn; one whose changes do not follow on each other is broken."""
    changes = [
        change_from_row(row)
        for run_id in dict.fromkeys(message.run_id for message in turn)
        for row in reader.fetch("changes_of_run", session_id=session_id, run_id=run_id)
    ]
    stretches = drawn((change.path, change.before, change.after) for change in changes)
    files = [
        Restore(path=Path(path), now=each.after if back else each.before, then=each.before if back else each.after)
        for path, (each, *more) in stretches.items()
        if not more and each.before != each.after
    ]
    broken = tuple(Path(path) for path, found in stretches.items() if len(found) > 1)
    return Turnabout(messages=turn, mark=mark, files=tuple(files), broken=broken)
