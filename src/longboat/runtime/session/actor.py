"""The session actor: handles the commands of people and of the workspace, one after the other.

Owns what each command checks and answers; `CommandLoop` decides and writes. Callers may be canceled at any
moment: a command that has started runs to its end. Must not know HTTP, SQL or providers.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
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
    Enter,
    FailRun,
    Leave,
    Restore,
)
from longboat.core.effects import CancelRequested
from longboat.core.lifecycle import decide
from longboat.core.state import SessionState
from longboat.core.turn import has_words
from longboat.errors import (
    EmptyPrompt,
    LongboatError,
    OwnerLost,
    RunNotEditable,
    SessionBusy,
    SessionClosing,
    StoreUnavailable,
)
from longboat.runtime.ownership import NODE_KEY
from longboat.runtime.protocols import WorkspaceServices
from longboat.runtime.session.command_loop import CommandLoop, KeptAnswer, UnsavedCancel
from longboat.runtime.session.crash_repair import can_resume, repair_transcript, view_of
from longboat.runtime.session.live_session import LiveSession
from longboat.runtime.session.submit import check_delivery
from longboat.runtime.session.unit_builder import NO_TURN, UnitBuilder
from longboat.runtime.store_retry import retry_later
from longboat.runtime.turn.outcome import Stop
from longboat.runtime.turn.turn import Turn
from longboat.store.changes import delete_session, keep_cancel
from longboat.store.protocol import UniqueViolated
from longboat.store.records import RunRecord, SessionRecord
from longboat.wire.events import Change
from longboat.wire.ids import RETRY_KEY, first_key
from longboat.wire.models import Accepted, Canceled, Delivery, Message, Run, RunState, Session
from longboat.wire.requests import EditRun, Revert, UpdateSession
from longboat.wire.review import Reverted
from longboat.wire.workspace_state import Undone

logger = logging.getLogger(__name__)

T = TypeVar("T")

SLOW_STORE_S = 5.0
"""After this time, a cancel that waits for the store stops what it covers."""

_FIRST_KEYS = (NODE_KEY, RETRY_KEY)
"""How the keys begin that nodes and Longboat's clients make. When they repeat a request, they say so in its key: with a
key like this, a cancel is sent for the first time."""


def _digest(command: CancelSession | ClearQueue, key: str) -> str:
    return hashlib.sha256(f"{type(command).__name__} {first_key(key)}".encode()).hexdigest()


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

    @property
    def unsaved_cancels(self) -> tuple[UnsavedCancel, ...]:
        """Cancels that the store could not take."""
        return self._loop.unsaved_cancels()

    async def update(self, request: UpdateSession) -> Session:
        return await self._loop.update(request)

    def interrupt(self) -> None:
        """Interrupt the turn: the server cannot wait any longer (B5)."""
        if self._loop.turn is not None:
            self._loop.turn.stop(Stop.INTERRUPT)

    async def accept(self, record: RunRecord) -> Accepted:
        return await self._mailbox.do(lambda: self._accept(record))

    async def cancel(self, by: str | None = None, *, key: str | None = None) -> Canceled:
        """`key`: with the same one, a repeated cancel gets the first answer and covers nothing newer."""
        # A cancel that is repeated may be older than the turn: then its first answer counts (G5).
        turn = self._loop.turn if key is None or key.startswith(_FIRST_KEYS) else None
        return await self._stop_in_time(turn, by, lambda: self._cancel_many(CancelSession(), by, key))

    async def clear_queue(self, by: str | None = None, *, key: str | None = None) -> Canceled:
        return await self._mailbox.do(lambda: self._cancel_many(ClearQueue(), by, key))

    async def cancel_run(self, run_id: str, by: str | None = None) -> Run | None:
        """Cancel a run and return it; None if it is not unfinished."""
        turn = self._loop.turn
        covered = turn if turn is not None and turn.run_id == run_id else None
        return await self._stop_in_time(covered, by, lambda: self._cancel_run(run_id, by))

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

    async def restore(
        self, records: Sequence[RunRecord], *, resume: bool, cancels: Sequence[UnsavedCancel] = ()
    ) -> None:
        """Restore the unfinished runs from the store after a crash or a restart (B6). `cancels`: those that this server
        could not save before it closed the workspace."""
        await self._services.asks.load()  # each time: asks that a failed attempt withdrew are still pending
        await self._mailbox.do(lambda: self._restore(records, resume, cancels))

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

    async def _stop_in_time(self, turn: Turn | None, by: str | None, cancel: Callable[[], Awaitable[T]]) -> T:
        """Do the work of a cancel that covers this turn. If the store takes too long over it, or over what comes first,
        stop the turn meanwhile (L15): its end is decided after the cancel."""
        if turn is None:
            return await self._mailbox.do(cancel)
        late = asyncio.get_running_loop().call_later(SLOW_STORE_S, partial(turn.stop, Stop.CANCEL, by=by))

        async def done() -> T:
            try:
                return await cancel()
            finally:
                late.cancel()

        return await self._mailbox.do(done)

    # The commands' work, inside the mailbox

    async def _accept(self, record: RunRecord) -> Accepted:
        self.live.check_exists()
        if self._deleting:
            raise SessionClosing(self.live.row.id)
        if record.run.run_id in self.live.records:
            raise UniqueViolated(f"run {record.run.run_id} is known")
        # Taken here, where nothing can come between: within a session, prompts are accepted in the order of seq.
        run = msgspec.structs.replace(record.run, seq=self._services.store.next_seq())
        started = await self._accept_and_start(replace(record, run=run))
        self._services.host.run_accepted(run.run_id, self.live.row.id)
        if not started:
            self._enter_next(run.run_id)
        return Accepted(
            run_id=run.run_id, seq=run.seq, state=RunState.ACCEPTED, position=self.live.state.position(run.run_id)
        )

    async def _accept_and_start(self, record: RunRecord) -> bool:
        """Accept the run. If the session is idle, start it in the same transaction; return whether it entered. Where
        another command waits, perhaps a cancel, the run enters after it (L5)."""
        run = record.run
        accept = Accept(run_id=run.run_id, seq=run.seq, delivery=run.delivery)
        if not self.live.state.seqs and not self.live.state.held and not len(self._mailbox):
            try:
                await self._loop.apply(accept, Enter(run_id=run.run_id), records=[record])
                return True
            except StoreUnavailable as error:
                if isinstance(error, OwnerLost):
                    raise
                # Perhaps only the start cannot be written now: in PostgreSQL, someone may hold the session's row.
            except (LongboatError, UniqueViolated):
                raise
            except Exception:
                # A bug of ours in what goes with the start. Accepted first, the run can end with an error (E1).
                logger.exception("a run could not be started", extra={"run_id": run.run_id})
        await self._loop.apply(accept, records=[record])
        return False

    def _enter_next(self, run_id: str) -> None:
        self._mailbox.post(lambda: self._enter(run_id))

    async def _enter(self, run_id: str) -> None:
        own = self.live.state.find(run_id)
        # An older one whose entry the store refused comes first: the order is that of acceptance (L8).
        due = [run for run in self.live.state.accepted if own is not None and run.seq <= own.seq]
        try:
            for run in due:
                await self._start(run.run_id)
        except OwnerLost:
            return  # the next owner's to start
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

    async def _cancel_many(self, command: CancelSession | ClearQueue, by: str | None, key: str | None) -> Canceled:
        if key is None:
            covered = self._covered_by(command)
            await self._loop.cancel(command, by)
            return covered
        self.live.check_exists()  # its answer is kept with the session
        digest = _digest(command, key)
        with suppress(StoreUnavailable):
            await self._loop.save_cancels()  # one of them may have this key
        try:
            answered = await self._services.store.reads.canceled_with(self.live.row.id, digest)
        except StoreUnavailable:
            # A cancel that may have been answered long ago must not stop what is newer (G5). One that is sent for the
            # first time stops what it covers all the same (L15).
            if not key.startswith(_FIRST_KEYS):
                raise
            answered = None
        if answered is not None:
            return answered
        covered = self._covered_by(command)
        kept = keep_cancel(self.live.row.id, digest, covered, int(time.time()))
        await self._loop.cancel(command, by, kept=KeptAnswer(key=digest, write=kept))
        return covered

    def _covered_by(self, command: CancelSession | ClearQueue) -> Canceled:
        state = self.live.state
        if isinstance(command, CancelSession):
            return Canceled(canceled=tuple(state.seqs))
        return Canceled(canceled=tuple(view.run_id for view in state.waiting))

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

    async def _restore(self, records: Sequence[RunRecord], resume: bool, cancels: Sequence[UnsavedCancel]) -> None:
        for cancel in cancels:
            records = await self._save_former(cancel, records)
        active = next((record for record in records if record.run.state is RunState.ACTIVE), None)
        summary_seq = self.live.summary_seq
        messages: list[Message] = []
        if active is not None:
            messages = await self._services.store.reads.messages(self.live.row.id, after=max(summary_seq - 1, 0))
            resume = can_resume(active, messages, wanted=resume)
        command = Restore(runs=tuple(view_of(record) for record in records), resume=resume)
        # Looks ahead at the decision: how to repair the transcript depends on what becomes of the active run.
        _, effects = decide(self.live.state, command)
        ending = NO_TURN
        if active is not None:
            # Everything before a summary is complete, and the summary itself is not an answer.
            later = [message for message in messages if message.seq > summary_seq]
            next_seq, asks = self.live.next_message_seq, self._services.asks
            ending = repair_transcript(later, active.run, effects, next_seq, asks=asks)
        await self._loop.apply(command, records=records, ending=ending)
        for run_id in self.live.records:
            self._services.host.run_accepted(run_id, self.live.row.id)

    async def _save_former(self, cancel: UnsavedCancel, records: Sequence[RunRecord]) -> Sequence[RunRecord]:
        """Save a cancel that could not be saved before, and return the runs as it leaves them: as if it had been
        answered before a crash (B6)."""
        builder = UnitBuilder(self.live.row, {}, self.live.state, self.live.next_message_seq, new=records, by=cancel.by)
        for record in records:
            if record.run.run_id in cancel.run_ids and not record.run.cancel_requested:
                builder.book(CancelRequested(run_id=record.run.run_id))
        kept = cancel.kept
        # Its commit may have succeeded after all.
        if kept is not None and await self._services.store.reads.canceled_with(self.live.row.id, kept.key) is None:
            builder.add(kept.write)
        await self._services.store.submit(builder.unit())
        return list(builder.changed.values())

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
