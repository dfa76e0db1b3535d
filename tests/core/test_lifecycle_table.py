"""The table of the lifecycle, cell by cell: on one run, through `decide()` on a session, and from disk (B6)."""

import copy
from dataclasses import replace
from typing import get_args

import pytest

from cases import for_each
from longboat.core.commands import (
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
    Restore,
    SendStep,
)
from longboat.core.effects import RunFinished, RunQueued, RunResumed, RunStarted
from longboat.core.lifecycle import MAX_TRIES, decide
from longboat.core.state import TRANSITIONS, Happening, InvalidTransition, RunView, SessionState
from longboat.errors import TooLate
from longboat.wire.models import Delivery, Outcome, RunState

# Written by hand from "States" of the spec; `-` is a cell that is missing and must raise.
CELLS = {
    #                          accepted    queued      active      folded      finished
    Happening.ENTER_COVERED: ("finished", "-", "-", "-", "-"),
    Happening.ENTER_BUSY: ("queued", "-", "-", "-", "-"),
    Happening.ENTER_IDLE: ("active", "-", "-", "-", "-"),
    Happening.START: ("-", "active", "-", "-", "-"),
    Happening.FOLD: ("-", "folded", "-", "-", "-"),
    Happening.CANCEL: ("accepted", "finished", "active", "finished", "-"),
    Happening.FAIL: ("finished", "finished", "-", "-", "-"),
    Happening.END: ("-", "-", "finished", "finished", "-"),
}
COLUMNS = (RunState.ACCEPTED, RunState.QUEUED, RunState.ACTIVE, RunState.FOLDED, RunState.FINISHED)


def test_the_hand_written_table_has_every_state_and_every_happening() -> None:
    assert set(CELLS) == set(Happening)
    assert set(COLUMNS) == set(RunState) == set(TRANSITIONS)
    assert {len(row) for row in CELLS.values()} == {len(COLUMNS)}


@for_each("happening", Happening)
@for_each("state", COLUMNS)
def test_every_cell_leads_where_the_spec_says_or_raises_and_changes_nothing(
    state: RunState, happening: Happening
) -> None:
    expected = CELLS[happening][COLUMNS.index(state)]
    run = RunView(run_id="a", seq=1, delivery=Delivery.STEER, state=state, cancel_requested=True, sent=True, tries=2)
    before = copy.deepcopy(run)
    if expected == "-":
        with pytest.raises(InvalidTransition, match=f"a is {state}"):
            run.after(happening)
    else:
        after = run.after(happening)
        assert after == RunView(
            run_id="a",
            seq=1,
            delivery=Delivery.STEER,
            state=RunState(expected),
            cancel_requested=True,
            sent=True,
            tries=2,
        )
    assert run == before


# The same through `decide()`: what one command does to run `x`, by the state it finds `x` in.
# `-` raises, `=` changes nothing, a state is where x goes; "over" and "gone" are absent from the
# session because they are finished.

STEER = Delivery.STEER
HOST = RunView(run_id="host", seq=1, delivery=STEER, state=RunState.ACTIVE)


def x(state: RunState, *, sent: bool = False) -> RunView:
    return RunView(run_id="x", seq=2, delivery=STEER, state=state, sent=sent)


SITUATIONS = {
    "accepted, idle": SessionState.of(x(RunState.ACCEPTED)),
    "accepted, busy": SessionState.of(HOST, x(RunState.ACCEPTED)),
    "accepted, covered": SessionState.of(HOST, x(RunState.ACCEPTED), mark=2),
    "queued": SessionState.of(HOST, x(RunState.QUEUED)),
    "queued, covered": SessionState.of(HOST, replace(x(RunState.QUEUED), cancel_requested=True)),
    "active": SessionState.of(x(RunState.ACTIVE)),
    "folded, not sent": SessionState.of(HOST, x(RunState.FOLDED)),
    "folded, sent": SessionState.of(HOST, x(RunState.FOLDED, sent=True)),
    "gone": SessionState(),
}

COMMANDS: dict[str, Command] = {
    "enter": Enter(run_id="x"),
    "cancel": CancelRun(run_id="x"),
    "cancel all": CancelSession(),
    "fail": FailRun(run_id="x"),
    "clear": ClearQueue(),
    "finish rest": FinishCovered(),
    "edit": ChangeDelivery(run_id="x", delivery=Delivery.QUEUE),
    "drain host": DrainStep(run_id="host"),
    "drain x": DrainStep(run_id="x"),
    "send host": SendStep(run_id="host"),
    "send x": SendStep(run_id="x"),
    "end host": EndTurn(run_id="host", outcome=Outcome.END_TURN),
    "end x": EndTurn(run_id="x", outcome=Outcome.END_TURN),
}

# fmt: off
REACTIONS = {
    #              accepted:                              queued:               active     folded:                gone
    #              idle         busy         covered                 covered               not sent   sent
    "enter":       ("active",    "queued",    "over",      "=",       "=",       "=",       "=",       "=",        "="),
    "cancel":      ("accepted!", "accepted!", "accepted!", "over",    "=",       "active!", "over",    "too late", "="),
    "cancel all":  ("accepted!", "accepted!", "accepted!", "over",    "queued!", "active!", "folded",  "folded>",  "="),
    "fail":        ("over",      "over",      "over",      "over",    "=",       "-",       "-",       "-",        "="),
    "clear":       ("=",         "=",         "=",         "over",    "=",       "=",       "=",       "=",        "="),
    "finish rest": ("=",         "=",         "=",         "=",       "over",    "=",       "=",       "=",        "="),
    "edit":        ("accepted~", "accepted~", "accepted~", "queued~", "-",       "-",       "-",       "-",        "-"),
    "drain host":  ("-",         "=",         "=",         "folded",  "=",       "-",       "=",       "=",        "-"),
    "drain x":     ("-",         "-",         "-",         "-",       "-",       "=",       "-",       "-",        "-"),
    "send host":   ("-",         "=",         "=",         "=",       "=",       "-",       "folded>", "=",        "-"),
    "send x":      ("-",         "-",         "-",         "-",       "-",       "=",       "-",       "-",        "-"),
    "end host":    ("-",         "accepted",  "accepted",  "active",  "queued!", "-",       "over",    "over",     "-"),
    "end x":       ("-",         "-",         "-",         "-",       "-",       "over",    "-",       "-",        "-"),
}
# fmt: on


def spell(run: RunView | None) -> str:
    """A run in the words of the table: `!` asked to stop, `~` edited to queue, `>` sent."""
    if run is None:
        return "over"
    edited = run.delivery is Delivery.QUEUE
    return f"{run.state}{'!' * run.cancel_requested}{'~' * edited}{'>' * run.sent}"


@for_each("command", COMMANDS)
@for_each("situation", SITUATIONS)
def test_every_command_does_to_a_run_what_its_state_allows(situation: str, command: str) -> None:
    expected = REACTIONS[command][list(SITUATIONS).index(situation)]
    state = SITUATIONS[situation]
    before = copy.deepcopy(state)
    if expected in ("-", "too late"):
        with pytest.raises(InvalidTransition if expected == "-" else TooLate):
            decide(state, COMMANDS[command])
    else:
        after, effects = decide(state, COMMANDS[command])
        if expected == "=":
            assert (after, effects) == (before, ())
        else:
            assert spell(after.find("x")) == expected
    assert state == before, "decide() must not change its arguments (L15)"


def test_every_command_of_the_core_is_in_the_reactions_or_has_tests_of_its_own() -> None:
    elsewhere = {"Accept", "Leave", "Restore"}  # of no run that is there: below, and in test_lifecycle_rules.py
    assert {type(command).__name__ for command in COMMANDS.values()} | elsewhere == {
        command.__name__ for command in get_args(Command)
    }
    assert set(REACTIONS) == set(COMMANDS)
    assert {len(row) for row in REACTIONS.values()} == {len(SITUATIONS)}


# B6: what a restart makes of the runs on disk, under both policies.


def view(run_id: str, seq: int, state: RunState, *, cancel_requested: bool = False, tries: int = 0) -> RunView:
    """A run as the store gives it back."""
    return RunView(run_id=run_id, seq=seq, delivery=STEER, state=state, cancel_requested=cancel_requested, tries=tries)


def ended(run_id: str, outcome: Outcome, *, into: str | None = None) -> RunFinished:
    return RunFinished(run_id=run_id, outcome=outcome, folded_into=into)


@pytest.mark.parametrize("resume", [False, True])
def test_b6_accepted_and_queued_runs_go_on_in_order_of_seq(resume: bool) -> None:
    disk = (view("c", 3, RunState.QUEUED), view("a", 1, RunState.ACCEPTED), view("b", 2, RunState.QUEUED))
    state, effects = decide(SessionState(), Restore(runs=disk, resume=resume))
    assert effects == (RunQueued(run_id="a"), RunStarted(run_id="a"))
    assert [(run.run_id, run.state) for run in state.runs] == [
        ("a", RunState.ACTIVE),
        ("b", RunState.QUEUED),
        ("c", RunState.QUEUED),
    ]


def test_b6_an_active_run_and_what_it_folded_are_interrupted_and_the_queue_runs() -> None:
    disk = (view("a", 1, RunState.ACTIVE), view("b", 2, RunState.FOLDED), view("c", 3, RunState.QUEUED))
    state, effects = decide(SessionState(), Restore(runs=disk, resume=False))
    assert effects == (
        ended("a", Outcome.INTERRUPTED),
        ended("b", Outcome.INTERRUPTED, into="a"),
        RunStarted(run_id="c"),
    )
    assert state.runs == (view("c", 3, RunState.ACTIVE),)


@pytest.mark.parametrize("tries", range(MAX_TRIES + 2))
def test_b6_an_active_run_is_resumed_at_most_three_times(tries: int) -> None:
    disk = (view("a", 1, RunState.ACTIVE, tries=tries), view("b", 2, RunState.QUEUED))
    state, effects = decide(SessionState(), Restore(runs=disk, resume=True))
    if tries < MAX_TRIES:
        assert effects == (RunResumed(run_id="a"),)
        assert state.runs == (view("a", 1, RunState.ACTIVE, tries=tries + 1), view("b", 2, RunState.QUEUED))
    else:
        assert effects == (ended("a", Outcome.INTERRUPTED), RunStarted(run_id="b"))


def test_b6_a_resumed_turn_keeps_its_folded_runs_and_ends_them() -> None:
    disk = (view("a", 1, RunState.ACTIVE), view("b", 2, RunState.FOLDED))
    state, _ = decide(SessionState(), Restore(runs=disk, resume=True))
    state, effects = decide(state, EndTurn(run_id="a", outcome=Outcome.END_TURN))
    assert effects[-1] == ended("b", Outcome.END_TURN, into="a")
    assert state == SessionState()


def test_b6_after_a_resume_a_folded_prompt_counts_as_sent_because_the_disk_cannot_tell() -> None:
    """Withdrawing a prompt that the model may have answered would leave the answer without its question (L12)."""
    disk = (view("a", 1, RunState.ACTIVE), view("b", 2, RunState.FOLDED))
    state, _ = decide(SessionState(), Restore(runs=disk, resume=True))
    with pytest.raises(TooLate):
        decide(state, CancelRun(run_id="b"))


@pytest.mark.parametrize("resume", [False, True])
def test_b6_a_cancel_answered_before_the_crash_still_holds_for_the_active_run_and_its_folded_ones(
    resume: bool,
) -> None:
    disk = (view("a", 1, RunState.ACTIVE, cancel_requested=True), view("b", 2, RunState.FOLDED))
    state, effects = decide(SessionState(), Restore(runs=disk, resume=resume))
    assert effects == (ended("a", Outcome.CANCELED), ended("b", Outcome.CANCELED, into="a"))
    assert state == SessionState()


@pytest.mark.parametrize("resume", [False, True])
def test_b6_a_cancel_answered_before_the_crash_still_holds_for_a_reservation(resume: bool) -> None:
    disk = (view("a", 1, RunState.ACCEPTED, cancel_requested=True), view("b", 2, RunState.ACCEPTED))
    state, effects = decide(SessionState(), Restore(runs=disk, resume=resume))
    assert effects == (
        RunFinished(run_id="a", outcome=Outcome.CANCELED, transcript=True),
        RunQueued(run_id="b"),
        RunStarted(run_id="b"),
    )
    assert state.runs == (view("b", 2, RunState.ACTIVE),)


def test_b6_only_a_fresh_session_can_be_restored() -> None:
    with pytest.raises(InvalidTransition):
        decide(SITUATIONS["active"], Restore(runs=(), resume=False))
