"""Answers that are none: empty, blocked, cut off, or the same words for ever. People are told, and the run fails."""

import json
from pathlib import Path

import pytest
from checks import check_ends
from running_app import RunningApp, configure, launch

from longboat.core.prompts import SAY_SOMETHING
from longboat.models.protocol import StopReason
from longboat.testing import CallTool, Raw, Say, ScriptedModel, ScriptedTool, Stop, Think
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.testing.scripted import last_prompt
from longboat.wire.models import AgentEventType, Outcome, Role, ToolResultPart
from secrecy import provider


def notices(running: RunningApp) -> list[str]:
    return [event.message for event in running.watcher.of("agent_event") if event.type is AgentEventType.NOTICE]


async def test_a_model_that_says_nothing_is_asked_once_more(tmp_path: Path) -> None:
    model = ScriptedModel([[CallTool("look")], [Think("Done, I think.")], [Say("I looked.")]])
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "I looked.")
        assert notices(running) == ["The model sent an empty answer. Asking it once more."]
        assert last_prompt(model.requests[2]) == SAY_SOMETHING
        roles = [message.role for message in await running.messages()]
        assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
        await check_ends(running)


async def test_a_model_that_says_nothing_twice_fails_the_run(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([[], [Say(" \n")]])) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert complete.outcome is Outcome.ERROR
        assert complete.error.startswith("There is no answer: The model returned an empty answer twice.")
        await check_ends(running)


@pytest.mark.parametrize(
    ("reason", "words"),
    [(StopReason.CONTENT_FILTER, "content filter"), (StopReason.MAX_TOKENS, "output limit")],
)
async def test_nothing_but_a_reason_is_no_answer(tmp_path: Path, reason: StopReason, words: str) -> None:
    async with launch(tmp_path, ScriptedModel([[Think("Hm."), Stop(reason)]])) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert complete.outcome is Outcome.ERROR
        assert complete.error.startswith("There is no answer: ")
        assert words in complete.error
        await check_ends(running)


@pytest.mark.parametrize(
    ("reason", "words"),
    [(StopReason.CONTENT_FILTER, "content filter"), (StopReason.MAX_TOKENS, "output limit")],
)
async def test_half_an_answer_is_one_and_people_are_told(tmp_path: Path, reason: StopReason, words: str) -> None:
    async with launch(tmp_path, ScriptedModel([[Say("So far"), Stop(reason)]])) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "So far")
        (notice,) = notices(running)
        assert words in notice


@pytest.mark.parametrize("kind", [Say, Think])
async def test_endless_repetition_is_stopped(tmp_path: Path, kind: type[Say] | type[Think]) -> None:
    endless = [kind("I will look. ") for _ in range(100_000)]
    async with launch(tmp_path, ScriptedModel([endless])) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert complete.outcome is Outcome.ERROR
        assert complete.error.startswith("Stopped: the model repeats itself: ")
        assert len(complete.text) < 5_000
        await check_ends(running)


async def test_endless_repetition_in_a_call_is_stopped(tmp_path: Path) -> None:
    def chunk(**function: str) -> Raw:
        delta = {"tool_calls": [{"index": 0, "function": function}]}
        return Raw(f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n")

    async with ScriptedEndpoint() as endpoint:
        endpoint.add([chunk(name="write", arguments='{"content": "'), *[chunk(arguments="and so on ")] * 9_000])
        models = [{"id": "m", "context_window": 100_000}]
        configure(providers={"mine": provider(endpoint.base_url, models=models)}, models={"large": "mine/m"})
        async with launch(tmp_path, None) as running:
            await running.submit("go", "r1")
            assert (await running.completed("r1")).error.startswith("Stopped: the model repeats itself: ")


@pytest.mark.parametrize("written", ['{"at": "the sea and the', "", '{"depth": -', '{"depth": 1.'])
async def test_a_call_that_was_cut_off_is_told_to_be_shorter(tmp_path: Path, written: str) -> None:
    cut = [CallTool("look", written), Stop(StopReason.MAX_TOKENS)]
    async with launch(tmp_path, ScriptedModel([cut, [Say("Shorter.")]]), tools=[ScriptedTool("look")]) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "Shorter."
        (result,) = [
            part for message in await running.messages() for part in message.parts if isinstance(part, ToolResultPart)
        ]
        assert result.is_error
        assert result.content.startswith(
            "The input of look was cut off. You hit the output limit: write less per call."
        )
