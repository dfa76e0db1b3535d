"""The helm of a session: one command at a time is decided by the core, committed, then acted upon.

Owns the session's state, the records of its unfinished runs and its running turn. Must not know what commands there are
for people, nor HTTP, SQL or providers.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from longboat.core.commands import (
    CancelRun,
    CancelSession,
    ClearQueue,
    Command,
    DrainStep,
    EndTurn,
    FailRun,
    FinishCovered,
    SendStep,
)
from longboat.core.effects import (
    CancelRequested,
    CoverSettled,
    Effect,
    PromptWithdrawn,
    QueueCovered,
    RunFinished,
    RunFolded,
    RunResumed,
    RunStarted,
)
from longboat.core.lifecycle import decide
from longboat.core.state import SessionState, is_covered, place_of
from longboat.errors import CancelNotDurable, SessionNotFound, StoreUnavailable
from longboat.runtime.account import enter, title_write
from longboat.runtime.booking import NO_TURN, Booking, Ending
from longboat.runtime.ends import Stop
from longboat.runtime.home import Home
from longboat.runtime.insistence import insist, retry_later
from longboat.runtime.mailbox import Mailbox
from longboat.runtime.tally import NOTHING, Spending, Tally
from longboat.runtime.titles import write_title
from longboat.runtime.turn import Turn
from longboat.store.rows import RunRecord
from longboat.wire.events import Change
from longboat.wire.models import Message, Outcome, Run, RunState, Session, Usage

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cover:
    """Whose cancel covers the queued runs with a seq from `first` to `last`."""

    first: int
    last: int
    by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cancel:
    """A cancel that is to be written, and who wants it."""

    command: CancelSession | CancelRun | ClearQueue
    by: str | None


class Helm:
    def __init__(self, home: Home, session: Session, *, last_message: int, summary_seq: int, leaving: bool) -> None:
        self._home = home
        self._state = SessionState(leaving=leaving)
        self._records: dict[str, RunRecord] = {}
        self._folded: dict[str, Message] = {}
        self._session = session
        self._used = NOTHING
        """What steps have used and tools they called, and the store does not say yet."""
        self._last_message = last_message
        self._turn: Turn | None = None
        self._mailbox = Mailbox(home.tasks, name=f"session {session.id}", on_idle=home.settled)
        self._gone = False
        self._changed: asyncio.Future[None] | None = None
        self._covers: list[_Cover] = []
        self._finishing = False
        """Runs that a cancel covers are being finished, batch after batch."""
        self._unsaved: list[_Cancel] = []
        """Cancels that the store could not take. No other decision is written before them."""
        self._saving = False
        """They are to be tried again soon."""
        self.summary_seq = summary_seq

    # What others may look at

    @property
    def session(self) -> Session:
        return msgspec.structs.replace(self._session, busy=self._state.busy)

    @property
    def state(self) -> SessionState:
        return self._state

    @property
    def engaged(self) -> bool:
        """Something is unfinished, or being decided."""
        return bool(self._state.seqs) or self._mailbox.working

    def run(self, run_id: str) -> Run | None:
        """An unfinished run, with its present place in the queue."""
        record = self._records.get(run_id)
        return self.placed(record.run) if record is not None else None

    def placed(self, run: Run) -> Run:
        """A run of this session with its present place in the queue; one that a cancel has taken out of it says so."""
        view = self._state.find(run.run_id)
        if view is not None and is_covered(view):
            run = self._as_canceled(run)
        return msgspec.structs.replace(run, position=self._state.position(run.run_id))

    def queued(self) -> list[Run]:
        """The runs that wait, first one first."""
        state = self._state
        return [
            msgspec.structs.replace(
                self._records[view.run_id].run,
                position=state.busy + place + place_of(state.accepted, view.seq),
            )
            for place, view in enumerate(state.waiting)
        ]

    async def wait_until(self, holds: Callable[[SessionState], bool]) -> None:
        """Until a committed state of the session is so."""
        while not holds(self._state):
            if self._changed is None:
                self._changed = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._changed)

    def interrupt(self) -> None:
        """The server cannot wait any longer (B5)."""
        if self._turn is not None:
            self._turn.stop(Stop.INTERRUPT)

    async def rename(self, title: str, *, only_from: str | None = None) -> Session:
        """`only_from`: leave the title alone if somebody changed it meanwhile."""
        return await self._mailbox.do(lambda: self._rename(title, only_from))

    # What the turn asks

    async def drain_step(self, run_id: str) -> None:
        """A turn outlives a store that fails for a while."""
        step = DrainStep(run_id=run_id)
        if not self._is_settled(step):
            await insist(lambda: self._mailbox.do(lambda: self._apply(step)))

    async def send_step(self, run_id: str) -> None:
        step = SendStep(run_id=run_id)
        if not self._is_settled(step):
            await self._mailbox.do(lambda: self._apply(step))

    def _is_settled(self, step: DrainStep | SendStep) -> bool:
        """Nobody else asks for anything and the step changes nothing: most steps need not wait for their turn."""
        idle = not self._mailbox.working and self._used.usage == Usage()
        return idle and decide(self._state, step) == (self._state, ())

    def next_message_seq(self) -> int:
        self._last_message += 1
        return self._last_message

    def add_usage(self, run_id: str, model: str, usage: Usage, *, context: int | None = None) -> None:
        """Goes to disk with the next decision: all that is told of a session is told in one order."""
        self._used += Tally(spendings=(Spending(run_id=run_id, model=model, usage=usage),), context=context)

    async def settle_usage(self) -> None:
        """What was used goes to disk now: nothing else may be decided for long."""
        await self._mailbox.do(self._settle_usage)

    def add_call(self, tool: str, *, failed: bool) -> None:
        self._used += Tally(calls=((tool, failed),))

    # One command: decide, commit, act

    async def _apply(
        self,
        command: Command,
        *,
        records: Sequence[RunRecord] = (),
        ending: Ending = NO_TURN,
        prompt: str | None = None,
        by: str | None = None,
    ) -> None:
        """Decide and commit a command, then act on it. Cancels that could not be written go first: their place in the
        order of decisions is that of their request (L15)."""
        after, effects = decide(self._state, command)
        if effects and self._unsaved:
            await self._save_cancels()
            after, effects = decide(self._state, command)
        changed = {record.run.run_id: record for record in records}
        if effects or (self._used.usage != Usage() and isinstance(command, DrainStep)):
            booking = Booking(
                self._session,
                self._records,
                after,
                self.next_message_seq,
                new=records,
                ending=ending,
                prompt=prompt,
                by=by,
            )
            session = await self._commit(booking, effects, after)
            changed = booking.changed
            self._folded |= {e.run_id: booking.prompts[e.run_id] for e in effects if isinstance(e, RunFolded)}
            self._put_session(session, booking)
        self._state = after
        self._records |= changed
        for effect in effects:
            self._act(effect, by)
        self._go_on()

    def _go_on(self) -> None:
        """After a decision: finish what a cancel covers, and wake those who wait for a state of the session."""
        if self._state.covered and not self._finishing:
            self._finishing = True
            self._finish_next_batch()
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None

    async def _commit(self, booking: Booking, effects: tuple[Effect, ...], after: SessionState) -> Session:
        """Write the booking with what was used since; returns the session as it is then."""
        used, self._used = self._used, NOTHING
        try:
            busy = self._state.busy, after.busy
            session = enter(booking, self._session, effects, used, busy=busy, folded=self._folded)
            await self._home.store.submit(booking.unit())
        except BaseException:
            self._used = used + self._used
            raise
        return session

    def _put_session(self, session: Session, booking: Booking) -> None:
        retitled = session.title != self._session.title
        self._session = session
        if retitled:
            first = booking.record(next(iter(booking.prompts)))
            if first.options.shell is None:  # no model has a part in a person's command
                title = write_title(self._home, self, session.title, first.run)
                self._home.tasks.spawn(title, name=f"title {session.id}")

    def _act(self, effect: Effect, by: str | None) -> None:
        match effect:
            case QueueCovered():
                self._covers.append(_Cover(first=effect.first, last=effect.last, by=by))
            case CoverSettled():
                self._covers.clear()
            case RunStarted() | RunResumed():
                # Registered before anything else can run, so a cancel that comes now finds it.
                self._turn = Turn(self._home, self, self._records[effect.run_id])
                self._turn.start()
                self._home.tasks.spawn(self._drive(self._turn), name=f"turn {effect.run_id}")
            case CancelRequested() if self._turn is not None and self._turn.run_id == effect.run_id:
                self._turn.stop(Stop.CANCEL, by=self._records[effect.run_id].run.canceled_by)
            case RunFolded() if self._turn is not None:
                self._turn.fold(self._folded[effect.run_id])
            case PromptWithdrawn() if self._turn is not None:
                self._turn.withdraw(self._folded.pop(effect.run_id))
            case RunFinished():
                self._folded.pop(effect.run_id, None)
                self._home.run_finished(self._records.pop(effect.run_id).run)

    # Cancels: of a long queue, and those that cannot be written

    def _as_canceled(self, run: Run) -> Run:
        by = next((cover.by for cover in self._covers if cover.first <= run.seq <= cover.last), run.canceled_by)
        return msgspec.structs.replace(run, cancel_requested=True, canceled_by=by)

    def _finish_next_batch(self) -> None:
        self._mailbox.post(self._finish_batch)

    async def _finish_batch(self) -> None:
        """Finish some of the runs that a cancel covers; whatever else was asked of the session goes before the rest."""
        command = FinishCovered()
        covered = [self._records[view.run_id] for view in self._state.covered[: command.at_once]]
        try:
            await self._apply(command, records=[replace(rec, run=self._as_canceled(rec.run)) for rec in covered])
        except StoreUnavailable:
            retry_later(self._finish_next_batch)
            return
        except Exception:
            logger.exception("canceled runs could not be finished", extra={"session_id": self._session.id})
            self._finishing = False
            return
        self._finishing = bool(self._state.covered)
        if self._finishing:
            self._finish_next_batch()

    async def _cancel(self, command: CancelSession | CancelRun | ClearQueue, by: str | None) -> None:
        """If the cancel cannot be written, what it covers is stopped all the same, and it is written later (L15)."""
        try:
            await self._apply(command, by=by)
        except StoreUnavailable as error:
            if isinstance(command, CancelRun) and self._is_folded(command.run_id):
                raise  # nothing runs for it alone, and once its step is sent it would be too late
            self._stop_without_saving(command, by)
            raise CancelNotDurable from error

    def _is_folded(self, run_id: str) -> bool:
        view = self._state.find(run_id)
        return view is not None and view.state is RunState.FOLDED

    def _stop_without_saving(self, command: CancelSession | CancelRun | ClearQueue, by: str | None) -> None:
        active = self._state.active
        _, effects = decide(self._state, command)
        if active is not None and self._turn is not None and CancelRequested(run_id=active.run_id) in effects:
            self._turn.stop(Stop.CANCEL, by=by)
        if all(cancel.command != command for cancel in self._unsaved):
            self._unsaved.append(_Cancel(command=command, by=by))
        self._save_later()

    def _save_later(self) -> None:
        if not self._saving:
            self._saving = True
            retry_later(lambda: self._mailbox.post(self._try_to_save))

    async def _try_to_save(self) -> None:
        self._saving = False
        try:
            await self._save_cancels()
        except StoreUnavailable:
            self._save_later()

    async def _save_cancels(self) -> None:
        unsaved, self._unsaved = self._unsaved, []
        while unsaved:
            try:
                await self._apply(unsaved[0].command, by=unsaved[0].by)
            except StoreUnavailable:
                self._unsaved = unsaved
                raise
            except Exception:
                logger.exception("a cancel could not be saved", extra={"session_id": self._session.id})
            unsaved.pop(0)

    # The turn

    async def _drive(self, turn: Turn) -> None:
        """See a turn to its end. Only the turn's own task is ever canceled; this one reports what happened (T4)."""
        outcome, ending = await turn.unwind()
        while True:
            try:
                await self._end(turn.run_id, outcome, ending)
                break
            except Exception:
                # A defect of ours in what goes with the end, and the end matters more (E1): first without the turn's
                # last words, then without taking back what it asked, then without the runs that it would start.
                logger.exception("the end of a turn was refused", extra={"run_id": turn.run_id})
                if ending.writes or ending.entries:
                    ending, self._used = replace(ending, writes=(), entries=()), NOTHING
                elif ending.withdrawn:
                    ending = replace(ending, withdrawn=())
                elif queued := self._state.waiting:
                    fail = partial(self._apply, FailRun(run_id=queued[0].run_id))
                    await insist(partial(self._mailbox.do, fail))
                else:
                    raise
        if self._turn is turn:  # else the next one has started already
            self._turn = None  # an idle session keeps no transcript in memory

    async def _end(self, run_id: str, outcome: Outcome, ending: Ending) -> None:
        """While the store fails the run stays active, and health says why (E2)."""
        command = EndTurn(run_id=run_id, outcome=outcome)
        await insist(lambda: self._mailbox.do(lambda: self._apply(command, ending=ending)))

    async def _settle_usage(self) -> None:
        if not self._gone and self._used.usage != Usage():
            booking = Booking(self._session, self._records, self._state, self.next_message_seq)
            self._session = await self._commit(booking, (), self._state)

    async def _rename(self, title: str, only_from: str | None) -> Session:
        self._check_there()
        if only_from is not None and self._session.title != only_from:
            return self.session
        session = msgspec.structs.replace(self._session, title=title)  # no use of it: what was used last stays first
        booking = Booking(session, self._records, self._state, self.next_message_seq)
        booking.add(title_write(session))
        booking.tell(Change.UPDATED, msgspec.structs.replace(session, busy=self._state.busy))
        await self._home.store.submit(booking.unit())
        self._session = session
        return self.session

    def _check_there(self) -> None:
        """Somebody may have come with a session that another one has deleted since."""
        if self._gone:
            raise SessionNotFound(self._session.id)
