"""Checks rules for a store that the database does not enforce itself.

Owns the rules; each violation is a `Problem` for people. Reads only through named queries, page by page, so it works on
any dialect and on stores larger than memory.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import msgspec

from longboat.errors import SessionDamaged
from longboat.store.protocol import Problem, Row
from longboat.store.rows import (
    ask_from_row,
    change_from_row,
    is_intact,
    legible_text,
    message_from_row,
    record_from_row,
    rule_from_row,
    session_from_row,
    todo_items,
)
from longboat.store.sqlite.queries import SqliteReader
from longboat.wire.asks import Permission, Question
from longboat.wire.events import Change, decode_event
from longboat.wire.models import Run, RunState
from longboat.wire.sse import Decoder

PAGE = 500


def invariant_checks(reader: SqliteReader) -> Iterator[Iterator[Problem]]:
    """Checks that do not depend on each other: where damage stops one of them, the others still find what they can."""
    for query, decode in TABLES.items():
        yield _undecodable(reader, query, decode)
    yield _log_and_runs(reader)
    yield _left_asks(reader)


# Rows

TABLES: dict[str, Callable[[Row], object]] = {
    "check_sessions": session_from_row,
    "check_messages": message_from_row,
    "check_runs": record_from_row,
    "check_permissions": lambda row: ask_from_row(row, Permission),
    "check_questions": lambda row: ask_from_row(row, Question),
    "check_changes": change_from_row,
    "check_grants": lambda row: rule_from_row(row, {}),  # its pattern can be read where the tools are known
    "check_todos": todo_items,
}


def _undecodable(reader: SqliteReader, query: str, decode: Callable[[Row], object]) -> Iterator[Problem]:
    for row in _pages(reader, query):
        try:
            decode(row)
        except SessionDamaged as error:
            yield Problem(kind="row", detail=f"{error.what} of session {error.session_id} cannot be read")


def _pages(reader: SqliteReader, query: str) -> Iterator[Row]:
    after = -1
    while rows := reader.rows(query, after=after, limit=PAGE):
        yield from rows
        if rows[-1]["place"] <= after:  # a damaged index could lead in a circle
            raise ValueError("rows are out of order")
        after = rows[-1]["place"]


# The log


@dataclass(slots=True)
class _Log:
    """The findings of a walk through the whole log."""

    begun: set[tuple[str, str]] = field(default_factory=set)
    """Runs (workspace, run_id) whose first event is still in the log, and whose end must therefore be in it too."""
    ends: Counter[int] = field(default_factory=Counter)
    """Terminal events by the seq of their run."""
    _last: dict[str, tuple[int, int]] = field(default_factory=dict)

    def walk(self, reader: SqliteReader) -> Iterator[Problem]:
        for row in _pages(reader, "check_events"):
            workspace_id = legible_text(row["workspace_id"])
            place = f"events {row['first']} to {row['last']} of workspace {workspace_id}"
            yield from self._numbers(row, workspace_id, place)
            if not is_intact(row, workspace_id):
                yield Problem(kind="log", detail=f"{place} are damaged")
                continue
            if row["run_seq"] is not None:
                self.ends[row["run_seq"]] += 1
            yield from self._events(row, workspace_id, place)

    def _numbers(self, row: Row, workspace_id: str, place: str) -> Iterator[Problem]:
        if not all(isinstance(row[name], int) for name in ("first", "last", "epoch")):
            yield Problem(kind="log", detail=f"{place}: a number cannot be read")
            return
        if (known := self._last.get(workspace_id)) is not None:
            last, epoch = known
            if row["first"] != last + 1:
                yield Problem(kind="log", detail=f"{place} follow event {last}: numbers are missing or used twice")
            if row["epoch"] < epoch:
                yield Problem(kind="log", detail=f"{place} are from an earlier server start than the ones before them")
        if row["last"] < row["first"]:
            yield Problem(kind="log", detail=f"{place}: the last number is below the first")
        self._last[workspace_id] = row["last"], row["epoch"]

    def _events(self, row: Row, workspace_id: str, place: str) -> Iterator[Problem]:
        for frame in Decoder().decode(row["frames"]):
            try:
                event = decode_event(frame.data)
            except msgspec.MsgspecError as error:
                yield Problem(kind="log", detail=f"{place}: {frame.id} cannot be decoded ({error})")
                continue
            if event is not None and event.type == "run" and event.change is Change.CREATED:
                self.begun.add((workspace_id, event.payload.run_id))


# Runs and asks


def _log_and_runs(reader: SqliteReader) -> Iterator[Problem]:
    log = _Log()
    yield from log.walk(reader)
    yield from _wrong_ends(reader, log)


def _wrong_ends(reader: SqliteReader, log: _Log) -> Iterator[Problem]:
    for row in _pages(reader, "check_runs"):
        try:
            run = record_from_row(row).run
        except SessionDamaged:
            continue  # told already
        if problem := _wrong_end(run, log.ends[run.seq], begun=(row["workspace_id"], run.run_id) in log.begun):
            yield Problem(kind="run", detail=f"run {run.run_id} of session {run.session_id} {problem}")


def _wrong_end(run: Run, ends: int, *, begun: bool) -> str | None:
    if ends > 1:
        return f"has {ends} terminal events"
    if run.state is not RunState.FINISHED and ends:
        return f"is {run.state} and has a terminal event"
    if run.state is RunState.FINISHED and begun and not ends:
        return "is finished and has no terminal event"
    return None


def _left_asks(reader: SqliteReader) -> Iterator[Problem]:
    for row in chain(reader.rows("check_permissions_left"), reader.rows("check_questions_left")):
        ask_id, session_id = legible_text(row["ask_id"]), legible_text(row["session_id"])
        detail = f"{ask_id} of session {session_id} is still waiting, but its run has ended"
        yield Problem(kind="ask", detail=detail)
