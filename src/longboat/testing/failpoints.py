"""Dying at an exact place: runs the command line in a process that kills itself, as kill -9 would, at a failpoint.

    python -m longboat.testing.failpoints --committed '"state":"accepted"' -- serve --data-dir D

`--committed TEXT` dies after the commit of the first event whose frame holds TEXT, before anyone hears of it: no
answer, no event. `--uncommitted TEXT` dies just before that commit. `--nth N` waits for the N-th such batch.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import click

from longboat.store.sqlite.store import SqliteStore


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


class _Countdown:
    """True at the N-th batch that holds the text."""

    def __init__(self, text: str, nth: int) -> None:
        self._text = text.encode()
        self._left = nth

    def reached(self, batch: Sequence[Any]) -> bool:
        bodies = (body for pending in batch for entry in pending.unit.entries for body in entry.bodies)
        if any(self._text in body for body in bodies):
            self._left -= 1
            return self._left == 0
        return False


def arm(committed: str | None, uncommitted: str | None, nth: int) -> None:
    """Set the failpoints in this process's store."""
    after = _Countdown(committed, nth) if committed is not None else None
    before = _Countdown(uncommitted, nth) if uncommitted is not None else None
    if os.environ.get("LONGBOAT_STORE"):
        _arm_postgres(before, after)
    else:
        _arm_sqlite(before, after)


def _arm_sqlite(before: _Countdown | None, after: _Countdown | None) -> None:
    commit = SqliteStore._commit

    def commit_or_die(store: SqliteStore, batch: Sequence[Any]) -> None:
        _die_at(before, batch)
        commit(store, batch)
        _die_at(after, batch)

    SqliteStore._commit = commit_or_die  # type: ignore[assignment, method-assign]


def _arm_postgres(before: _Countdown | None, after: _Countdown | None) -> None:
    from longboat.store.postgres.writer import Writer

    commit = Writer._commit

    async def commit_or_die(writer: Writer, batch: Sequence[Any]) -> None:
        _die_at(before, batch)
        await commit(writer, batch)
        _die_at(after, batch)

    Writer._commit = commit_or_die  # type: ignore[assignment, method-assign]


def _die_at(countdown: _Countdown | None, batch: Sequence[Any]) -> None:
    if countdown is not None and countdown.reached(batch):
        _die()


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--committed", help="Die after the commit of the first event that holds this text.")
@click.option("--uncommitted", help="Die just before that commit.")
@click.option("--nth", default=1, show_default=True, help="At the N-th batch that holds the text.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def launch(committed: str | None, uncommitted: str | None, nth: int, arguments: tuple[str, ...]) -> None:
    """Run `longboat ARGUMENTS` with failpoints set."""
    from longboat.cli.main import main

    arm(committed, uncommitted, nth)
    sys.argv = ["longboat", *arguments]
    main()


if __name__ == "__main__":
    launch()
