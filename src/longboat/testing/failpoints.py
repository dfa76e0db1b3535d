"""Dying at an exact place: runs the command line in a process that kills itself, as kill -9 would, at a failpoint.

    python -m longboat.testing.failpoints --committed '"state":"accepted"' -- serve --data-dir D

`--committed TEXT` dies after the commit of the first event whose frame holds TEXT, before anyone hears of it: no
answer, no event. `--uncommitted TEXT` dies just before that commit. `--nth N` waits for the N-th such batch.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
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
    commit: Commit = SqliteStore._commit
    if committed is not None:
        commit = _after(commit, _Countdown(committed, nth))
    if uncommitted is not None:
        commit = _before(commit, _Countdown(uncommitted, nth))
    SqliteStore._commit = commit  # type: ignore[assignment, method-assign]


Commit = Callable[[SqliteStore, Sequence[Any]], None]


def _after(commit: Commit, countdown: _Countdown) -> Commit:
    def commit_and_die(store: SqliteStore, batch: Sequence[Any]) -> None:
        commit(store, batch)
        if countdown.reached(batch):
            _die()

    return commit_and_die


def _before(commit: Commit, countdown: _Countdown) -> Commit:
    def die_or_commit(store: SqliteStore, batch: Sequence[Any]) -> None:
        if countdown.reached(batch):
            _die()
        commit(store, batch)

    return die_or_commit


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
