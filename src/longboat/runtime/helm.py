"""The helm of a session: one command at a time is decided by the core, committed, then acted upon.

Owns the session's state, the records of its unfinished runs and its running turn. Must not know what commands there are
for people, nor HTTP, SQL or providers.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import msgspec

from longboat.core.commands import (
    Command,
    DrainStep,
    EndTurn,
    FailRun,
    SendStep,
)
from longboat.core.effects import (
    CancelRequested,
    Effect,
    PromptWithdrawn,
    RunFinished,
    RunFolded,
    RunResumed,
    RunStarted,
)
from longboat.core.lifecycle import decide
from longboat.core.state import SessionState
from longboat.errors import SessionNotFound
from longboat.runtime.account import enter, title_write
from longboat.runtime.booking import NO_TURN, NOTHING_ASKED, Booking, Ending
from longboat.runtime.ends import Stop
from longboat.runtime.home import Home
from longboat.runtime.insistence import insist
from longboat.runtime.mailbox import Mailbox
from longboat.runtime.tally import NOTHING, Spending, Tally
from longboat.runtime.titles import write_title
from longboat.runtime.turn import Turn
from longboat.store.rows import RunRecord
from longboat.wire.events import Change
from longboat.wire.models import Message, Outcome, Run, RunState, Session, Usage

logger = logging.getLogger(__name__)


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
        return bool(self._state.runs) or self._mailbox.working

    def run(self, run_id: str) -> Run | None:
        """An unfinished run, with its present place in the queue."""
        record = self._records.get(run_id)
        if record is None:
            return None
        return msgspec.structs.replace(record.run, position=self._state.position(run_id))

    def queued(self) -> list[Run]:
        runs = [self.run(view.run_id) for view in self._state.in_state(RunState.QUEUED)]
        return [run for run in runs if run is not None]

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
        records: list[RunRecord] | None = None,
        ending: Ending = NO_TURN,
        prompt: str | None = None,
        by: str | None = None,
    ) -> None:
        after, effects = decide(self._state, command)
        known = self._records | {record.run.run_id: record for record in records or ()}
        if effects or (self._used.usage != Usage() and isinstance(command, DrainStep)):
            booking = Booking(self._session, known, after, self.next_message_seq, ending=ending, prompt=prompt, by=by)
            session = await self._commit(booking, effects, after)
            known = booking.records
            self._folded |= {e.run_id: booking.prompts[e.run_id] for e in effects if isinstance(e, RunFolded)}
            self._put_session(session, booking)
        self._state, self._records = after, known
        for effect in effects:
            self._act(effect)
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
            first = booking.records[next(iter(booking.prompts))]
            if first.options.shell is None:  # no model has a part in a person's command
                title = write_title(self._home, self, session.title, first.run)
                self._home.tasks.spawn(title, name=f"title {session.id}")

    def _act(self, effect: Effect) -> None:
        match effect:
            case RunStarted() | RunResumed():
                # Registered before anything else can run, so a cancel that comes now finds it.
                self._turn = Turn(self._home, self, self._records[effect.run_id])
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
                elif ending.withdrawn.writes:
                    ending = replace(ending, withdrawn=NOTHING_ASKED)
                elif queued := self._state.in_state(RunState.QUEUED):
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
