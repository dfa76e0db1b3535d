"""The session actor: one command at a time, decided by the core, committed, then acted upon.

Owns the session's state, the records of its unfinished runs and its running turn. Callers may vanish at any moment: a
command once taken runs to its end. Must not know HTTP, SQL or providers.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import msgspec

from longboat.core.commands import (
    Accept,
    CancelRun,
    CancelSession,
    ChangeDelivery,
    ClearQueue,
    Command,
    DrainStep,
    EndTurn,
    Enter,
    FailRun,
    Leave,
    Restore,
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
from longboat.core.state import RunView, SessionState
from longboat.core.turn import has_words
from longboat.errors import (
    EmptyPrompt,
    RunNotEditable,
    SessionBusy,
    SessionClosing,
    SessionNotFound,
    StoreUnavailable,
)
from longboat.runtime.booking import NO_TURN, NOTHING_ASKED, Booking, Ending, title_write, titled, usage_write
from longboat.runtime.clock import now
from longboat.runtime.ends import Stop
from longboat.runtime.home import Home
from longboat.runtime.insistence import RETRY_S, insist
from longboat.runtime.intake import check_apart
from longboat.runtime.mailbox import Mailbox
from longboat.runtime.repair import mend
from longboat.runtime.tally import NOTHING, Spending, Tally
from longboat.runtime.titles import write_title
from longboat.runtime.turn import WHOLE, Turn
from longboat.store.protocol import UniqueViolated, Write
from longboat.store.rows import RunRecord, read_messages
from longboat.wire.events import Change
from longboat.wire.models import Accepted, Canceled, Delivery, Message, Outcome, Run, RunState, Session, Usage
from longboat.wire.requests import EditRun
from longboat.wire.workshop import Undone

T = TypeVar("T")

logger = logging.getLogger(__name__)


class SessionActor:
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
        self._deleting = False
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

    # Commands

    async def accept(self, record: RunRecord) -> Accepted:
        return await self._mailbox.do(lambda: self._accept(record))

    async def cancel(self, by: str | None = None) -> Canceled:
        return await self._mailbox.do(
            lambda: self._cancel_many(CancelSession(), [view.run_id for view in self._state.runs], by)
        )

    async def clear_queue(self, by: str | None = None) -> Canceled:
        return await self._mailbox.do(
            lambda: self._cancel_many(ClearQueue(), [run.run_id for run in self.queued()], by)
        )

    async def cancel_run(self, run_id: str, by: str | None = None) -> Run | None:
        """The run after the cancel; None if it is not among the unfinished."""
        return await self._mailbox.do(lambda: self._cancel_run(run_id, by))

    async def edit_run(self, run_id: str, request: EditRun) -> Run | None:
        return await self._mailbox.do(lambda: self._edit_run(run_id, request))

    async def rename(self, title: str, *, only_from: str | None = None) -> Session:
        """`only_from`: leave the title alone if somebody changed it meanwhile."""
        return await self._mailbox.do(lambda: self._rename(title, only_from))

    async def undo(self) -> Undone:
        return await self._mailbox.do(self._undo)

    async def redo(self) -> Undone:
        return await self._mailbox.do(self._redo)

    async def leave(self) -> None:
        await self._mailbox.do(lambda: self._apply(Leave()))

    async def restore(self, records: list[RunRecord], *, resume: bool) -> None:
        """Take up after a crash or a restart what the store has (B6)."""
        await self._mailbox.do(lambda: self._restore(records, resume))

    async def delete(self, first: Callable[[], Awaitable[None]]) -> None:
        """Cancel all runs, wait for their ends, do what must come first, then delete the session."""
        self._deleting = True
        try:
            await self.cancel()
            await self.wait_until(lambda state: not state.runs)
            await self._mailbox.do(lambda: self._delete(first))
        except BaseException:
            self._deleting = False
            raise

    def interrupt(self) -> None:
        """The server cannot wait any longer (B5)."""
        if self._turn is not None:
            self._turn.stop(Stop.INTERRUPT)

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
            session = self._book(booking, effects, after, used)
            await self._home.store.submit(booking.unit())
        except BaseException:
            self._used = used + self._used
            raise
        return session

    def _book(self, booking: Booking, effects: tuple[Effect, ...], after: SessionState, used: Tally) -> Session:
        """Fill the booking; returns the session as it will be."""
        session = self._session
        if (usage := used.usage) != Usage():
            context = session.context_tokens if used.context is None else used.context
            session = msgspec.structs.replace(
                session, usage=session.usage + usage, context_tokens=context, updated_at=booking.at
            )
            booking.add(usage_write(session, usage))
        for write in used.writes(session, booking.at):
            booking.add(write)
        if after.busy and not self._state.busy:
            session = msgspec.structs.replace(session, updated_at=booking.at)
            booking.add(Write("session_touch", {"session_id": session.id, "updated_at": booking.at}, rows=1))
        ended = self._state.busy and not after.busy
        if ended:
            # Told before the terminal event: who has seen that may rely on everything else.
            booking.tell(Change.UPDATED, msgspec.structs.replace(session, busy=False))
        for effect in effects:
            if isinstance(effect, PromptWithdrawn):
                booking.withdraw(self._folded[effect.run_id])
            booking.book(effect)
        named = titled(session, booking)
        if named is not session:
            booking.add(title_write(named))
        told = session if ended else self._session
        if named is not told or (after.busy and not self._state.busy):
            booking.tell(Change.UPDATED, msgspec.structs.replace(named, busy=after.busy))
        return named

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

    # The commands' work, inside the mailbox

    def _check_there(self) -> None:
        """Somebody may have come with a session that another one has deleted since."""
        if self._gone:
            raise SessionNotFound(self._session.id)

    async def _accept(self, record: RunRecord) -> Accepted:
        self._check_there()
        if self._deleting:
            raise SessionClosing(self._session.id)
        if record.run.run_id in self._records:
            raise UniqueViolated(f"run {record.run.run_id} is known")
        # Handed out here, where nothing can come between: in a session, order of accept is order of seq.
        run = msgspec.structs.replace(record.run, seq=self._home.store.next_seq())
        command = Accept(run_id=run.run_id, seq=run.seq, delivery=run.delivery)
        await self._apply(command, records=[replace(record, run=run)])
        self._home.run_accepted(run.run_id, self._session.id)
        self._enter_next(run.run_id)
        return Accepted(
            run_id=run.run_id, seq=run.seq, state=RunState.ACCEPTED, position=self._state.position(run.run_id)
        )

    def _enter_next(self, run_id: str) -> None:
        self._mailbox.post(lambda: self._enter(run_id))

    async def _enter(self, run_id: str) -> None:
        own = self._state.find(run_id)
        # An older one whose entry the store refused goes first: order is by accept (L8).
        due = [run for run in self._state.in_state(RunState.ACCEPTED) if own is not None and run.seq <= own.seq]
        try:
            for run in due:
                await self._start(run.run_id)
        except StoreUnavailable:
            # Accepted is accepted: it enters as soon as the store writes again, or after the next start.
            asyncio.get_running_loop().call_later(RETRY_S, self._enter_next, run_id)

    async def _start(self, run_id: str) -> None:
        try:
            await self._apply(Enter(run_id=run_id))
        except StoreUnavailable:
            raise
        except Exception:
            # A defect of ours. Nobody may wait without end for a run that cannot start (E1).
            logger.exception("a run could not be started", extra={"run_id": run_id})
            await self._apply(FailRun(run_id=run_id))

    async def _cancel_many(self, command: Command, run_ids: list[str], by: str | None) -> Canceled:
        await self._apply(command, by=by)
        return Canceled(canceled=tuple(run_ids))

    async def _cancel_run(self, run_id: str, by: str | None) -> Run | None:
        if run_id not in self._records:
            return None
        await self._apply(CancelRun(run_id=run_id), by=by)
        return self.run(run_id)

    async def _edit_run(self, run_id: str, request: EditRun) -> Run | None:
        run = self.run(run_id)
        if run is None:
            return None
        if run.state not in (RunState.ACCEPTED, RunState.QUEUED):
            raise RunNotEditable(run_id, run.state)
        options = self._records[run_id].options
        if options.summarize or options.shell is not None:
            raise RunNotEditable(run_id, "a summary or a command, no prompt")
        delivery = request.delivery or run.delivery
        if self._home.asks_a_server(run.prompt if request.prompt is None else request.prompt):
            delivery = Delivery.QUEUE
        if options.schema is not None:
            check_apart(delivery)
        if request.prompt is not None and not has_words(request.prompt, self._records[run_id].attachments):
            raise EmptyPrompt
        await self._apply(ChangeDelivery(run_id=run_id, delivery=delivery), prompt=request.prompt)
        return self.run(run_id)

    async def _rename(self, title: str, only_from: str | None) -> Session:
        self._check_there()
        if only_from is not None and self._session.title != only_from:
            return self.session
        session = msgspec.structs.replace(self._session, title=title, updated_at=now())
        booking = Booking(session, self._records, self._state, self.next_message_seq)
        booking.add(title_write(session))
        booking.tell(Change.UPDATED, msgspec.structs.replace(session, busy=self._state.busy))
        await self._home.store.submit(booking.unit())
        self._session = session
        return self.session

    async def _settle_usage(self) -> None:
        if not self._gone and self._used.usage != Usage():
            booking = Booking(self._session, self._records, self._state, self.next_message_seq)
            self._session = await self._commit(booking, (), self._state)

    async def _restore(self, records: list[RunRecord], resume: bool) -> None:
        # A person's command was cut off, and may have had effects: it is not made again.
        resume = resume and not any(r.options.shell is not None for r in records if r.run.state is RunState.ACTIVE)
        command = Restore(runs=tuple(_view(record) for record in records), resume=resume)
        # A look ahead at the decision: the transcript is mended for what becomes of the run that was active.
        _, effects = decide(self._state, command)
        active = next((record.run for record in records if record.run.state is RunState.ACTIVE), None)
        ending = NO_TURN
        if active is not None:
            waiting = self._home.asks.calls(active.run_id)
            ends = {effect.run_id: effect.outcome for effect in effects if isinstance(effect, RunFinished)}
            # All up to a summary is whole, and the summary itself is no answer.
            messages = await self._home.store.read(
                lambda reader: read_messages(reader, self._session.id, after=self.summary_seq, limit=WHOLE)
            )
            ending = mend(messages, active, ends.get(active.run_id), self.next_message_seq, waiting=waiting)
            if active.run_id in ends:
                ending = self._home.asks.withdraw(active.run_id).joined(ending)
        await self._apply(command, records=records, ending=ending)
        for run_id in self._records:
            self._home.run_accepted(run_id, self._session.id)

    async def _undo(self) -> Undone:
        self._check_quiet()
        undone, self.summary_seq = await self._home.undo.undo(self._session.id)
        return undone

    async def _redo(self) -> Undone:
        self._check_quiet()
        undone, self.summary_seq = await self._home.undo.redo(self._session.id)
        return undone

    def _check_quiet(self) -> None:
        if self._state.runs:
            raise SessionBusy(self._session.id)

    async def _delete(self, first: Callable[[], Awaitable[None]]) -> None:
        self._check_there()
        await first()
        booking = Booking(self._session, {}, self._state, self.next_message_seq)
        booking.add(Write("session_delete", {"session_id": self._session.id}, rows=1))
        booking.tell(Change.DELETED, self._session)
        await self._home.store.submit(booking.unit())
        self._gone = True
        self._home.session_deleted(self._session.id)


def _view(record: RunRecord) -> RunView:
    orphan = record.run.parent_run_id is not None
    return RunView(
        run_id=record.run.run_id,
        seq=record.run.seq,
        delivery=record.run.delivery,
        # A sub-agent's run is nobody's any more: the call that waited for it is gone.
        state=RunState.ACCEPTED if orphan and record.run.state is RunState.QUEUED else record.run.state,
        cancel_requested=record.run.cancel_requested or orphan,
        # Whether its step was sent is not on disk: better too late than a prompt the model may have seen.
        sent=record.run.state is RunState.FOLDED,
        tries=record.tries,
    )
