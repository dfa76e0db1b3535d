"""What every store does with a unit once its fate is known: publish it, answer its submitter, log failures.

Owns the listeners, the recent histories and the state of health. Must not know how a unit is committed.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from longboat.errors import DataDirGone, OwnerLost, StoreUnavailable
from longboat.store.protocol import Entry, Listener, Published, Unit
from longboat.store.recent_histories import RecentHistories

logger = logging.getLogger(__name__)

REPEAT_S = 300.0
"""While the store fails, seconds between two log lines."""
FLAPPING_S = 10.0
"""A store that fails again right after it could be written is not worth a line each time."""


@dataclass(slots=True)
class PendingUnit:
    """A submitted unit and its result."""

    unit: Unit
    future: "asyncio.Future[None]"
    right: object | None = None
    """To write to its workspace, as it was when the unit was submitted."""
    published: list[Published] = field(default_factory=list)
    error: Exception | None = None

    def fail(self, error: Exception) -> None:
        self.published.clear()
        self.error = error


class Publisher:
    """On the loop."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self.histories = RecentHistories()
        self._listeners: dict[str, Listener] = {}
        self._watcher: Callable[[Unit], None] | None = None
        self._failures = FailureLog()

    def listen(self, workspace_id: str, listener: Listener | None) -> None:
        if listener is None:
            self._listeners.pop(workspace_id, None)
        else:
            self._listeners[workspace_id] = listener

    def watch(self, watcher: Callable[[Unit], None] | None) -> None:
        self._watcher = watcher

    def settle(self, batch: Sequence[PendingUnit]) -> None:
        """Publish what was committed and answer its submitters, in the order of the log."""
        for pending in batch:
            if not isinstance(pending.error, OwnerLost):  # that says nothing about the store
                self._note(pending.error)
            try:
                self._publish(pending)
            except Exception:  # a defect of one listener: the submitters are answered all the same
                logger.exception("what was committed could not be published")
            if not pending.future.cancelled():
                _answer(pending)

    def _note(self, error: Exception | None) -> None:
        self.problem = error.message if isinstance(error, StoreUnavailable) else None
        if not isinstance(error, DataDirGone):  # that was logged when it was noticed, and does not pass
            self._failures.note(self.problem)

    def _publish(self, pending: PendingUnit) -> None:
        self.histories.follow(pending.unit, committed=pending.error is None)
        listener = self._listeners.get(pending.unit.workspace_id)
        if pending.published and listener is not None:
            listener(pending.published)
        if self._watcher is not None and pending.error is None:
            self._watcher(pending.unit)


def _answer(pending: PendingUnit) -> None:
    if pending.error is None:
        pending.future.set_result(None)
    else:
        pending.future.set_exception(pending.error)


def number_frames(workspace_id: str, epoch: int, entry: Entry, first: int) -> Published:
    """An entry as clients get it: each frame with its id."""
    prefix = f"id: {workspace_id}/{epoch}/"
    data = b"".join(f"{prefix}{n}\n".encode() + body for n, body in enumerate(entry.bodies, first))
    return Published(first, first + len(entry.bodies) - 1, (entry.session_id, entry.parent_session_id), data)


class FailureLog:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None
        self._logged_at = float("-inf")
        self._told = False
        """The log has a line about the present failure."""
        self._refused = 0

    def note(self, problem: str | None) -> None:
        """What became of a unit: `problem` if the store could not be written, None if it could."""
        if problem is None:
            self._recovered()
        else:
            self._failed(problem)

    def _failed(self, problem: str) -> None:
        now = self._clock()
        if self._since is None:
            self._since = now
        self._refused += 1
        if now - self._logged_at >= (REPEAT_S if self._told else FLAPPING_S):
            self._logged_at, self._told = now, True
            lasting = now - self._since
            logger.error("%s Failing for %.0f s; %d writes refused so far.", problem, lasting, self._refused)

    def _recovered(self) -> None:
        if self._since is None:
            return
        if self._told:
            lasted = self._clock() - self._since
            logger.warning(
                "The store can be written again after %.0f s; %d writes were refused.", lasted, self._refused
            )
        self._since, self._refused, self._told = None, 0, False
