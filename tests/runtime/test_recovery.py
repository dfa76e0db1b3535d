"""B6: whatever a crash finds (accepted, queued, active, folded, canceled) the next start settles, once and in order."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from checks import check_requests, finish_of
from crash import RESUME, accept_only, check_log, crashed, restarted, streamed
from running_app import TITLES_OFF, Deaf, RunningApp, launch

from longboat.core.history import text_of
from longboat.errors import ModelError
from longboat.testing import CallTool, Fail, Gate, Pause, Say, ScriptedModel, ScriptedTool, Step, Think
from longboat.testing.scripted import last_prompt
from longboat.wire.models import (
    FinishPart,
    FinishReason,
    Message,
    Outcome,
    ReasoningPart,
    Role,
    Run,
    RunState,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def users(messages: Sequence[Message]) -> list[str]:
    return [text_of(message) for message in messages if message.role is Role.USER]


async def finished(running: RunningApp, run_id: str) -> Run:
    """The run once it is over; it may have been so before anybody could watch."""
    return await running.workspace.run(run_id, wait_s=60)


async def outcomes(running: RunningApp) -> dict[str, Outcome | None]:
    return {run.run_id: run.outcome for run in await running.ledger()}


# What a crash may find


async def test_prompts_that_were_only_accepted_run_in_the_order_of_accept(tmp_path: Path) -> None:
    """B6, B1: a 202 is a promise."""
    async with launch(tmp_path, ScriptedModel()) as running:
        gate = await accept_only(running, ("one", "r1"), ("two", "r2"), ("three", "r3"))
        assert {run.state for run in await running.ledger()} == {RunState.ACCEPTED}
        async with restarted(running, ScriptedModel.echo()) as again:
            await finished(again, "r3")
            assert await outcomes(again) == dict.fromkeys(("r1", "r2", "r3"), Outcome.END_TURN)
            assert [text_of(message) for message in await again.messages()] == [
                "one", "echo: one", "two", "echo: two", "three", "echo: three"
            ]  # fmt: skip
            await check_log(again)
        gate.open()


async def test_a_cancel_that_was_answered_holds_after_a_crash(tmp_path: Path) -> None:
    """B6, L3: accepted, then canceled, then the crash: neither of them ever starts, one accepted later does."""
    async with launch(tmp_path, ScriptedModel([[Say("unused")]] * 3)) as running:
        gate = await accept_only(running, ("one", "r1"), ("two", "r2"), cancel=True)
        model = ScriptedModel.echo()
        async with restarted(running, model) as again:
            await again.submit("three", "r3")
            await finished(again, "r3")
            expected = {"r1": Outcome.CANCELED, "r2": Outcome.CANCELED, "r3": Outcome.END_TURN}
            assert await outcomes(again) == expected
            assert [last_prompt(request) for request in model.requests] == ["three"]
            assert users(await again.messages()) == ["one", "two", "three"]
            await check_log(again)
        gate.open()


async def test_the_queue_runs_in_order_after_the_active_run_is_settled(tmp_path: Path) -> None:
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Say("half a"), Pause(gate)]])) as running:
        for run_id in ("r1", "r2", "r3"):
            await running.submit(f"prompt {run_id}", run_id)
        await running.watcher.in_state("r3", "queued")
        await streamed(running, "half a")
        model = ScriptedModel.echo()
        async with restarted(running, model) as again:
            await finished(again, "r3")
            assert [last_prompt(request) for request in model.requests] == ["prompt r2", "prompt r3"]
            check_requests(model.requests)
            expected = {"r1": Outcome.INTERRUPTED, "r2": Outcome.END_TURN, "r3": Outcome.END_TURN}
            assert await outcomes(again) == expected
            assert users(await again.messages()) == ["prompt r1", "prompt r2", "prompt r3"]
            reader = await check_log(again)
            assert [event.run_id for event in reader.of("run_complete")] == ["r1", "r2", "r3"]


async def test_an_active_run_keeps_what_it_streamed_and_ends_interrupted(tmp_path: Path) -> None:
    """T3: thinking and text are kept to the last character that was on the log."""
    gate = Gate()
    script: list[Step] = [[Think("let me see"), Say("The answer "), Say("is"), Pause(gate), Say(" 42.")]]
    async with launch(tmp_path, ScriptedModel(script)) as running:
        await running.submit("ask", "r1")
        await gate.reached()
        await streamed(running, "is")
        async with restarted(running, ScriptedModel.echo()) as again:
            (run,) = await again.ledger()
            assert (run.outcome, run.error is not None) == (Outcome.INTERRUPTED, True)
            user, answer = await again.messages()
            assert user.parts == (TextPart(text="ask"),)
            thought, text, finish = answer.parts
            assert (thought, text) == (ReasoningPart(text="let me see"), TextPart(text="The answer is"))
            assert isinstance(finish, FinishPart)
            assert finish.reason is FinishReason.INTERRUPTED
            reader = await check_log(again)
            (complete,) = reader.terminals("r1")
            assert (complete.message_id, complete.text, complete.cancelled) == (answer.id, "The answer is", False)
            assert not (await again.workspace.session(again.session_id)).busy
            await again.submit("and now?", "r2")
            assert (await finished(again, "r2")).outcome is Outcome.END_TURN


async def test_a_run_that_had_said_nothing_yet_starts_again_with_its_prompt_once(tmp_path: Path) -> None:
    """The run is active on disk, but there is no assistant message: nothing has happened that could be interrupted."""
    async with launch(tmp_path, ScriptedModel([[Say("late")]])) as running:
        entering = await accept_only(running, ("ask", "r1"))
        stepping = running.hold_actor()
        entering.open()
        await running.watcher.in_state("r1", "active")
        for config in (RESUME, TITLES_OFF):
            async with restarted(running, ScriptedModel.echo(), config=config) as again:
                assert (await finished(again, "r1")).outcome is Outcome.END_TURN
                user, answer = await again.messages()
                assert (text_of(user), text_of(answer)) == ("ask", "echo: ask")
                await check_log(again)
        stepping.open()
        await running.completed("r1")


async def test_a_tool_call_in_flight_gets_an_error_result(tmp_path: Path) -> None:
    """T3: the transcript is one that the next request accepts (crush #1206, #2046)."""
    gate = Gate()
    calls: list[Step] = [[Say("Looking. "), CallTool("look", {"at": "a"}), CallTool("look", {"at": "b"})]]
    async with launch(tmp_path, ScriptedModel(calls), tools=[ScriptedTool("look", gate=gate)]) as running:
        await running.submit("go", "r1")
        await gate.reached()
        await running.watcher.until(lambda event: event.type == "message" and event.payload.role is Role.TOOL)
        model = ScriptedModel.echo()
        async with restarted(running, model, tools=[ScriptedTool("look")]) as again:
            _, answer, results = await again.messages()
            assert finish_of(answer).reason is FinishReason.INTERRUPTED
            assert [part.tool_call_id for part in results.parts if isinstance(part, ToolResultPart)] == [
                part.id for part in answer.parts if isinstance(part, ToolCallPart)
            ]
            assert all(isinstance(part, ToolResultPart) and part.is_error for part in results.parts)
            await again.submit("go on", "r2")
            await finished(again, "r2")
            check_requests(model.requests)
            await check_log(again)


async def test_a_call_that_was_still_being_written_is_closed(tmp_path: Path) -> None:
    gate = Gate()
    half: list[Step] = [[CallTool("look", '{"at": "the s'), Pause(gate)]]
    async with launch(tmp_path, ScriptedModel(half), tools=[ScriptedTool("look")]) as running:
        await running.submit("go", "r1")
        await gate.reached()
        await streamed(running, "the s")
        model = ScriptedModel.echo()
        async with restarted(running, model, tools=[ScriptedTool("look")]) as again:
            await again.submit("go on", "r2")
            await finished(again, "r2")
            check_requests(model.requests)
            await check_log(again)


async def test_folded_runs_end_with_their_host_in_one_transaction(tmp_path: Path) -> None:
    """B6: same outcome, same message, entries of one unit."""
    tool_gate, gate = Gate("tool"), Gate("model")
    script: list[Step] = [[CallTool("look")], [Say("both"), Pause(gate)]]
    async with launch(tmp_path, ScriptedModel(script), tools=[ScriptedTool("look", gate=tool_gate)]) as running:
        await running.submit("host", "r1")
        await tool_gate.reached()
        steered = (await running.submit("guest")).run_id
        await running.watcher.in_state(steered, "queued")
        tool_gate.open()
        await running.watcher.in_state(steered, "folded")
        await streamed(running, "both")
        async with restarted(running, ScriptedModel.echo()) as again:
            assert await outcomes(again) == {"r1": Outcome.INTERRUPTED, steered: Outcome.INTERRUPTED}
            assert users(await again.messages()) == ["host", "guest"]
            reader = await check_log(again)
            host, guest = reader.of("run_complete")
            assert (host.run_id, guest.run_id, guest.folded_into) == ("r1", steered, "r1")
            assert (guest.text, guest.message_id) == (host.text, host.message_id) == ("both", host.message_id)


async def test_an_active_run_that_was_asked_to_stop_ends_canceled_and_is_never_resumed(tmp_path: Path) -> None:
    """B6: the cancel was answered before the crash; the turn had not unwound."""
    gate = Gate()
    tool = Deaf("look", gate=gate)
    async with launch(tmp_path, ScriptedModel([[CallTool("look")]]), tools=[tool]) as running:
        await running.submit("go", "r1")
        await tool.wait_calls(1)
        await running.watcher.until(lambda event: event.type == "message" and event.payload.role is Role.TOOL)
        assert (await running.workspace.cancel_run("r1")).cancel_requested
        model = ScriptedModel()
        async with restarted(running, model, config=RESUME) as again:
            (run,) = await again.ledger()
            assert (run.outcome, run.error) == (Outcome.CANCELED, None)
            _, answer, _ = await again.messages()
            assert finish_of(answer).reason is FinishReason.CANCELED
            assert list(model.requests) == []
            reader = await check_log(again)
            assert reader.terminals("r1")[0].cancelled
        gate.open()
        await running.completed("r1")


async def test_a_crash_in_mid_summary_does_not_pass_the_half_of_it_off_as_the_answer(tmp_path: Path) -> None:
    """T8, B6."""
    gate = Gate()
    overflow = Fail(ModelError("too long", code="context_overflow"))
    async with launch(tmp_path, ScriptedModel([[Say("one")], [overflow], [Say("In sh"), Pause(gate)]])) as running:
        await running.submit("first", "r0")
        await running.completed("r0")
        await running.submit("go", "r1")
        await running.watcher.until(lambda event: event.type == "message_delta" and event.payload.text == "In sh")
        async with restarted(running, ScriptedModel.echo()) as again:
            reader = await check_log(again)
            (complete,) = reader.terminals("r1")
            assert (complete.outcome, complete.text) == (Outcome.INTERRUPTED, "")
            messages = await again.messages()
            assert [text_of(message) for message in messages] == ["first", "one", "go", ""]
            assert not any(message.summary for message in messages)
        gate.open()


async def test_a_crash_after_a_summary_does_not_pass_it_off_as_the_answer(tmp_path: Path) -> None:
    """T8, B6: the summary is on disk, the step that follows it has not begun."""
    gate = Gate()
    overflow = Fail(ModelError("too long", code="context_overflow"))
    async with launch(tmp_path, ScriptedModel([[Say("one")], [overflow], [Say("In short."), Pause(gate)]])) as running:
        await running.submit("first", "r0")
        await running.completed("r0")
        await running.submit("go", "r1")
        await gate.reached()
        stepping = running.hold_actor()
        gate.open()
        summary = await running.watcher.until(
            lambda event: event.type == "message" and event.payload.finished_at and "In short." in str(event.payload)
        )
        model = ScriptedModel.echo()
        async with restarted(running, model) as again:
            reader = await check_log(again)
            (complete,) = reader.terminals("r1")
            assert (complete.outcome, complete.text) == (Outcome.INTERRUPTED, "")
            messages = {message.id: message for message in await again.messages()}
            assert messages[summary.payload.id] == summary.payload
            await again.submit("go on", "r2")
            await finished(again, "r2")
            assert "In short." in text_of(model.requests[0].messages[0])
            check_requests(model.requests)
        stepping.open()
        await running.workspace.cancel_run("r1")


@pytest.mark.parametrize("config", ['{"on_restart": }', '{"on_restart": "maybe"}'])
async def test_a_config_that_broke_meanwhile_does_not_keep_the_server_down(tmp_path: Path, config: str) -> None:
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Say("half"), Pause(gate)]])) as running:
        await running.submit("one", "r1")
        await streamed(running, "half")
        async with restarted(running, ScriptedModel(), config=config) as again:
            assert await outcomes(again) == {"r1": Outcome.INTERRUPTED}


# Resume


async def test_a_resumed_run_goes_on_under_its_own_name(tmp_path: Path) -> None:
    """B6: its half answer is withdrawn, its prompt is not repeated, and it ends once."""
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Say("Half an ans"), Pause(gate)]]), config=RESUME) as running:
        await running.submit("ask", "r1")
        await running.submit("then", "r2")
        await streamed(running, "ans")
        model = ScriptedModel.echo()
        async with restarted(running, model, config=RESUME) as again:
            await finished(again, "r2")
            assert await outcomes(again) == {"r1": Outcome.END_TURN, "r2": Outcome.END_TURN}
            assert [text_of(message) for message in await again.messages()] == [
                "ask", "echo: ask", "then", "echo: then"
            ]  # fmt: skip
            check_requests(model.requests)
            assert "Half" not in str(model.requests)
            await check_log(again)


async def test_a_resumed_run_is_told_that_its_tool_may_have_had_effects(tmp_path: Path) -> None:
    gate = Gate()
    tool = ScriptedTool("look", gate=gate)
    async with launch(tmp_path, ScriptedModel([[CallTool("look")]]), tools=[tool], config=RESUME) as running:
        await running.submit("go", "r1")
        await gate.reached()
        await running.watcher.until(lambda event: event.type == "message" and event.payload.role is Role.TOOL)
        model = ScriptedModel([[Say("Done.")]])
        async with restarted(running, model, config=RESUME, tools=[ScriptedTool("look")]) as again:
            await finished(again, "r1")
            check_requests(model.requests)
            (result,) = model.requests[0].messages[-1].parts
            assert isinstance(result, ToolResultPart)
            assert (result.is_error, "may have had effects" in result.content) == (True, True)
            reader = await check_log(again)
            assert reader.terminals("r1")[0].text == "Done."


async def test_a_resumed_run_still_has_the_prompts_that_were_folded_into_it(tmp_path: Path) -> None:
    tool_gate, gate = Gate("tool"), Gate("model")
    script: list[Step] = [[CallTool("look")], [Say("both"), Pause(gate)]]
    tools = [ScriptedTool("look", gate=tool_gate)]
    async with launch(tmp_path, ScriptedModel(script), tools=tools, config=RESUME) as running:
        await running.submit("host", "r1")
        await tool_gate.reached()
        steered = (await running.submit("guest")).run_id
        await running.watcher.in_state(steered, "queued")
        tool_gate.open()
        await streamed(running, "both")
        model = ScriptedModel.echo()
        async with restarted(running, model, config=RESUME, tools=[ScriptedTool("look")]) as again:
            assert (await finished(again, steered)).folded_into == "r1"
            assert await outcomes(again) == {"r1": Outcome.END_TURN, steered: Outcome.END_TURN}
            assert users(await again.messages()) == ["host", "guest"]
            check_requests(model.requests)
            await check_log(again)


async def test_a_run_is_resumed_three_times_and_then_interrupted(tmp_path: Path) -> None:
    """B6: a run that takes the server down with it does so a bounded number of times."""

    def stuck() -> ScriptedModel:
        return ScriptedModel([[Say("again"), Pause(Gate())]])

    place, session_id = tmp_path, None
    for start in range(4):
        async with launch(place, stuck(), config=RESUME, session_id=session_id) as running:
            session_id = running.session_id
            if start == 0:
                await running.submit("ask", "r1")
                await streamed(running, "again")
            else:
                await running.watcher.until(lambda event: event.type == "snapshot")
                await running.watcher.until(
                    lambda event: (
                        any(m.parts for m in getattr(event.payload, "messages", ())) or event.type == "message_delta"
                    )
                )
            (run,) = await running.ledger()
            assert run.state is RunState.ACTIVE
            place = await crashed(running)
    model = ScriptedModel()
    async with launch(place, model, config=RESUME, session_id=session_id) as running:
        assert await outcomes(running) == {"r1": Outcome.INTERRUPTED}
        assert list(model.requests) == []
        assert users(await running.messages()) == ["ask"]
        await check_log(running)
