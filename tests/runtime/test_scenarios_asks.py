"""Permissions as people live with them: refused with a reason, granted for the session or for always, two who answer.

A2; opencode #21154, #47817; crush #497, #876.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from running_app import watch
from scenario import call, open_scenario

from longboat.config.jsonc import parse
from longboat.config.load import review
from longboat.config.trust import TrustState
from longboat.errors import AlreadyAnswered, BadInput
from longboat.testing import CallTool, Say
from longboat.testing.scripted import last_prompt
from longboat.wire.asks import PermissionAnswer
from longboat.wire.models import Outcome
from longboat.wire.requests import AnswerPermission, AnswerQuestion, CreateSession

ONCE, SESSION, ALWAYS, DENY = PermissionAnswer


async def test_a_refusal_with_its_reason_leads_the_model_another_way(tmp_path: Path) -> None:
    steps: list[list[Any]] = [
        [call("bash", command="rm -r build")],
        [call("question", text="Which part of build may go?", choices=["none", "all"])],
        [Say("Then it stays.")],
    ]
    async with open_scenario(tmp_path, steps, files={"build/out": "x\n"}) as scene:
        await scene.start("clean up", ask=True)
        ask = await scene.asked()
        await scene.answer(ask, DENY, reason="build is not yours")
        question = (await scene.watcher.until(lambda event: event.type == "question_request")).payload
        assert question.choices == ("none", "all")
        await scene.workspace.asks.answer_question(question.id, AnswerQuestion(answer=("none",), client_id="other"))
        assert (await scene.running.completed("r1")).text == "Then it stays."
        refused, answered = scene.results()
        assert (refused.is_error, "build is not yours" in refused.content) == (True, True)
        assert (answered.is_error, "none" in answered.content) == (False, True)
        assert scene.read("build/out") == "x\n"
        await scene.check()


async def test_what_is_granted_for_the_session_is_not_asked_again_there_but_is_elsewhere(tmp_path: Path) -> None:
    touch = call("bash", command="touch made")
    steps: list[list[Any]] = [[touch], [touch], [Say("ok")], [touch], [Say("again")], [touch], [Say("not here")]]
    async with open_scenario(tmp_path, steps) as scene:
        await scene.start("touch twice", ask=True)
        await scene.answer(await scene.asked(), SESSION)
        assert (await scene.running.completed("r1")).outcome is Outcome.END_TURN
        assert (await scene.turn("and again", "r2", ask=True)).outcome is Outcome.END_TURN
        assert len(scene.watcher.of("permission_request")) == 1
        assert "permissions" not in parse(scene.read("longboat.json"))
        other = await scene.workspace.create_session(CreateSession())
        await scene.start("elsewhere", "r3", ask=True, session_id=other.id)
        ask = await scene.asked(2)
        assert ask.session_id == other.id
        await scene.answer(ask, DENY)
        assert (await scene.running.completed("r3")).text == "not here"
        await scene.check()


async def test_what_is_always_granted_is_written_to_the_project_and_holds_in_every_session(
    tmp_path: Path, a_home_of_its_own: Path
) -> None:
    """The file stays trusted, what a person wrote in it stays, and undo of the run leaves the rule."""
    touch = call("bash", command="touch made")
    steps: list[list[Any]] = [
        [touch],
        [Say("one")],
        [touch],
        [Say("two")],
        [call("bash", command="touch x")],
        [Say("three")],
    ]
    async with open_scenario(tmp_path, steps) as scene:
        before = parse(scene.read("longboat.json"))
        await scene.start("touch", ask=True)
        ask = await scene.asked()
        await scene.answer(ask, ALWAYS)
        assert (await scene.running.completed("r1")).text == "one"
        assert parse(scene.read("longboat.json")) == {**before, "permissions": {"allow": list(ask.grant)}}
        trust_state = review(scene.path, environ=os.environ, user_dir=a_home_of_its_own).trust_state
        assert trust_state is TrustState.TRUSTED
        other = await scene.workspace.create_session(CreateSession())
        assert (await scene.turn("elsewhere", "r2", ask=True, session_id=other.id)).text == "two"
        assert len(scene.watcher.of("permission_request")) == 1
        await scene.start("something else", "r3", ask=True)
        await scene.answer(await scene.asked(2), DENY)
        await scene.running.completed("r3")
        await scene.check()
        assert (await scene.workspace.undo_turn(scene.running.session_id)).run_id == "r3"
        assert (await scene.workspace.undo_turn(scene.running.session_id)).files == ()
        assert "permissions" in parse(scene.read("longboat.json"))


@pytest.mark.parametrize("answer", [SESSION, ALWAYS])
@pytest.mark.parametrize("outside", ["cat ../outside", "eval 'cat ../outside'", "cd sub && cat ../*/x"])
async def test_the_whole_of_bash_does_not_reach_outside_until_somebody_grants_just_that(
    tmp_path: Path, answer: PermissionAnswer, outside: str
) -> None:
    """A2: beside `"allow": ["bash"]` the same command is asked once, and its parts say which of them is why."""
    steps: list[list[Any]] = [
        [call("bash", command="touch made")],
        [call("bash", command=f"ls; {outside}")],
        [call("bash", command=f"ls; {outside}")],
        [Say("seen")],
    ]
    config = {"permissions": {"allow": ["bash"]}}
    async with open_scenario(tmp_path, steps, files={"sub/x": "x\n"}, config=config) as scene:
        await scene.start("look outside", ask=True)
        ask = await scene.asked()
        assert any(part.why for part in ask.parts)
        assert [part.rule for part in ask.parts if part.text in ("ls", "touch made")] == ["bash"]
        await scene.answer(ask, answer)
        assert (await scene.running.completed("r1")).text == "seen"
        assert len(scene.watcher.of("permission_request")) == 1
        allowed = parse(scene.read("longboat.json"))["permissions"]["allow"]
        assert set(allowed) == {"bash", *(ask.grant if answer is ALWAYS else ())}


async def test_a_write_to_who_knows_where_can_only_be_allowed_once(tmp_path: Path) -> None:
    """A2: the file may be one that holds the rules, so no rule is offered for it."""
    steps: list[list[Any]] = [[call("bash", command="cat <<E > ../$X\na b\nE")], [Say("seen")]]
    async with open_scenario(tmp_path, steps, config={"permissions": {"allow": ["bash"]}}) as scene:
        await scene.start("write outside", ask=True)
        ask = await scene.asked()
        assert (ask.grant, ask.wide, ask.rules_file) == ((), (), "")
        for answer in (SESSION, ALWAYS):
            with pytest.raises(BadInput, match="only be allowed once"):
                await scene.answer(ask, answer)
        await scene.answer(ask, DENY)
        assert (await scene.running.completed("r1")).text == "seen"


async def test_who_attaches_later_sees_the_ask_answers_it_and_the_first_sees_who_did(tmp_path: Path) -> None:
    """Exactly one answer wins; the other gets the name."""
    steps: list[list[Any]] = [[call("write", path="a.txt", content="a\n")], [Say("written")]]
    async with open_scenario(tmp_path, steps) as scene:
        await scene.start("write", ask=True)
        ask = await scene.asked()
        async with watch(scene.workspace, client_id="ben") as ben:
            snapshot = ben.of("snapshot")[0]
            assert snapshot.permissions == (ask,)
            assert "+a" in snapshot.permissions[0].detail
            await scene.answer(ask, ONCE, by="ben")
            with pytest.raises(AlreadyAnswered, match="ben"):
                await scene.answer(ask, DENY, by="ann")
            assert (await ben.completed("r1")).text == "written"
        await scene.running.completed("r1")
        (told,) = scene.watcher.of("permission_notification")
        assert (told.id, told.answer, told.answered_by) == (ask.id, ONCE, "ben")
        async with watch(scene.workspace, client_id="late") as late:
            assert late.of("snapshot")[0].permissions == ()
        assert scene.read("a.txt") == "a\n"
        await scene.check()


async def test_leave_for_everything_is_of_one_run_and_does_not_reach_what_a_rule_denies(tmp_path: Path) -> None:
    """opencode #47817: `approve=all` is that run's and its sub-agents', nobody else's."""
    agent = "---\ndescription: Does things.\nread_only: false\n---\nDo it.\n"

    def answer(request: Any) -> list[Any]:
        prompt, done = last_prompt(request), request.messages[-1].role == "tool"
        if done:
            return [Say(f"{prompt} done")]
        if prompt == "all":
            return [call("agent", prompt="child", agent="hand"), call("bash", command="rm keep")]
        return [call("bash", command=f"touch {prompt}")]

    files = {".agents/agents/hand.md": agent, "keep": ""}
    config = {"permissions": {"deny": ["bash(rm *)"]}}
    async with open_scenario(tmp_path, answer, files=files, config=config) as scene:
        assert (await scene.turn("all")).outcome is Outcome.END_TURN
        assert scene.watcher.of("permission_request") == []
        assert (scene.path / "child").exists()
        assert (scene.path / "keep").exists()
        (denied,) = (part for part in scene.results() if part.is_error)
        assert "bash(rm *)" in denied.content
        await scene.start("later", "r2", ask=True)
        ask = await scene.asked()
        assert ask.argument == "touch later"
        await scene.answer(ask, DENY)
        await scene.running.completed("r2")
        await scene.check()


async def test_an_always_that_cannot_be_written_is_still_a_yes(tmp_path: Path) -> None:
    """A2: the person allowed it. That the file cannot take the rule is told, and the call is made."""
    steps: list[list[Any]] = [[call("bash", command="touch made")], [Say("ok")]]
    async with open_scenario(tmp_path, steps) as scene:
        await scene.start("touch", ask=True)
        ask = await scene.asked()
        # Somebody is in the middle of editing the file.
        (scene.path / "longboat.json").write_text(json.dumps({"titles": False})[:-1])
        await scene.answer(ask, ALWAYS)
        await scene.running.completed("r1")
        assert (scene.path / "made").exists(), scene.results()
        await scene.check()


async def test_a_granted_command_does_not_carry_another_along(tmp_path: Path) -> None:
    """crush #497: what is added to a granted command, by any means, is asked."""
    commands = [
        "touch made",
        "touch made; touch more",
        "touch made $(touch more)",
        "touch made > more",
        "touch made && sh -c 'touch more'",
        "(touch made) | tee more",
        "touch made\ntouch more",
        "touch made & touch more",
    ]
    steps: list[list[Any]] = [[call("bash", command=command) for command in commands], [Say("tried")]]
    async with open_scenario(tmp_path, steps) as scene:
        await scene.start("try", ask=True)
        await scene.answer(await scene.asked(), SESSION)
        for nth, command in enumerate(commands[1:], start=2):
            ask = await scene.asked(nth)
            assert ask.argument == command
            await scene.workspace.asks.answer_permission(ask.id, AnswerPermission(answer=DENY))
        await scene.running.completed("r1")
        assert not (scene.path / "more").exists()
        await scene.check()


async def test_a_call_that_ends_leaves_the_ask_of_another_run_with_the_same_id_alone(tmp_path: Path) -> None:
    """A2: some providers count their calls anew in every answer."""

    def answer(request: Any) -> list[Any]:
        prompt = last_prompt(request)
        if request.messages[-1].role == "tool":
            return [Say(f"{prompt} done")]
        if prompt == "write":
            return [CallTool("write", {"path": "a.txt", "content": "a"}, call_id="call_0")]
        return [CallTool("ls", {"path": "."}, call_id="call_0")]

    async with open_scenario(tmp_path, answer) as scene:
        await scene.start("write", ask=True)
        ask = await scene.asked()
        other = await scene.workspace.create_session(CreateSession())
        assert (await scene.turn("look", "r2", ask=True, session_id=other.id)).text == "look done"
        assert await scene.workspace.asks.permissions() == (ask,)
        await scene.answer(ask, ONCE)
        assert (await scene.running.completed("r1")).text == "write done"
        assert scene.read("a.txt") == "a"
        await scene.check()
