"""The session actor: what people and the workspace may ask of a session, one after the other.

Owns what each command checks and answers; the helm decides and writes. Callers may vanish at any moment: a command once
taken runs to its end. Must not know HTTP, SQL or providers.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec

from longboat.core.commands import (
    Accept,
    CancelRun,
    CancelSession,
    ChangeDelivery,
    ClearQueue,
    Enter,
    FailRun,
    Leave,
    Restore,
)
from longboat.core.lifecycle import decide
from longboat.core.turn import has_words
from longboat.errors import (
    EmptyPrompt,
    RunNotEditable,
    SessionBusy,
    SessionClosing,
    StoreUnavailable,
)
from longboat.runtime.booking import NO_TURN, Booking
from longboat.runtime.helm import Helm
from longboat.runtime.insistence import retry_later
from longboat.runtime.intake import check_apart
from longboat.runtime.repair import mend, seen
from longboat.store.protocol import UniqueViolated, Write
from longboat.store.rows import RunRecord, read_messages
from longboat.wire.events import Change
from longboat.wire.models import Accepted, Canceled, Delivery, Run, RunState
from longboat.wire.requests import EditRun
from longboat.wire.workshop import Undone

logger = logging.getLogger(__name__)


class SessionActor(Helm):
    _deleting = False

    # Commands

    async def accept(self, record: RunRecord) -> Accepted:
        return await self._mailbox.do(lambda: self._accept(record))

    async def cancel(self, by: str | None = None) -> Canceled:
        return await self._mailbox.do(lambda: self._cancel_many(CancelSession(), tuple(self._state.seqs), by))

    async def clear_queue(self, by: str | None = None) -> Canceled:
        return await self._mailbox.do(
            lambda: self._cancel_many(ClearQueue(), tuple(view.run_id for view in self._state.waiting), by)
        )

    async def cancel_run(self, run_id: str, by: str | None = None) -> Run | None:
        """The run after the cancel; None if it is not among the unfinished."""
        return await self._mailbox.do(lambda: self._cancel_run(run_id, by))

    async def edit_run(self, run_id: str, request: EditRun) -> Run | None:
        return await self._mailbox.do(lambda: self._edit_run(run_id, request))

    async def undo(self) -> Undone:
        return await self._mailbox.do(self._undo)

    async def redo(self) -> Undone:
        return await self._mailbox.do(self._redo)

    def leave(self) -> None:
        """Asked for at once, so that no end of a turn comes before it."""
        self._mailbox.post(lambda: self._apply(Leave()))

    async def restore(self, records: list[RunRecord], *, resume: bool) -> None:
        """Take up after a crash or a restart what the store has (B6)."""
        await self._home.asks.load()  # each time: what was taken back by a try that failed is still asked
        await self._mailbox.do(lambda: self._restore(records, resume))

    async def delete(self, first: Callable[[], Awaitable[None]]) -> None:
        """Cancel all runs, wait for their ends, do what must come first, then delete the session."""
        self._deleting = True
        try:
            await self.cancel()
            await self.wait_until(lambda state: not state.seqs)
            await self._mailbox.do(lambda: self._delete(first))
        except BaseException:
            self._deleting = False
            raise

    # The commands' work, inside the mailbox

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
        due = [run for run in self._state.accepted if own is not None and run.seq <= own.seq]
        try:
            for run in due:
                await self._start(run.run_id)
        except StoreUnavailable:
            # Accepted is accepted: it enters as soon as the store writes again, or after the next start.
            retry_later(self._enter_next, run_id)

    async def _start(self, run_id: str) -> None:
        try:
            await self._apply(Enter(run_id=run_id))
        except StoreUnavailable:
            raise
        except Exception:
            # A defect of ours. Nobody may wait without end for a run that cannot start (E1).
            logger.exception("a run could not be started", extra={"run_id": run_id})
            await self._apply(FailRun(run_id=run_id))

    async def _cancel_many(
        self, command: CancelSession | ClearQueue, run_ids: tuple[str, ...], by: str | None
    ) -> Canceled:
        await self._cancel(command, by)
        return Canceled(canceled=run_ids)

    async def _cancel_run(self, run_id: str, by: str | None) -> Run | None:
        if run_id not in self._records:
            return None
        await self._cancel(CancelRun(run_id=run_id), by)
        return self.run(run_id)

    async def _edit_run(self, run_id: str, request: EditRun) -> Run | None:
        run = self.run(run_id)
        if run is None:
            return None
        if run.state not in (RunState.ACCEPTED, RunState.QUEUED):
            raise RunNotEditable(run_id, run.state)
        if run.state is RunState.QUEUED and run.cancel_requested:
            raise RunNotEditable(run_id, "canceled")
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

    async def _restore(self, records: list[RunRecord], resume: bool) -> None:
        # A person's command was cut off, and may have had effects: it is not made again.
        resume = resume and not any(r.options.shell is not None for r in records if r.run.state is RunState.ACTIVE)
        command = Restore(runs=tuple(seen(record) for record in records), resume=resume)
        # A look ahead at the decision: the transcript is mended for what becomes of the run that was active.
        _, effects = decide(self._state, command)
        active = next((record.run for record in records if record.run.state is RunState.ACTIVE), None)
        ending = NO_TURN
        if active is not None:
            # All up to a summary is whole, and the summary itself is no answer.
            messages = await self._home.store.read(
                lambda reader: read_messages(reader, self._session.id, after=self.summary_seq)
            )
            ending = mend(messages, active, effects, self.next_message_seq, asks=self._home.asks)
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
        if self._state.seqs:
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
