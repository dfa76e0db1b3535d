"""The lifecycle of a run: one pure `decide()`.

Owns every rule L1–L16 that can be decided without I/O. `decide(state, command)` returns the session's next state and
the effects, in order, that the runtime records in one transaction and then performs. It never changes its arguments, so
a failed commit is undone by keeping the old state (L15). Must not know messages, models, tasks or storage.
"""

from dataclasses import replace
from itertools import pairwise
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
    FinishCovered,
    Leave,
    Restore,
    SendStep,
)
from longboat.core.effects import (
    CancelRequested,
    CoverSettled,
    DeliveryChanged,
    Effect,
    PromptWithdrawn,
    QueueCovered,
    RunAccepted,
    RunFinished,
    RunFolded,
    RunQueued,
    RunResumed,
    RunStarted,
)
from longboat.core.state import Happening, InvalidTransition, Runs, RunView, SessionState, is_covered, place_of
from longboat.errors import TooLate, WorkspaceClosing
from longboat.wire.models import Outcome, RunState

MAX_TRIES = 3
"""How often an active run is resumed after a crash (B6)."""

Decision = tuple[SessionState, tuple[Effect, ...]]


def decide(state: SessionState, command: Command) -> Decision:  # noqa: C901, PLR0912 — one case a command
    """The next state and the effects of a command. Raises, and changes nothing, where the command is not possible."""
    match command:
        case Accept():
            decision = _accept(state, command)
        case Enter():
            decision = _enter(state, command.run_id)
        case CancelSession():
            decision = _cancel_session(state, command.at_once)
        case CancelRun():
            decision = _cancel_run(state, command.run_id)
        case FailRun():
            decision = _fail_run(state, command.run_id)
        case ClearQueue():
            decision = _cancel_queued(state, command.at_once)
        case FinishCovered():
            decision = _finish_covered(state, command.at_once)
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
    if state.newest >= command.seq or command.run_id in state.seqs:
        raise InvalidTransition(f"seq {command.seq} or run_id {command.run_id} was handed out before")
    run = RunView(run_id=command.run_id, seq=command.seq, delivery=command.delivery)
    return state.put(run), (RunAccepted(run_id=run.run_id),)


def _enter(state: SessionState, run_id: str, *, hold: bool = False) -> Decision:
    run = state.find(run_id)
    if run is None or run.state is not RunState.ACCEPTED:
        return state, ()
    if _covered(state, run):
        run.after(Happening.ENTER_COVERED)
        finished = RunFinished(run_id=run_id, outcome=Outcome.CANCELED, transcript=not state.busy)
        return state.without(run_id), (finished,)
    if state.busy or state.leaving or state.held or hold:
        return state.put(run.after(Happening.ENTER_BUSY)), (RunQueued(run_id=run_id),)
    return state.put(run.after(Happening.ENTER_IDLE)), (RunStarted(run_id=run_id),)


def _covered(state: SessionState, run: RunView) -> bool:
    return run.cancel_requested or (state.mark is not None and run.seq <= state.mark)


def _cancel_session(state: SessionState, at_once: int) -> Decision:
    asked = [run for run in state.accepted if not run.cancel_requested]
    effects: list[Effect] = [CancelRequested(run_id=run.run_id) for run in asked]
    if state.accepted:
        newest = state.accepted[-1].seq
        accepted = tuple(replace(run.after(Happening.CANCEL), cancel_requested=True) for run in state.accepted)
        state = replace(state, accepted=accepted, mark=newest if state.mark is None else max(state.mark, newest))
    state, more = _cancel_queued(state, at_once)
    effects += more
    if state.active is not None:
        state, more = _cancel_run(state, state.active.run_id)
        effects += more
    return state, tuple(effects)


def _cancel_queued(state: SessionState, at_once: int) -> Decision:
    """Finish the head of the queue and cover the rest: what is covered is out of the queue from now on (L9)."""
    waiting = state.in_state(RunState.QUEUED)
    head, rest = waiting[:at_once], waiting[at_once:]
    covers = [QueueCovered(first=runs[0].seq, last=runs[-1].seq) for runs in _split(rest, state.accepted)]
    covered = tuple(sorted((*state.covered, *rest), key=lambda run: run.seq))
    state, finished = _finish_canceled(replace(state, steering=(), queued=(), covered=covered), head)
    return state, (*finished, *covers)


def _split(queued: Runs, accepted: Runs) -> list[Runs]:
    """Stretches of the queue. No accepted run lies inside one: it may be queued later, and is not covered then."""
    edges = sorted({0, len(queued), *(place_of(queued, run.seq) for run in accepted)})
    return [queued[start:end] for start, end in pairwise(edges)]


def _finish_covered(state: SessionState, at_once: int) -> Decision:
    finished = state.covered[:at_once]
    if not finished:
        return state, ()
    state, effects = _finish_canceled(replace(state, covered=state.covered[at_once:]), finished)
    return state, effects if state.covered else (*effects, CoverSettled())


def _finish_canceled(state: SessionState, runs: Runs) -> Decision:
    for run in runs:
        run.after(Happening.CANCEL)
    effects = tuple(RunFinished(run_id=run.run_id, outcome=Outcome.CANCELED) for run in runs)
    return state.without(*(run.run_id for run in runs)), effects


def _cancel_run(state: SessionState, run_id: str) -> Decision:
    run = state.find(run_id)
    if run is None or run.cancel_requested:
        return state, ()
    if state.held and run is state.active:
        return _finish_turn(state, run, Outcome.CANCELED)  # it waits for its directory: no turn is there to end
    if run.state is RunState.FOLDED and run.sent:
        assert state.active is not None
        raise TooLate(run_id, state.active.run_id)
    after = run.after(Happening.CANCEL)
    if after.state is not RunState.FINISHED:
        return state.put(replace(after, cancel_requested=True)), (CancelRequested(run_id=run_id),)
    finished = RunFinished(run_id=run_id, outcome=Outcome.CANCELED)
    if run.state is RunState.FOLDED:
        return state.without(run_id), (PromptWithdrawn(run_id=run_id), finished)
    return state.without(run_id), (finished,)


def _fail_run(state: SessionState, run_id: str) -> Decision:
    run = state.find(run_id)
    if run is None or is_covered(run):
        return state, ()
    run.after(Happening.FAIL)
    return state.without(run_id), (RunFinished(run_id=run_id, outcome=Outcome.ERROR),)


def _change_delivery(state: SessionState, command: ChangeDelivery) -> Decision:
    run = state.find(command.run_id)
    if run is None or run.state not in (RunState.ACCEPTED, RunState.QUEUED) or is_covered(run):
        raise InvalidTransition(f"{command.run_id} can no longer be edited")
    return state.put(replace(run, delivery=command.delivery)), (DeliveryChanged(run_id=run.run_id),)


def _drain_step(state: SessionState, run_id: str) -> Decision:
    host = _active(state, run_id)
    if host.cancel_requested or state.leaving:
        # What is queued by now was accepted after the cancel: folding it would cancel it too (L6).
        return state, ()
    folded = [run.after(Happening.FOLD) for run in state.steering]
    if not folded:
        return state, ()
    assert not any(_covered(state, run) for run in folded), "a covered run is not in the queue (L5, L9, L12)"
    state = replace(state, steering=(), folded=tuple(sorted((*state.folded, *folded), key=lambda run: run.seq)))
    return state, tuple(RunFolded(run_id=run.run_id, into=run_id) for run in folded)


def _send_step(state: SessionState, run_id: str) -> Decision:
    _active(state, run_id)
    return replace(state, folded=tuple(replace(run, sent=True) for run in state.folded)), ()


def _end_turn(state: SessionState, command: EndTurn) -> Decision:
    host = _active(state, command.run_id)
    state, effects = _finish_turn(state, host, command.outcome)
    state, started = _start_next(state)
    return state, effects + started


def _finish_turn(state: SessionState, host: RunView, outcome: Outcome) -> Decision:
    effects: list[Effect] = [RunFinished(run_id=host.run_id, outcome=outcome)]
    for run in (host, *state.folded):
        run.after(Happening.END)
    for run in state.folded:
        effects.append(RunFinished(run_id=run.run_id, outcome=outcome, folded_into=host.run_id))
    over = [run.run_id for run in (host, *state.folded)]
    return replace(state, folded=()).without(*over), tuple(effects)


def _start_next(state: SessionState) -> Decision:
    """What was to steer the turn that is over comes first, so that it never ends up in one that others have queued."""
    if state.busy or state.leaving or state.held or not state.waiting:
        return state, ()
    first = state.waiting[0]
    return state.put(first.after(Happening.START)), (RunStarted(run_id=first.run_id),)


def _restore(state: SessionState, command: Restore) -> Decision:
    if state.seqs:
        raise InvalidTransition("a session is restored before anything else")
    state = SessionState.of(*command.runs, leaving=state.leaving, held=state.held)
    effects: list[Effect] = []
    if state.active is not None:
        state, more = _restore_active(state, state.active, resume=command.resume)
        effects += more
    for run in state.accepted:
        # Entered as if busy: what was queued before it is older and goes first; `_start_next` knows the order.
        state, more = _enter(state, run.run_id, hold=True)
        effects += more
    state, started = _start_next(state)
    return state, (*effects, *started)


def _restore_active(state: SessionState, active: RunView, *, resume: bool) -> Decision:
    if active.cancel_requested:
        return _finish_turn(state, active, Outcome.CANCELED)
    if resume and state.held:
        return state, ()  # it waits for its directory
    if resume and active.tries < MAX_TRIES:
        # The disk does not say whether a folded prompt's step was sent: withdrawing an answered one is the worse error.
        state, _ = _send_step(state, active.run_id)
        return state.put(replace(active, tries=active.tries + 1)), (RunResumed(run_id=active.run_id),)
    return _finish_turn(state, active, Outcome.INTERRUPTED)


def _active(state: SessionState, run_id: str) -> RunView:
    active = state.active
    if active is None or active.run_id != run_id:
        raise InvalidTransition(f"{run_id} is not the active run")
    return active


def _drop_stale_mark(decision: Decision) -> Decision:
    """L7: a mark that no reservation can meet any more goes away, so that it never catches a later run."""
    state, effects = decision
    if state.mark is None or (state.accepted and state.accepted[0].seq <= state.mark):
        return decision
    return replace(state, mark=None), effects
