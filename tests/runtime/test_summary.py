"""The context window fills: the session is summarized and the same run goes on."""

from pathlib import Path

import pytest
from checks import check_ends, check_requests, locked_store
from running_app import RunningApp, launch

from longboat.core.history import SUMMARY_LEAD
from longboat.core.prompts import SUMMARIZE
from longboat.errors import ModelError, TooLate
from longboat.models.protocol import ModelRequest
from longboat.testing import CallTool, Fail, Gate, Pause, Say, ScriptedModel, ScriptedTool, Use
from longboat.testing.scripted import last_prompt
from longboat.wire.events import Change
from longboat.wire.models import AgentEventType, Delivery, Outcome, Role, TextPart

WINDOW = 1_000
FULL = Use(input_tokens=900)
OVERFLOW = Fail(ModelError("The prompt is too long.", title="Too long", code="context_overflow"))


def is_summary(request: ModelRequest) -> bool:
    return last_prompt(request) == SUMMARIZE


def summaries(model: ScriptedModel) -> list[bool]:
    """Which of the model's requests asked for a summary."""
    return [is_summary(request) for request in model.requests]


def first_text(request: ModelRequest) -> str:
    part = request.messages[0].parts[0]
    assert isinstance(part, TextPart)
    return part.text


def notices(running: RunningApp) -> int:
    return sum(event.type is AgentEventType.SUMMARIZING for event in running.watcher.of("agent_event"))


async def test_a_full_window_is_summarized_and_the_same_run_goes_on(tmp_path: Path) -> None:
    """T8: one run, one terminal event; the next step begins with the summary and still knows what was asked."""
    model = ScriptedModel(
        [[CallTool("look"), FULL], [Say("We looked at x.")], [Say("All done.")], [Say("later")]], context_window=WINDOW
    )
    async with launch(tmp_path, model, tools=[ScriptedTool("look", "seen")]) as running:
        await running.submit("Mend the boat", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "All done.")
        assert summaries(model) == [False, True, False]
        assert notices(running) == 1
        step = model.requests[2]
        assert [message.role for message in step.messages] == [Role.USER]
        assert first_text(step).startswith(SUMMARY_LEAD + "We looked at x.")
        assert "Mend the boat" in first_text(step)
        assert [message.role for message in await running.messages()] == [
            Role.USER,
            Role.ASSISTANT,
            Role.TOOL,
            Role.ASSISTANT,
            Role.ASSISTANT,
        ]
        await running.submit("And now?", "r2")
        assert (await running.completed("r2")).text == "later"
        later = model.requests[3]
        assert [message.role for message in later.messages] == [Role.USER, Role.ASSISTANT, Role.USER]
        assert first_text(later) == first_text(step)
        check_requests(model.requests)
        await check_ends(running)


async def test_a_summary_outlives_the_server(tmp_path: Path) -> None:
    """T8: after a restart the model is shown the same."""
    model = ScriptedModel([[CallTool("look"), FULL], [Say("Sum.")], [Say("done")]], context_window=WINDOW)
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        session_id = running.session_id
    again = ScriptedModel([[Say("hello again")]], context_window=WINDOW)
    async with launch(tmp_path, again, session_id=session_id) as running:
        await running.submit("two", "r2")
        await running.completed("r2")
        assert again.requests[0].messages[:-1] == (*model.requests[2].messages, again.requests[0].messages[1])
        check_requests(again.requests)


async def test_a_long_history_is_summarized_before_the_first_step(tmp_path: Path) -> None:
    """T8: no provider has counted yet; the estimate does. A prompt alone is not summarized: it could not shrink."""
    model = ScriptedModel([[Say("noted")], [Say("Sum.")], [Say("done")]], context_window=WINDOW)
    async with launch(tmp_path, model) as running:
        await running.submit("long " * 800, "r1")
        assert (await running.completed("r1")).text == "noted"
        await running.submit("short", "r2")
        assert (await running.completed("r2")).text == "done"
        assert summaries(model) == [False, True, False]
        assert first_text(model.requests[2]).endswith("short")
        check_requests(model.requests)
        await check_ends(running)


async def test_prompts_that_come_while_summarizing_still_run(tmp_path: Path) -> None:
    """T8, L8, L10; crush #1422: a queued and a steering one."""
    gate = Gate()
    model = ScriptedModel(
        [[CallTool("look"), FULL], [Say("Sum."), Pause(gate)], [Say("one and three")], [Say("two")]],
        context_window=WINDOW,
    )
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        await running.submit("A", "a")
        await gate.reached()
        await running.submit("B", "b")
        steer = (await running.submit("C")).run_id
        await running.watcher.in_state(steer, "queued")
        gate.open()
        assert (await running.completed("a")).text == "one and three"
        assert (await running.completed("b")).text == "two"
        assert (await running.completed(steer)).folded_into == "a"
        check_requests(model.requests)
        await check_ends(running)


async def test_a_prompt_folded_before_the_summary_is_carried_over_it(tmp_path: Path) -> None:
    """T8, L9, L12; crush #1248: no wish is lost; and once a summary has shown it to the model it is too late."""
    tool, gate = Gate(), Gate()
    model = ScriptedModel([[CallTool("look"), FULL], [Pause(gate), Say("Sum.")], [Say("both")]], context_window=WINDOW)
    async with launch(tmp_path, model, tools=[ScriptedTool("look", gate=tool)]) as running:
        await running.submit("Paint it", "a")
        await tool.reached()
        await running.submit("in blue", "b", delivery=Delivery.STEER)
        await running.watcher.in_state("b", "queued")
        tool.open()
        await gate.reached()
        with pytest.raises(TooLate):
            await running.workspace.cancel_run("b")
        gate.open()
        assert (await running.completed("b")).folded_into == "a"
        asked = first_text(model.requests[2])
        assert asked.index("Sum.") < asked.index("Paint it") < asked.index("in blue")
        check_requests(model.requests)
        await check_ends(running)


async def test_a_provider_that_refuses_for_length_is_asked_again_after_a_summary(tmp_path: Path) -> None:
    """T8: the answer that never began is withdrawn; nobody sees an error."""
    model = ScriptedModel([[Say("noted")], [OVERFLOW], [Say("Sum.")], [Say("done")]])
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        await running.submit("two", "r2")
        complete = await running.completed("r2")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "done")
        assert summaries(model) == [False, False, True, False]
        deleted = [e.payload for e in running.watcher.events if e.type == "message" and e.change is Change.DELETED]
        assert [(message.role, message.parts) for message in deleted] == [(Role.ASSISTANT, ())]
        assert not [e for e in running.watcher.of("agent_event") if e.type is AgentEventType.ERROR]
        check_requests(model.requests)
        await check_ends(running)


async def test_a_window_that_stays_too_small_is_an_error_and_no_endless_loop(tmp_path: Path) -> None:
    """T8; crush #2551: one summary, one more try, then the run says what is wrong; the session goes on."""
    model = ScriptedModel([[Say("noted")], [OVERFLOW], [Say("Sum.")], [OVERFLOW], [Say("short enough")]])
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        await running.submit("two", "r2")
        complete = await running.completed("r2")
        assert (complete.outcome, complete.error) == (Outcome.ERROR, "Too long: The prompt is too long.")
        assert len(model.requests) == 4
        await running.submit("three", "r3")
        assert (await running.completed("r3")).text == "short enough"
        check_requests(model.requests)
        await check_ends(running)


async def test_a_prompt_folded_right_after_a_summary_does_not_start_another_one(tmp_path: Path) -> None:
    """T8, L9; crush #2551: the summary is long and more came in meanwhile; a step is taken before the next summary."""
    gate = Gate()
    model = ScriptedModel(
        [[Say("noted")], [OVERFLOW], [Pause(gate), Say("far too long " * 400)], [Say("both")]], context_window=WINDOW
    )
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        await running.submit("two", "r2")
        await gate.reached()
        await running.submit("three", "r3", delivery=Delivery.STEER)
        await running.watcher.in_state("r3", "queued")
        gate.open()
        assert (await running.completed("r3")).folded_into == "r2"
        assert summaries(model) == [False, False, True, False]
        check_requests(model.requests)
        await check_ends(running)


async def test_a_summary_that_fills_the_window_itself_is_not_summarized_again_at_once(tmp_path: Path) -> None:
    """T8; crush #2551: between two summaries there is always a step that got somewhere."""
    numbers = iter(range(100))
    tool = ScriptedTool("look", lambda call: f"new {next(numbers)}")
    model = ScriptedModel(
        lambda request: (
            [Say("far too long " * 400)]
            if is_summary(request)
            else [CallTool("look"), FULL]
            if len(tool.calls) < 3
            else [Say("done")]
        ),
        context_window=WINDOW,
    )
    async with launch(tmp_path, model, tools=[tool]) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "done"
        assert summaries(model) == [False, True] * 3 + [False]
        check_requests(model.requests)
        await check_ends(running)


async def test_a_summary_that_fails_is_an_error_of_the_run_and_changes_nothing(tmp_path: Path) -> None:
    """T8, T3: the history stays as it was, and the next prompt tries again."""
    broken = Fail(ModelError("The key was refused.", title="Not authorized"))
    model = ScriptedModel(
        [[CallTool("look"), FULL], [Say("Half a su"), broken], [Say("done")]],
        context_window=WINDOW,
    )
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        await running.submit("go", "r1")
        assert (await running.completed("r1")).outcome is Outcome.ERROR
        await running.submit("again", "r2")
        assert (await running.completed("r2")).text == "done"
        assert model.requests[2].messages[: len(model.requests[0].messages)] == model.requests[0].messages
        check_requests(model.requests)
        await check_ends(running)


async def test_a_cancel_as_the_summary_is_being_written_leaves_memory_and_disk_agreed(tmp_path: Path) -> None:
    """T8, L15: the summary is told, the store is slow to take it, and the run is canceled just then."""
    gate = Gate()
    model = ScriptedModel([[CallTool("look"), FULL], [Say("Sum."), Pause(gate)], [Say("next")]], context_window=WINDOW)
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        await running.submit("go", "r1")
        await gate.reached()
        turn = running.actor._loop.turn
        assert turn is not None
        await turn._outbox.flush()
        with locked_store(running):
            gate.open()
            await turn._outbox._settling()  # the first attempt was refused; the next comes half a second later
        await running.workspace.cancel_session(running.session_id)
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        rows = await running.app._store.read(
            lambda reader: reader.fetch(
                "session_by_id", session_id=running.session_id, workspace_id=running.workspace.id
            )
        )
        assert rows[0]["summary_seq"] == running.actor.live.summary_seq > 0
        await running.submit("next", "r2")
        assert (await running.completed("r2")).text == "next"
        assert first_text(model.requests[2]).startswith(SUMMARY_LEAD + "Sum.")
        check_requests(model.requests)
        await check_ends(running)


async def test_an_empty_summary_ends_the_run_instead_of_forgetting_the_conversation(tmp_path: Path) -> None:
    """T8."""
    model = ScriptedModel([[Say("x" * 4000)], [Say("  ")]], context_window=1000)
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        await running.submit("two", "r2")
        complete = await running.completed("r2")
        assert complete.outcome is Outcome.ERROR
        assert complete.error.startswith("The context window is full")
        assert [message.run_id for message in await running.messages()] == ["r1", "r1", "r2", "r2"]
        await check_ends(running)
