"""The limits of a turn: what counts, when they are reached, and what the model is told before."""

from longboat.core.limits import FAILURES_AHEAD, NUDGE_AT, STEPS_AHEAD, Bounds, Limit, LimitCounter
from longboat.wire.models import ToolCallPart, ToolResultPart
from longboat.wire.tools import ToolTraits

OK = ToolResultPart(tool_call_id="c", content="fine")
BAD = ToolResultPart(tool_call_id="c", content="no such file", is_error=True)
RED = ToolResultPart(tool_call_id="c", content="1 failed", is_error=True, command_failed=True)


def counter(**bounds: float) -> LimitCounter:
    return LimitCounter(Bounds(**bounds))  # type: ignore[arg-type]


def step(made: LimitCounter, *results: ToolResultPart) -> None:
    made.add_step()
    made.add_results(results or (OK,))


def test_the_last_allowed_step_is_made_and_the_next_is_not() -> None:
    made = counter(steps=3)
    for _ in range(2):
        step(made)
        assert made.reached(0) is None
    step(made)
    assert made.reached(0) is Limit.STEPS
    assert made.describe(Limit.STEPS, 0) == "3 steps"


def test_zero_is_no_limit() -> None:
    made = counter()
    for _ in range(1000):
        step(made, BAD)
    assert made.reached(1e9) is None
    assert made.warning(1e9) is None


def test_only_steps_in_which_every_call_fails_count_as_failures_and_a_success_forgets_them() -> None:
    made = counter(failures=2)
    step(made, BAD, OK)
    step(made, BAD, BAD)
    assert made.reached(0) is None
    step(made, OK)
    step(made, BAD)
    assert made.reached(0) is None
    step(made, BAD)
    assert made.reached(0) is Limit.FAILURES


def test_a_command_that_ran_and_failed_is_no_failure_but_repeating_it_is_answered_with_a_nudge() -> None:
    """A red test run is a result: the model may make the same call again after each change."""
    made = counter(failures=2)
    for _ in range(8):
        step(made, RED, BAD)
    assert made.reached(0) is None
    run = ToolCallPart(id="c", name="bash", input='{"command": "pytest"}', finished=True)
    others = [
        ToolResultPart(tool_call_id="c", content=f"{n} failed", is_error=True, command_failed=True) for n in range(8)
    ]
    assert [made.nudge(run, each) for each in others] == [None] * 8
    assert [made.nudge(run, RED) is not None for _ in range(3)] == [False, True, True]


def test_time_is_the_time_of_work() -> None:
    made = counter(seconds=600)
    assert made.reached(599.9) is None
    assert made.reached(600) is Limit.TIME
    assert made.describe(Limit.TIME, 600) == "10 minutes of work"


def test_an_answer_may_take_what_is_left_of_the_time_and_more_where_people_are_asked_after_it() -> None:
    made = counter(seconds=600, most_seconds=3600)
    assert (made.answer_s(100, asks=False), made.answer_s(100, asks=True)) == (500, 3500)
    assert (made.answer_s(700, asks=False), made.answer_s(700, asks=True)) == (0, 2900)
    made.renew(700)
    assert (made.answer_s(700, asks=False), made.answer_s(700, asks=True)) == (600, 3600)
    assert [counter().answer_s(100, asks=asks) for asks in (False, True)] == [None, None]


def test_renewed_everything_counts_anew_but_steps_are_told_in_total() -> None:
    made = counter(steps=2, failures=2, seconds=60)
    for _ in range(2):
        step(made, BAD)
    made.renew(60)
    assert made.reached(119) is None
    for _ in range(2):
        step(made)
    assert made.reached(119) is Limit.STEPS
    assert made.describe(Limit.STEPS, 119) == "4 steps"


def test_the_model_is_told_once_some_steps_before() -> None:
    made, told = counter(steps=20), []
    for _ in range(20):
        step(made)
        told.append(made.warning(0))
    assert [note is not None for note in told] == [left == STEPS_AHEAD for left in range(19, -1, -1)]
    assert "ends after 5 more steps" in (told[20 - STEPS_AHEAD - 1] or "")


def test_the_model_is_told_of_failures_each_time_they_add_up() -> None:
    made, told = counter(failures=5), []
    for result in (BAD, BAD, BAD, BAD, OK, BAD, BAD, BAD):
        step(made, result)
        told.append(made.warning(0) is not None)
    first = 5 - FAILURES_AHEAD
    assert told == [number in (first, first + 5) for number in range(1, 9)]


def test_the_model_is_told_of_the_time_when_a_tenth_is_left() -> None:
    made = counter(seconds=600)
    assert made.warning(500) is None
    assert "ends in about 1 min" in (made.warning(550) or "")
    assert made.warning(560) is None


def test_a_call_that_keeps_failing_is_answered_with_a_nudge_from_the_third_time_on() -> None:
    made = counter()
    same = ToolCallPart(id="c", name="edit", input='{"path": "a"}', finished=True)
    other = ToolCallPart(id="c", name="edit", input='{"path": "b"}', finished=True)
    told = [made.nudge(same, BAD) is not None for _ in range(NUDGE_AT + 1)]
    assert told == [False] * (NUDGE_AT - 1) + [True, True]
    assert made.nudge(other, BAD) is None
    assert made.nudge(same, OK) is None
    assert made.nudge(same, BAD) is None


def test_a_call_whose_result_stays_the_same_is_answered_with_a_nudge_too() -> None:
    made = counter()
    same = ToolCallPart(id="c", name="view", input='{"path": "a"}', finished=True)
    told = [made.nudge(same, OK) is not None for _ in range(NUDGE_AT + 1)]
    assert told == [False] * (NUDGE_AT - 1) + [True, True]
    assert made.nudge(same, ToolResultPart(tool_call_id="c", name="view", content="changed")) is None


def test_waiting_again_for_something_outside_is_no_reason_for_a_nudge() -> None:
    made = counter()
    wait = ToolCallPart(id="c", name="watch", input="{}", finished=True, traits=ToolTraits(waits=True))
    assert [made.nudge(wait, OK) for _ in range(NUDGE_AT + 1)] == [None] * (NUDGE_AT + 1)
    assert [made.nudge(wait, BAD) is not None for _ in range(NUDGE_AT)] == [False] * (NUDGE_AT - 1) + [True]
