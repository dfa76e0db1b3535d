"""The inbox with 1,000 approvals that wait in it, beside an empty one: over HTTP, and on the page."""

import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.chromium import Door, door, how, missing
from benchmarks.harness import Row, RunningServer, compare, longboat, milliseconds, scripted_endpoint, timed
from longboat.wire.asks import Permission

ROUNDS = 7
WAITING = 1_000
ASKS = 20
"""Requests in one round: a single one is over too soon to be measured."""
NOW = "2026-01-02T03:04:05.678901Z"
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
SHOWN = "() => document.querySelector('.inbox .quiet')?.textContent && performance.now() / 1000"


def measure() -> list[Row]:
    with scripted_endpoint() as endpoint, longboat(f"{endpoint}/v1") as empty, longboat(f"{endpoint}/v1") as full:
        fill(full)
        rounds = [(_read(empty), _read(full)) for _ in range(ROUNDS + 1)][1:]
        told = f"inbox with {WAITING:,} waiting, floor: an empty one"
        rows = [compare(f"{told}; GET /v1/inbox, one item", rounds, milliseconds, at_most=2)]
        if missing("chromium"):
            print(f"left out: {how('chromium')}", file=sys.stderr)
            return rows
        with door(empty) as one:
            floors = [_opened(one) for _ in range(ROUNDS + 1)][1:]
        with door(full) as other:
            opened = [_opened(other) for _ in range(ROUNDS + 1)][1:]
    first = [(floor, ours) for (floor, _), (ours, _) in zip(floors, opened, strict=True)]
    whole = [(floor, ours) for (_, floor), (_, ours) in zip(floors, opened, strict=True)]
    return [
        *rows,
        compare(f"page: {told}; first paint", first, milliseconds, at_most=2),
        compare(f"page: {told}; until it is shown", whole, milliseconds, at_most=2),
    ]


def _read(server: RunningServer) -> float:
    """One item and the counts: what a client needs to say that something waits."""
    return timed(lambda: [server.wire.ask("GET", "/v1/inbox?client_id=bench&limit=1") for _ in range(ASKS)]) / ASKS


def _opened(at: Door) -> tuple[float, float]:
    """First paint, and when the inbox was there."""
    with at.guest() as page:
        page.goto(f"{at.url}/#/inbox")
        shown = page.wait_for_function(SHOWN)
        return float(page.evaluate(PAINTED)), float(shown.json_value())


def fill(server: RunningServer) -> None:
    """Into the store itself: 1,000 runs that wait would be another benchmark."""
    session_id = server.new_session()
    workspace_id = server.workspace.rpartition("/")[2]
    asks = asks_of(session_id)
    _insert(Path(server.environ["LONGBOAT_DATA_DIR"]) / "longboat.db", workspace_id, asks)


def _insert(path: Path, workspace_id: str, asks: Sequence[Permission]) -> None:
    with sqlite3.connect(path) as connection:
        connection.executemany(
            "INSERT INTO permissions (permission_id, workspace_id, session_id, run_id, state, body)"
            " VALUES (?, ?, ?, ?, 'pending', ?)",
            [(ask.id, workspace_id, ask.session_id, ask.run_id, msgspec.json.encode(ask)) for ask in asks],
        )
    connection.close()


def asks_of(session_id: str) -> list[Permission]:
    return [_ask(number, session_id) for number in range(WAITING)]


def _ask(number: int, session_id: str) -> Permission:
    command = f"make -C part{number} clean all && git commit -am 'Part {number}'"
    return Permission(
        id=f"ask-{number}",
        session_id=session_id,
        run_id=f"run-{number}",
        tool_call_id="call",
        tool="bash",
        action="bash",
        argument=command,
        title=f"Run {command}",
        detail=command,
        why=f"Running {command} needs your approval.",
        grant=(f"bash({command})",),
        asked_at=NOW,
    )
