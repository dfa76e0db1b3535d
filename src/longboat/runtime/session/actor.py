"""The session actor: handles the commands of people and of the workspace, one after the other.

Owns what each command checks and answers; `CommandLoop` decides and writes. Callers may be canceled at any
moment: a command that has started runs to its end. Must not know HTTP, SQL or providers.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
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
from longboat.core.state import SessionState
from longboat.core.turn import has_words
from longboat.errors import (
    EmptyPrompt,
    RunNotEditable,
    SessionBusy,
    SessionClosing,
    StoreUnavailable,
)
from longboat.runtime.protocols import WorkspaceServices
from longboat.runtime.session.command_loop import CommandLoop
from longboat.runtime.session.crash_repair import repair_transcript, view_of
from longboat.runtime.session.live_session import LiveSession
from longboat.runtime.session.submit import check_delivery
from longboat.runtime.session.unit_builder import NO_TURN, UnitBuilder
from longboat.runtime.store_retry import retry_later
from longboat.runtime.turn.outcome import Stop
from longboat.store.changes import delete_session
from longboat.store.protocol import UniqueViolated
from longboat.store.records import RunRecord, SessionRecord
from longboat.wire.events import Change
from longboat.wire.models import Accepted, Canceled, Delivery, Run, RunState, Session
from longboat.wire.requests import EditRun, Revert, UpdateSession
from longboat.wire.review import Reverted
from longboat.wire.workshop import Undone

logger = logging.getLogger(__name__)


class SessionActor:
    def __init__(self, services: WorkspaceServices, known: SessionRecord, *, leaving: bool, held: bool) -> None:
        self.live = LiveSession(known, leaving=leaving, held=held)
        self._services = services
        self._loop = CommandLoop(services, self.live)
        self._mailbox = self._loop.mailbox
        self._deleting = False

    @property
    def session(self) -> Session:
        return self.live.session

    @property
    def state(self) -> SessionState:
        return self.live.state

    @property
    def engaged(self) -> bool:
        """Whether anything is unfinished or being decided."""
        return bool(self.live.state.seqs) or self._mailbox.working

    # Commands

    async def update(self, request: UpdateSession) -> Session:
        return await self._loop.update(request)

    def interrupt(self) -> None:
        """Interrupt the turn: the server cannot wait any longer (B5)."""
        if self._loop.turn is not None:
            self._loop.turn.stop(Stop.INTERRUPT)

    async def accept(self, record: RunRecord) -> Accepted:
        return await self._mailbox.do(lambda: self._accept(record))

    async def cancel(self, by: str | None = None) -> Canceled:
        return await self._mailbox.do(lambda: self._cancel_many(CancelSession(), tuple(self.live.state.seqs), by))

    async def clear_queue(self, by: str | None = None) -> Canceled:
        return await self._mailbox.do(
            lambda: self._cancel_many(ClearQueue(), tuple(view.run_id for view in self.live.state.waiting), by)
        )

    async def cancel_run(self, run_id: str, by: str | None = None) -> Run | None:
        """Cancel a run and return it; None if it is not unfinished."""
        return await self._mailbox.do(lambda: self._cancel_run(run_id, by))

    async def edit_run(self, run_id: str, request: EditRun) -> Run | None:
        return await self._mailbox.do(lambda: self._edit_run(run_id, request))

    async def undo(self) -> Undone:
        return await self._mailbox.do(self._undo)

    async def redo(self) -> Undone:
        return await self._mailbox.do(self._redo)

    async def revert(self, wanted: Revert) -> Reverted:
        return await self._mailbox.do(lambda: self._revert(wanted))

    async def redo_revert(self, revert_id: str, client_id: str | None) -> Reverted:
        return await self._mailbox.do(lambda: self._redo_revert(revert_id, client_id))

    def leave(self) -> None:
        """Leave. Requested at once, so that no turn ends before it."""
        self._mailbox.post(lambda: self._loop.apply(Leave()))

    async def restore(self, records: Sequence[RunRecord], *, resume: bool) -> None:
        """Restore the unfinished runs from the store after a crash or a restart (B6)."""
        await self._services.asks.load()  # each time: asks that a failed attempt withdrew are still pending
        await self._mailbox.do(lambda: self._restore(records, resume))

    async def delete(self, first: Callable[[], Awaitable[None]]) -> None:
        """Cancel all runs, wait until they have ended, run the caller's cleanup, then delete the session."""
        self._deleting = True
        try:
            await self.cancel()
            await self.live.wait_until(lambda state: not state.seqs)
            await self._mailbox.do(lambda: self._delete(first))
        except BaseException:
            self._deleting = False
            raise

    # The commands' work, inside the mailbox

    async def _accept(self, record: RunRecord) -> Accepted:
        self.live.check_exists()
        if self._deleting:
            raise SessionClosing(self.live.row.id)
        if record.run.run_id in self.live.records:
            raise UniqueViolated(f"run {record.run.run_id} is known")
        # Taken here, where nothing can come between: within a session, prompts are accepted in the order of seq.
        run = msgspec.structs.replace(record.run, seq=self._services.store.next_seq())
        command = Accept(run_id=run.run_id, seq=run.seq, delivery=run.delivery)
        await self._loop.apply(command, records=[replace(record, run=run)])
        self._services.host.run_accepted(run.run_id, self.live.row.id)
        self._enter_next(run.run_id)
        return Accepted(
            run_id=run.run_id, seq=run.seq, state=RunState.ACCEPTED, position=self.live.state.position(run.run_id)
        )

    def _enter_next(self, run_id: str) -> None:
        self._mailbox.post(lambda: self._enter(run_id))

    async def _enter(self, run_id: str) -> None:
        own = self.live.state.find(run_id)
        # An older one whose entry the store refused comes first: the order is that of acceptance (L8).
        due = [run for run in self.live.state.accepted if own is not None and run.seq <= own.seq]
        try:
            for run in due:
                await self._start(run.run_id)
        except StoreUnavailable:
            # Accepted is accepted: it enters as soon as the store writes again, or after the next start.
            retry_later(self._enter_next, run_id)

    async def _start(self, run_id: str) -> None:
        try:
            await self._loop.apply(Enter(run_id=run_id))
        except StoreUnavailable:
            raise
        except Exception:
            # A bug of ours. No client may wait forever for a run that cannot start (E1).
            logger.exception("a run could not be started", extra={"run_id": run_id})
            await self._loop.apply(FailRun(run_id=run_id))

    async def _cancel_many(
        self, command: CancelSession | ClearQueue, run_ids: tuple[str, ...], by: str | None
    ) -> Canceled:
        await self._loop.cancel(command, by)
        return Canceled(canceled=run_ids)

    async def _cancel_run(self, run_id: str, by: str | None) -> Run | None:
        if run_id not in self.live.records:
            return None
        await self._loop.cancel(CancelRun(run_id=run_id), by)
        return self.live.run(run_id)

    async def _edit_run(self, run_id: str, request: EditRun) -> Run | None:
        run = self.live.run(run_id)
        if run is None:
            return None
        if run.state not in (RunState.ACCEPTED, RunState.QUEUED):
            raise RunNotEditable(run_id, run.state)
        if run.state is RunState.QUEUED and run.cancel_requested:
            raise RunNotEditable(run_id, "canceled")
        options = self.live.records[run_id].options
        if options.summarize or options.shell is not None:
            raise RunNotEditable(run_id, "a summary or a command, no prompt")
        delivery = request.delivery or run.delivery
        if self._services.uses_mcp_prompt(run.prompt if request.prompt is None else request.prompt):
            delivery = Delivery.QUEUE
        check_delivery(delivery, schema=options.schema is not None, plan=options.plan)
        if request.prompt is not None and not has_words(request.prompt, self.live.records[run_id].attachments):
            raise EmptyPrompt
        await self._loop.apply(ChangeDelivery(run_id=run_id, delivery=delivery), prompt=request.prompt)
        return self.live.run(run_id)

    async def _restore(self, records: Sequence[RunRecord], resume: bool) -> None:
        # A person's command was cut off and may have had effects, so we do not repeat it.
        resume = resume and not any(r.options.shell is not None for r in records if r.run.state is RunState.ACTIVE)
        command = Restore(runs=tuple(view_of(record) for record in records), resume=resume)
        # Looks ahead at the decision: how to repair the transcript depends on what becomes of the active run.
        _, effects = decide(self.live.state, command)
        active = next((record.run for record in records if record.run.state is RunState.ACTIVE), None)
        ending = NO_TURN
        if active is not None:
            # Everything before a summary is complete, and the summary itself is not an answer.
            messages = await self._services.store.reads.messages(self.live.row.id, after=self.live.summary_seq)
            ending = repair_transcript(messages, active, effects, self.live.next_message_seq, asks=self._services.asks)
        await self._loop.apply(command, records=records, ending=ending)
        for run_id in self.live.records:
            self._services.host.run_accepted(run_id, self.live.row.id)

    async def _undo(self) -> Undone:
        self._check_quiet()
        undone, self.live.summary_seq = await self._services.undo.undo(self.live.row.id)
        return undone

    async def _redo(self) -> Undone:
        self._check_quiet()
        undone, self.live.summary_seq = await self._services.undo.redo(self.live.row.id)
        return undone

    async def _revert(self, wanted: Revert) -> Reverted:
        self._check_quiet()
        return await self._services.review.revert(self.live.row.id, wanted)

    async def _redo_revert(self, revert_id: str, client_id: str | None) -> Reverted:
        self._check_quiet()
        return await self._services.review.redo(self.live.row.id, revert_id, client_id)

    def _check_quiet(self) -> None:
        if self.live.state.seqs:
            raise SessionBusy(self.live.row.id)

    async def _delete(self, first: Callable[[], Awaitable[None]]) -> None:
        self.live.check_exists()
        await first()
        builder = UnitBuilder(self.live.row, {}, self.live.state, self.live.next_message_seq)
        builder.add(delete_session(self.live.row.id))
        builder.tell(Change.DELETED, self.live.row)
        await self._services.store.submit(builder.unit())
        self.live.is_deleted = True
        self._services.host.session_deleted(self.live.row.id)
