"""Copies a SQLite store into an empty PostgreSQL database, and compares every row afterwards.

Owns which columns differ between the two. One transaction: the database is empty or has everything.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from longboat.errors import DataDirError
from longboat.store.address import describe_dsn
from longboat.store.datadir import STORE_NAME, hold_data_dir
from longboat.store.postgres.connections import connect, is_pooled
from longboat.store.postgres.locking import SERVER_LOCK, ServerLock
from longboat.store.postgres.schema import migrate
from longboat.store.postgres.seqs import SEQS
from longboat.store.postgres.statements import FAILURES, is_lost
from longboat.store.sqlite.check import newest_schema, open_for_reading, schema_of
from longboat.wire.plain import fold_case

CHUNK = 500
COPY_S = 3600.0
"""A database that takes longer stands still."""

Progress = Callable[[int, int], None]
"""Rows done, rows in all: each is written and then compared."""


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """What was copied, and compared afterwards."""

    source: str
    target: str
    rows: dict[str, int]
    """How many rows, by table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    name: str
    key: str
    """The columns that order its rows."""
    columns: tuple[str, ...]
    read: str
    """The same columns in SQLite."""
    flags: frozenset[int]
    """Columns that are numbers there and true or false here."""


def _table(name: str, key: str, columns: str, *, read: dict[str, str] | None = None, flags: str = "") -> _Table:
    """`read`: how SQLite has a column that it has no name for."""
    wanted = tuple(columns.split())
    found = [f"{(read or {}).get(column, column)} AS {column}" for column in wanted]
    places = frozenset(wanted.index(flag) for flag in flags.split())
    return _Table(name=name, key=key, columns=wanted, read=", ".join(found), flags=places)


ROWID = {"place": "rowid"}
TABLES = (
    _table("workspaces", "place", "place workspace_id home path created_at", read={**ROWID, "home": "home()"}),
    _table(
        "sessions",
        "place",
        "place session_id workspace_id parent_id parent_call_id title folded_title created_at updated_at input_tokens"
        " output_tokens unpriced_tokens cost context_tokens summary_seq last_outcome pinned archived",
        read={"folded_title": "folded(title)"},
        flags="pinned archived",
    ),
    _table(
        "messages",
        "place",
        "place message_id session_id run_id seq role parts model provider summary created_at finished_at whole_at"
        " undone",
        read=ROWID,
        flags="summary",
    ),
    _table(
        "runs",
        "seq",
        "seq run_id workspace_id session_id state outcome delivery prompt attachments fingerprint model approve options"
        " cancel_requested canceled_by folded_into error tries accepted_at started_at finished_at waited_s client_id"
        " parent_run_id parent_session_id imported",
        read={"attachments": "CAST(attachments AS BLOB)", "options": "CAST(options AS BLOB)"},
        flags="cancel_requested imported",
    ),
    _table(
        "events",
        "entry_id",
        "entry_id workspace_id first last epoch session_id parent_session_id message_id run_seq written_s frames",
    ),
    _table("clients", "workspace_id, client_id", "workspace_id client_id attached_at"),
    _table("permissions", "place", "place permission_id workspace_id session_id run_id state body"),
    _table("questions", "place", "place question_id workspace_id session_id run_id state body"),
    _table("grants", "session_id, rule", "session_id rule"),
    _table("reads", "session_id, path", "session_id path digest"),
    _table(
        "file_changes",
        "change_id",
        "change_id session_id run_id path before after pending imported author remark told_run revert_id redoes",
        flags="imported",
    ),
    _table("todos", "session_id", "session_id items"),
    _table("surroundings", "place", "place session_id run_id text"),
    _table("request_pieces", "place", "place session_id digest used_s content"),
    _table("model_requests", "place", "place request_id session_id run_id sent_s frame same messages facts answer"),
    _table(
        "spendings",
        "workspace_id, day, session_id, run_id, model",
        "workspace_id session_id run_id day model requests input_tokens output_tokens unpriced_tokens cost",
    ),
    _table(
        "tool_calls",
        "place",
        "place workspace_id session_id run_id day tool began_at waited_s ran_s outcome",
        read=ROWID,
    ),
    _table("cancel_covers", "session_id, last_seq", "session_id first_seq last_seq canceled_by"),
    _table("cancel_keys", "session_id, key", "session_id key canceled made_s"),
    _table("inbox", "place", "place kind workspace_id session_id run_id ask_id added_s"),
    _table("inbox_seen", "person, place", "person place"),
    _table("push_subscriptions", "endpoint", "endpoint person p256dh auth created_at"),
)


async def copy_sqlite(data_dir: Path, dsn: str, progress: Progress = lambda *_: None, *, home: str = "") -> Copied:
    """Copy the store of a data directory, which no server may be using, into an empty database. `home`: the node that
    has its workspaces."""
    with hold_data_dir(data_dir), closing(_open(data_dir / STORE_NAME)) as source:
        source.create_function("home", 0, lambda: home, deterministic=True)
        try:
            return await _copy(source, data_dir / STORE_NAME, dsn, progress)
        except FAILURES as error:
            code = "store_unreachable" if is_lost(error) else "store_not_copied"
            raise DataDirError(
                f"Nothing was copied to {describe_dsn(dsn)}: {str(error) or type(error).__name__}.", code=code
            ) from error
        except sqlite3.Error as error:
            raise DataDirError(
                f"Nothing was copied: {data_dir / STORE_NAME} cannot be read ({error}). `longboat store check` shows "
                "what is affected.",
                code="store_not_copied",
            ) from error


def _open(file: Path) -> sqlite3.Connection:
    source = open_for_reading(file)
    source.row_factory = None
    source.create_function("folded", 1, fold_case, deterministic=True)
    if schema_of(source) != newest_schema():
        found = schema_of(source)
        source.close()
        raise DataDirError(
            f"{file} has the schema {found}, and only {newest_schema()} can be copied. Start this version's server "
            "on it once, stop it, and copy again.",
            code="store_older",
        )
    return source


async def _copy(source: sqlite3.Connection, file: Path, dsn: str, progress: Progress) -> Copied:
    if await is_pooled(dsn):
        raise DataDirError(
            f"Nothing was copied: {describe_dsn(dsn)} is a connection pooler. Name PostgreSQL's own address.",
            code="store_pooled",
        )
    connection = await connect(dsn, pooled=False)
    try:
        await connection.execute("SET statement_timeout = 0")
        if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", SERVER_LOCK):
            raise DataDirError(f"A Longboat server uses {describe_dsn(dsn)}. Stop it first.", code="store_in_use")
        await migrate(connection)
        await ServerLock(dsn, node="", pooled=False).check_nodes(connection)
        async with connection.transaction():
            await connection.execute("LOCK TABLE workspaces IN EXCLUSIVE MODE")
            if await connection.fetchval("SELECT count(*) FROM workspaces"):
                raise DataDirError(
                    f"{describe_dsn(dsn)} holds a store already. Name an empty database.", code="store_not_empty"
                )
            rows = {table.name: _count(source, table) for table in TABLES}
            steps = _Steps(progress, 2 * sum(rows.values()))
            for table in TABLES:
                if table.name == "inbox":
                    await connection.execute("DELETE FROM inbox")  # triggers put in what waits: with other places
                for chunk in _chunks(source, table):
                    await connection.copy_records_to_table(
                        table.name, records=chunk, columns=table.columns, timeout=COPY_S
                    )
                    steps.advance(len(chunk))
            await _set_counters(connection, source)
            for table in TABLES:
                await _compare(connection, source, table, steps)
    finally:
        await connection.close()
    return Copied(source=str(file), target=describe_dsn(dsn), rows=rows)


class _Steps:
    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._done, self._total = 0, total

    def advance(self, rows: int) -> None:
        self._done += rows
        self._progress(self._done, self._total)


def _count(source: sqlite3.Connection, table: _Table) -> int:
    (found,) = source.execute(f"SELECT count(*) FROM {table.name}").fetchone()
    return int(found)


def _chunks(source: sqlite3.Connection, table: _Table) -> Iterator[list[tuple[Any, ...]]]:
    cursor = source.execute(f"SELECT {table.read} FROM {table.name} ORDER BY {table.key}")
    while rows := cursor.fetchmany(CHUNK):
        yield [tuple(bool(value) if place in table.flags else value for place, value in enumerate(row)) for row in rows]


async def _set_counters(connection: Any, source: sqlite3.Connection) -> None:
    """Continue all sequences: what is made from now on comes after everything that ever was."""
    used = dict(source.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    for table in TABLES:
        if (place := table.columns[0]) in ("place", "entry_id", "change_id"):
            newest: int = await connection.fetchval(f"SELECT coalesce(max({place}), 0) FROM {table.name}")
            last = max(newest, used.get(table.name, 0))
            if last:
                await connection.execute(f"SELECT setval('{table.name}_{place}_seq', $1)", last)
    seqs = used.get("runs", 0)
    await connection.execute("SELECT setval('run_seqs', $1)", seqs - seqs % SEQS + SEQS + 1)
    (epoch,) = source.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
    await connection.execute("SELECT setval('epochs', $1)", max(epoch, 1))


async def _compare(connection: Any, source: sqlite3.Connection, table: _Table, steps: _Steps) -> None:
    cursor = await connection.cursor(f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {table.key}")
    for chunk in _chunks(source, table):
        found = [tuple(row) for row in await cursor.fetch(len(chunk))]
        if found != chunk:
            raise DataDirError(f"Nothing was copied: rows of {table.name} differ in the copy.", code="store_not_copied")
        steps.advance(len(chunk))
    if await cursor.fetch(1):
        raise DataDirError(f"Nothing was copied: {table.name} has more rows in the copy.", code="store_not_copied")
