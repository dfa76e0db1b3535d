"""Retries: inside the turn, in the open, and with nothing told twice."""

from pathlib import Path

import pytest
from checks import check_ends, check_requests, finish_of
from running_app import RunningApp, launch

from longboat.errors import ModelError
from longboat.testing import Break, CallTool, Fail, Gate, Pause, Say, ScriptedModel, ScriptedTool, Think
from longboat.wire.models import (
    AgentEvent,
    AgentEventType,
    FinishReason,
    Message,
    MessageDelta,
    Outcome,
    Role,
    TextPart,
)

BUSY = ModelError("Overloaded, come back later.", title="The provider is busy", code="overloaded", retryable=True)


def retries(running: RunningApp) -> list[AgentEvent]:
    return [event for event in running.watcher.of("agent_event") if event.type is AgentEventType.RETRYING]


@pytest.mark.parametrize("failure", [Fail(BUSY), Break()])
async def test_the_partial_of_a_failed_try_is_withdrawn_and_told_anew(tmp_path: Path, failure: Fail | Break) -> None:
    """T7: a whole message replaces the clients' copy, deltas begin at 0 again, the user message stays one."""
    model = ScriptedModel([[Think("hm "), Say("Half an ans"), failure], [Say("The whole "), Say("answer.")]])
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "The whole answer.")
        (notice,) = retries(running)
        assert (notice.run_id, notice.session_id) == ("r1", running.session_id)
        payloads = [event.payload for event in running.watcher.events]
        after = payloads[payloads.index(notice) - 1 :]
        withdrawn = after[0]
        assert isinstance(withdrawn, Message)
        assert (withdrawn.id, withdrawn.parts) == (complete.message_id, ())
        deltas = [payload for payload in after if isinstance(payload, MessageDelta)]
        assert (deltas[0].part, deltas[0].offset) == (0, 0)
        assert "".join(delta.text for delta in deltas) == "The whole answer."
        assert [message.role for message in await running.messages()] == [Role.USER, Role.ASSISTANT]
        assert model.requests[0] == model.requests[1]
        await check_ends(running)


async def test_the_partial_call_of_a_failed_try_is_neither_made_nor_kept(tmp_path: Path) -> None:
    """T7, T3: a whole call came, then the stream broke: the tool runs once, for the try that ended."""
    tool = ScriptedTool("look")
    model = ScriptedModel(
        [[CallTool("look", {"at": "x"}, "c1"), Break()], [CallTool("look", {"at": "x"}, "c2")], [Say("ok")]]
    )
    async with launch(tmp_path, model, tools=[tool]) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "ok"
        assert [call.call_id for call in tool.calls] == ["c2"]
        check_requests(model.requests)
        await check_ends(running)


async def test_a_try_that_failed_before_a_word_withdraws_nothing(tmp_path: Path) -> None:
    """T7: the notice alone says that there was a retry."""
    model = ScriptedModel([[Fail(BUSY)], [Fail(BUSY)], [Say("third time lucky")]])
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "third time lucky"
        first, second = retries(running)
        assert "(2 of 3)" in first.message
        assert "(3 of 3)" in second.message
        assert "The provider is busy" in first.message
        assert first.detail == BUSY.message
        await check_ends(running)


async def test_an_error_that_will_not_pass_ends_the_run_at_once(tmp_path: Path) -> None:
    """T7, E3; opencode #42268: 401, an unknown model, an empty account."""
    wrong_key = ModelError("The key was refused.", title="Not authorized", code="unauthorized")
    model = ScriptedModel([[Fail(wrong_key)]])
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.error) == (Outcome.ERROR, "Not authorized: The key was refused.")
        assert len(model.requests) == 1
        assert retries(running) == []
        await check_ends(running)


async def test_the_last_try_ends_the_run_and_keeps_what_it_said(tmp_path: Path) -> None:
    """T7, T3: attempts are used up; one terminal event, the last partial stays with the error."""
    model = ScriptedModel(
        [[Say("one"), Fail(BUSY)], [Say("two"), Fail(BUSY)], [Say("three"), Fail(BUSY)], [Say("next")]]
    )
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.ERROR, "three")
        assert complete.error == "The provider is busy: Overloaded, come back later."
        assert len(retries(running)) == 2
        _, answer = await running.messages()
        assert answer.parts[0] == TextPart(text="three")
        assert finish_of(answer).reason is FinishReason.ERROR
        await running.submit("next", "r2")
        assert (await running.completed("r2")).text == "next"
        check_requests(model.requests)
        await check_ends(running)


async def test_every_step_has_its_own_tries(tmp_path: Path) -> None:
    """T7: what failed in an earlier step does not count against a later one."""
    model = ScriptedModel(
        [[Fail(BUSY)], [Fail(BUSY)], [CallTool("look")], [Fail(BUSY)], [Say("lost"), Fail(BUSY)], [Say("done")]]
    )
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "done"
        assert len(retries(running)) == 4
        check_requests(model.requests)
        await check_ends(running)


async def test_a_wait_the_provider_asks_for_is_kept_within_the_limit(tmp_path: Path) -> None:
    """T7: `retry-after` counts, but no longer than the configuration allows; the notice tells the wait."""
    asked = ModelError("Slow down.", title="Rate limited", retryable=True, retry_after_s=3600)
    gate = Gate()
    model = ScriptedModel([[Fail(asked)], [Pause(gate), Say("soon enough")]])
    config = '{"titles": false, "retry": {"base_s": 0, "max_s": 0.1, "attempts": 2}}'
    async with launch(tmp_path, model, config=config) as running:
        await running.submit("go", "r1")
        await gate.reached()
        assert [event.message for event in retries(running)] == ["Rate limited. Retrying in 0.1 s (2 of 2)."]
        gate.open()
        assert (await running.completed("r1")).text == "soon enough"
        await check_ends(running)


async def test_prompts_that_come_during_a_retry_wait_their_turn(tmp_path: Path) -> None:
    """T7, L8: the session is busy all the while, and the retried request is the same as the first."""
    gate = Gate()
    model = ScriptedModel([[Say("lost"), Fail(BUSY)], [Pause(gate), Say("one")], [Say("two")]])
    async with launch(tmp_path, model) as running:
        await running.submit("A", "a")
        await gate.reached()
        await running.submit("B", "b")
        await running.watcher.in_state("b", "queued")
        gate.open()
        assert (await running.completed("b")).text == "two"
        assert model.requests[0] == model.requests[1]
        await check_ends(running)
