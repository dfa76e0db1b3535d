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
from longboat.store.protocol import Entry, Reader, Store, Unit, Write
from longboat.store.rows import message_from_row, read_messages
from longboat.tools.files import put_back
from longboat.wire.events import Change, encode_body
from longboat.wire.models import Message, Role, Undone

WHOLE = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Turnabout:
    """A turn that can be undone or redone: its messages, and each file's content there and back."""

    messages: tuple[Message, ...]
    mark: int
    files: tuple[tuple[Path, bytes | None, bytes | None], ...]
    """Path, content it has now if nobody touched it, content it will have."""

    @property
    def run_id(self) -> str:
        return next(message.run_id for message in self.messages if message.role is not Role.USER)


class UndoBook:
    def __init__(self, store: Store, workspace_id: str, files: FileBook) -> None:
        self._store = store
        self._workspace_id = workspace_id
        self._files = files

    async def undo(self, session_id: str, summary_seq: int) -> tuple[Undone, int]:
        """Take the newest turn back. Returns what was done and where the model's view now begins."""
        turn = await self._store.read(lambda reader: _newest(reader, session_id))
        if turn is None:
            raise NothingToUndo("There is no turn to undo in this session.")
        await self._put(turn.files)
        view = 0 if summary_seq >= turn.mark else summary_seq
        params = {"session_id": session_id, "mark": turn.mark, "from_seq": turn.mark}
        writes = [
            Write("messages_undo", params, rows=len(turn.messages)),
            Write("session_summary", {"session_id": session_id, "seq": view}, rows=1),
        ]
        return await self._record(session_id, turn, writes, Change.DELETED), view

    async def redo(self, session_id: str) -> Undone:
        """Bring back what was undone last."""
        turn = await self._store.read(lambda reader: _undone(reader, session_id))
        if turn is None:
            raise NothingToUndo("There is no turn to redo in this session.")
        await self._put(turn.files)
        write = Write("messages_redo", {"session_id": session_id, "mark": turn.mark}, rows=len(turn.messages))
        return await self._record(session_id, turn, [write], Change.CREATED)

    async def _put(self, files: Sequence[tuple[Path, bytes | None, bytes | None]]) -> None:
        """All or nothing: every file is looked at before the first is touched."""
        foreign = [self._files.shown(path) for path, now, then in files if await _content(path) not in (now, then)]
        if foreign:
            raise UndoConflict(f"Changed since by somebody else, so nothing was touched: {', '.join(foreign)}.")
        for path, _, then in files:
            await asyncio.to_thread(put_back, path, then)

    async def _record(self, session_id: str, turn: Turnabout, writes: Sequence[Write], change: Change) -> Undone:
        bodies = [encode_body(change, message) for message in turn.messages]
        for path, now, then in turn.files:
            bodies.append(encode_body(*self._files.event(session_id, turn.run_id, path, now, then)))
        entry = Entry(bodies=tuple(bodies), session_id=session_id)
        await self._store.submit(Unit(workspace_id=self._workspace_id, writes=writes, entries=[entry]))
        return Undone(run_id=turn.run_id, files=tuple(self._files.shown(path) for path, _, _ in turn.files))


def _newest(reader: Reader, session_id: str) -> Turnabout | None:
    messages = read_messages(reader, session_id, after=0, limit=WHOLE)
    last = next((message for message in reversed(messages) if message.role is not Role.USER), None)
    if last is None:
        return None
    first = next(message.seq for message in messages if message.run_id == last.run_id)
    turn = tuple(message for message in messages if message.seq >= first)
    return Turnabout(messages=turn, mark=first, files=_files(reader, session_id, turn, back=True))


def _undone(reader: Reader, session_id: str) -> Turnabout | None:
    rows = reader.fetch("messages_undone", session_id=session_id)
    if not rows:
        return None
    mark = rows[0]["undone"]
    turn = tuple(message_from_row(row) for row in rows if row["undone"] == mark)
    return Turnabout(messages=turn, mark=mark, files=_files(reader, session_id, turn, back=False))


def _files(
    reader: Reader, session_id: str, turn: Sequence[Message], *, back: bool
) -> tuple[tuple[Path, bytes | None, bytes | None], ...]:
    """The net change of each file in the turn: what it was before the first change, and after the last."""
    net: dict[str, tuple[bytes | None, bytes | None]] = {}
    for run_id in dict.fromkeys(message.run_id for message in turn):
        for row in reader.fetch("changes_of_run", session_id=session_id, run_id=run_id):
            before = net[row["path"]][0] if row["path"] in net else row["before"]
            net[row["path"]] = (before, row["after"])
    pairs = [(Path(path), *((after, before) if back else (before, after))) for path, (before, after) in net.items()]
    return tuple((path, now, then) for path, now, then in pairs if now != then)


async def _content(path: Path) -> bytes | None:
    try:
        return await asyncio.to_thread(path.read_bytes)
    except FileNotFoundError:
        return None
