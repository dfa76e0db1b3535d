"""The rules L1–L16 of the lifecycle, each on the pure core and each by its number (B6: test_lifecycle_table.py)."""

import ast
import copy
import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

import pytest

from longboat.core import lifecycle
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
    RunStarted,
)
from longboat.core.lifecycle import decide
from longboat.core.state import InvalidTransition, RunView, SessionState
from longboat.errors import TooLate, WorkspaceClosing
from longboat.wire.models import Delivery, Outcome, RunState

STEER, QUEUE = Delivery.STEER, Delivery.QUEUE
CANCELED = Outcome.CANCELED
Played = tuple[SessionState, tuple[Effect, ...]]


def play(*commands: Command, state: SessionState | None = None) -> Played:
    """The state after some commands and all their effects."""
    now = state or SessionState()
    effects: tuple[Effect, ...] = ()
    for command in commands:
        now, more = decide(now, command)
        effects = (*effects, *more)
    return now, effects


def accept(run_id: str, seq: int, delivery: Delivery = QUEUE) -> Accept:
    return Accept(run_id=run_id, seq=seq, delivery=delivery)


def enter(run_id: str) -> Enter:
    return Enter(run_id=run_id)


def end(run_id: str, outcome: Outcome = Outcome.END_TURN) -> EndTurn:
    return EndTurn(run_id=run_id, outcome=outcome)


def canceled(run_id: str, *, transcript: bool = False) -> RunFinished:
    return RunFinished(run_id=run_id, outcome=CANCELED, transcript=transcript)


def busy_with(*others: tuple[str, Delivery]) -> SessionState:
    """Run a is active and the others wait behind it, in this order."""
    commands: list[Command] = [accept("a", 1), enter("a")]
    for seq, (run_id, delivery) in enumerate(others, start=2):
        commands += [accept(run_id, seq, delivery), enter(run_id)]
    return play(*commands)[0]


def states(state: SessionState) -> dict[str, RunState]:
    return {run.run_id: run.state for run in state.runs}


# L1


def test_l1_accept_reserves_and_the_second_enter_changes_nothing() -> None:
    state, effects = play(accept("a", 7))
    assert state == SessionState.of(RunView(run_id="a", seq=7, delivery=QUEUE))
    assert effects == (RunAccepted(run_id="a"),)
    state, _ = decide(state, enter("a"))
    assert decide(state, enter("a")) == (state, ())


def test_l1_releasing_what_was_never_reserved_or_is_finished_changes_nothing() -> None:
    state, _ = play(accept("a", 1), enter("a"), end("a"))
    assert decide(state, enter("a")) == (SessionState(), ())
    assert decide(state, enter("nobody")) == (SessionState(), ())


def test_l1_reservations_of_one_session_are_counted_independently() -> None:
    state, _ = play(accept("a", 1), accept("b", 2), accept("c", 3), enter("b"), enter("b"))
    assert states(state) == {"a": RunState.ACCEPTED, "b": RunState.ACTIVE, "c": RunState.ACCEPTED}


def test_l1_a_seq_that_is_not_newer_or_a_run_id_in_use_is_refused() -> None:
    state, _ = play(accept("a", 5))
    for wrong in (accept("b", 5), accept("b", 4), accept("a", 6)):
        with pytest.raises(InvalidTransition):
            decide(state, wrong)


# L2, L3, L4


def test_l2_cancel_of_an_idle_session_is_a_true_no_op_and_spares_the_next_prompt() -> None:
    assert decide(SessionState(), CancelSession()) == (SessionState(), ())
    _, effects = play(CancelSession(), accept("a", 1), enter("a"))
    assert effects == (RunAccepted(run_id="a"), RunStarted(run_id="a"))


def test_l3_cancel_marks_the_newest_seq_and_a_second_cancel_changes_nothing_more() -> None:
    state, effects = play(accept("a", 1), accept("b", 2), CancelSession())
    assert state.mark == 2
    assert effects[2:] == (CancelRequested(run_id="a"), CancelRequested(run_id="b"))
    assert decide(state, CancelSession()) == (state, ())


def test_l3_a_later_cancel_raises_the_mark_over_the_prompts_that_came_since() -> None:
    state, effects = play(accept("a", 1), CancelSession(), accept("b", 2), CancelSession())
    assert state.mark == 2
    assert effects[-1] == CancelRequested(run_id="b")


def test_l4_cancel_with_an_active_run_and_a_reservation_does_both() -> None:
    state, effects = play(accept("b", 2), CancelSession(), state=busy_with())
    assert state.mark == 2
    assert state.active is not None
    assert state.active.cancel_requested
    assert effects[1:] == (CancelRequested(run_id="b"), CancelRequested(run_id="a"))
    assert decide(state, enter("b"))[1] == (canceled("b"),)


# L5, L6, L7


def test_l5_a_covered_run_is_canceled_on_entry_to_an_idle_session_and_leaves_its_messages() -> None:
    state, effects = play(accept("a", 1), CancelSession(), enter("a"))
    assert state == SessionState()
    assert effects[-1] == canceled("a", transcript=True)


def test_l5_a_covered_run_is_canceled_on_entry_even_when_the_session_is_busy_and_leaves_no_messages() -> None:
    state, effects = play(accept("b", 2), CancelRun(run_id="b"), enter("b"), state=busy_with())
    assert states(state) == {"a": RunState.ACTIVE}
    assert effects[-1] == canceled("b")


def test_l5_the_mark_is_not_consumed_by_the_first_sibling() -> None:
    state, effects = play(
        accept("a", 1), accept("b", 2), accept("c", 3), CancelSession(), enter("b"), enter("c"), enter("a")
    )
    assert effects[-3:] == tuple(canceled(run_id, transcript=True) for run_id in "bca")
    assert state == SessionState()


@pytest.mark.parametrize("order", ["abl", "bal", "lab", "lba", "alb", "bla"])
def test_l6_a_cancel_covers_what_came_before_and_not_what_came_after_in_any_order_of_entry(order: str) -> None:
    state, effects = play(
        accept("a", 1), accept("b", 2), CancelSession(), accept("l", 3), *(enter(run_id) for run_id in order)
    )
    finished = [effect for effect in effects if isinstance(effect, RunFinished)]
    assert {(run.run_id, run.outcome) for run in finished} == {("a", CANCELED), ("b", CANCELED)}
    assert states(state) == {"l": RunState.ACTIVE}
    assert state.mark is None


def test_l6_a_later_prompt_that_enters_first_neither_uses_nor_clears_the_mark() -> None:
    state, _ = play(accept("a", 1), CancelSession(), accept("l", 2), enter("l"))
    assert state.mark == 1
    state, effects = play(end("l"), enter("a"), state=state)
    assert effects == (RunFinished(run_id="l", outcome=Outcome.END_TURN), canceled("a", transcript=True))


def test_l6_a_prompt_queued_after_the_cancel_is_not_folded_into_the_turn_that_is_stopping() -> None:
    state, _ = play(CancelSession(), accept("l", 2, STEER), enter("l"), state=busy_with())
    assert decide(state, DrainStep(run_id="a")) == (state, ())
    _, effects = decide(state, end("a", CANCELED))
    assert effects == (canceled("a"), RunStarted(run_id="l"))


def test_l7_the_mark_goes_with_the_last_reservation_it_covers() -> None:
    state, _ = play(accept("a", 1), accept("b", 2), CancelSession(), accept("l", 3), enter("a"))
    assert state.mark == 2
    state, _ = decide(state, enter("b"))
    assert state.mark is None
    assert states(state) == {"l": RunState.ACCEPTED}


def test_l7_a_cancel_without_reservations_leaves_no_mark_behind() -> None:
    state, _ = decide(busy_with(("b", QUEUE)), CancelSession())
    assert state.mark is None
    state, effects = play(end("a", CANCELED), accept("c", 3), enter("c"), state=state)
    assert effects[-1] == RunStarted(run_id="c")


# L8, L9, L10


def test_l8_the_queue_is_in_order_of_accept_whatever_the_order_of_entry() -> None:
    state, effects = play(accept("b", 2), accept("c", 3), enter("c"), enter("b"), state=busy_with())
    assert effects[-2:] == (RunQueued(run_id="c"), RunQueued(run_id="b"))
    assert [run.seq for run in state.in_state(RunState.QUEUED)] == [2, 3]
    assert [state.position(run_id) for run_id in "abc"] == [0, 1, 2]
    assert decide(state, end("a"))[1][-1] == RunStarted(run_id="b")


def test_l8_the_active_run_has_position_0_even_if_an_older_prompt_waits() -> None:
    state, _ = play(accept("a", 1), accept("b", 2), enter("b"), enter("a"))
    assert (state.position("b"), state.position("a"), state.position("nobody")) == (0, 1, None)


def test_l9_a_step_boundary_folds_what_steers_in_order_and_leaves_what_queues() -> None:
    state, effects = decide(busy_with(("b", STEER), ("c", QUEUE), ("d", STEER)), DrainStep(run_id="a"))
    assert effects == (RunFolded(run_id="b", into="a"), RunFolded(run_id="d", into="a"))
    assert states(state) == {
        "a": RunState.ACTIVE,
        "b": RunState.FOLDED,
        "c": RunState.QUEUED,
        "d": RunState.FOLDED,
    }
    assert [state.position(run_id) for run_id in "abcd"] == [0, None, 1, None]


def test_l9_a_covered_run_in_the_queue_is_a_defect_that_shows() -> None:
    state = busy_with(("b", STEER))
    impossible = replace(state, steering=(replace(state.steering[0], cancel_requested=True),))
    with pytest.raises(AssertionError, match="L5"):
        decide(impossible, DrainStep(run_id="a"))


def queue_of(count: int) -> SessionState:
    """Run a is active and r2, r3 … wait behind it, all but one to steer it."""
    return busy_with(*((f"r{seq}", QUEUE if seq == 3 else STEER) for seq in range(2, count + 2)))


@pytest.mark.parametrize("command", [CancelSession(at_once=2), ClearQueue(at_once=2)])
def test_l9_l12_d11_a_cancel_finishes_the_head_of_a_long_queue_and_covers_the_rest(command: Command) -> None:
    state, effects = decide(queue_of(6), command)
    asked = (CancelRequested(run_id="a"),) if isinstance(command, CancelSession) else ()
    assert effects == (canceled("r2"), canceled("r3"), QueueCovered(first=4, last=7), *asked)
    assert state.waiting == ()
    assert [run.run_id for run in state.covered] == ["r4", "r5", "r6", "r7"]
    assert [state.position(run.run_id) for run in state.covered] == [None] * 4
    assert decide(state, CancelRun(run_id="r5")) == (state, ()), "it is canceled already"
    with pytest.raises(InvalidTransition):
        decide(state, ChangeDelivery(run_id="r5", delivery=QUEUE))


def test_l9_d11_a_covered_run_is_passed_over_by_steps_and_by_the_hand_over() -> None:
    state, _ = play(ClearQueue(at_once=1), accept("later", 9), enter("later"), state=queue_of(3))
    assert decide(state, DrainStep(run_id="a")) == (state, ())
    state, effects = decide(state, end("a"))
    assert effects[1:] == (RunStarted(run_id="later"),)
    assert [run.run_id for run in state.covered] == ["r3", "r4"]
    state, effects = decide(state, end("later"))
    assert effects == (RunFinished(run_id="later", outcome=Outcome.END_TURN),)
    assert not state.busy


def test_l9_e1_d11_covered_runs_are_finished_in_batches_in_order_and_the_last_one_settles_the_cover() -> None:
    state, _ = decide(queue_of(5), CancelSession(at_once=0))
    state, first = decide(state, FinishCovered(at_once=3))
    state, second = decide(state, FinishCovered(at_once=3))
    assert first == (canceled("r2"), canceled("r3"), canceled("r4"))
    assert second == (canceled("r5"), canceled("r6"), CoverSettled())
    assert decide(state, FinishCovered(at_once=3)) == (state, ())


def test_l12_d11_a_cover_of_the_queue_leaves_out_a_prompt_that_has_not_entered() -> None:
    """It was accepted between two that are queued: what the disk has of the cancel must not reach it."""
    state, _ = play(accept("slow", 4), accept("r5", 5), enter("r5"), state=queue_of(2))
    state, effects = decide(state, ClearQueue(at_once=1))
    assert effects == (canceled("r2"), QueueCovered(first=3, last=3), QueueCovered(first=5, last=5))
    assert states(decide(state, enter("slow"))[0])["slow"] is RunState.QUEUED


def test_b6_d11_a_crash_between_batches_starts_nothing_that_was_covered() -> None:
    covered = [RunView(run_id=name, seq=seq, delivery=STEER, state=RunState.QUEUED, cancel_requested=True)
               for seq, name in ((2, "b"), (3, "c"))]  # fmt: skip
    later = RunView(run_id="d", seq=4, delivery=QUEUE, state=RunState.QUEUED)
    state, effects = decide(SessionState(), Restore(runs=(later, *covered), resume=True))
    assert effects == (RunStarted(run_id="d"),)
    assert decide(state, FinishCovered())[1] == (canceled("b"), canceled("c"), CoverSettled())


def work_of(state: SessionState, *commands: Command) -> int:
    """How many bytecodes of the core some commands take: a count that no clock and no machine changes."""
    count = 0
    core = inspect.getsourcefile(lifecycle) or ""

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., object] | None:
        nonlocal count
        if not frame.f_code.co_filename.startswith(core.removesuffix("lifecycle.py")):
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        play(*commands, state=state)
    finally:
        sys.settrace(before)
    return count


def test_d11_accepting_a_prompt_takes_no_more_work_behind_a_long_queue() -> None:
    prompt = (accept("new", 9_999), enter("new"))
    short, long = work_of(queue_of(10), *prompt), work_of(queue_of(2_000), *prompt)
    assert short <= long <= short * 1.2


def test_d11_positions_and_single_cancels_do_not_look_through_the_queue() -> None:
    queue = queue_of(2_000)
    assert work_of(queue, CancelRun(run_id="r1000")) <= work_of(queue_of(10), CancelRun(run_id="r5")) * 1.2
    assert queue.position("r1000") == 998, "r3 waits for later, and so for all of the others"
    assert queue.position("r3") == 2_000


def test_l10_a_prompt_that_finds_no_further_step_runs_as_its_own_turn() -> None:
    state, effects = decide(busy_with(("b", STEER)), end("a"))
    assert effects == (RunFinished(run_id="a", outcome=Outcome.END_TURN), RunStarted(run_id="b"))
    assert states(state) == {"b": RunState.ACTIVE}


@pytest.mark.parametrize("outcome", Outcome)
def test_l10_one_that_came_too_late_runs_before_what_was_queued_for_later(outcome: Outcome) -> None:
    state = busy_with(("b", QUEUE), ("c", STEER), ("d", QUEUE))
    assert [state.position(name) for name in "abcd"] == [0, 2, 1, 3]
    state, effects = decide(state, end("a", outcome))
    assert effects[1:] == (RunStarted(run_id="c"),)
    assert decide(state, DrainStep(run_id="c")) == (state, ()), "it takes nobody along who was queued for later"
    _, effects = play(end("c"), end("b"), state=state)
    assert [effect.run_id for effect in effects if isinstance(effect, RunStarted)] == ["b", "d"]


def test_l10_what_is_edited_to_steer_goes_before_what_waits_for_later() -> None:
    state, _ = decide(busy_with(("b", QUEUE), ("c", QUEUE)), ChangeDelivery(run_id="c", delivery=STEER))
    assert [run.run_id for run in state.waiting] == ["c", "b"]
    assert decide(state, end("a"))[1][1:] == (RunStarted(run_id="c"),)


def test_l10_two_that_came_too_late_are_answered_together() -> None:
    _, effects = play(end("a"), DrainStep(run_id="b"), state=busy_with(("b", STEER), ("c", STEER)))
    assert effects[1:] == (RunStarted(run_id="b"), RunFolded(run_id="c", into="b"))


def test_l10_one_that_steers_the_next_turn_while_it_runs_is_folded_into_that() -> None:
    state, _ = decide(busy_with(("b", QUEUE), ("c", QUEUE)), end("a"))
    _, effects = play(accept("d", 4, STEER), enter("d"), DrainStep(run_id="b"), state=state)
    assert effects[-1] == RunFolded(run_id="d", into="b")


def test_l10_core_keeps_the_delivery_it_is_given_until_it_is_edited() -> None:
    state, effects = decide(busy_with(("b", QUEUE)), ChangeDelivery(run_id="b", delivery=STEER))
    assert effects == (DeliveryChanged(run_id="b"),)
    assert decide(state, DrainStep(run_id="a"))[1] == (RunFolded(run_id="b", into="a"),)


# L11


@pytest.mark.parametrize("outcome", Outcome)
def test_l11_however_a_turn_ends_the_next_run_starts_in_the_same_decision(outcome: Outcome) -> None:
    state, effects = decide(busy_with(("b", QUEUE), ("c", QUEUE)), end("a", outcome))
    assert effects == (RunFinished(run_id="a", outcome=outcome), RunStarted(run_id="b"))
    assert states(state) == {"b": RunState.ACTIVE, "c": RunState.QUEUED}


@pytest.mark.parametrize("outcome", Outcome)
def test_l11_folded_runs_end_with_their_host_under_their_own_ids(outcome: Outcome) -> None:
    state, effects = play(
        DrainStep(run_id="a"), end("a", outcome), state=busy_with(("b", STEER), ("c", STEER), ("d", QUEUE))
    )
    assert effects[2:] == (
        RunFinished(run_id="a", outcome=outcome),
        RunFinished(run_id="b", outcome=outcome, folded_into="a"),
        RunFinished(run_id="c", outcome=outcome, folded_into="a"),
        RunStarted(run_id="d"),
    )
    assert states(state) == {"d": RunState.ACTIVE}


def test_l11_a_cancel_right_after_the_hand_over_reaches_the_next_run() -> None:
    state, effects = play(end("a"), CancelSession(), state=busy_with(("b", QUEUE)))
    assert effects[-1] == CancelRequested(run_id="b")
    assert state.busy


@pytest.mark.parametrize("outcome", Outcome)
def test_l11_while_leaving_nothing_starts_and_what_is_queued_stays_queued(outcome: Outcome) -> None:
    state, effects = play(Leave(), DrainStep(run_id="a"), end("a", outcome), state=busy_with(("b", STEER)))
    assert effects == (RunFinished(run_id="a", outcome=outcome),)
    assert states(state) == {"b": RunState.QUEUED}


def test_l11_a_reservation_that_enters_while_leaving_is_queued_and_new_prompts_are_refused() -> None:
    state, effects = play(accept("a", 1), Leave(), enter("a"))
    assert effects[-1] == RunQueued(run_id="a")
    with pytest.raises(WorkspaceClosing):
        decide(state, accept("b", 2))


@pytest.mark.parametrize("other", ["b", "nobody"])
def test_l11_a_turn_is_reported_only_under_the_id_of_the_active_run(other: str) -> None:
    with pytest.raises(InvalidTransition, match="not the active run"):
        decide(busy_with(("b", QUEUE)), end(other))


# L12, L13


def test_l12_cancel_finishes_all_that_is_queued_and_asks_the_active_run_to_stop() -> None:
    state, effects = decide(busy_with(("b", STEER), ("c", QUEUE)), CancelSession())
    assert effects == (canceled("b"), canceled("c"), CancelRequested(run_id="a"))
    assert states(state) == {"a": RunState.ACTIVE}


def test_l12_clear_queue_leaves_the_active_run_and_the_reservations_alone() -> None:
    before, _ = play(accept("d", 4), state=busy_with(("b", STEER), ("c", QUEUE)))
    state, effects = decide(before, ClearQueue())
    assert effects == (canceled("b"), canceled("c"))
    assert state == SessionState.of(before.runs[0], before.runs[3])


def test_l12_cancel_of_an_accepted_run_holds_when_it_enters_and_spares_its_sibling() -> None:
    state, effects = play(accept("a", 1), accept("b", 2), CancelRun(run_id="a"), enter("b"), enter("a"))
    assert effects[2:] == (CancelRequested(run_id="a"), RunStarted(run_id="b"), canceled("a"))
    assert states(state) == {"b": RunState.ACTIVE}


def test_l12_cancel_of_a_queued_run_finishes_it_and_leaves_the_others() -> None:
    state, effects = decide(busy_with(("b", QUEUE), ("c", QUEUE)), CancelRun(run_id="b"))
    assert effects == (canceled("b"),)
    assert states(state) == {"a": RunState.ACTIVE, "c": RunState.QUEUED}


def test_l12_cancel_of_the_active_run_asks_once_and_leaves_the_queue() -> None:
    state, effects = play(CancelRun(run_id="a"), CancelRun(run_id="a"), state=busy_with(("b", STEER)))
    assert effects == (CancelRequested(run_id="a"),)
    assert decide(state, end("a", CANCELED))[1] == (canceled("a"), RunStarted(run_id="b"))


def test_l12_cancel_of_a_folded_run_withdraws_it_before_its_step_is_sent() -> None:
    state, effects = play(DrainStep(run_id="a"), CancelRun(run_id="b"), state=busy_with(("b", STEER)))
    assert effects[1:] == (PromptWithdrawn(run_id="b"), canceled("b"))
    assert states(state) == {"a": RunState.ACTIVE}


def test_l12_cancel_of_a_folded_run_is_too_late_once_its_step_is_sent_and_names_the_host() -> None:
    state, _ = play(DrainStep(run_id="a"), SendStep(run_id="a"), state=busy_with(("b", STEER)))
    with pytest.raises(TooLate, match="Cancel 'a'"):
        decide(state, CancelRun(run_id="b"))


def test_l12_cancel_of_a_finished_run_changes_nothing() -> None:
    state, _ = decide(busy_with(("b", QUEUE)), end("a"))
    assert decide(state, CancelRun(run_id="a")) == (state, ())


@pytest.mark.parametrize("outcome", Outcome)
def test_l13_a_run_ends_with_what_happened_although_a_cancel_was_requested(outcome: Outcome) -> None:
    _, effects = play(CancelSession(), end("a", outcome), state=busy_with())
    assert effects[-1] == RunFinished(run_id="a", outcome=outcome)


# L16


def held(*runs: RunView) -> SessionState:
    return SessionState.of(*runs, held=True)


def test_l16_in_a_held_session_prompts_are_accepted_and_queued_and_none_starts() -> None:
    state, effects = play(accept("a", 1), enter("a"), accept("b", 2), enter("b"), state=held())
    assert effects == (
        *(RunAccepted(run_id="a"), RunQueued(run_id="a")),
        *(RunAccepted(run_id="b"), RunQueued(run_id="b")),
    )
    assert decide(state, CancelRun(run_id="a"))[1] == (canceled("a"),)
    assert decide(state, ClearQueue())[1] == (canceled("a"), canceled("b"))
    assert decide(state, ChangeDelivery(run_id="a", delivery=STEER))[1] == (DeliveryChanged(run_id="a"),)


@pytest.mark.parametrize("resume", [False, True])
def test_l16_a_restore_of_a_held_session_starts_nothing(resume: bool) -> None:
    queued = RunView(run_id="b", seq=2, delivery=QUEUE, state=RunState.QUEUED)
    active = RunView(run_id="a", seq=1, delivery=QUEUE, state=RunState.ACTIVE)
    state, effects = decide(held(), Restore(runs=(active, queued), resume=resume))
    assert effects == (() if resume else (RunFinished(run_id="a", outcome=Outcome.INTERRUPTED),))
    assert states(state) == ({"a": RunState.ACTIVE} if resume else {}) | {"b": RunState.QUEUED}
    assert state.active == (active if resume else None), "it has not been tried again"


@pytest.mark.parametrize("command", [CancelRun(run_id="a"), CancelSession()])
def test_l16_a_cancel_ends_a_run_that_waits_for_its_directory(command: Command) -> None:
    """No turn is there to end it."""
    active = RunView(run_id="a", seq=1, delivery=QUEUE, state=RunState.ACTIVE)
    folded = RunView(run_id="f", seq=2, delivery=STEER, state=RunState.FOLDED, sent=True)
    state, effects = decide(held(active, folded), command)
    assert effects == (canceled("a"), RunFinished(run_id="f", outcome=CANCELED, folded_into="a"))
    assert state == SessionState(held=True)


# L14, L15


def test_l14_nothing_but_accept_and_restore_brings_a_run_into_a_session() -> None:
    others: list[Command] = [enter("a"), CancelRun(run_id="a"), CancelSession(), ClearQueue(), Leave()]
    assert play(*others) == (SessionState(leaving=True), ())


def test_l15_an_abandoned_decision_leaves_nothing_behind() -> None:
    state, _ = play(accept("c", 3), state=busy_with(("b", STEER)))
    before = copy.deepcopy(state)
    tries: list[Command] = [accept("d", 4), enter("c"), CancelSession(), ClearQueue(), CancelRun(run_id="c")]
    tries += [ChangeDelivery(run_id="b", delivery=QUEUE), DrainStep(run_id="a"), end("a"), Leave()]
    for command in tries:
        first = decide(state, command)
        assert first[0] != before
        assert state == before
        assert decide(state, command) == first, "the same question gets the same answer after a failed commit"


def test_l15_core_has_no_clock_log_store_or_randomness_to_disagree_with() -> None:
    tree = ast.parse(inspect.getsource(lifecycle))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules == {
        "dataclasses",
        "itertools",
        "typing",
        "longboat.core.commands",
        "longboat.core.effects",
        "longboat.core.state",
        "longboat.errors",
        "longboat.wire.models",
    }
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.Await | ast.Global)]
