"""The coding agent as a whole: tools, permissions, questions, undo; real files, real shells, a scripted model."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from checks import check_ends, check_requests
from crash import RESUME, check_log, restarted
from running_app import TITLES_OFF, RunningApp, launch, watch

from longboat.runtime.turn.asks import Asks
from longboat.runtime.workspace.services import Services
from longboat.testing import CallTool, Gate, Say, ScriptedModel
from longboat.testing.scripted import last_prompt
from longboat.wire.asks import AskState, Permission, PermissionAnswer, Question
from longboat.wire.models import Outcome, Role, ToolResultPart
from longboat.wire.requests import AnswerPermission, AnswerQuestion, Approve, CreateSession


def call(name: str, **arguments: Any) -> CallTool:
    return CallTool(name, json.dumps(arguments))


def results(running: RunningApp) -> list[ToolResultPart]:
    """The finished results of all calls, in order."""
    last = {event.payload.id: event.payload for event in running.watcher.events if event.type == "message"}
    parts = [part for message in last.values() for part in message.parts]
    return [part for part in parts if isinstance(part, ToolResultPart) and part.finished]


async def asked(running: RunningApp, nth: int = 1) -> Permission:
    found: list[Permission] = []

    def count(event: Any) -> bool:
        if event.type == "permission_request" and event.payload not in found:
            found.append(event.payload)
        return len(found) >= nth

    await running.watcher.until(count)
    return found[nth - 1]


async def test_a_bug_is_found_fixed_tested_and_undone(tmp_path: Path) -> None:
    """A1–A4: look, read, edit, run; then undo takes back exactly that, and redo brings it again."""
    model = ScriptedModel(
        [
            [call("grep", pattern="def add"), call("view", path="sums.py")],
            [call("edit", path="sums.py", old_text="a - b", new_text="a + b")],
            [call("bash", command="python3 -c 'import sums; print(sums.add(2, 2))'")],
            [Say("Fixed.")],
        ],
        context_window=100_000,
    )
    async with launch(tmp_path, model) as running:
        source = running.workspace.directory / "sums.py"
        source.write_text("def add(a, b):\n    return a - b\n")
        await running.submit("fix add", "r1", approve=Approve.ALL)
        assert (await running.completed("r1")).text == "Fixed."
        assert source.read_text() == "def add(a, b):\n    return a + b\n"
        assert [part.is_error for part in results(running)] == [False] * 4, results(running)
        assert results(running)[-1].content.startswith("4\n")
        check_requests(model.requests)
        (change,) = running.watcher.of("file")
        assert (change.path, change.additions, change.deletions) == ("sums.py", 1, 1)
        await check_ends(running)
        undone = await running.workspace.undo_turn(running.session_id)
        assert (undone.run_id, undone.files) == ("r1", ("sums.py",))
        assert source.read_text() == "def add(a, b):\n    return a - b\n"
        assert await running.messages() == ()
        await running.workspace.redo_turn(running.session_id)
        assert source.read_text() == "def add(a, b):\n    return a + b\n"
        assert len(await running.messages()) == 8


async def test_a_permission_is_asked_once_and_the_first_answer_counts(tmp_path: Path) -> None:
    """A2."""
    model = ScriptedModel([[call("bash", command="touch made")], [Say("ok")]], context_window=100_000)
    async with launch(tmp_path, model) as running:
        await running.submit("make it", "r1")
        ask = await asked(running)
        assert (ask.tool, ask.argument, ask.state) == ("bash", "touch made", AskState.PENDING)
        assert await running.workspace.asks.permissions() == (ask,)
        assert not (running.workspace.directory / "made").exists()
        await running.workspace.asks.answer_permission(
            ask.id, AnswerPermission(answer=PermissionAnswer.ONCE, client_id="ann")
        )
        await running.completed("r1")
        assert (running.workspace.directory / "made").exists()
        (told,) = running.watcher.of("permission_notification")
        assert (told.id, told.answer, told.answered_by) == (ask.id, PermissionAnswer.ONCE, "ann")
        await check_ends(running)


async def test_a_refusal_reaches_the_model_with_its_reason(tmp_path: Path) -> None:
    """A2."""
    model = ScriptedModel([[call("bash", command="touch made")], [Say("then not")]], context_window=100_000)
    async with launch(tmp_path, model) as running:
        await running.submit("make it", "r1")
        ask = await asked(running)
        await running.workspace.asks.answer_permission(
            ask.id, AnswerPermission(answer=PermissionAnswer.DENY, reason="not in my house")
        )
        assert (await running.completed("r1")).outcome is Outcome.END_TURN
        assert "not in my house" in results(running)[0].content
        assert not (running.workspace.directory / "made").exists()
        await check_ends(running)


async def test_a_cancel_withdraws_what_the_run_asked(tmp_path: Path) -> None:
    """A2; opencode #20095: no permission dangles."""
    model = ScriptedModel([[call("question", text="Red or blue?", choices=["red", "blue"])]], context_window=100_000)
    async with launch(tmp_path, model) as running:
        await running.submit("paint it", "r1")
        question = (await running.watcher.until(lambda event: event.type == "question_request")).payload
        await running.workspace.cancel_session(running.session_id)
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        (told,) = running.watcher.of("question_notification")
        assert (told.id, told.state) == (question.id, AskState.WITHDRAWN)
        assert await running.workspace.asks.questions() == ()
        await check_ends(running)


async def test_a_question_outlives_a_restart_and_its_answer_is_heard(tmp_path: Path) -> None:
    """A2, B6; opencode #2264: with on_restart resume it is the same question, asked once, and the turn goes on."""
    model = ScriptedModel([[call("question", text="Red or blue?", choices=["red", "blue"])]], context_window=100_000)
    after = ScriptedModel([[Say("Blue it is.")]], context_window=100_000)
    async with launch(tmp_path, model, config=RESUME) as running:
        await running.submit("paint it", "r1")
        question: Question = (await running.watcher.until(lambda event: event.type == "question_request")).payload
        async with restarted(running, after, config=RESUME) as again:
            assert await again.workspace.asks.questions() == (question,)
            await again.workspace.asks.answer_question(question.id, AnswerQuestion(answer=("blue",)))
            assert (await again.workspace.run("r1", wait_s=60)).outcome is Outcome.END_TURN
            (request,) = after.requests
            assert "blue" in str(request.messages[-1].parts)
            await check_log(again)
        await running.workspace.cancel_session(running.session_id)
        await running.completed("r1")


@pytest.mark.parametrize("early", [False, True], ids=["asked again", "before anything was read"])
@pytest.mark.parametrize("how", ["cancel", "leave"])
async def test_a_call_that_a_restart_brought_back_is_closed_with_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, early: bool
) -> None:
    """T3, A2: every call of the former life has a result, the next prompt's transcript is valid, nothing stays open."""
    asking = [call("glob", pattern="*"), call("question", text="Red or blue?"), call("bash", command="touch made")]
    after = ScriptedModel([[Say("next")]], context_window=100_000)
    async with launch(tmp_path, ScriptedModel([asking], context_window=100_000), config=RESUME) as running:
        await running.submit("paint it", "r1")
        await running.watcher.until(lambda event: event.type == "question_request")
        begun, ask = Gate(), Asks.question
        if early:
            turn_setup = Services.turn_setup

            async def held(self: Services, *of: Any) -> Any:
                await begun.arrive()
                return await turn_setup(self, *of)

            monkeypatch.setattr(Services, "turn_setup", held)
        else:

            async def told(self: Asks, question: Question) -> Question:
                begun.open()
                await begun.arrive()
                return await ask(self, question)

            monkeypatch.setattr(Asks, "question", told)
        async with restarted(running, after, config=RESUME) as again:
            await begun.reached()
            if how == "cancel":
                await again.workspace.cancel_run("r1")
            else:
                again.actor.interrupt()
            begun.open()
            run = await again.workspace.run("r1", wait_s=60)
            assert run.outcome is (Outcome.CANCELED if how == "cancel" else Outcome.INTERRUPTED)
            messages = await again.messages()
            assert all(message.finished_at for message in messages)
            parts = [part for message in messages for part in message.parts if isinstance(part, ToolResultPart)]
            assert [part.finished for part in parts] == [True, True, True]
            assert not (running.workspace.directory / "made").exists()
            await again.submit("go on", "r2")
            await again.completed("r2")
            check_requests(after.requests)
            await check_log(again)
        await running.workspace.cancel_session(running.session_id)
        await running.completed("r1")


async def test_a_restart_that_interrupts_the_run_withdraws_its_question(tmp_path: Path) -> None:
    """A2, B6."""
    model = ScriptedModel([[call("question", text="Red or blue?")]], context_window=100_000)
    async with launch(tmp_path, model) as running:
        await running.submit("paint it", "r1")
        await running.watcher.until(lambda event: event.type == "question_request")
        async with restarted(running, ScriptedModel(), config=TITLES_OFF) as again:
            assert (await again.workspace.run("r1", wait_s=60)).outcome is Outcome.INTERRUPTED
            assert await again.workspace.asks.questions() == ()
            reader = await check_log(again)
            assert reader.of("question_notification")[0].state is AskState.WITHDRAWN
        await running.workspace.cancel_session(running.session_id)
        await running.completed("r1")


async def test_two_sub_agents_work_side_by_side_and_end_with_their_parent(tmp_path: Path) -> None:
    """A1: visible on the stream with both sessions, canceled with the parent."""
    from longboat.testing import Pause

    gates = {"look left": Gate(), "look right": Gate()}

    def answer(request: Any) -> Any:
        prompt = last_prompt(request)
        if prompt in gates:
            return [Pause(gates[prompt]), Say(f"nothing when I {prompt}")]
        return [call("agent", prompt="look left"), call("agent", prompt="look right")]

    async with launch(tmp_path, ScriptedModel(answer, context_window=100_000)) as running:
        await running.submit("look around", "r1")
        for gate in gates.values():
            await gate.reached()
        children = [run for run in running.watcher.of("run") if run.parent_run_id == "r1" and run.state == "active"]
        assert {run.parent_session_id for run in children} == {running.session_id}
        assert len({run.session_id for run in children}) == 2
        async with watch(running.workspace, client_id="late", session_id=running.session_id) as late:
            (snapshot,) = late.of("snapshot")
            assert {session.id for session in snapshot.sessions} == {
                running.session_id,
                *(r.session_id for r in children),
            }
            assert {run.run_id for run in snapshot.runs} == {"r1", *(run.run_id for run in children)}
        await running.workspace.cancel_session(running.session_id)
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        for run in children:
            assert (await running.completed(run.run_id)).outcome is Outcome.CANCELED


async def test_all_that_a_sub_agent_does_names_both_sessions_and_reaches_those_who_watch_its_parent(
    tmp_path: Path,
) -> None:
    """A1: every event of the child's session, live and on replay; nothing else names a parent."""

    def answer(request: Any) -> Any:
        if last_prompt(request) == "plan it":
            asked = any(message.role is Role.TOOL for message in request.messages)
            return [Say("planned")] if asked else [call("glob", pattern="*.json")]
        asked = any(message.role is Role.TOOL for message in request.messages)
        return [Say("done")] if asked else [call("todos", items=[{"text": "one"}]), call("agent", prompt="plan it")]

    async with launch(tmp_path, ScriptedModel(answer, context_window=100_000)) as running:
        start = running.watcher.of("snapshot")[0].cursor
        other = await running.workspace.create_session(CreateSession())
        async with (
            watch(running.workspace, client_id="parent", session_id=running.session_id) as live,
            watch(running.workspace, client_id="other", session_id=other.id) as elsewhere,
        ):
            await running.submit("look around", "r1")
            await running.completed("r1")
            await live.completed("r1")
        (child,) = {run.session_id for run in running.watcher.of("run") if run.parent_run_id == "r1"}
        theirs = [e for e in running.watcher.events if getattr(e.payload, "session_id", None) == child]
        assert {e.type for e in theirs} >= {"run", "message", "message_delta", "run_complete", "agent_event"}
        assert {e.parent_session_id for e in theirs} == {running.session_id}
        ours = [e for e in running.watcher.events if getattr(e.payload, "session_id", None) == running.session_id]
        assert ours
        assert {e.parent_session_id for e in ours} == {None}
        assert [e.cursor for e in live.events if e in theirs] == [e.cursor for e in theirs]
        assert not [
            e for e in elsewhere.events if getattr(e.payload, "session_id", None) in (child, running.session_id)
        ]
        async with watch(running.workspace, client_id="again", after=start, session_id=running.session_id) as replayed:
            await replayed.completed("r1")
            assert [e for e in replayed.events if e in theirs] == theirs
        todos = await running.workspace.todos(running.session_id)
        assert [item.text for item in todos.items] == ["one"]
        assert (await running.workspace.todos(other.id)).items == ()


async def test_undo_takes_the_directories_along_that_it_empties(tmp_path: Path) -> None:
    """A4: and leaves those in which something else is."""
    model = ScriptedModel(
        [
            [call("write", path="pkg/sub/new.py", content="x = 1\n"), call("write", path="kept/new.py", content="")],
            [Say("ok")],
        ],
        context_window=100_000,
    )
    async with launch(tmp_path, model) as running:
        kept = running.workspace.directory / "kept" / "mine.py"
        kept.parent.mkdir()
        kept.write_text("mine")
        await running.submit("write it", "r1", approve=Approve.ALL)
        await running.completed("r1")
        assert (running.workspace.directory / "pkg" / "sub" / "new.py").exists()
        await running.workspace.undo_turn(running.session_id)
        assert not (running.workspace.directory / "pkg").exists()
        assert [path.name for path in kept.parent.iterdir()] == ["mine.py"]
        await running.workspace.redo_turn(running.session_id)
        assert (running.workspace.directory / "pkg" / "sub" / "new.py").exists()


@pytest.mark.parametrize("command", ["git push", "X=push; git $X", "eval 'git push'", "git -C . push"])
async def test_a_run_that_was_approved_does_not_do_what_may_be_denied(tmp_path: Path, command: str) -> None:
    """A2: nobody looks at it, so what cannot be told apart from a denied command is not done; the rest is."""
    steps = [[call("bash", command=command), call("bash", command="echo $HOME > made")], [Say("ok")]]
    config = TITLES_OFF.replace("{", '{"permissions": {"deny": ["bash(git push *)", "bash(git push)"]}, ', 1)
    model = ScriptedModel(steps, context_window=100_000)
    async with launch(tmp_path, model) as running:
        user = Path(os.environ["XDG_CONFIG_HOME"]) / "longboat" / "longboat.json"
        user.parent.mkdir(parents=True, exist_ok=True)
        user.write_text(config)
        await running.submit("push it", "r1", approve=Approve.ALL)
        await running.completed("r1")
        assert [part.is_error for part in results(running)] == [True, False]
        assert "Do not look for a way around it" in results(running)[0].content


async def test_a_run_that_was_approved_reaches_outside_where_nothing_may_be_denied(tmp_path: Path) -> None:
    """A2: beside a deny rule too, and through a link."""
    outside = tmp_path / "outside"
    outside.write_text("found")
    commands = (f"cat {outside}", "cat link", "cat ../$X*utside")
    steps = [[call("bash", command=command) for command in commands], [Say("ok")]]
    async with launch(tmp_path, ScriptedModel(steps, context_window=100_000)) as running:
        (running.workspace.directory / "link").symlink_to(outside)
        user = Path(os.environ["XDG_CONFIG_HOME"]) / "longboat" / "longboat.json"
        user.parent.mkdir(parents=True, exist_ok=True)
        user.write_text(TITLES_OFF.replace("{", '{"permissions": {"deny": ["bash(git push *)"]}, ', 1))
        await running.submit("look", "r1", approve=Approve.ALL)
        await running.completed("r1")
        assert [part.content.splitlines()[0] for part in results(running)] == ["found"] * 3
