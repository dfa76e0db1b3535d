"""A run that plans first changes nothing until someone approves its plan, which becomes the todos (ADR 0048)."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from checks import check_ends, check_requests
from crash import RESUME, check_log, restarted
from mcp_harness import stdio
from running_app import RunningApp, configure, launch, watch

from longboat.errors import AlreadyAnswered, BadInput
from longboat.models.protocol import Abilities, ModelRequest
from longboat.runtime.turn.planning import approval_in
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel, ScriptedTool, Step
from longboat.tools.propose_plan import APPROVED, NOBODY, NOT_YET, WISH
from longboat.wire.asks import AskState, CallAnswer, PermissionAnswer, Question
from longboat.wire.inbox import InboxItem
from longboat.wire.models import AgentEvent, Delivery, Message, Outcome, Part, Role, ToolCallPart, ToolResultPart
from longboat.wire.requests import AnswerPermission, AnswerQuestion, Approve, EditRun
from longboat.wire.tools import Effect, SubAgents, ToolTraits
from longboat.wire.workspace_state import TodoItem, TodoState

PLAN = CallTool("propose_plan", {"summary": "A greeting is missing.", "items": ["Write hello.txt", "Check it"]})
WRITE = CallTool("write", {"path": "hello.txt", "content": "hello\n"})
CHANGING = (
    WRITE,
    CallTool("edit", {"path": "kept.txt", "old_text": "kept", "new_text": "lost"}),
    CallTool("multiedit", {"path": "kept.txt", "edits": [{"old_text": "kept", "new_text": "lost"}]}),
    CallTool("bash", {"command": "echo lost > kept.txt"}),
    CallTool("download", {"url": "http://127.0.0.1:9/x", "path": "kept.txt"}),
    CallTool("rename", {"path": "kept.txt", "line": 1, "symbol": "kept", "new_name": "lost"}),
    CallTool("job_kill", {"job_id": "1"}),
)
WORKER = "---\nname: worker\ndescription: Works.\nread_only: false\n---\nWork.\n"
TODOS = tuple(TodoItem(text=text, state=TodoState.PENDING) for text in ("Write hello.txt", "Check it"))


async def asked(running: RunningApp, nth: int = 1) -> Question:
    await running.watcher.until(lambda _: len(running.watcher.of("question_request")) >= nth)
    question: Question = running.watcher.of("question_request")[nth - 1]
    return question


async def answer(running: RunningApp, question: Question, text: str, who: str = "ann") -> None:
    await running.workspace.asks.answer_question(question.id, AnswerQuestion(answer=(text,), client_id=who))


async def results(running: RunningApp, session_id: str | None = None) -> list[ToolResultPart]:
    parts = [part for message in await running.messages(session_id) for part in message.parts]
    return [part for part in parts if isinstance(part, ToolResultPart)]


async def todos(running: RunningApp) -> Sequence[TodoItem]:
    return await running.workspace.store.reads.todos(running.session_id)


def names(request: ModelRequest) -> set[str]:
    return {tool.name for tool in request.tools}


def notices(running: RunningApp) -> list[str]:
    return [event.message for event in running.watcher.of("agent_event") if isinstance(event, AgentEvent)]


async def test_an_approved_plan_becomes_the_todos_and_the_turn_goes_on_with_all_tools(tmp_path: Path) -> None:
    model = ScriptedModel([[CallTool("ls", {})], [PLAN], [WRITE], [Say("Done.")], [Say("Later.")]])
    async with launch(tmp_path, model) as running:
        await running.submit("Greet.", "r1", plan=True, approve=Approve.ALL)
        question = await asked(running)
        assert question.text == (
            "Go ahead with this plan?\n\nA greeting is missing.\n\n1. Write hello.txt\n2. Check it"
        )
        assert question.choices == ("Go ahead", "Not yet")
        page = await running.app.inbox.page("ann", before=None, limit=10)
        assert [(item.kind, item.run_id) for item in page.items if isinstance(item, InboxItem)] == [("question", "r1")]
        assert await todos(running) == ()
        await answer(running, question, "Go ahead")
        assert (await running.completed("r1")).text == "Done."
        assert (tmp_path / "project" / "hello.txt").read_text() == "hello\n"
        assert await todos(running) == TODOS
        result = (await results(running))[1]
        assert (result.content, result.answers) == (
            APPROVED,
            (CallAnswer(answer=PermissionAnswer.ONCE, answered_by="ann"),),
        )
        assert "ann approved the plan." in notices(running)
        await running.submit("And?", "r2")
        await running.completed("r2")
        check_requests(model.requests)
        await check_ends(running)
    first, second, third, _, later = model.requests
    assert names(first) == names(second)
    assert names(first) >= {"view", "ls", "grep", "glob", "fetch", "question", "todos", "agent", "propose_plan"}
    assert not names(first) & {call.name for call in CHANGING}
    assert "You are planning" in first.system
    assert names(third) == names(later) > names(first) - {"propose_plan"}
    assert "propose_plan" not in names(third)
    assert third.system == later.system
    assert "You are planning" not in third.system


async def test_whatever_the_model_tries_nothing_changes_before(tmp_path: Path) -> None:
    """Also not with a call beside the one that proposes, nor under approve all."""
    model = ScriptedModel([list(CHANGING), [PLAN, *CHANGING], [Say("I could not.")]])
    async with launch(tmp_path, model) as running:
        kept = tmp_path / "project" / "kept.txt"
        kept.write_text("kept")
        await running.submit("go", "r1", plan=True, approve=Approve.ALL)
        await answer(running, await asked(running), "Go ahead")
        await running.completed("r1")
        refused = [result for result in await results(running) if result.name != "propose_plan"]
        assert len(refused) == 2 * len(CHANGING)
        assert all("until people approve your plan" in result.content for result in refused)
        assert kept.read_text() == "kept"
        assert not (tmp_path / "project" / "hello.txt").exists()


@pytest.mark.parametrize("first", ["Go ahead", "Not yet"])
async def test_of_two_plans_in_one_step_only_the_first_is_asked_for(tmp_path: Path, first: str) -> None:
    """Else two answers could contradict each other."""
    other = CallTool("propose_plan", {"summary": "Something else.", "items": ["Write other.txt"]})
    model = ScriptedModel([[PLAN, other], [WRITE], [Say("Done.")]])
    async with launch(tmp_path, model) as running:
        await running.submit("Greet.", "r1", plan=True, approve=Approve.ALL)
        await answer(running, await asked(running), first)
        await running.completed("r1")
        assert len(running.watcher.of("question_request")) == 1
        asked_for, refused, _ = await results(running)
        assert (asked_for.is_error, refused.is_error) == (False, True)
        assert "one plan at a time" in refused.content
        is_approved = first == "Go ahead"
        assert await todos(running) == (TODOS if is_approved else ())
        assert (tmp_path / "project" / "hello.txt").exists() is is_approved
        check_requests(model.requests)
        await check_ends(running)


ONCE = CallAnswer(answer=PermissionAnswer.ONCE, answered_by="ann")
DECLINED = CallAnswer(answered_by="ben")


def message(role: Role, parts: tuple[Part, ...]) -> Message:
    return Message(id=role, session_id="s", run_id="r", seq=1, role=role, parts=parts, created_at="")


@pytest.mark.parametrize(
    ("answers", "approved"),
    [([ONCE], True), ([DECLINED], False), ([ONCE, DECLINED], False), ([DECLINED, ONCE], True), ([ONCE, None], True)],
)
def test_the_latest_decision_about_a_plan_counts(answers: list[CallAnswer | None], approved: bool) -> None:
    """Also in transcripts in which a step asked twice. A proposal that nobody was asked about decides nothing."""
    traits = ToolTraits(proposes=True)
    calls = tuple(
        ToolCallPart(id=str(n), name="p", input="{}", traits=traits, finished=True) for n in range(len(answers))
    )
    given = tuple(
        ToolResultPart(tool_call_id=str(n), name="p", content="", answers=(each,) if each else (), is_error=not each)
        for n, each in enumerate(answers)
    )
    messages = [message(Role.ASSISTANT, calls), message(Role.TOOL, given)]
    assert approval_in(messages) == (ONCE if approved else None)


async def test_a_sub_agent_changes_nothing_before_either(tmp_path: Path) -> None:
    agents = tmp_path / "project" / ".agents" / "agents"
    agents.mkdir(parents=True)
    (agents / "worker.md").write_text(WORKER)

    def act(request: ModelRequest) -> Step:
        if "do it now" in str(request.messages[0]):
            return [WRITE] if len(request.messages) == 1 else [Say("tried")]
        steps: dict[int, Step] = {
            1: [CallTool("agent", {"prompt": "do it now", "agent": "worker"})],
            3: [PLAN],
            5: [CallTool("agent", {"prompt": "do it now", "agent": "worker"})],
        }
        return steps.get(len(request.messages), [Say("Done.")])

    model = ScriptedModel(act)
    async with launch(tmp_path, model) as running:
        written = tmp_path / "project" / "hello.txt"
        await running.submit("go", "r1", plan=True, approve=Approve.ALL)
        question = await asked(running)
        assert not written.exists()
        await answer(running, question, "yes")
        await running.completed("r1")
        assert written.read_text() == "hello\n"
    children = [request for request in model.requests if "do it now" in str(request.messages[0])]
    assert ["write" in names(request) for request in children] == [False, False, True, True]
    assert not any("propose_plan" in names(request) for request in children)


async def test_what_people_want_changed_goes_back_to_the_model(tmp_path: Path) -> None:
    better = CallTool("propose_plan", {"summary": "In French.", "items": ["Write bonjour.txt"]})
    model = ScriptedModel([[PLAN], [better], [PLAN, Say("Again.")], [Say("Then not.")]])
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1", plan=True)
        await answer(running, await asked(running), "In French, please.")
        await answer(running, await asked(running, 2), "Not yet")
        await answer(running, await asked(running, 3), "no")
        assert (await running.completed("r1")).text == "Then not."
        said = [result.content for result in await results(running)]
        assert said == [f"{WISH}In French, please.", NOT_YET, NOT_YET]
        assert await todos(running) == ()
        assert not any("approved" in notice for notice in notices(running))
    assert all(names(request) == names(model.requests[0]) for request in model.requests)


async def test_where_nobody_can_answer_the_plan_is_the_answer(tmp_path: Path) -> None:
    model = ScriptedModel([[PLAN], [Say("1. Write hello.txt")]])
    async with launch(tmp_path, model, answers=False) as running:
        await running.submit("go", "r1", plan=True, approve=Approve.ALL)
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "1. Write hello.txt")
        assert [result.content for result in await results(running)] == [NOBODY]
        assert running.watcher.of("question_request") == []
        assert await todos(running) == ()
        await check_ends(running)


async def test_a_run_that_is_to_wait_asks_although_nobody_is_there(tmp_path: Path) -> None:
    model = ScriptedModel([[PLAN], [Say("Thanks.")]])
    async with launch(tmp_path, model, answers=False) as running:
        await running.submit("go", "r1", plan=True, wait_for_answers=True)
        await answer(running, await asked(running), "Go ahead")
        assert (await running.completed("r1")).text == "Thanks."


async def test_the_first_of_several_answers_counts(tmp_path: Path) -> None:
    model = ScriptedModel([[PLAN], [Say("Done.")]])
    async with launch(tmp_path, model) as running, watch(running.workspace, client_id="bob"):
        await running.submit("go", "r1", plan=True)
        question = await asked(running)
        given = await asyncio.gather(
            answer(running, question, "Go ahead", "ann"),
            answer(running, question, "Not yet", "bob"),
            return_exceptions=True,
        )
        assert [type(each) for each in given if each is not None] == [AlreadyAnswered]
        await running.completed("r1")
        await check_ends(running)


async def test_a_cancel_withdraws_the_ask_and_changes_nothing(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([[PLAN]])) as running:
        await running.submit("go", "r1", plan=True)
        question = await asked(running)
        await running.workspace.cancel_run("r1")
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        told = running.watcher.of("question_notification")
        assert [(each.id, each.state) for each in told] == [(question.id, AskState.WITHDRAWN)]
        assert await todos(running) == ()
        await check_ends(running)


async def test_the_ask_survives_a_crash_and_its_answer_ends_the_restriction(tmp_path: Path) -> None:
    after = ScriptedModel([[WRITE], [Say("Done.")]])
    async with launch(tmp_path, ScriptedModel([[PLAN]]), config=RESUME) as running:
        await running.submit("go", "r1", plan=True, approve=Approve.ALL)
        question = await asked(running)
        async with restarted(running, after, config=RESUME) as again:
            assert await again.workspace.asks.questions() == (question,)
            await answer(again, question, "Go ahead")
            assert (await again.workspace.run("r1", wait_s=30)).outcome is Outcome.END_TURN
            assert (tmp_path / "project" / "hello.txt").exists()
            assert await todos(again) == TODOS
            assert len((await check_log(again)).of("question_request")) == 1
        await running.workspace.cancel_run("r1")
    assert "propose_plan" not in names(after.requests[0])


@pytest.mark.parametrize("summarized", [False, True])
async def test_an_approved_plan_stays_approved_after_a_crash(tmp_path: Path, summarized: bool) -> None:
    gate = Gate()
    summary: list[Step] = [[Say("The plan was approved.")]] if summarized else []
    window = 20_000 if summarized else 200_000
    look = ScriptedTool("look", "x" * 70_000 if summarized else "x", traits=ToolTraits(effect=Effect.READS))
    before = ScriptedModel([[PLAN], [CallTool("look")], *summary, [Pause(gate)]], context_window=window)
    after = ScriptedModel([[WRITE], [Say("Done.")]], context_window=window)
    async with launch(tmp_path, before, config=RESUME, tools=[look]) as running:
        await running.submit("go", "r1", plan=True, approve=Approve.ALL)
        await answer(running, await asked(running), "Go ahead")
        await gate.reached()
        assert any(message.summary for message in await running.messages()) is summarized
        async with restarted(running, after, config=RESUME, tools=[look]) as again:
            assert (await again.workspace.run("r1", wait_s=30)).outcome is Outcome.END_TURN
            assert (tmp_path / "project" / "hello.txt").exists()
        await running.workspace.cancel_run("r1")
    assert "propose_plan" not in names(after.requests[0])


async def test_a_plan_that_was_not_approved_is_not_after_a_crash(tmp_path: Path) -> None:
    gate = Gate()
    after = ScriptedModel([[WRITE], [Say("I could not.")]])
    async with launch(tmp_path, ScriptedModel([[PLAN], [Pause(gate)]]), config=RESUME) as running:
        await running.submit("go", "r1", plan=True, approve=Approve.ALL)
        await answer(running, await asked(running), "Not yet")
        await gate.reached()
        async with restarted(running, after, config=RESUME) as again:
            assert (await again.workspace.run("r1", wait_s=30)).outcome is Outcome.END_TURN
            assert not (tmp_path / "project" / "hello.txt").exists()
        await running.workspace.cancel_run("r1")


async def test_a_prompt_that_plans_first_has_a_turn_of_its_own(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[Pause(gate), Say("one")], [Say("The plan.")]])
    async with launch(tmp_path, model) as running:
        await running.submit("first", "r1")
        await gate.reached()
        accepted = await running.submit("second", plan=True)
        waiting = await running.workspace.run(accepted.run_id)
        assert (waiting.delivery, waiting.plan) == (Delivery.QUEUE, True)
        with pytest.raises(BadInput, match="plans first"):
            await running.submit("third", "r3", plan=True, delivery=Delivery.STEER)
        with pytest.raises(BadInput, match="plans first"):
            await running.workspace.edit_run(accepted.run_id, EditRun(delivery=Delivery.STEER))
        gate.open()
        await running.completed(accepted.run_id)
        assert [run.plan for run in await running.ledger()] == [False, True]
    assert ["propose_plan" in names(request) for request in model.requests] == [False, True]


async def test_a_prompt_that_steers_a_run_that_plans_gives_it_no_more_tools(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[CallTool("ls", {}), Pause(gate)], [WRITE], [Say("I could not.")]])
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1", plan=True)
        await gate.reached()
        await running.submit("just write it", "r2", delivery=Delivery.STEER, approve=Approve.ALL)
        gate.open()
        await running.completed("r2")
        assert not (tmp_path / "project" / "hello.txt").exists()


async def test_a_command_with_its_own_agent_can_propose(tmp_path: Path) -> None:
    place = tmp_path / "project" / ".agents"
    (place / "agents").mkdir(parents=True)
    (place / "commands").mkdir()
    (place / "agents" / "worker.md").write_text(WORKER)
    (place / "commands" / "work.md").write_text("---\nagent: worker\n---\nWork on it.\n")
    model = ScriptedModel([[PLAN], [Say("Done.")]])
    async with launch(tmp_path, model) as running:
        await running.submit("/work", "r1", plan=True)
        await answer(running, await asked(running), "Go ahead")
        await running.completed("r1")
    assert "propose_plan" in names(model.requests[0])
    assert "write" not in names(model.requests[0])
    assert "write" in names(model.requests[1])


async def test_own_tools_are_offered_as_their_traits_say(tmp_path: Path) -> None:
    def tool(name: str, **traits: Any) -> ScriptedTool:
        return ScriptedTool(name, traits=ToolTraits(**traits))

    tools = [
        tool("unknown"),
        tool("reader", effect=Effect.READS),
        tool("searcher", sub_agents=SubAgents.ALL),
        tool("changer", effect=Effect.CHANGES, sub_agents=SubAgents.ALL),
    ]
    model = ScriptedModel([[Say("ok")]])
    async with launch(tmp_path, model, tools=tools) as running:
        await running.submit("go", "r1", plan=True)
        await running.completed("r1")
    assert names(model.requests[0]) & {"unknown", "reader", "searcher", "changer"} == {"reader", "searcher"}


@pytest.mark.usefixtures("awaited_servers")
async def test_an_mcp_server_that_declares_that_a_tool_reads_makes_it_available_but_not_allowed(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    configure(mcp={"test": stdio(notes)})
    look = CallTool("mcp__test__header", {"name": "host"})
    model = ScriptedModel([[look], [CallTool("mcp__test__echo", {"text": "hello"})], [Say("ok")]])
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1", plan=True)
        await running.watcher.until(lambda event: event.type == "permission_request")
        (permission,) = await running.workspace.asks.permissions()
        assert permission.tool == "mcp__test__header"
        allowed = AnswerPermission(answer=PermissionAnswer.ONCE)
        await running.workspace.asks.answer_permission(permission.id, allowed)
        await running.completed("r1")
        first, second = await results(running)
        assert not first.is_error
        assert "There is no tool 'mcp__test__echo'" in second.content


async def call_of_a_server(running: RunningApp) -> tuple[ToolResultPart, int]:
    """The result of an MCP tool's call in a run with `--plan --yolo`, and how many people were asked."""
    await running.submit("go", "r1", plan=True, approve=Approve.ALL)
    await running.completed("r1")
    (result,) = await results(running)
    return result, len(running.watcher.of("permission_request"))


@pytest.mark.usefixtures("awaited_servers")
@pytest.mark.parametrize(
    ("answers", "allow", "is_error", "asked"),
    [(False, [], True, 0), (False, ["mcp__test__header"], False, 0), (True, [], False, 1)],
    ids=["nobody", "a rule", "a person"],
)
async def test_the_word_of_an_mcp_server_that_a_tool_reads_is_not_enough_for_yolo(
    tmp_path: Path, answers: bool, allow: list[str], is_error: bool, asked: int
) -> None:
    """ADR 0048: while planning, a person or a rule allows each call."""
    notes = tmp_path / "notes"
    notes.mkdir()
    configure(mcp={"test": stdio(notes)}, permissions={"allow": allow})
    model = ScriptedModel([[CallTool("mcp__test__header", {"name": "host"})], [Say("ok")]])
    async with launch(tmp_path, model, answers=answers) as running:
        calling = asyncio.create_task(call_of_a_server(running))
        if asked:
            await running.watcher.until(lambda event: event.type == "permission_request")
            (permission,) = await running.workspace.asks.permissions()
            once = AnswerPermission(answer=PermissionAnswer.ONCE)
            await running.workspace.asks.answer_permission(permission.id, once)
        result, was_asked = await calling
        assert (result.is_error, was_asked) == (is_error, asked)


async def test_a_small_model_can_propose_and_one_without_tools_answers_with_the_plan(tmp_path: Path) -> None:
    small = ScriptedModel([[PLAN], [Say("Done.")]], context_window=8_000)
    async with launch(tmp_path, small) as running:
        await running.submit("go", "r1", plan=True)
        await answer(running, await asked(running), "Go ahead")
        await running.completed("r1")
    assert "propose_plan" in names(small.requests[0])
    assert not names(small.requests[0]) & {call.name for call in CHANGING}
    assert "propose_plan" not in names(small.requests[1])
    mute = ScriptedModel([[Say("1. Write hello.txt")]], abilities=Abilities(tools=False))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with launch(elsewhere, mute) as running:
        await running.submit("go", "r1", plan=True)
        assert (await running.completed("r1")).text == "1. Write hello.txt"
    assert "answer with what you found" in mute.requests[0].system
