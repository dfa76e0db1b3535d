"""Where a prompt goes, without a server: the script asks, the test answers or refuses."""

from typing import Any

import pytest

from longboat.client.prompting import detach
from longboat.errors import EmptyPrompt, LongboatError, RunIdTaken, RunNotFound, ServerUnreachable, SessionNotFound
from longboat.wire.models import Accepted, Delivery, Run, RunPage, RunState, Session
from longboat.wire.requests import Submit

SUBMIT = Submit(prompt="hi", run_id="mine", client_id="c")
ACCEPTED = Accepted(run_id="mine", seq=1, state=RunState.ACCEPTED, position=0)
MADE = Session(id="made", workspace_id="w", title="", created_at="t", updated_at="t")
NONE = RunPage(items=())

LOOK, MAKE, SEND = "GET runs/mine", "POST sessions", "POST agent"
TAKE_BACK = ["GET runs", "DELETE sessions/made"]


def a_run(session_id: str) -> Run:
    return Run(
        run_id="mine",
        seq=1,
        session_id=session_id,
        state=RunState.ACTIVE,
        delivery=Delivery.QUEUE,
        prompt="hi",
        accepted_at="t",
    )


def play(submit: Submit, answers: list[Any]) -> tuple[list[str], LongboatError | None]:
    """What was asked, and the refusal that the script ended with. An error among the answers is thrown in."""
    asked: list[str] = []
    script = detach("w", submit)
    try:
        call = next(script)
        while True:
            asked.append(f"{call.method} {call.path.removeprefix('/v1/workspaces/w/')}")
            answer = answers.pop(0)
            call = script.throw(answer) if isinstance(answer, LongboatError) else script.send(answer)
    except StopIteration:
        return asked, None
    except LongboatError as refusal:
        return asked, refusal


def test_a_prompt_with_a_session_goes_there_whatever_becomes_of_it() -> None:
    submit = Submit(session_id="s", prompt="hi", run_id="mine")
    assert play(submit, [ACCEPTED]) == ([SEND], None)
    refusal = RunIdTaken("mine")
    assert play(submit, [refusal]) == ([SEND], refusal)


def test_a_prompt_without_a_session_gets_a_new_one() -> None:
    assert play(SUBMIT, [RunNotFound("mine"), MADE, ACCEPTED]) == ([LOOK, MAKE, SEND], None)


def test_a_run_that_is_known_is_handed_in_where_it_is() -> None:
    assert play(SUBMIT, [a_run("s"), ACCEPTED]) == ([LOOK, SEND], None)


def test_nobody_is_asked_for_a_run_id_that_was_only_just_made_up() -> None:
    asked, refusal = play(Submit(prompt="hi"), [MADE, ACCEPTED])
    assert (asked, refusal) == ([MAKE, SEND], None)


def test_whoever_loses_a_race_for_a_run_id_joins_the_winner_and_leaves_no_session_behind() -> None:
    answers = [RunNotFound("mine"), MADE, RunIdTaken("mine"), NONE, None, a_run("winner"), ACCEPTED]
    assert play(SUBMIT, answers) == ([LOOK, MAKE, SEND, *TAKE_BACK, LOOK, SEND], None)


def test_whoever_lost_the_race_with_another_prompt_is_refused() -> None:
    refusal = RunIdTaken("mine")
    answers = [RunNotFound("mine"), MADE, RunIdTaken("mine"), NONE, None, a_run("winner"), refusal]
    assert play(SUBMIT, answers)[1] is refusal


def test_a_run_id_that_is_taken_where_we_cannot_see_is_refused() -> None:
    refusal = RunIdTaken("mine")
    answers = [RunNotFound("mine"), MADE, refusal, NONE, None, RunNotFound("mine")]
    assert play(SUBMIT, answers) == ([LOOK, MAKE, SEND, *TAKE_BACK, LOOK], refusal)


def test_a_refused_prompt_leaves_no_session_behind() -> None:
    refusal = EmptyPrompt()
    assert play(SUBMIT, [RunNotFound("mine"), MADE, refusal, NONE, None]) == ([LOOK, MAKE, SEND, *TAKE_BACK], refusal)


@pytest.mark.parametrize("page", [RunPage(items=(a_run("made"),)), SessionNotFound("made")])
def test_a_session_with_a_run_in_it_is_never_deleted(page: object) -> None:
    refusal = EmptyPrompt()
    asked, told = play(SUBMIT, [RunNotFound("mine"), MADE, refusal, page])
    assert (asked[-1], told) == ("GET runs", refusal)


def test_a_session_stays_if_nobody_knows_whether_the_prompt_was_accepted() -> None:
    lost = ServerUnreachable("gone")
    assert play(SUBMIT, [RunNotFound("mine"), MADE, lost]) == ([LOOK, MAKE, SEND], lost)
