"""A turn cannot run away: the model is told, a person is asked where one is, otherwise the run ends (ADR 0042)."""

import asyncio
import itertools
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from checks import check_ends, check_requests, finish_of
from crash import RESUME, check_log, restarted
from inboxes import follow_inbox
from running_app import RunningApp, configure, launch, watch

from longboat.core.history import calls_of
from longboat.core.limits import NUDGE_AT
from longboat.models.protocol import ModelRequest
from longboat.runtime import clock
from longboat.runtime.turn import limits
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel, ScriptedTool, Step
from longboat.tools.context import ToolError
from longboat.tools.question import NOBODY
from longboat.wire.asks import AskState, Question
from longboat.wire.inbox import InboxItem
from longboat.wire.models import AgentEvent, Delivery, FinishReason, Outcome, ToolResultPart
from longboat.wire.requests import AnswerQuestion, Approve


def endless(tool: str = "look") -> ScriptedModel:
    """A model that calls a tool for ever, each time with other arguments."""
    numbers = itertools.count()
    return ScriptedModel(lambda _: [Say("on and on"), CallTool(tool, {"at": next(numbers)})])


def failing() -> ScriptedTool:
    return ScriptedTool("look", ToolError("No such file."))


async def asked(running: RunningApp, nth: int = 1) -> Question:
    await running.watcher.until(lambda _: len(running.watcher.of("question_request")) >= nth)
    question: Question = running.watcher.of("question_request")[nth - 1]
    return question


async def answer(running: RunningApp, question: Question, text: str) -> None:
    request = AnswerQuestion(answer=(text,), client_id="ann")
    await running.workspace.asks.answer_question(question.id, request)


async def results(running: RunningApp) -> list[ToolResultPart]:
    parts = [part for message in await running.messages() for part in message.parts]
    return [part for part in parts if isinstance(part, ToolResultPart)]


async def test_where_nobody_can_answer_the_run_ends_at_the_limit_with_what_it_has(tmp_path: Path) -> None:
    configure(limits={"steps": 6})
    model, tool = endless(), ScriptedTool("look")
    async with launch(tmp_path, model, tools=[tool], answers=False) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.ERROR, "on and on")
        assert complete.error == (
            "Stopped at a limit: 6 steps (limits.steps in longboat.json). Send a prompt to continue."
        )
        last = next(message for message in reversed(await running.messages()) if message.model is not None)
        assert finish_of(last).reason is FinishReason.LIMIT
        assert len(model.requests) == len(tool.calls) == 6
        assert running.watcher.of("question_request") == []
        check_requests(model.requests)
        await check_ends(running)


async def test_failing_calls_that_differ_each_time_are_stopped(tmp_path: Path) -> None:
    """Review: 722 requests in 45 s."""
    configure(limits={"failures": 4})
    model = endless()
    async with launch(tmp_path, model, tools=[failing()], answers=False) as running:
        await running.submit("go", "r1", approve=Approve.ALL)
        complete = await running.completed("r1")
        assert "4 steps in a row in which every tool call failed (limits.failures" in complete.error
        assert len(model.requests) == 4


async def test_red_test_runs_in_a_row_do_not_end_a_turn(tmp_path: Path) -> None:
    configure(limits={"failures": 2})
    runs: list[Step] = [[CallTool("bash", {"command": f"echo {number} failed; exit 1"})] for number in range(8)]
    async with launch(tmp_path, ScriptedModel([*runs, [Say("Still red.")]]), answers=False) as running:
        await running.submit("test it", "r1", approve=Approve.ALL)
        assert (await running.completed("r1")).text == "Still red."
        assert [(part.is_error, part.command_failed) for part in await results(running)] == [(True, True)] * 8


async def test_commands_that_are_denied_do_end_it(tmp_path: Path) -> None:
    configure(limits={"failures": 2}, permissions={"deny": ["bash(rm *)"]})
    runs: list[Step] = [[CallTool("bash", {"command": f"rm {number}"})] for number in range(8)]
    async with launch(tmp_path, ScriptedModel(runs), answers=False) as running:
        await running.submit("remove it", "r1", approve=Approve.ALL)
        assert "2 steps in a row in which every tool call failed" in (await running.completed("r1")).error


async def test_the_model_is_told_before_and_can_end_in_time(tmp_path: Path) -> None:
    configure(limits={"steps": 8})

    def act(request: ModelRequest) -> Step:
        last = request.messages[-1].parts[-1]
        told = isinstance(last, ToolResultPart) and "This turn ends after" in last.content
        return [Say("Half of it is done.")] if told else [CallTool("look", {"at": len(request.messages)})]

    model = ScriptedModel(act)
    async with launch(tmp_path, model, tools=[ScriptedTool("look")], answers=False) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "Half of it is done.")
        assert "[This turn ends after 4 more steps." in (await results(running))[-1].content
        await check_ends(running)


async def test_the_third_failure_of_the_same_call_comes_with_a_nudge(tmp_path: Path) -> None:
    same: list[Step] = [[CallTool("look", {"at": "x"})]] * NUDGE_AT
    model = ScriptedModel([*same, [Say("I cannot find it.")]])
    async with launch(tmp_path, model, tools=[failing()]) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).outcome is Outcome.END_TURN
        nudged = ["Do not repeat it" in result.content for result in await results(running)]
        assert nudged == [False] * (NUDGE_AT - 1) + [True]


def waiting() -> ScriptedModel:
    """A model that starts a silent job and waits for it again and again."""

    def act(request: ModelRequest) -> Step:
        found = re.search(r"job-\w+", str(request.messages[-1].parts))
        if found is None:
            return [CallTool("bash", {"command": "sleep 600", "run_in_background": True})]
        waits = sum(part.name == "job_output" for message in request.messages for part in calls_of(message))
        return [Say("Still silent.")] if waits == 8 else [CallTool("job_output", {"job_id": found[0], "wait_s": 0.01})]

    return ScriptedModel(act)


async def test_a_turn_may_wait_for_a_silent_job_as_long_as_its_steps_last(tmp_path: Path) -> None:
    async with launch(tmp_path, waiting(), answers=False) as running:
        await running.submit("build it", "r1", approve=Approve.ALL)
        assert (await running.completed("r1")).text == "Still silent."
        assert not any("Do not repeat it" in result.content for result in await results(running))


async def test_a_turn_does_not_wait_for_ever(tmp_path: Path) -> None:
    configure(limits={"approved_steps": 7})
    async with launch(tmp_path, waiting(), answers=False) as running:
        await running.submit("build it", "r1", approve=Approve.ALL)
        assert "7 steps (limits.approved_steps" in (await running.completed("r1")).error


async def test_where_someone_can_answer_they_are_asked_and_the_turn_continues(tmp_path: Path) -> None:
    configure(limits={"steps": 3})
    model = endless()
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        await running.submit("go", "r1")
        first = await asked(running)
        assert (first.text, first.choices) == ("The agent reached a limit: 3 steps. Continue?", ("Continue", "Stop"))
        assert len(model.requests) == 3
        page = await running.app.inbox.page("ann", before=None, limit=10)
        assert [(item.kind, item.run_id) for item in page.items if isinstance(item, InboxItem)] == [("question", "r1")]
        await answer(running, first, "Continue")
        second = await asked(running, 2)
        assert "6 steps" in second.text
        assert len(model.requests) == 6
        await answer(running, second, "no")
        complete = await running.completed("r1")
        assert complete.error == "Stopped at a limit: ann stopped it. Send a prompt to continue."
        told = [event.message for event in running.watcher.of("agent_event") if isinstance(event, AgentEvent)]
        assert "ann let the turn continue." in told
        check_requests(model.requests)
        await check_ends(running)


async def test_an_answer_in_ones_own_words_is_for_the_model(tmp_path: Path) -> None:
    configure(limits={"steps": 1})
    model = ScriptedModel([[CallTool("look")], [Say("In tests/ only.")]])
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        await running.submit("go", "r1")
        await answer(running, await asked(running), "Look in tests/ only.")
        assert (await running.completed("r1")).text == "In tests/ only."
        assert "Look in tests/ only." in str(model.requests[-1].messages[-1])
        await check_ends(running)


async def test_a_prompt_that_steers_the_turn_counts_as_go_on(tmp_path: Path) -> None:
    configure(limits={"steps": 2})
    gate = Gate()
    model = ScriptedModel(
        [[CallTool("look", {"at": 1}), Pause(gate)], *[[CallTool("look", {"at": n})] for n in (2, 3)], [Say("Done.")]]
    )
    async with launch(tmp_path, model, tools=[ScriptedTool("look")], answers=False) as running:
        await running.submit("go", "r1")
        await gate.reached()
        await running.submit("and this", "r2", delivery=Delivery.STEER)
        gate.open()
        complete = await running.completed("r1")
        assert "2 steps" not in complete.error
        assert len(model.requests) == 3
        assert "3 steps" in complete.error


async def test_who_approved_all_is_not_asked_and_the_run_ends_at_the_higher_limit(tmp_path: Path) -> None:
    configure(limits={"steps": 2, "approved_steps": 5})
    model = endless()
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        await running.submit("go", "r1", approve=Approve.ALL)
        complete = await running.completed("r1")
        assert "5 steps (limits.approved_steps in longboat.json)" in complete.error
        assert running.watcher.of("question_request") == []
        assert len(model.requests) == 5


class Clock:
    """Stands still until somebody moves it."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.at

    def pass_minutes(self, minutes: float) -> None:
        self.at += timedelta(minutes=minutes)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(clock, "utc", made)
    return made


async def test_working_time_is_limited_and_waiting_for_people_is_not_counted(tmp_path: Path, time: Clock) -> None:
    configure(limits={"minutes": 10})

    def work(_: object) -> str:
        time.pass_minutes(4)
        return "worked"

    steps: list[Step] = [[CallTool("question", {"text": "Which?"})], *[[CallTool("work", {"n": n})] for n in range(9)]]
    model, tool = ScriptedModel(steps), ScriptedTool("work", work)
    async with launch(tmp_path, model, tools=[tool]) as running:
        await running.submit("go", "r1")
        question = await asked(running)
        time.pass_minutes(600)
        await answer(running, question, "that one")
        limit = await asked(running, 2)
        assert limit.text == "The agent reached a limit: 12 minutes of work. Continue?"
        assert len(tool.calls) == 3
        time.pass_minutes(600)
        await answer(running, limit, "yes")
        assert "24 minutes" in (await asked(running, 3)).text
        assert len(tool.calls) == 6
        await running.workspace.cancel_run("r1")
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        await check_ends(running)


async def test_a_cancel_while_it_is_asked_withdraws_the_question(tmp_path: Path) -> None:
    configure(limits={"steps": 1})
    async with launch(tmp_path, endless(), tools=[ScriptedTool("look")]) as running:
        await running.submit("go", "r1")
        question = await asked(running)
        await running.workspace.cancel_run("r1")
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        told = running.watcher.of("question_notification")
        assert [(each.id, each.state) for each in told] == [(question.id, AskState.WITHDRAWN)]
        await check_ends(running)


async def test_the_question_survives_a_crash_and_its_answer_lets_the_resumed_run_continue(tmp_path: Path) -> None:
    configure(limits={"steps": 2})
    after = ScriptedModel([[Say("Gone on.")]])
    async with launch(tmp_path, endless(), tools=[ScriptedTool("look")], config=RESUME) as running:
        await running.submit("go", "r1")
        question = await asked(running)
        async with restarted(running, after, config=RESUME, tools=[ScriptedTool("look")]) as again:
            assert await again.workspace.asks.questions() == (question,)
            await answer(again, question, "Continue")
            run = await again.workspace.run("r1", wait_s=30)
            assert run.outcome is Outcome.END_TURN, run
            reader = await check_log(again)
            assert len(reader.of("question_request")) == 1
            check_requests(after.requests)
        await running.workspace.cancel_run("r1")


async def test_a_stop_holds_although_the_server_is_killed_before_the_run_has_ended(tmp_path: Path) -> None:
    configure(limits={"steps": 2})
    after = endless()
    async with launch(tmp_path, endless(), tools=[ScriptedTool("look")], config=RESUME) as running:
        await running.submit("go", "r1")
        question = await asked(running)
        gate = await running.held_actor()
        await answer(running, question, "Stop")
        async with restarted(running, after, config=RESUME, tools=[ScriptedTool("look")]) as again:
            run = await again.workspace.run("r1", wait_s=30)
            assert run.outcome is Outcome.ERROR, run
            assert "stopped it" in (run.error or ""), run
            assert after.requests == []
            await check_log(again)
        gate.open()
        await running.workspace.run("r1", wait_s=30)


async def test_a_crash_of_a_run_that_is_not_resumed_withdraws_the_question(tmp_path: Path) -> None:
    configure(limits={"steps": 2})
    async with launch(tmp_path, endless(), tools=[ScriptedTool("look")]) as running:
        await running.submit("go", "r1")
        await asked(running)
        async with restarted(running, ScriptedModel(), tools=[ScriptedTool("look")]) as again:
            assert (await again.workspace.run("r1")).outcome is Outcome.INTERRUPTED
            assert await again.workspace.asks.questions() == ()
            await check_log(again)
        await running.workspace.cancel_run("r1")


async def test_a_sub_agent_ends_at_its_limit_and_its_parent_reads_what_it_had(tmp_path: Path) -> None:
    configure(limits={"steps": 3})

    def act(request: ModelRequest) -> Step:
        if "look for it" in str(request.messages[0]):
            return [Say("found two so far"), CallTool("look", {"at": len(request.messages)})]
        if len(request.messages) == 1:
            return [CallTool("agent", {"prompt": "look for it"})]
        return [Say("Two at least.")]

    model = ScriptedModel(act)
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "Two at least."
        (result,) = await results(running)
        assert result.is_error
        assert "Stopped at a limit: 3 steps" in result.content
        assert "found two so far" in result.content
        assert running.watcher.of("question_request") == []


# The question tool


async def test_a_question_where_nobody_can_answer_is_left_to_the_agent(tmp_path: Path) -> None:
    """Review: it canceled the run."""
    model = ScriptedModel([[CallTool("question", {"text": "Which?"})], [Say("I assumed the first.")]])
    async with launch(tmp_path, model, answers=False) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "I assumed the first.")
        (result,) = await results(running)
        assert (result.content, result.is_error) == (NOBODY, False)
        assert running.watcher.of("question_request") == []
        await check_ends(running)


async def test_someone_who_comes_to_answer_is_asked_and_one_who_only_watches_is_not(tmp_path: Path) -> None:
    gate = Gate()
    steps: list[Step] = [[CallTool("question", {"text": "Which?"})]] * 2
    model = ScriptedModel([steps[0], [Pause(gate), *steps[1]], [Say("Thanks.")]])
    async with launch(tmp_path, model, answers=False) as running:
        await running.submit("go", "r1")
        await gate.reached()
        async with watch(running.workspace, client_id="ann"):
            gate.open()
            await answer(running, await asked(running), "the second")
            assert (await running.completed("r1")).outcome is Outcome.END_TURN
        assert [result.content for result in await results(running)] == [NOBODY, "the second"]


async def test_who_looks_at_the_inbox_is_asked_from_any_workspace(tmp_path: Path) -> None:
    model = ScriptedModel([[CallTool("question", {"text": "Which?"})], [Say("Thanks.")]])
    async with launch(tmp_path, model, answers=False) as running, follow_inbox(running.app):
        await running.submit("go", "r1")
        await answer(running, await asked(running), "the second")
        assert (await running.completed("r1")).text == "Thanks."


async def test_a_run_that_is_to_wait_for_answers_asks_although_nobody_is_there(tmp_path: Path) -> None:
    configure(limits={"steps": 1})
    model = ScriptedModel([[CallTool("question", {"text": "Which?"})], [Say("Thanks.")]])
    async with launch(tmp_path, model, answers=False) as running:
        await running.submit("go", "r1", wait_for_answers=True)
        await answer(running, await asked(running), "the second")
        await answer(running, await asked(running, 2), "Continue")
        assert (await running.completed("r1")).text == "Thanks."


class Deadlines:
    """The deadlines of model requests: none passes until the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds: list[float | None] = []
        self._last = asyncio.timeout(None)
        monkeypatch.setattr(limits, "timeout", self._make)

    def _make(self, seconds: float | None) -> asyncio.Timeout:
        self.seconds.append(seconds)
        self._last = asyncio.timeout(None)
        return self._last

    def pass_now(self) -> None:
        self._last.reschedule(asyncio.get_running_loop().time())


@dataclass(frozen=True)
class Ends:
    """Where an endless answer ends."""

    approve: Approve
    answers: bool
    minutes: int
    setting: str


@pytest.mark.parametrize(
    "ends",
    [
        Ends(Approve.ASK, answers=False, minutes=10, setting="limits.minutes"),
        Ends(Approve.ASK, answers=True, minutes=100, setting="limits.approved_minutes"),
        Ends(Approve.ALL, answers=False, minutes=100, setting="limits.approved_minutes"),
    ],
    ids=["nobody can answer", "somebody can", "approves all"],
)
async def test_an_endless_answer_ends_at_the_limit_with_what_was_streamed(
    tmp_path: Path, time: Clock, monkeypatch: pytest.MonkeyPatch, ends: Ends
) -> None:
    configure(limits={"minutes": 10, "approved_minutes": 100})
    deadlines, gate = Deadlines(monkeypatch), Gate()
    model = ScriptedModel([[Say("once upon a time"), Pause(gate), Say("never said")], [Say("And then?")]])
    async with launch(tmp_path, model, answers=ends.answers) as running:
        await running.submit("tell me a story", "r1", approve=ends.approve)
        await gate.reached()
        assert deadlines.seconds == [ends.minutes * 60]
        time.pass_minutes(ends.minutes)
        deadlines.pass_now()
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.ERROR, "once upon a time")
        assert complete.error == (
            f"Stopped at a limit: {ends.minutes} minutes of work ({ends.setting} in longboat.json). "
            "Send a prompt to continue."
        )
        last = next(message for message in reversed(await running.messages()) if message.model is not None)
        assert finish_of(last).reason is FinishReason.LIMIT
        await running.submit("go on", "r2")
        assert (await running.completed("r2")).text == "And then?"
        check_requests(model.requests)
        await check_ends(running)
