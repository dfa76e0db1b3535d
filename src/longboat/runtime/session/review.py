"""The current changes of a session, file by file, and what a person undoes and redoes in them.

Owns the comparison of recorded changes with the files, and the notes that tell the model about undo and redo. Both are
changes like any other: recorded before they are made, and nothing leaves the transcript. Must not undo or redo anything
while the session is busy.
"""

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import msgspec

from longboat.core.prompts import REDONE, REVERTED
from longboat.errors import (
    BadInput,
    ChangeNotFound,
    Conflict,
    RedoConflict,
    RevertConflict,
    RevertNotFound,
    RunNotFound,
    SessionNotFound,
)
from longboat.runtime.session.file_history import FileHistory
from longboat.runtime.session.undo import UndoHistory, without_redone
from longboat.store.changes import tell_reverts
from longboat.store.protocol import Store, Unit
from longboat.store.records import FileChangeRecord, RevertRecord, SessionHistory
from longboat.tools.files.file_io import MAX_BYTES
from longboat.tools.files.hunks import Hunk, hunks_between, render_hunk, split_lines, undo_hunks
from longboat.tools.files.paths import printable
from longboat.tools.files.restore import Foreign, Restore, content_of, put_back, tidy
from longboat.tools.files.text import NotText, Text, decode, merge, truncate_lines
from longboat.wire.events import Change
from longboat.wire.ids import new_id, person
from longboat.wire.requests import Revert
from longboat.wire.review import ChangedFile, ChangesPage, Reverted, UndoneChange

MAX_FILES = 2_000
MAX_DIFF = 200_000
"""Characters of one file's diff."""
MAX_DIFF_TEXT = 4_000_000
"""Characters of all diffs in a response."""
MAX_NAMED = 20
"""How many files a note names."""
MAX_UNDONE = 20
"""How many undone changes to offer for redo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """A file without and with what is left of a session's changes; None means that it does not exist."""

    path: str
    changes: tuple[FileChangeRecord, ...]
    """The changes of the runs, and those that people redid, in order."""
    reverts: tuple[FileChangeRecord, ...]
    """The changes by people, without those that were redone."""
    without: bytes | None
    now: bytes | None
    others: bool
    is_ours: bool
    """Whether the file has this content, so that the change can be undone."""

    @property
    def digest(self) -> str:
        if not self.is_ours:
            return ""
        sums = [b"" if each is None else hashlib.sha256(each).digest() for each in (self.without, self.now)]
        return hashlib.sha256(b"\0".join(sums)).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """A text without and with the changes, by lines."""

    text: Text
    old: Sequence[str]
    new: Sequence[str]
    hunks: Sequence[Hunk]


class Review:
    def __init__(self, store: Store, workspace_id: str, files: FileHistory, undo: UndoHistory) -> None:
        self._store = store
        self._workspace_id = workspace_id
        self._files = files
        self._undo = undo

    # What is left of the changes

    async def changes(
        self, *, session_id: str | None, run_id: str | None, path: str | None = None, diffs: bool = True
    ) -> ChangesPage:
        if (session_id is None) == (run_id is None):
            raise BadInput("Pass either session_id or run_id.", code="bad_diff")
        at = None if path is None else str(self._files.directory / path)
        found = await self._store.reads.changes(self._workspace_id, session_id=session_id, run_id=run_id, path=at)
        if found is None:
            raise RunNotFound(run_id) if run_id is not None else SessionNotFound(session_id or "")
        clients = await self._store.reads.run_clients(found[0])
        page = await asyncio.to_thread(self._page, found[1], clients, diffs)
        if run_id is not None:
            return page
        return msgspec.structs.replace(page, undone=await asyncio.to_thread(self._undone, found[1]))

    def _page(self, changes: Sequence[FileChangeRecord], clients: Mapping[str, str], diffs: bool) -> ChangesPage:
        files = _file_states(changes)
        items: list[ChangedFile] = []
        room = MAX_DIFF_TEXT if diffs else 0
        for file in files[:MAX_FILES]:
            items.append(self._describe_file(file, clients, limit=min(room, MAX_DIFF) if diffs else None))
            room -= len(items[-1].diff)
        return ChangesPage(items=tuple(items), complete=len(files) <= MAX_FILES)

    def _describe_file(self, file: FileState, clients: Mapping[str, str], *, limit: int | None) -> ChangedFile:
        """`limit` is the maximum length of the diff in characters; None leaves out the diff."""
        compared = _compare(file.without, file.now)
        hunks = compared.hunks if compared is not None else ()
        name = printable(self._files.display_path(Path(file.path)))
        diff = "" if compared is None or limit is None else _diff(compared, file, name)
        runs = tuple(dict.fromkeys(change.run_id for change in file.changes))
        return ChangedFile(
            path=name,
            change=_kind(file),
            additions=sum(hunk.additions for hunk in hunks),
            deletions=sum(hunk.deletions for hunk in hunks),
            runs=runs,
            by=tuple(dict.fromkeys(person(clients[run_id]) for run_id in runs if run_id in clients)),
            undone_by=tuple(dict.fromkeys(person(change.author) for change in file.reverts if change.author)),
            others=file.others,
            hunks=len(hunks),
            diff=truncate_lines(diff, limit) if limit else "",
            complete=limit is None or len(diff) <= limit,
            digest=file.digest,
        )

    def _undone(self, changes: Sequence[FileChangeRecord]) -> tuple[UndoneChange, ...]:
        """Return what can be redone, newest first. Reads the files."""
        reverts = [change for change in without_redone(changes) if change.revert_id is not None]
        newest = reversed(reverts[-MAX_UNDONE:])
        return tuple(self._undone_change(revert) for revert in newest if _redo(revert) is not None)

    def _undone_change(self, revert: FileChangeRecord) -> UndoneChange:
        return UndoneChange(
            revert_id=revert.revert_id or "",
            path=self._shown_path(revert),
            what=revert.remark or "",
            by=person(revert.author or ""),
        )

    def _shown_path(self, change: FileChangeRecord | RevertRecord) -> str:
        return printable(self._files.display_path(Path(change.path)))

    # What a person undoes and redoes

    async def revert(self, session_id: str, wanted: Revert) -> Reverted:
        """Undo a file's change, or some of its hunks. Everything that others wrote into the file stays."""
        await self._undo.settle(session_id)
        at = str(self._files.directory / wanted.path)
        found = await self._store.reads.changes(self._workspace_id, session_id=session_id, run_id=None, path=at)
        file = next(iter(await asyncio.to_thread(_file_states, found[1] if found else ())), None)
        if file is None:
            raise ChangeNotFound(wanted.path)
        if not file.is_ours or file.digest != wanted.digest:
            raise _conflict(wanted.path)
        then, remark = await asyncio.to_thread(_undone, file, wanted.hunks)
        change = FileChangeRecord(
            session_id=session_id,
            run_id=file.changes[-1].run_id,
            path=file.path,
            before=file.now,
            after=then,
            pending=new_id(),
            author=wanted.client_id or "",
            remark=remark,
            revert_id=new_id(),
        )
        return await self._make(change, wanted.path)

    async def redo(self, session_id: str, revert_id: str, client_id: str | None) -> Reverted:
        """Redo what a person undid in a file. Everything written into the file since stays."""
        await self._undo.settle(session_id)
        found = await self._store.reads.changes(self._workspace_id, session_id=session_id, run_id=None)
        changes = found[1] if found else []
        revert = next((change for change in changes if change.revert_id == revert_id), None)
        if revert is None:
            raise RevertNotFound(revert_id)
        shown = self._shown_path(revert)
        if again := next((change for change in changes if change.redoes == revert_id), None):
            raise RedoConflict(f"{person(again.author or '') or 'Someone'} has already redone this in {shown}.")
        redo = await asyncio.to_thread(_redo, revert)
        if redo is None:
            raise _redo_conflict(shown)
        change = FileChangeRecord(
            session_id=session_id,
            run_id=revert.run_id,
            path=revert.path,
            before=redo.now,
            after=redo.then,
            pending=new_id(),
            author=client_id or "",
            remark=revert.remark,
            redoes=revert_id,
        )
        return await self._make(change, shown)

    async def _make(self, change: FileChangeRecord, shown: str) -> Reverted:
        """Make a change. Like a tool's change, it is recorded first, so that a crash in between does not hide it
        (A4)."""
        assert change.pending is not None
        restore = Restore(path=Path(change.path), now=change.before, then=change.after)
        await self._files.expect_revert(change)
        try:
            await asyncio.to_thread(put_back, [restore], self._files.may_change)
        except (Foreign, OSError) as error:
            await self._files.forget_change(change.pending)
            raise _refusal(change, shown, error) from None
        await asyncio.to_thread(tidy, [restore], self._files.directory)
        event = await self._files.note_revert(change)
        page = await self.changes(session_id=change.session_id, run_id=None, path=change.path)
        return Reverted(
            path=event.path,
            run_id=event.run_id,
            revert_id=change.revert_id or change.redoes or "",
            additions=event.additions,
            deletions=event.deletions,
            file=next(iter(page.items), None),
        )

    # What the model is told

    async def notes(self, session_id: str, run_id: str, history: SessionHistory) -> dict[str, str]:
        """Return the note that goes with the prompt of each run. Changes that no prompt has mentioned yet go with this
        run, which has not changed anything yet."""
        reverts = history.reverts
        if history.has_unsettled_changes:
            await self._undo.settle(session_id)
            reverts = await self._store.reads.reverts(session_id)
        if any(each.told_run is None for each in reverts):
            write = tell_reverts(session_id, run_id)
            await self._store.submit(Unit(workspace_id=self._workspace_id, writes=[write]))
        by_run: dict[str, list[RevertRecord]] = {}
        for each in reverts:
            by_run.setdefault(each.told_run or run_id, []).append(each)
        notes = {told_run: "\n".join(self._notes(found)) for told_run, found in by_run.items()}
        return {told_run: note for told_run, note in notes.items() if note}

    def _notes(self, reverts: Sequence[RevertRecord]) -> Iterator[str]:
        """Return the notes in order. Leaves out what people undid and redid before the model heard of it."""
        undone = {each.revert_id for each in reverts if not each.is_redo}
        redone = {each.revert_id for each in reverts if each.is_redo}
        told = [each for each in reverts if each.revert_id not in undone & redone]
        for is_redo, found in groupby(told, key=lambda each: each.is_redo):
            named = [f"{self._shown_path(each)} ({each.remark})" for each in found]
            more = [f"and {len(named) - MAX_NAMED} more"] if len(named) > MAX_NAMED else []
            yield (REDONE if is_redo else REVERTED).format(", ".join([*named[:MAX_NAMED], *more]))


def _conflict(shown: str) -> RevertConflict:
    return RevertConflict(f"{shown} has changed since, so nothing was undone. Review its changes again.")


def _redo_conflict(shown: str) -> RedoConflict:
    return RedoConflict(f"What was undone in {shown} no longer fits: the file has changed since. Nothing was redone.")


def _refusal(change: FileChangeRecord, shown: str, error: Foreign | OSError) -> Conflict:
    is_redo = change.redoes is not None
    if isinstance(error, OSError):
        message = f"{shown} cannot be written, so nothing was {'redone' if is_redo else 'undone'}: "
        return (RedoConflict if is_redo else RevertConflict)(f"{message}{error.strerror or error}.")
    return _redo_conflict(shown) if is_redo else _conflict(shown)


def _file_states(changes: Sequence[FileChangeRecord]) -> list[FileState]:
    """Return the files with changes left, in the order of their first change. Reads the files."""
    by_path: dict[str, list[FileChangeRecord]] = {}
    for change in changes:
        by_path.setdefault(change.path, []).append(change)
    files = (_file_now(path, found) for path, found in by_path.items())
    return [file for file in files if file is not None and file.without != file.now]


def _file_now(path: str, found: Sequence[FileChangeRecord]) -> FileState | None:
    ours = tuple(change for change in found if not change.imported and (change.author is None or change.redoes))
    if not ours:  # made elsewhere: the file here has nothing to do with it
        return _as_recorded(path, tuple(change for change in found if change.author is None))
    try:
        now = _content_now(path)
    except Foreign:
        return _as_recorded(path, ours)
    return FileState(
        path=path,
        changes=ours,
        reverts=tuple(change for change in without_redone(found) if change.revert_id is not None),
        without=_without(ours, now),
        now=now,
        others=_is_broken([change for change in found if not change.imported], now),
        is_ours=True,
    )


def _content_now(path: str) -> bytes | None:
    """Return the file's content. Raises Foreign, also if the file is too large to compare."""
    now = content_of(Path(path), limit=MAX_BYTES)
    if now is not None and len(now) > MAX_BYTES:
        raise Foreign(Path(path))
    return now


def _as_recorded(path: str, changes: tuple[FileChangeRecord, ...]) -> FileState | None:
    if not changes:
        return None
    before, after = changes[0].before, changes[-1].after
    return FileState(path=path, changes=changes, reverts=(), without=before, now=after, others=False, is_ours=False)


def _without(changes: Sequence[FileChangeRecord], now: bytes | None) -> bytes | None:
    """Return the file as it would be without these changes: the content before the first of them, plus what others did
    in between and since. If others changed the same lines as a run, it has the lines from before both."""
    content, last = changes[0].before, changes[0].after
    for before, after in [*((change.before, change.after) for change in changes[1:]), (now, now)]:
        content = merge(last, before, content, prefer_ours=False)
        last = after
    return content


def _is_broken(changes: Sequence[FileChangeRecord], now: bytes | None) -> bool:
    """Whether someone else changed the file between these changes, or since."""
    starts = [*(change.before for change in changes[1:]), now]
    return any(change.after != start for change, start in zip(changes, starts, strict=True))


def _kind(file: FileState) -> Change:
    if file.without is None:
        return Change.CREATED
    return Change.DELETED if file.now is None else Change.UPDATED


def _compare(without: bytes | None, now: bytes | None) -> _Comparison | None:
    """Compare two texts; None if they are not text."""
    try:
        before, after = decode(without or b""), decode(now or b"")
    except NotText:
        return None
    old, new = split_lines(before.content), split_lines(after.content)
    return _Comparison(text=after, old=old, new=new, hunks=hunks_between(old, new))


def _diff(compared: _Comparison, file: FileState, name: str) -> str:
    if not compared.hunks:
        return ""
    heads = (
        "--- /dev/null\n" if file.without is None else f"--- a/{name}\n",
        "+++ /dev/null\n" if file.now is None else f"+++ b/{name}\n",
    )
    return "".join([*heads, *(render_hunk(hunk, compared.old, compared.new) for hunk in compared.hunks)])


def _undone(file: FileState, chosen: tuple[int, ...] | None) -> tuple[bytes | None, str]:
    """Return the file without the change, or without these hunks of it, and a description."""
    if chosen is None:
        return file.without, "all changes"
    compared = _compare(file.without, file.now)
    count = len(compared.hunks) if compared is not None else 0
    wrong = sorted(number for number in chosen if number >= count)
    if compared is None or wrong:
        raise BadInput(f"There is no hunk {wrong[0]}: the change has {count}.", code="bad_hunk")
    undone = set(chosen)
    if len(undone) == count:
        return file.without, "all changes"
    text = "".join(undo_hunks(compared.old, compared.new, compared.hunks, undone))
    try:
        return compared.text.encode(text), f"{len(undone)} of {count} hunks"
    except UnicodeEncodeError:
        message = "The file's encoding has changed, so its hunks cannot be undone one by one. Undo the whole file."
        raise BadInput(message, code="bad_hunk") from None


def _redo(revert: FileChangeRecord) -> Restore | None:
    """Return the file with the undone change applied again. None if it no longer fits or is already there: then the
    merge depends on whose lines win, or changes nothing. Reads the file."""
    try:
        now = _content_now(revert.path)
    except Foreign:
        return None
    then = merge(revert.after, now, revert.before, prefer_ours=True)
    fits = then == merge(revert.after, now, revert.before, prefer_ours=False)
    return Restore(path=Path(revert.path), now=now, then=then) if fits and then != now else None
