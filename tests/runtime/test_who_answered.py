"""Who allowed, denied or answered a call stands in the transcript, for whoever reads it later (A2, F6)."""

import json
from pathlib import Path
from typing import Any

import msgspec
from crash import restarted
from scenario import PLAIN, WINDOW, Scene, call, open_scenario

from longboat.testing import Say, ScriptedModel
from longboat.wire.asks import CallAnswer, PermissionAnswer
from longboat.wire.models import Outcome, ToolResultPart
from longboat.wire.requests import AnswerPermission, AnswerQuestion

ONCE, SESSION, ALWAYS, DENY = PermissionAnswer
STEPS: list[list[Any]] = [
    [call("bash", command="rm -r build")],
    [call("bash", command="touch made")],
    [call("question", text="Which?", choices=["a", "b"])],
    [call("ls", path=".")],
    [Say("Done.")],
]
TOLD = [
    (CallAnswer(answer=DENY, answered_by="ann"),),
    (CallAnswer(answer=SESSION, answered_by="ben:tui-1"),),
    (CallAnswer(answered_by=None),),
    (),
]


async def lived(scene: Scene) -> None:
    await scene.start("go", ask=True)
    await scene.answer(await scene.asked(), DENY, by="ann")
    await scene.answer(await scene.asked(2), SESSION, by="ben:tui-1")
    question = (await scene.watcher.until(lambda event: event.type == "question_request")).payload
    await scene.workspace.asks.answer_question(question.id, AnswerQuestion(answer=("b",)))
    assert (await scene.running.completed("r1")).text == "Done."


async def answers(running: Any, session_id: str | None = None) -> list[tuple[CallAnswer, ...]]:
    parts = [part for message in await running.messages(session_id) for part in message.parts]
    return [part.answers for part in parts if isinstance(part, ToolResultPart)]


async def test_a2_the_results_of_calls_that_asked_say_what_was_answered_and_by_whom(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, STEPS) as scene:
        await lived(scene)
        assert await answers(scene.running) == TOLD
        await scene.check()


async def test_f6_who_answered_stays_through_a_restart_a_fork_an_export_and_an_import(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, STEPS) as scene:
        await lived(scene)
        fork = await scene.workspace.archive.fork(scene.running.session_id)
        assert await answers(scene.running, fork.id) == TOLD
        document = msgspec.json.encode(await scene.workspace.archive.export(scene.running.session_id))
        copy = await scene.workspace.archive.take(document)
        assert await answers(scene.running, copy.id) == TOLD
        after = ScriptedModel([], context_window=WINDOW)
        async with restarted(scene.running, after, config=json.dumps(PLAIN)) as again:
            assert await answers(again) == TOLD


async def test_a2_the_exported_page_names_who_answered(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, STEPS) as scene:
        await lived(scene)
        page = await scene.workspace.archive.markdown(scene.running.session_id)
        for words in ("denied by ann", "allowed (session) by ben", "answered by someone"):
            assert words in page


async def test_a2_a_call_that_was_allowed_and_then_broken_off_still_says_who_allowed_it(tmp_path: Path) -> None:
    steps: list[list[Any]] = [[call("bash", command="touch x; echo begun; sleep 600")], [Say("Still here.")]]
    async with open_scenario(tmp_path, steps) as scene:
        await scene.start("wait", ask=True)
        await scene.answer(await scene.asked(), ONCE, by="ann")
        await scene.showing("begun")
        assert (await scene.cancel()).outcome is Outcome.CANCELED
        assert await answers(scene.running) == [(CallAnswer(answer=ONCE, answered_by="ann"),)]
        await scene.canceled_once()


async def test_b6_who_allowed_a_call_that_a_crash_cut_off_is_known_after_the_restart(tmp_path: Path) -> None:
    steps: list[list[Any]] = [[call("bash", command="touch x; echo begun; sleep 600")]]
    after = ScriptedModel([[Say("Gone on.")]], context_window=WINDOW)
    async with open_scenario(tmp_path, steps) as scene:
        await scene.start("wait", ask=True)
        await scene.answer(await scene.asked(), ONCE, by="ann")
        await scene.showing("begun")
        async with restarted(scene.running, after, config=json.dumps(PLAIN)) as again:
            assert (await again.workspace.run("r1", wait_s=30)).outcome is Outcome.INTERRUPTED
            assert await answers(again) == [(CallAnswer(answer=ONCE, answered_by="ann"),)]
        await scene.cancel()


async def test_b6_an_answer_given_after_the_restart_is_in_the_result_of_the_resumed_call(tmp_path: Path) -> None:
    config = {**PLAIN, "on_restart": "resume"}
    after = ScriptedModel([[Say("Made.")]], context_window=WINDOW)
    async with open_scenario(tmp_path, [[call("bash", command="mkdir b")]], config=config) as scene:
        await scene.start("make", ask=True)
        ask = await scene.asked()
        async with restarted(scene.running, after, config=json.dumps(config)) as again:
            once = AnswerPermission(answer=ONCE, client_id="ben")
            await again.workspace.asks.answer_permission(ask.id, once)
            assert (await again.workspace.run("r1", wait_s=30)).outcome is Outcome.END_TURN
            assert await answers(again) == [(CallAnswer(answer=ONCE, answered_by="ben"),)]
        await scene.cancel()


async def test_a2_the_answer_is_told_with_the_running_call_before_it_has_a_result(tmp_path: Path) -> None:
    """Who attaches while the command runs sees who let it run."""
    steps: list[list[Any]] = [[call("bash", command="touch x; echo begun; sleep 600")], [Say("Still here.")]]
    async with open_scenario(tmp_path, steps) as scene:
        await scene.start("wait", ask=True)
        await scene.answer(await scene.asked(), ONCE, by="ann")
        await scene.showing("begun")
        (unfinished,) = [
            part
            for message in await scene.running.messages()
            for part in message.parts
            if isinstance(part, ToolResultPart)
        ]
        assert (unfinished.finished, unfinished.answers) == (False, (CallAnswer(answer=ONCE, answered_by="ann"),))
        await scene.cancel()
