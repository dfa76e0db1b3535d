"""One command of a session at a time: the core decides, the store commits, then the decision is acted upon.

Owns the mailbox and the running turn. Must not know which commands people may give, nor HTTP, SQL or providers.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

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
from longboat.core.state import SessionState
from longboat.errors import CancelNotDurable, OwnerLost, ServerLeaving, StoreUnavailable
from longboat.runtime.protocols import WorkspaceServices
from longboat.runtime.session.crash_repair import repair_transcript
from longboat.runtime.session.live_session import NOTHING, Cover, LiveSession
from longboat.runtime.session.titles import write_title
from longboat.runtime.session.unit_builder import NO_TURN, Ending, UnitBuilder, record_effects
from longboat.runtime.store_retry import retry_later, retry_store
from longboat.runtime.turn.outcome import Stop
from longboat.runtime.turn.turn import Turn
from longboat.store.changes import mark_session, retitle_session
from longboat.store.protocol import UniqueViolated, Write
from longboat.store.records import RunRecord
from longboat.tasks import Tasks
from longboat.wire.events import Change
from longboat.wire.models import Outcome, RunState, Session, ToolResultPart, Usage
from longboat.wire.requests import UpdateSession

T = TypeVar("T")


class Mailbox:
    def __init__(self, tasks: Tasks, *, name: str, on_idle: Callable[[], None]) -> None:
        self._tasks = tasks
        self._name = name
        self._on_idle = on_idle
        self._waiting: deque[tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = deque()
        self.working = False

    def __len__(self) -> int:
        """How many commands wait, not counting the one in progress."""
        return len(self._waiting)

    async def do(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run this after everything requested before it. It completes even if the caller is canceled: that cancels
        only the future of its result."""
        return await self.post(work)

    def post(self, work: Callable[[], Awaitable[T]]) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting.append((work, future))
        if not self.working:
            self.working = True
            self._tasks.spawn(self._work_off(), name=self._name)
        return future

    async def _work_off(self) -> None:
        try:
            while self._waiting:
                work, future = self._waiting.popleft()
                try:
                    result = await work()
                except asyncio.CancelledError:
                    if not future.done():
                        future.set_exception(OwnerLost())  # it may be in the store already
                    raise
                except Exception as error:
                    if not future.done():
                        future.set_exception(error)
                else:
                    if not future.done():
                        future.set_result(result)
        finally:
            self.working = False
            while self._waiting:
                _turn_away(self._waiting.popleft()[1])
            self._on_idle()


def _turn_away(future: "asyncio.Future[Any]") -> None:
    """The workspace ends: release all callers whose commands will not run."""
    if not future.done():
        future.set_exception(ServerLeaving())


def _decide_all(state: SessionState, commands: Iterable[Command]) -> tuple[SessionState, tuple[Effect, ...]]:
    """Decide several commands, one after the other, as if nothing could come between."""
    effects: tuple[Effect, ...] = ()
    for command in commands:
        state, more = decide(state, command)
        effects += more
    return state, effects


def _is_start(effects: tuple[Effect, ...]) -> bool:
    """Whether the effects only start runs. Such a unit need not wait for the disk: after a power cut the run is still
    accepted and starts once more, and its tool calls are on disk before they are made."""
    return bool(effects) and all(isinstance(effect, RunStarted) for effect in effects)


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """What a cancel is answered if it is sent again with its key. Written with the cancel."""

    key: str
    write: Write


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsavedCancel:
    """A cancel that the store does not have, for when the workspace is opened here again: the runs it covers (L15)."""

    run_ids: frozenset[str]
    by: str | None
    kept: KeptAnswer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cancel:
    """A cancel to be saved, and who requested it."""

    command: CancelSession | CancelRun | ClearQueue
    by: str | None
    kept: KeptAnswer | None

    @property
    def key(self) -> str | None:
        return None if self.kept is None else self.kept.key

    def repeats(self, other: "_Cancel") -> bool:
        return self.command == other.command and self.key == other.key


class CommandLoop:
    """Also provides what the session's turns may ask for (longboat.runtime.protocols.TurnOwner)."""

    def __init__(self, services: WorkspaceServices, live: LiveSession) -> None:
        self.live = live
        self.mailbox = Mailbox(services.tasks, name=f"session {live.row.id}", on_idle=services.host.settled)
        self.turn: Turn | None = None
        self._services = services
        self._finishing = False
        """Runs that a cancel covers are being finished, batch after batch."""
        self._unsaved: list[_Cancel] = []
        """Cancels that the store could not take. No other decision is written before them."""
        self._saving = False
        """Whether another attempt is scheduled."""

    # What a turn may ask

    @property
    def session(self) -> Session:
        return self.live.session

    @property
    def summary_seq(self) -> int:
        return self.live.summary_seq

    @summary_seq.setter
    def summary_seq(self, seq: int) -> None:
        self.live.summary_seq = seq

    async def drain_step(self, run_id: str) -> None:
        """Fold the steering prompts. Retries, because a turn survives a store that fails for a while."""
        step = DrainStep(run_id=run_id)
        if not self._changes_nothing(step):
            await retry_store(lambda: self.mailbox.do(lambda: self.apply(step)))

    async def send_step(self, run_id: str) -> None:
        step = SendStep(run_id=run_id)
        if not self._changes_nothing(step):
            await self.mailbox.do(lambda: self.apply(step))

    def _changes_nothing(self, step: DrainStep | SendStep) -> bool:
        """Whether no other command waits and the step changes nothing. Most steps need not wait for the mailbox."""
        idle = not self.mailbox.working and not self.live.has_unsaved_usage
        return idle and decide(self.live.state, step) == (self.live.state, ())

    def next_message_seq(self) -> int:
        return self.live.next_message_seq()

    def add_usage(self, run_id: str, model: str, usage: Usage, *, context: int | None = None) -> None:
        """Write the usage with the next decision, so that all events of a session have one order."""
        self.live.add_usage(run_id, model, usage, context=context)

    def add_call(self, run_id: str, result: ToolResultPart) -> None:
        self.live.add_call(run_id, result)

    async def settle_usage(self) -> None:
        """Write the usage now: the next decision may be far away."""
        await self.mailbox.do(self._settle_usage)

    async def update(self, request: UpdateSession) -> Session:
        return await self.mailbox.do(lambda: self._update(request))

    async def rename(self, title: str, *, only_from: str | None = None) -> Session:
        """Change the title. With `only_from`, keep the title if someone has changed it meanwhile."""
        return await self.mailbox.do(lambda: self._update(UpdateSession(title=title), only_from))

    # One command: decide, commit, act

    async def apply(
        self,
        *commands: Command,
        records: Sequence[RunRecord] = (),
        ending: Ending = NO_TURN,
        prompt: str | None = None,
        by: str | None = None,
        kept: KeptAnswer | None = None,
    ) -> None:
        """Decide and commit commands as one unit, then act on them. Cancels that could not be written come first: their
        place in the order of decisions is the time of their request (L15)."""
        if self._unsaved and _decide_all(self.live.state, commands)[1]:
            await self.save_cancels()
        await self._apply(commands, records=records, ending=ending, prompt=prompt, by=by, kept=kept)

    async def _apply(
        self,
        commands: Sequence[Command],
        *,
        records: Sequence[RunRecord] = (),
        ending: Ending = NO_TURN,
        prompt: str | None = None,
        by: str | None = None,
        kept: KeptAnswer | None = None,
    ) -> None:
        after, effects = _decide_all(self.live.state, commands)
        changed = {record.run.run_id: record for record in records}
        if effects or kept or (self.live.has_unsaved_usage and isinstance(commands[-1], DrainStep)):
            builder = UnitBuilder(
                self.live.row,
                self.live.records,
                after,
                self.next_message_seq,
                new=records,
                ending=ending,
                prompt=prompt,
                by=by,
            )
            if kept is not None:
                builder.add(kept.write)
            session = await self._commit(builder, effects, after)
            changed = builder.changed
            self.live.folded |= {e.run_id: builder.prompts[e.run_id] for e in effects if isinstance(e, RunFolded)}
            self._put_session(session, builder)
        self.live.advance(after, changed)
        for effect in effects:
            self._act(effect, by)
        self._go_on()

    def _go_on(self) -> None:
        """After a decision: finish the runs that a cancel covers, and wake those who wait for a state of the
        session."""
        if self.live.state.covered and not self._finishing:
            self._finishing = True
            self._finish_next_batch()
        self.live.wake_waiters()

    async def _commit(self, builder: UnitBuilder, effects: tuple[Effect, ...], after: SessionState) -> Session:
        """Write the unit with the usage since the last one, and return the resulting session."""
        used, self.live.used = self.live.used, NOTHING
        try:
            busy = self.live.state.busy, after.busy
            session = record_effects(builder, self.live.row, effects, used, busy=busy, folded=self.live.folded)
            await self._services.store.submit(builder.unit(durable=not _is_start(effects)))
        except BaseException:
            self.live.used = used + self.live.used
            raise
        return session

    def _put_session(self, session: Session, builder: UnitBuilder) -> None:
        retitled = session.title != self.live.row.title
        self.live.row = session
        if retitled:
            first = builder.record(next(iter(builder.prompts)))
            if first.options.shell is None:  # a person's command involves no model
                title = write_title(self._services, self, session.title, first.run)
                self._services.tasks.spawn(title, name=f"title {session.id}")

    def _act(self, effect: Effect, by: str | None) -> None:
        match effect:
            case QueueCovered():
                self.live.covers.append(Cover(first=effect.first, last=effect.last, by=by))
            case CoverSettled():
                self.live.covers.clear()
            case RunStarted() | RunResumed():
                # Registered before anything else can run, so a cancel that comes now finds it.
                self.turn = Turn(self._services, self, self.live.records[effect.run_id])
                self._services.traces.begin_run(self.live.records[effect.run_id], self.live.row.parent_call_id)
                self.turn.start()
                self._services.tasks.spawn(self._drive(self.turn), name=f"turn {effect.run_id}")
            case CancelRequested() if self.turn is not None and self.turn.run_id == effect.run_id:
                self.turn.stop(Stop.CANCEL, by=self.live.records[effect.run_id].run.canceled_by)
            case RunFolded() if self.turn is not None:
                self.turn.fold(self.live.folded[effect.run_id])
            case PromptWithdrawn() if self.turn is not None:
                self.turn.withdraw(self.live.folded.pop(effect.run_id))
            case RunFinished():
                self.live.folded.pop(effect.run_id, None)
                self._services.host.run_finished(self.live.records.pop(effect.run_id).run)

    # Cancels: of a long queue, and those that cannot be written

    def _finish_next_batch(self) -> None:
        self.mailbox.post(self._finish_batch)

    async def _finish_batch(self) -> None:
        """Finish some of the runs that a cancel covers. Other commands to the session come before the rest."""
        command = FinishCovered()
        covered = [self.live.records[view.run_id] for view in self.live.state.covered[: command.at_once]]
        try:
            await self.apply(command, records=[replace(rec, run=self.live.as_canceled(rec.run)) for rec in covered])
        except OwnerLost:
            return  # the next owner's to finish
        except StoreUnavailable:
            retry_later(self._finish_next_batch)
            return
        except Exception:
            logger.exception("canceled runs could not be finished", extra={"session_id": self.live.row.id})
            self._finishing = False
            return
        self._finishing = bool(self.live.state.covered)
        if self._finishing:
            self._finish_next_batch()

    async def cancel(
        self, command: CancelSession | CancelRun | ClearQueue, by: str | None, *, kept: KeptAnswer | None = None
    ) -> None:
        """Cancel. If the store cannot write the cancel, stop what it covers anyway and write it later (L15)."""
        try:
            await self.apply(command, ending=await self._end_held(command), by=by, kept=kept)
        except OwnerLost:
            raise  # this server will never write it
        except StoreUnavailable as error:
            if isinstance(command, CancelRun) and self._is_folded(command.run_id):
                raise  # nothing runs for it alone, and once its step is sent it would be too late
            self._stop_without_saving(_Cancel(command=command, by=by, kept=kept))
            raise CancelNotDurable from error

    async def _end_held(self, command: Command) -> Ending:
        """What ends the messages of an active run that waits for its directory: no turn is there to do it (L16)."""
        active = self.live.state.active
        if not self.live.state.held or active is None:
            return NO_TURN
        _, effects = decide(self.live.state, command)
        if not any(isinstance(effect, RunFinished) and effect.run_id == active.run_id for effect in effects):
            return NO_TURN
        messages = await self._services.store.reads.messages(self.live.row.id, after=self.live.summary_seq)
        run = self.live.records[active.run_id].run
        return repair_transcript(messages, run, effects, self.live.next_message_seq, asks=self._services.asks)

    def _is_folded(self, run_id: str) -> bool:
        view = self.live.state.find(run_id)
        return view is not None and view.state is RunState.FOLDED

    def _stop_without_saving(self, wanted: _Cancel) -> None:
        active = self.live.state.active
        _, effects = decide(self.live.state, wanted.command)
        if active is not None and self.turn is not None and CancelRequested(run_id=active.run_id) in effects:
            self.turn.stop(Stop.CANCEL, by=wanted.by)
        if all(not wanted.repeats(cancel) for cancel in self._unsaved):
            self._unsaved.append(wanted)
        self._save_later()

    def _save_later(self) -> None:
        if not self._saving:
            self._saving = True
            retry_later(lambda: self.mailbox.post(self._try_to_save))

    async def _try_to_save(self) -> None:
        self._saving = False
        try:
            await self.save_cancels()
        except OwnerLost:
            return  # nothing of them runs on here; if this server is the next owner, it saves them then
        except StoreUnavailable:
            self._save_later()

    async def save_cancels(self) -> None:
        """Write the cancels that the store could not take. Each stays in the list until it is written: if the workspace
        is lost in between, its next owner learns of it."""
        while self._unsaved:
            cancel = self._unsaved[0]
            try:
                ending = await self._end_held(cancel.command)
                await self._apply([cancel.command], ending=ending, by=cancel.by, kept=cancel.kept)
            except StoreUnavailable:
                raise
            except UniqueViolated:
                pass  # it was saved by an earlier owner, whose answer was lost
            except Exception:
                logger.exception("a cancel could not be saved", extra={"session_id": self.live.row.id})
            self._unsaved.remove(cancel)

    def unsaved_cancels(self) -> tuple[UnsavedCancel, ...]:
        """Cancels that the store could not take. Nothing was decided since: what they cover is what there is."""
        return tuple(
            UnsavedCancel(run_ids=self._covered_by(cancel.command), by=cancel.by, kept=cancel.kept)
            for cancel in self._unsaved
        )

    def _covered_by(self, command: CancelSession | CancelRun | ClearQueue) -> frozenset[str]:
        match command:
            case CancelRun():
                return frozenset([command.run_id])
            case ClearQueue():
                return frozenset(view.run_id for view in self.live.state.waiting)
        # Folded ones end with their host.
        return frozenset(view.run_id for view in self.live.state.runs if view.state is not RunState.FOLDED)

    # The turn

    async def _drive(self, turn: Turn) -> None:
        """Run a turn to its end. Only the turn's own task is ever canceled; this one reports what happened (T4)."""
        outcome, ending = await turn.unwind()
        self._services.traces.end_run(turn.run_id, outcome, ending.code)
        while True:
            try:
                await self._end(turn.run_id, outcome, ending)
                break
            except Exception:
                # A bug of ours in what goes with the end, and the end matters more (E1): first try without the turn's
                # last output, then without withdrawing its asks, then without the runs that it would start.
                logger.exception("the end of a turn was refused", extra={"run_id": turn.run_id})
                if ending.writes or ending.entries:
                    ending, self.live.used = replace(ending, writes=(), entries=()), NOTHING
                elif ending.withdrawn:
                    ending = replace(ending, withdrawn=())
                elif queued := self.live.state.waiting:
                    fail = partial(self.apply, FailRun(run_id=queued[0].run_id))
                    await retry_store(partial(self.mailbox.do, fail))
                else:
                    raise
        if self.turn is turn:  # else the next one has started already
            self.turn = None  # an idle session keeps no transcript in memory

    async def _end(self, run_id: str, outcome: Outcome, ending: Ending) -> None:
        """End the run. While the store fails, the run stays active, and health says why (E2)."""
        command = EndTurn(run_id=run_id, outcome=outcome)
        await retry_store(lambda: self.mailbox.do(lambda: self.apply(command, ending=ending)))

    async def _settle_usage(self) -> None:
        if not self.live.is_deleted and self.live.has_unsaved_usage:
            builder = UnitBuilder(self.live.row, self.live.records, self.live.state, self.next_message_seq)
            self.live.row = await self._commit(builder, (), self.live.state)

    async def _update(self, request: UpdateSession, only_from: str | None = None) -> Session:
        self.live.check_exists()
        if only_from is not None and self.live.row.title != only_from:
            return self.live.session
        wanted = {name: value for name, value in msgspec.structs.asdict(request).items() if value is not None}
        session = msgspec.structs.replace(
            self.live.row, **wanted
        )  # not a use of the session: its place in the list stays the same
        builder = UnitBuilder(session, self.live.records, self.live.state, self.next_message_seq)
        builder.add(retitle_session(session))
        builder.add(mark_session(session))
        builder.tell(Change.UPDATED, msgspec.structs.replace(session, busy=self.live.state.busy))
        await self._services.store.submit(builder.unit())
        self.live.row = session
        return self.live.session
