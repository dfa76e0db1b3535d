"""The search index of the SQLite store: a file of its own beside it, which follows the log.

Owns what is found. It is made from the store, never the other way round: a file that is lost, damaged or of another
version is made again. So the writer of the store neither waits for it nor knows it. One transaction takes a stretch of
the log and notes how far it got: a kill loses nothing and repeats nothing. Must be used by one thread at a time.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import msgspec

from longboat.errors import SessionDamaged
from longboat.store.protocol import Row
from longboat.store.rows import legible_text, message_from_row
from longboat.store.search_text import one_line, searchable_text
from longboat.store.sqlite.queries import text_or_bytes
from longboat.wire.events import Change, decode_event
from longboat.wire.models import Message, Session

SCHEMA = 1
"""An index of another version is thrown away and made again."""
ENTRIES = 500
"""Entries of the log that one transaction takes."""
MESSAGES = 100
"""The same for messages that were there before the index."""

_LOG = """
SELECT entry_id, workspace_id, last, epoch,
    CASE WHEN message_id IS NULL AND session_id IS NOT NULL AND parent_session_id IS NULL THEN frames END AS frames
FROM store.events WHERE entry_id > ? ORDER BY entry_id LIMIT ?"""
_OLD_SESSIONS = """
SELECT place, session_id, workspace_id, title, created_at FROM store.sessions
WHERE place > ? AND parent_id IS NULL ORDER BY place LIMIT ?"""
_OLD_MESSAGES = """
SELECT messages.*, messages.rowid AS place, sessions.workspace_id
FROM store.messages AS messages JOIN store.sessions AS sessions USING (session_id)
WHERE messages.rowid > ? AND finished_at IS NOT NULL AND undone = 0 AND parent_id IS NULL
ORDER BY messages.rowid LIMIT ?"""

_ENTRY = ("entry_id", "workspace_id", "last", "epoch")
"""What tells one entry of a log from any other."""
_TOLD = (b"event: message", b"event: session")
"""The events that change what is found."""


class _LogChanged(Exception):
    """The log is not the one that was followed: a backup was restored, or a power cut took its end."""


class IndexNotMade(Exception):
    """The index was thrown away, and there is no new one: a full disk, say. This object is of no more use."""


class SearchIndex:
    def __init__(self, file: Path, store: Path) -> None:
        self._file = file
        self._store = store
        self.connection = self._open()

    def close(self) -> None:
        self.connection.close()

    def catch_up(self, *, for_s: float, give_up: Callable[[], bool] = lambda: False) -> bool:
        """Take what the store has and the index has not. False: time ran out, or somebody gave up."""
        deadline = time.monotonic() + for_s
        while True:
            try:
                with self._transaction():
                    left = self._advance()
            except _LogChanged:
                self.make_again()
                left = True
            if not left:
                return True
            if give_up() or time.monotonic() >= deadline:
                return False

    def make_again(self) -> None:
        """Throw it away and start over."""
        self.connection.close()
        try:
            for end in ("", "-wal", "-shm"):
                Path(f"{self._file}{end}").unlink(missing_ok=True)
            self.connection = self._open()
        except (sqlite3.Error, OSError) as error:
            raise IndexNotMade(str(error)) from error

    # The file

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except sqlite3.DatabaseError as error:
            if not is_index_damage(error):
                raise
            for end in ("", "-wal", "-shm"):
                Path(f"{self._file}{end}").unlink(missing_ok=True)
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        self._file.touch(mode=0o600)
        connection = sqlite3.connect(
            _uri(self._file, "rw"), uri=True, timeout=1, isolation_level=None, check_same_thread=False
        )
        try:
            connection.text_factory = text_or_bytes
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("ATTACH ? AS store", (_uri(self._store, "ro"),))
            (version,) = connection.execute("PRAGMA main.user_version").fetchone()
            if version not in (0, SCHEMA):
                raise sqlite3.DatabaseError("another version")
            if version == 0:
                _create(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            raise

    # One step

    def _advance(self) -> bool:
        """Whether there may be more."""
        progress = self.connection.execute("SELECT * FROM progress").fetchone()
        if progress["session_place"] is not None:
            return self._take_old_sessions(progress["session_place"])
        if progress["message_place"] is not None:
            return self._take_old_messages(progress["message_place"])
        return self._follow(progress)

    def _take_old_sessions(self, after: int) -> bool:
        rows = self.connection.execute(_OLD_SESSIONS, (after, ENTRIES)).fetchall()
        for row in rows:
            at = legible_text(row["created_at"])
            self._put_title(row["workspace_id"], row["session_id"], legible_text(row["title"]), at)
        place = rows[-1]["place"] if len(rows) == ENTRIES else None
        self.connection.execute("UPDATE progress SET session_place = ?", (place,))
        return True

    def _take_old_messages(self, after: int) -> bool:
        rows = self.connection.execute(_OLD_MESSAGES, (after, MESSAGES)).fetchall()
        for row in rows:
            with suppress(SessionDamaged):  # it costs this message, and no other (D12)
                self._put_message(row["workspace_id"], message_from_row(row))
        place = rows[-1]["place"] if len(rows) == MESSAGES else None
        self.connection.execute("UPDATE progress SET message_place = ?", (place,))
        return True

    def _follow(self, progress: Row) -> bool:
        at: int = progress["entry_id"]
        # With the entry that was read last: it must still be the same.
        rows = self.connection.execute(_LOG, (at - 1, ENTRIES)).fetchall()
        if at:
            if not rows or any(rows[0][name] != progress[name] for name in _ENTRY):
                raise _LogChanged
            rows = rows[1:]
        if not rows:
            return False
        if rows[-1]["entry_id"] != at + len(rows):
            raise _LogChanged  # some were pruned before they were read
        for row in rows:
            if row["frames"] is not None:
                self._take_frames(row["workspace_id"], row["frames"])
        newest = rows[-1]
        self.connection.execute(
            "UPDATE progress SET entry_id = :entry_id, workspace_id = :workspace_id, last = :last, epoch = :epoch",
            {name: newest[name] for name in _ENTRY},
        )
        return True

    def _take_frames(self, workspace_id: str, frames: object) -> None:
        if not isinstance(frames, bytes):
            return
        for frame in frames.split(b"\n\n"):
            head, _, data = frame.partition(b"\ndata: ")
            if head.rpartition(b"\n")[2] not in _TOLD:
                continue
            with suppress(msgspec.MsgspecError, ValueError):  # a damaged frame
                event = decode_event(data)
                assert event is not None
                if event.type == "message":
                    self._take_message(workspace_id, event.change, event.payload)
                else:
                    self._take_session(event.change, event.payload)

    def _take_message(self, workspace_id: str, change: Change | None, message: Message) -> None:
        if change is Change.DELETED:
            self._remove("message_id = ?", message.id)
        elif message.finished_at is not None:
            self._put_message(workspace_id, message)

    def _take_session(self, change: Change | None, session: Session) -> None:
        if change is Change.DELETED:
            self._remove("session_id = ?", session.id)
        else:
            self._put_title(session.workspace_id, session.id, session.title, session.created_at)

    # Documents

    def _put_message(self, workspace_id: str, message: Message) -> None:
        if text := searchable_text(message):
            self._remove("message_id = ?", message.id)
            where = {"workspace_id": workspace_id, "session_id": message.session_id, "message_id": message.id}
            self._insert(text, where | {"role": message.role.value, "at": message.created_at})

    def _put_title(self, workspace_id: str, session_id: str, title: str, at: str) -> None:
        """Sessions are announced often, new titles seldom."""
        title = one_line(title)
        known = self.connection.execute(
            "SELECT body FROM documents JOIN texts ON texts.rowid = document_id"
            " WHERE session_id = ? AND message_id IS NULL",
            (session_id,),
        ).fetchone()
        if known is not None and known["body"] == title:
            return
        self._remove("session_id = ? AND message_id IS NULL", session_id)
        if title:
            where = {"workspace_id": workspace_id, "session_id": session_id}
            self._insert(title, where | {"message_id": None, "role": None, "at": at})

    def _insert(self, text: str, document: Mapping[str, str | None]) -> None:
        made = self.connection.execute(
            "INSERT INTO documents (workspace_id, session_id, message_id, role, at)"
            " VALUES (:workspace_id, :session_id, :message_id, :role, :at)",
            document,
        )
        self.connection.execute("INSERT INTO texts (rowid, body) VALUES (?, ?)", (made.lastrowid, text))

    def _remove(self, which: str, value: str) -> None:
        self.connection.execute(
            f"DELETE FROM texts WHERE rowid IN (SELECT document_id FROM documents WHERE {which})", (value,)
        )
        self.connection.execute(f"DELETE FROM documents WHERE {which}", (value,))


def _create(connection: sqlite3.Connection) -> None:
    """Empty, and to begin with what the store has now; the log is followed from here on."""
    schema = resources.files("longboat.store.sqlite").joinpath("search.sql").read_text("utf-8")
    connection.executescript(
        f"""BEGIN;
        {schema}
        INSERT INTO progress SELECT coalesce(max(entry_id), 0), NULL, NULL, NULL, 0, 0 FROM store.events;
        UPDATE progress SET (workspace_id, last, epoch) = (
            SELECT workspace_id, last, epoch FROM store.events WHERE events.entry_id = progress.entry_id);
        PRAGMA main.user_version = {SCHEMA};
        COMMIT;"""
    )


def is_index_damage(error: sqlite3.Error) -> bool:
    """Whether making the index again may help."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.absolute()))}?mode={mode}"
