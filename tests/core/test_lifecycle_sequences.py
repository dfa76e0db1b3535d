"""Every command sequence over three runs, exhaustively.

The world is finite, so the walk visits every world that any sequence can reach and tries every command in each: what
holds on every such edge holds for every sequence of any length. Sequences up to length 4 are also played one by one,
without remembering worlds, so that the walk's own bookkeeping is checked against plain repetition.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import pytest

from longboat.core.commands import (
    Accept,
    CancelRun,
    CancelSession,
    ClearQueue,
    Command,
    DrainStep,
    EndTurn,
    Enter,
    FinishCovered,
    Leave,
    Restore,
    SendStep,
)
from longboat.core.effects import CoverSettled, Effect, QueueCovered, RunFinished, RunFolded, RunResumed, RunStarted
from longboat.core.lifecycle import decide
from longboat.core.state import InvalidTransition, RunView, SessionState
from longboat.errors import TooLate, WorkspaceClosing
from longboat.wire.models import Delivery, Outcome, RunState

NAMES = ("a", "b", "c")
Deliveries = tuple[Delivery, ...]
Path = tuple[Command, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A session, and what an onlooker remembers of its past."""

    session: SessionState
    accepted: int = 0
    finished: frozenset[str] = frozenset()
    doomed: frozenset[str] = frozenset()
    """Canceled before they had started: they may end in no other way."""
    asked: frozenset[str] = frozenset()
    """Asked to stop while active: they may end as they like, but not be resumed."""
    covers: frozenset[tuple[int, int]] = frozenset()
    """What a disk has of cancels whose runs are not all finished: first and last seq."""


def commands(world: World, deliveries: Deliveries) -> Iterator[Command]:
    """The alphabet. Turns report only for the active run: what else they might claim is in test_lifecycle_table.py."""
    if world.accepted < len(NAMES):
        yield Accept(run_id=NAMES[world.accepted], seq=world.accepted + 1, delivery=deliveries[world.accepted])
    for name in NAMES:
        yield Enter(run_id=name)
        yield CancelRun(run_id=name)
    yield from (CancelSession(), ClearQueue(), Leave())
    yield from (CancelSession(at_once=0), ClearQueue(at_once=1), FinishCovered(at_once=1))
    if world.session.active is not None:
        active = world.session.active.run_id
        yield from (DrainStep(run_id=active), SendStep(run_id=active))
        yield from (EndTurn(run_id=active, outcome=outcome) for outcome in Outcome)
    yield from (Restore(runs=on_disk(world), resume=resume) for resume in (False, True))


def on_disk(world: World) -> tuple[RunView, ...]:
    """What a crash leaves: no mark, no leaving, no knowledge of what was sent; queued runs are canceled by a cover."""

    def read(run: RunView) -> RunView:
        covered = any(first <= run.seq <= last for first, last in world.covers)
        asked = covered if run.state is RunState.QUEUED else run.cancel_requested
        return replace(run, sent=False, cancel_requested=asked)

    return tuple(read(run) for run in world.session.runs)


def covers_after(world: World, effects: tuple[Effect, ...]) -> frozenset[tuple[int, int]]:
    if any(isinstance(effect, CoverSettled) for effect in effects):
        return frozenset()
    return world.covers | {(effect.first, effect.last) for effect in effects if isinstance(effect, QueueCovered)}


def step(world: World, command: Command) -> tuple[World, tuple[Effect, ...]]:
    """The world after a command; unchanged where the command is refused."""
    before = SessionState() if isinstance(command, Restore) else world.session
    try:
        session, effects = decide(before, command)
    except WorkspaceClosing:
        assert isinstance(command, Accept)
        assert world.session.leaving
        return world, ()
    except TooLate:
        assert isinstance(command, CancelRun)
        return world, ()
    after = replace(
        world,
        session=session,
        accepted=world.accepted + isinstance(command, Accept),
        finished=world.finished | {effect.run_id for effect in effects if isinstance(effect, RunFinished)},
        doomed=world.doomed | covered(world.session, command),
        asked=world.asked | asked_to_stop(world.session, command),
        covers=covers_after(world, effects),
    )
    return after, effects


def covered(session: SessionState, command: Command) -> frozenset[str]:
    """Those not yet started that a cancel is about."""
    waiting = {run.run_id: run.state for run in (*session.accepted, *session.waiting)}
    match command:
        case CancelSession():
            return frozenset(waiting)
        case ClearQueue():
            return frozenset(name for name, state in waiting.items() if state is RunState.QUEUED)
        case CancelRun(run_id=run_id) if run_id in waiting:
            return frozenset((run_id,))
    return frozenset()


def asked_to_stop(session: SessionState, command: Command) -> frozenset[str]:
    active = session.active
    if active is None or not isinstance(command, CancelSession | CancelRun):
        return frozenset()
    if isinstance(command, CancelRun) and command.run_id != active.run_id:
        return frozenset()
    return frozenset((active.run_id,))


def check(before: World, command: Command, after: World, effects: tuple[Effect, ...]) -> None:
    check_session(after)
    check_endings(before, after, effects)
    check_cancels(before, command, after, effects)


def check_session(world: World) -> None:
    session = world.session
    names = [run.run_id for run in session.runs]
    seqs = [run.seq for run in session.runs]
    assert seqs == sorted(set(seqs)), "runs are in order of seq"
    assert len(session.in_state(RunState.ACTIVE)) <= 1, "at most one active run"
    assert not session.in_state(RunState.FINISHED), "what is finished is gone"
    assert set(names) == set(NAMES[: world.accepted]) - world.finished, "each accepted run is here or finished"
    assert session.busy or not session.in_state(RunState.FOLDED), "folded runs have a host"
    mark, accepted, queued = session.mark, session.in_state(RunState.ACCEPTED), session.in_state(RunState.QUEUED)
    assert mark is None or any(run.seq <= mark for run in accepted), "L7: no stale mark"
    assert not any(run.cancel_requested or (mark and run.seq <= mark) for run in queued), "L5: none covered is queued"
    assert session.leaving or session.busy or not queued, "L11: never a queue without an active run"
    assert on_disk(world) == tuple(replace(run, sent=False) for run in session.runs), (
        "L15: the disk knows who is covered"
    )
    assert {run.run_id for run in session.covered} <= world.doomed, "L9: only a cancel takes a run out of the queue"
    assert session.covered or not world.covers, "a cover goes with the last run it covers"


def check_endings(before: World, after: World, effects: tuple[Effect, ...]) -> None:
    ends = [effect.run_id for effect in effects if isinstance(effect, RunFinished)]
    assert len(ends) == len(set(ends)), "E1: one end each"
    assert before.finished.isdisjoint(runs_of(effects)), "nothing happens to a finished run"
    assert set(ends) == after.finished - before.finished


def runs_of(effects: tuple[Effect, ...]) -> set[str]:
    return {effect.run_id for effect in effects if not isinstance(effect, QueueCovered | CoverSettled)}


def rank(run: RunView) -> tuple[bool, int]:
    return run.delivery is Delivery.QUEUE, run.seq


def check_cancels(before: World, command: Command, after: World, effects: tuple[Effect, ...]) -> None:
    if isinstance(command, CancelSession) and not before.session.runs:
        assert (after, effects) == (before, ()), "L2: idle cancel is a no-op"
    for effect in effects:
        match effect:
            case RunStarted(run_id=run_id):
                check_begin(after, run_id)
                started = after.session.find(run_id)
                queued = after.session.in_state(RunState.QUEUED)
                assert started is not None
                assert all(rank(started) < rank(run) for run in queued), "L8, L10: what steers, then the oldest first"
            case RunFolded(run_id=run_id, into=host):
                check_begin(after, run_id)
                folded = after.session.find(run_id)
                assert folded is not None
                assert folded.delivery is Delivery.STEER, "L9: only what steers is folded"
                assert host not in after.asked, "L6: a turn that is stopping takes nobody with it"
            case RunResumed(run_id=run_id):
                assert run_id not in after.asked, "B6: a run that was asked to stop is never resumed"
            case RunFinished(run_id=run_id, outcome=outcome):
                check_outcome(before, command, after, run_id, outcome)


def check_begin(after: World, run_id: str) -> None:
    assert run_id not in after.doomed, "L5: a covered run never starts and is never folded"
    assert not after.session.leaving, "L11: nothing starts while leaving"


def check_outcome(before: World, command: Command, after: World, run_id: str, outcome: Outcome) -> None:
    was = before.session.find(run_id)
    assert was is not None
    if run_id in after.doomed:
        assert outcome is Outcome.CANCELED, "L6: a cancel reaches all that was accepted before it"
    elif isinstance(command, EndTurn):
        assert outcome is command.outcome, "L13: a turn ends with what happened"
        assert was.state in (RunState.ACTIVE, RunState.FOLDED)
    elif isinstance(command, Restore):
        assert was.state in (RunState.ACTIVE, RunState.FOLDED)
        host = before.session.active
        assert host is not None
        assert outcome is (Outcome.CANCELED if host.run_id in after.asked else Outcome.INTERRUPTED), "B6"
    else:
        assert command == CancelRun(run_id=run_id), "L6: nothing is canceled that no cancel was about"
        assert was.state is RunState.FOLDED
        assert not was.sent


FRESH = World(session=SessionState())
EVERY_DELIVERY = list(product(Delivery, repeat=len(NAMES)))


def explore(deliveries: Deliveries) -> Iterator[World]:
    """Try and check every command in every reachable world; each world once."""
    came_by: dict[World, Path] = {FRESH: ()}
    frontier = [FRESH]
    while frontier:
        world = frontier.pop()
        yield world
        for command in commands(world, deliveries):
            after = checked_step(world, command, came_by[world])
            if after not in came_by:
                came_by[after] = (*came_by[world], command)
                frontier.append(after)


def checked_step(world: World, command: Command, path: Path) -> World:
    try:
        after, effects = step(world, command)
        check(world, command, after, effects)
    except (AssertionError, InvalidTransition) as error:
        error.add_note("played: " + "\n  then ".join(map(repr, (*path, command))))
        raise
    return after


@pytest.mark.parametrize("deliveries", EVERY_DELIVERY)
def test_every_sequence_of_any_length_keeps_the_rules_and_can_be_run_to_its_end(deliveries: Deliveries) -> None:
    """L1–L13, B6, E1 as invariants; and from every world on, each accepted run still comes to its one end."""
    worlds = 0
    for world in explore(deliveries):
        worlds += 1
        assert run_out(world).session.runs == ()
    assert worlds > 1_000


def run_out(world: World) -> World:
    """Enter what is accepted and end what is active, until nothing is left to do."""
    if world.session.leaving:
        world, _ = step(world, Restore(runs=on_disk(world), resume=True))
    for run in world.session.in_state(RunState.ACCEPTED):
        world, _ = step(world, Enter(run_id=run.run_id))
    while world.session.covered:
        world, _ = step(world, FinishCovered(at_once=1))
    while world.session.active is not None:
        world, _ = step(world, EndTurn(run_id=world.session.active.run_id, outcome=Outcome.ERROR))
    return world


def test_every_sequence_of_four_commands_after_three_accepts_keeps_the_rules() -> None:
    deliveries = (Delivery.STEER, Delivery.QUEUE, Delivery.STEER)
    start = FRESH
    for seq, (name, delivery) in enumerate(zip(NAMES, deliveries, strict=True), start=1):
        start = checked_step(start, Accept(run_id=name, seq=seq, delivery=delivery), ())

    def play(world: World, path: Path) -> int:
        if len(path) == 4:
            return 1
        tried = list(commands(world, deliveries))
        return sum(play(checked_step(world, command, path), (*path, command)) for command in tried)

    assert play(start, ()) > 10_000
