"""The life of a run: one pure `decide()`.

Owns every rule L1–L15 that can be decided without I/O. `decide(state, command)` returns the session's next state and
the effects, in order, that the shell records in one transaction and then acts upon. It never changes its arguments, so
a failed commit is undone by keeping the old state (L15). Must not know messages, models, tasks or storage.
"""

from dataclasses import replace
from typing import assert_never

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
    DeliveryChanged,
    Effect,
    PromptWithdrawn,
    RunAccepted,
    RunFinished,
    RunFolded,
    RunQueued,
    RunResumed,
    RunStarted,
)
from longboat.core.state import Happening, InvalidTransition, RunView, SessionState
from longboat.errors import TooLate, WorkspaceClosing
from longboat.wire.models import Delivery, Outcome, RunState

MAX_TRIES = 3
"""How often an active run is taken up again after a crash (B6)."""

Decision = tuple[SessionState, tuple[Effect, ...]]


def decide(state: SessionState, command: Command) -> Decision:  # noqa: C901, PLR0912 — one case a command
    """The next state and the effects of a command. Raises, and changes nothing, where the command is not possible."""
    match command:
        case Accept():
            decision = _accept(state, command)
        case Enter():
            decision = _enter(state, command.run_id)
        case CancelSession():
            decision = _cancel_session(state)
        case CancelRun():
            decision = _cancel_run(state, command.run_id)
        case FailRun():
            decision = _fail_run(state, command.run_id)
        case ClearQueue():
            decision = _clear_queue(state)
        case ChangeDelivery():
            decision = _change_delivery(state, command)
        case DrainStep():
            decision = _drain_step(state, command.run_id)
        case SendStep():
            decision = _send_step(state, command.run_id)
        case EndTurn():
            decision = _end_turn(state, command)
        case Leave():
            decision = replace(state, leaving=True), ()
        case Restore():
            decision = _restore(state, command)
        case _:
            assert_never(command)
    return _drop_stale_mark(decision)


def _accept(state: SessionState, command: Accept) -> Decision:
    if state.leaving:
        raise WorkspaceClosing
    if any(run.seq >= command.seq or run.run_id == command.run_id for run in state.runs):
        raise InvalidTransition(f"seq {command.seq} or run_id {command.run_id} was handed out before")
    run = RunView(run_id=command.run_id, seq=command.seq, delivery=command.delivery)
    return replace(state, runs=(*state.runs, run)), (RunAccepted(run_id=run.run_id),)


def _enter(state: SessionState, run_id: str, *, hold: bool = False) -> Decision:
    run = state.find(run_id)
    if run is None or run.state is not RunState.ACCEPTED:
        return state, ()
    if _covered(state, run):
        run.after(Happening.ENTER_COVERED)
        finished = RunFinished(run_id=run_id, outcome=Outcome.CANCELED, transcript=not state.busy)
        return _without(state, run_id), (finished,)
    if state.busy or state.leaving or hold:
        return _put(state, run.after(Happening.ENTER_BUSY)), (RunQueued(run_id=run_id),)
    return _put(state, run.after(Happening.ENTER_IDLE)), (RunStarted(run_id=run_id),)


def _covered(state: SessionState, run: RunView) -> bool:
    return run.cancel_requested or (state.mark is not None and run.seq <= state.mark)


def _cancel_session(state: SessionState) -> Decision:
    accepted = state.in_state(RunState.ACCEPTED)
    if accepted:
        newest = accepted[-1].seq
        state = replace(state, mark=newest if state.mark is None else max(state.mark, newest))
    effects: list[Effect] = []
    for run in (*accepted, *state.in_state(RunState.QUEUED), *state.in_state(RunState.ACTIVE)):
        state, more = _cancel_run(state, run.run_id)
        effects += more
    return state, tuple(effects)


def _cancel_run(state: SessionState, run_id: str) -> Decision:
    run = state.find(run_id)
    if run is None or run.cancel_requested:
        return state, ()
    if run.state is RunState.FOLDED and run.sent:
        assert state.active is not None
        raise TooLate(run_id, state.active.run_id)
    after = run.after(Happening.CANCEL)
    if after.state is not RunState.FINISHED:
        return _put(state, replace(after, cancel_requested=True)), (CancelRequested(run_id=run_id),)
    finished = RunFinished(run_id=run_id, outcome=Outcome.CANCELED)
    if run.state is RunState.FOLDED:
        return _without(state, run_id), (PromptWithdrawn(run_id=run_id), finished)
    return _without(state, run_id), (finished,)


def _fail_run(state: SessionState, run_id: str) -> Decision:
    run = state.find(run_id)
    if run is None:
        return state, ()
    run.after(Happening.FAIL)
    return _without(state, run_id), (RunFinished(run_id=run_id, outcome=Outcome.ERROR),)


def _clear_queue(state: SessionState) -> Decision:
    effects: list[Effect] = []
    for run in state.in_state(RunState.QUEUED):
        state, more = _cancel_run(state, run.run_id)
        effects += more
    return state, tuple(effects)


def _change_delivery(state: SessionState, command: ChangeDelivery) -> Decision:
    run = state.find(command.run_id)
    if run is None or run.state not in (RunState.ACCEPTED, RunState.QUEUED):
        raise InvalidTransition(f"{command.run_id} can no longer be edited")
    return _put(state, replace(run, delivery=command.delivery)), (DeliveryChanged(run_id=run.run_id),)


def _drain_step(state: SessionState, run_id: str) -> Decision:
    host = _active(state, run_id)
    if host.cancel_requested or state.leaving:
        # What is queued by now was accepted after the cancel: folding it would cancel it too (L6).
        return state, ()
    effects: list[Effect] = []
    for run in state.in_state(RunState.QUEUED):
        assert not _covered(state, run), "a covered run is never queued (L5, L12)"
        if run.delivery is Delivery.STEER:
            state = _put(state, run.after(Happening.FOLD))
            effects.append(RunFolded(run_id=run.run_id, into=run_id))
    return state, tuple(effects)


def _send_step(state: SessionState, run_id: str) -> Decision:
    _active(state, run_id)
    for run in state.in_state(RunState.FOLDED):
        state = _put(state, replace(run, sent=True))
    return state, ()


def _end_turn(state: SessionState, command: EndTurn) -> Decision:
    host = _active(state, command.run_id)
    state, effects = _finish_turn(state, host, command.outcome)
    state, started = _start_next(state)
    return state, effects + started


def _finish_turn(state: SessionState, host: RunView, outcome: Outcome) -> Decision:
    host.after(Happening.END)
    effects: list[Effect] = [RunFinished(run_id=host.run_id, outcome=outcome)]
    for run in state.in_state(RunState.FOLDED):
        run.after(Happening.END)
        effects.append(RunFinished(run_id=run.run_id, outcome=outcome, folded_into=host.run_id))
        state = _without(state, run.run_id)
    return _without(state, host.run_id), tuple(effects)


def _start_next(state: SessionState) -> Decision:
    queued = state.in_state(RunState.QUEUED)
    if state.busy or state.leaving or not queued:
        return state, ()
    first, *others = queued
    state = _put(state, first.after(Happening.START))
    effects: list[Effect] = [RunStarted(run_id=first.run_id)]
    for run in others if first.delivery is Delivery.QUEUE else ():
        if run.delivery is Delivery.STEER:
            # The turn that it was to steer is over (L10): it must not end up in one that others have queued.
            state = _put(state, replace(run, delivery=Delivery.QUEUE))
            effects.append(DeliveryChanged(run_id=run.run_id))
    return state, tuple(effects)


def _restore(state: SessionState, command: Restore) -> Decision:
    if state.runs:
        raise InvalidTransition("a session is restored before anything else")
    state = replace(state, runs=tuple(sorted(command.runs, key=lambda run: run.seq)))
    effects: list[Effect] = []
    if state.active is not None:
        state, more = _restore_active(state, state.active, resume=command.resume)
        effects += more
    for run in state.in_state(RunState.ACCEPTED):
        # Entered as if busy: what was queued before it is older and goes first; `_start_next` knows the order.
        state, more = _enter(state, run.run_id, hold=True)
        effects += more
    state, started = _start_next(state)
    return state, (*effects, *started)


def _restore_active(state: SessionState, active: RunView, *, resume: bool) -> Decision:
    if active.cancel_requested:
        return _finish_turn(state, active, Outcome.CANCELED)
    if resume and active.tries < MAX_TRIES:
        # The disk does not say whether a folded prompt's step was sent: withdrawing an answered one is the worse error.
        state, _ = _send_step(state, active.run_id)
        return _put(state, replace(active, tries=active.tries + 1)), (RunResumed(run_id=active.run_id),)
    return _finish_turn(state, active, Outcome.INTERRUPTED)


def _active(state: SessionState, run_id: str) -> RunView:
    active = state.active
    if active is None or active.run_id != run_id:
        raise InvalidTransition(f"{run_id} is not the active run")
    return active


def _put(state: SessionState, run: RunView) -> SessionState:
    return replace(state, runs=tuple(run if run.run_id == old.run_id else old for old in state.runs))


def _without(state: SessionState, run_id: str) -> SessionState:
    return replace(state, runs=tuple(run for run in state.runs if run.run_id != run_id))


def _drop_stale_mark(decision: Decision) -> Decision:
    """L7: a mark that no reservation can meet any more goes away, so that it never catches a later run."""
    state, effects = decision
    if state.mark is None or any(run.seq <= state.mark for run in state.in_state(RunState.ACCEPTED)):
        return decision
    return replace(state, mark=None), effects
