"""Seeing one run through (R1), without a server: the procedure asks, the test answers."""

from typing import Any

import msgspec

from longboat.client.call import Call
from longboat.client.following import Next, follow
from longboat.wire.asks import Question
from longboat.wire.events import Change, Event
from longboat.wire.models import (
    Accepted,
    AgentEvent,
    AgentEventType,
    Delivery,
    Message,
    MessageDelta,
    MessagePage,
    Outcome,
    Role,
    Run,
    RunComplete,
    RunState,
    Snapshot,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from longboat.wire.requests import Submit

SUBMIT = Submit(session_id="s", prompt="hi", run_id="mine", client_id="c")


def a_run(run_id: str = "mine", state: RunState = RunState.ACTIVE, **fields: Any) -> Run:
    return Run(
        run_id=run_id,
        seq=1,
        session_id="s",
        state=state,
        delivery=Delivery.QUEUE,
        prompt="hi",
        accepted_at="t",
        **fields,
    )


def a_message(run_id: str, text: str, *, message_id: str = "m", role: Role = Role.ASSISTANT) -> Message:
    part = TextPart(text=text)
    return Message(id=message_id, session_id="s", run_id=run_id, seq=1, role=role, parts=(part,), created_at="t")


def snapshot(runs: tuple[Run, ...] = (), messages: tuple[Message, ...] = ()) -> Event:
    return Event("snapshot", None, Snapshot(cursor="w/1/1", sessions=(), runs=runs, messages=messages))


def event(payload: Any) -> Event:
    names: dict[type, str] = {
        Run: "run",
        Message: "message",
        MessageDelta: "message_delta",
        RunComplete: "run_complete",
        AgentEvent: "agent_event",
    }
    return Event(names[type(payload)], Change.UPDATED, payload)


def delta(run_id: str) -> Event:
    return event(MessageDelta(message_id="m", session_id="s", run_id=run_id, part=0, offset=0, text="x"))


def complete(run_id: str, session_id: str = "s") -> Event:
    return event(RunComplete(run_id=run_id, session_id=session_id, outcome=Outcome.END_TURN, text="x"))


def carry_out(
    stream: list[Event], answers: list[Any], submit: Submit | None = SUBMIT, **wanted: bool
) -> tuple[list[Event], list[str]]:
    """Carry out the procedure: what it gave the caller, and what it asked of the server."""
    given: list[Event] = []
    asked: list[str] = []
    procedure, answer = follow("w", "s", "mine", submit, **wanted), None
    while True:
        try:
            step = procedure.send(answer)
        except StopIteration:
            return given, asked
        answer = None
        match step:
            case Event():
                given.append(step)
            case Next():
                answer = stream.pop(0)
            case Call():
                asked.append(f"{step.method} {step.path}")
                answer = answers.pop(0)


ACCEPTED = Accepted(run_id="mine", seq=1, state=RunState.ACCEPTED, position=0)
POST = "POST /v1/workspaces/w/agent"
READ = ["GET /v1/workspaces/w/runs/mine", "GET /v1/workspaces/w/sessions/s/messages"]


def test_r1_it_submits_only_once_the_stream_is_heard_and_ends_with_its_own_terminal_event() -> None:
    own = [event(a_run()), delta("mine"), complete("mine")]
    assert carry_out([snapshot(), *own], [ACCEPTED]) == (own, [POST])


def test_r1_other_runs_and_their_errors_neither_show_nor_end_it() -> None:
    foreign = [
        event(a_run("other")),
        delta("other"),
        event(a_message("other", "x")),
        event(AgentEvent(type=AgentEventType.ERROR, session_id="s", run_id="other", message="not mine")),
        event(AgentEvent(type=AgentEventType.ERROR, session_id="elsewhere", run_id="", message="not mine")),
        complete("other"),
        complete("other", "elsewhere"),
    ]
    assert carry_out([snapshot(), *foreign, complete("mine")], [ACCEPTED])[0] == [complete("mine")]


def test_r1_an_error_without_run_id_counts_only_in_its_own_session() -> None:
    own = event(AgentEvent(type=AgentEventType.ERROR, session_id="s", run_id="", message="mine"))
    assert carry_out([snapshot(), own, complete("mine")], [ACCEPTED])[0] == [own, complete("mine")]


def test_a_folded_run_shows_the_turn_of_its_host_but_ends_with_its_own_terminal_event() -> None:
    folded = event(a_run(state=RunState.FOLDED, folded_into="host"))
    stream = [snapshot(), delta("host"), folded, delta("host"), complete("host"), complete("mine")]
    assert carry_out(stream, [ACCEPTED])[0] == [folded, delta("host"), complete("mine")]


def test_a_run_that_is_over_when_submitted_again_is_read_from_the_ledger() -> None:
    over = Accepted(run_id="mine", seq=1, state=RunState.FINISHED, position=None)
    finished = a_run(state=RunState.FINISHED, outcome=Outcome.ERROR, error="no key")
    given, asked = carry_out([snapshot()], [over, finished, MessagePage(items=())])
    assert asked == [POST, *READ]
    assert [each.payload for each in given] == [
        RunComplete(run_id="mine", session_id="s", error="no key", outcome=Outcome.ERROR)
    ]


def test_after_a_resync_a_finished_run_gives_its_terminal_event_from_ledger_and_transcript() -> None:
    page = MessagePage(
        items=(
            a_message("mine", "hi", role=Role.USER),
            a_message("mine", "the ", message_id="m1"),
            a_message("mine", "answer", message_id="m2"),
            a_message("later", "no", message_id="m3"),
        )
    )
    finished = a_run(state=RunState.FINISHED, outcome=Outcome.END_TURN)
    given, asked = carry_out([snapshot(), snapshot()], [ACCEPTED, finished, page])
    assert asked == [POST, *READ]
    assert [each.payload for each in given] == [
        RunComplete(run_id="mine", session_id="s", message_id="m2", text="answer", outcome=Outcome.END_TURN)
    ]


def test_after_a_resync_an_unfinished_run_goes_on_from_the_snapshot() -> None:
    again = snapshot((a_run("other"), a_run()), (a_message("mine", "so far"), a_message("other", "no")))
    given, asked = carry_out([snapshot(), again, complete("mine")], [ACCEPTED])
    assert asked == [POST]
    assert given == [event(a_run()), event(a_message("mine", "so far")), complete("mine")]


def test_the_transcript_is_read_page_by_page() -> None:
    finished = a_run(state=RunState.FINISHED, outcome=Outcome.CANCELED)
    pages = [MessagePage(items=(a_message("mine", "a"),), next="2"), MessagePage(items=(a_message("x", "b"),))]
    given, asked = carry_out([snapshot(), snapshot()], [ACCEPTED, finished, *pages])
    assert asked == [POST, *READ, READ[1]]
    assert given[-1].payload.text == "a"
    assert given[-1].payload.cancelled


def test_a_run_that_somebody_submitted_is_watched_from_what_the_snapshot_has_of_it() -> None:
    running, said = a_run(state=RunState.ACTIVE), a_message("mine", "so far")
    rest = [delta("mine"), complete("mine")]
    given, asked = carry_out([snapshot(runs=(running,), messages=(said,)), *rest], [], submit=None)
    assert (given, asked) == ([event(running), event(said), *rest], [])


def test_a_run_that_is_over_is_told_from_the_ledger_when_it_is_watched() -> None:
    over = a_run(state=RunState.FINISHED, outcome=Outcome.END_TURN)
    page = MessagePage(items=(a_message("mine", "all of it"),))
    (last,), asked = carry_out([snapshot()], [over, page], submit=None)
    assert (last.payload.text, last.payload.outcome, asked) == ("all of it", Outcome.END_TURN, READ)


def an_ask(run_id: str, parent_run_id: str | None = None) -> Question:
    return Question(
        id="q",
        session_id="elsewhere",
        run_id=run_id,
        tool_call_id="c",
        text="Why?",
        choices=(),
        multiple=False,
        asked_at="t",
        parent_run_id=parent_run_id,
    )


def test_a1_what_a_sub_agent_of_the_run_asks_is_the_runs_own_and_what_others_ask_is_not() -> None:
    own = Event("question_request", Change.CREATED, an_ask("child", "mine"))
    foreign = [Event("question_request", Change.CREATED, ask) for ask in (an_ask("other"), an_ask("child", "other"))]
    assert carry_out([snapshot(), *foreign, own, complete("mine")], [ACCEPTED])[0] == [own, complete("mine")]


def test_a2_what_a_run_ahead_asks_is_told_until_the_run_starts_and_only_to_whoever_wants_it() -> None:
    here, of_child = ask_here("other"), msgspec.structs.replace(an_ask("child", "other"), parent_session_id="s")
    elsewhere = an_ask("unrelated")
    known = Snapshot(cursor="w/1/1", sessions=(), runs=(a_run("other"),), messages=(), questions=(here, elsewhere))
    queued, active = event(a_run(state=RunState.QUEUED)), event(a_run())
    asked = Event("question_request", Change.CREATED, here)
    of_sub_agent = Event("question_request", Change.CREATED, of_child, parent_session_id="s")
    stream = [Event("snapshot", None, known), queued, of_sub_agent, active, asked, complete("mine")]
    assert carry_out([*stream], [ACCEPTED], asks_ahead=True)[0] == [
        asked,
        queued,
        of_sub_agent,
        active,
        complete("mine"),
    ]
    assert carry_out([*stream], [ACCEPTED])[0] == [queued, active, complete("mine")]


def ask_here(run_id: str) -> Question:
    return msgspec.structs.replace(an_ask(run_id), session_id="s")


def test_a2_what_was_asked_before_we_came_is_told_from_the_snapshot() -> None:
    ask = an_ask("child", "mine")
    known = Snapshot(cursor="w/1/1", sessions=(), runs=(a_run(),), messages=(), questions=(ask, an_ask("other")))
    given, _ = carry_out([Event("snapshot", None, known), complete("mine")], [], submit=None)
    assert given[1:] == [Event("question_request", Change.CREATED, ask), complete("mine")]


def test_f1_who_watches_while_a_tool_runs_is_told_which_call_was_made() -> None:
    """The message with the call is finished: no snapshot has it."""
    made = Message(
        id="a",
        session_id="s",
        run_id="mine",
        seq=2,
        role=Role.ASSISTANT,
        parts=(ToolCallPart(id="c", name="bash", input="{}", finished=True),),
        created_at="t",
    )
    open_results = msgspec.structs.replace(
        made, id="b", seq=3, role=Role.TOOL, parts=(ToolResultPart(tool_call_id="c", content="so far", finished=False),)
    )
    pages = [MessagePage(items=(a_message("mine", "before"),), next="1"), MessagePage(items=(made, open_results))]
    stream = [snapshot(runs=(a_run(),), messages=(open_results,)), complete("mine")]
    given, asked = carry_out(stream, list(pages), submit=None)
    assert given == [event(made), event(a_run()), event(open_results), complete("mine")]
    assert asked == [READ[1], READ[1]]


def of_child(payload: Any) -> Event:
    plain = event(payload)
    return Event(plain.type, plain.change, plain.payload, parent_session_id="s")


def a_child(parent_run_id: str = "mine") -> Run:
    return msgspec.structs.replace(a_run("child"), session_id="child-s", parent_run_id=parent_run_id)


def the_work_of(child: Run) -> list[Event]:
    said = msgspec.structs.replace(a_message("child", "looking", message_id="cm"), session_id="child-s")
    return [of_child(child), of_child(said), of_child(complete("child", "child-s").payload)]


def test_f1_what_sub_agents_do_is_told_only_to_whoever_asks_for_it() -> None:
    work = the_work_of(a_child())
    stream = [snapshot(), *work, complete("mine")]
    assert carry_out(list(stream), [ACCEPTED])[0] == [complete("mine")]
    assert carry_out(list(stream), [ACCEPTED], sub_agents=True)[0] == [*work, complete("mine")]


def test_r1_the_sub_agents_of_other_runs_are_not_told_of_and_no_sub_agent_ends_the_run() -> None:
    stream = [snapshot(), *the_work_of(a_child("other")), complete("mine")]
    assert carry_out(stream, [ACCEPTED], sub_agents=True)[0] == [complete("mine")]


def test_f1_a_folded_run_is_told_of_the_sub_agents_of_its_host_from_then_on() -> None:
    sent, said, over = the_work_of(a_child("host"))
    folded = event(a_run(state=RunState.FOLDED, folded_into="host"))
    stream = [snapshot(), sent, folded, said, over, complete("mine")]
    assert carry_out(stream, [ACCEPTED], sub_agents=True)[0] == [folded, said, over, complete("mine")]


def test_f1_a_sub_agent_at_work_is_told_from_the_snapshot_with_the_call_that_it_makes() -> None:
    made = Message(
        id="a",
        session_id="child-s",
        run_id="child",
        seq=2,
        role=Role.ASSISTANT,
        parts=(ToolCallPart(id="c", name="bash", input="{}", finished=True),),
        created_at="t",
    )
    results = msgspec.structs.replace(
        made, id="b", seq=3, role=Role.TOOL, parts=(ToolResultPart(tool_call_id="c", content="", finished=False),)
    )
    known = snapshot(runs=(a_run(), a_child()), messages=(results,))
    given, asked = carry_out([known, complete("mine")], [MessagePage(items=(made,))], submit=None, sub_agents=True)
    assert given == [of_child(made), event(a_run()), of_child(a_child()), of_child(results), complete("mine")]
    assert asked == ["GET /v1/workspaces/w/sessions/child-s/messages"]
    assert carry_out([known, complete("mine")], [], submit=None) == ([event(a_run()), complete("mine")], [])
