"""What a batch of units writes: the calls, the rows of the log with their numbers, the leases that it needs.

Sends nothing. Must not know what the queries mean.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longboat.store.postgres.calls import Call
from longboat.store.postgres.statements import load_statements
from longboat.store.protocol import Entry, Write
from longboat.store.publishing import PendingUnit, number_frames

UNFENCED = ""
"""The workspace of units that belong to none."""


@dataclass(slots=True)
class WriteRight:
    """The right to write to a workspace, and the number of its newest event."""

    epoch: int
    number: int = 0


Appended = tuple[WriteRight, Entry, PendingUnit]
"""An entry to be appended to a log."""


def has_conditions(batch: Sequence[PendingUnit]) -> bool:
    """Whether some entries depend on what the store has."""
    return any(entry.only_with is not None for pending in batch for entry in pending.unit.entries)


def plan_calls(batch: Sequence[PendingUnit], rights: Mapping[str, WriteRight]) -> list[Call]:
    """Everything that is written; takes the numbers of the events."""
    calls: list[Call] = []
    appended: list[Appended] = []
    for pending in batch:
        right = rights[pending.unit.workspace_id]
        right.number += sum(len(entry.bodies) for entry in pending.unit.entries)
        calls += [(write.query, arguments_of(write, right.number), write.rows) for write in pending.unit.writes]
        appended += [(right, entry, pending) for entry in pending.unit.entries]
    if appended:
        name, values = append_call(appended)
        calls.append((name, values, len(appended)))
    return calls


def arguments_of(write: Write, newest: int) -> list[Any]:
    statement = load_statements()[write.query]
    return statement.arguments({**write.params, "number": newest} if statement.numbered else write.params)


def append_call(appended: Sequence[Appended]) -> tuple[str, Sequence[Any]]:
    """The query that appends them, and its arguments."""
    rows = _rows_of(appended)
    if len(rows) == 1:
        return "event_append_one", rows[0]
    return "event_append", [list(column) for column in zip(*rows, strict=True)]


def _rows_of(appended: Sequence[Appended]) -> list[tuple[Any, ...]]:
    """Entries of one or many units, numbered, as rows of the log."""
    last: dict[str, int] = {}
    for right, entry, pending in appended:
        workspace_id = pending.unit.workspace_id
        last[workspace_id] = last.get(workspace_id, right.number) - len(entry.bodies)
    rows: list[tuple[Any, ...]] = []
    now_s = int(time.time())
    for right, entry, pending in appended:
        workspace_id = pending.unit.workspace_id
        published = number_frames(workspace_id, right.epoch, entry, last[workspace_id] + 1)
        last[workspace_id] = published.last
        pending.published.append(published)
        rows.append(
            (
                *(workspace_id, published.first, published.last, right.epoch, entry.session_id),
                *(entry.parent_session_id, entry.message_id, entry.run_seq, now_s, published.data),
            )
        )
    return rows


def take_back(rights: Mapping[str, WriteRight], numbers: Mapping[str, int]) -> None:
    """Nothing came of the numbers that were taken since these."""
    for workspace_id, right in rights.items():
        right.number = numbers[workspace_id]


def forget_results(batch: Sequence[PendingUnit]) -> None:
    for pending in batch:
        pending.published.clear()
        pending.error = None


def fenced_epochs(rights: Mapping[str, WriteRight]) -> dict[str, int]:
    """The leases in the order in which every transaction locks them."""
    return {workspace_id: rights[workspace_id].epoch for workspace_id in sorted(rights) if workspace_id != UNFENCED}


def as_arrays(rights: Mapping[str, WriteRight]) -> str:
    """The leases as the arguments of `check_leases`."""
    fenced = fenced_epochs(rights)
    names = ",".join(map(literal, fenced))
    return f"ARRAY[{names}]::text[], ARRAY[{','.join(map(str, fenced.values()))}]::bigint[]"


def literal(text: str) -> str:
    """For statements that are sent together with others, and so without parameters."""
    return "'" + text.replace("'", "''") + "'"
