"""A session in memory: its row, its state, its unfinished runs, and what the store does not have yet.

Owns what others may read. Only `CommandLoop` changes it, after each commit. Must not decide or write anything.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from longboat.core.state import SessionState, is_covered, place_of
from longboat.errors import SessionNotFound
from longboat.store.changes import add_model_usage, add_tool_call
from longboat.store.protocol import Write
from longboat.store.records import RunRecord, SessionRecord
from longboat.wire.models import Message, Run, Session, ToolResultPart, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """One model request."""

    run_id: str
    model: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsavedUsage:
    spendings: tuple[ModelUsage, ...] = ()
    calls: tuple[tuple[str, ToolResultPart], ...] = ()
    """Each call that was made: its run and its result, which is unfinished if the call was cut off."""
    context: int | None = None
    """Tokens in the model's context window, if a request of the turn reported them."""

    @property
    def usage(self) -> Usage:
        return sum((spending.usage for spending in self.spendings), Usage())

    def __add__(self, other: "UnsavedUsage") -> "UnsavedUsage":
        context = self.context if other.context is None else other.context
        return UnsavedUsage(spendings=self.spendings + other.spendings, calls=self.calls + other.calls, context=context)

    def writes(self, session: Session, at: str) -> Iterator[Write]:
        day = at[:10]
        for each in self.spendings:
            yield add_model_usage(session, day, each.run_id, each.model, each.usage)
        for run_id, result in self.calls:
            yield add_tool_call(session, day, run_id, result)


NOTHING = UnsavedUsage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """The client whose cancel covers the queued runs with a seq from `first` to `last`."""

    first: int
    last: int
    by: str | None


class LiveSession:
    def __init__(self, known: SessionRecord, *, leaving: bool, held: bool) -> None:
        self.row = known.session
        self.state = SessionState(leaving=leaving, held=held)
        self.records: dict[str, RunRecord] = {}
        """The unfinished runs."""
        self.folded: dict[str, Message] = {}
        """The messages of prompts that were folded, which may be withdrawn."""
        self.used = NOTHING
        """The usage and tool calls of steps that are not in the store yet."""
        self.covers: list[Cover] = []
        self.summary_seq = known.summary_seq
        self.is_deleted = False
        self._last_message = known.last_message
        self._changed: asyncio.Future[None] | None = None

    @property
    def session(self) -> Session:
        return msgspec.structs.replace(self.row, busy=self.state.busy)

    @property
    def has_unsaved_usage(self) -> bool:
        return self.used.usage != Usage()

    def run(self, run_id: str) -> Run | None:
        """Return an unfinished run with its current position in the queue."""
        record = self.records.get(run_id)
        return self.with_position(record.run) if record is not None else None

    def with_position(self, run: Run) -> Run:
        """Return a run of this session with its current position in the queue. If a cancel has removed it from the
        queue, the run says so."""
        view = self.state.find(run.run_id)
        if view is not None and is_covered(view):
            run = self.as_canceled(run)
        return msgspec.structs.replace(run, position=self.state.position(run.run_id))

    def as_canceled(self, run: Run) -> Run:
        by = next((cover.by for cover in self.covers if cover.first <= run.seq <= cover.last), run.canceled_by)
        return msgspec.structs.replace(run, cancel_requested=True, canceled_by=by)

    def queued(self) -> list[Run]:
        """The waiting runs, in order."""
        state = self.state
        return [
            msgspec.structs.replace(
                self.records[view.run_id].run,
                position=state.busy + place + place_of(state.accepted, view.seq),
            )
            for place, view in enumerate(state.waiting)
        ]

    def check_exists(self) -> None:
        """Raise if another client has deleted the session in the meantime."""
        if self.is_deleted:
            raise SessionNotFound(self.row.id)

    def next_message_seq(self) -> int:
        self._last_message += 1
        return self._last_message

    def add_usage(self, run_id: str, model: str, usage: Usage, *, context: int | None) -> None:
        used = ModelUsage(run_id=run_id, model=model, usage=usage)
        self.used += UnsavedUsage(spendings=(used,), context=context)

    def add_call(self, run_id: str, result: ToolResultPart) -> None:
        # Without the text, which the message has: only the times are kept until the next decision.
        self.used += UnsavedUsage(calls=((run_id, msgspec.structs.replace(result, content="", images=())),))

    # Committed states

    def advance(self, state: SessionState, changed: Mapping[str, RunRecord]) -> None:
        """Adopt a committed decision as the current state."""
        self.state = state
        self.records |= changed

    def wake_waiters(self) -> None:
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None

    async def wait_until(self, holds: Callable[[SessionState], bool]) -> None:
        """Wait until a committed state of the session meets the condition."""
        while not holds(self.state):
            if self._changed is None:
                self._changed = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._changed)
