"""The queue: order, steering, editing, clearing, and that it goes on whatever became of the run before."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest
from checks import check_ends, check_requests, locked_store
from running_app import RunningApp, launch

from longboat.errors import BadInput, EmptyPrompt, ModelError, RunNotEditable, RunNotFound, TooLate
from longboat.testing import CallTool, Fail, Gate, Hang, Pause, Say, ScriptedModel, ScriptedTool
from longboat.testing.script import Item
from longboat.testing.scripted import last_prompt
from longboat.wire.models import Attachment, Canceled, Delivery, Message, Outcome, Role, RunState, TextPart
from longboat.wire.requests import EditRun

LOOK = CallTool("look", {}, "c1")


async def queue(running: RunningApp, prompt: str, run_id: str | None = None, delivery: Delivery | None = None) -> str:
    """Submit to the busy session and wait until it is queued."""
    accepted = await running.submit(prompt, run_id, delivery=delivery)
    await running.watcher.in_state(accepted.run_id, "queued")
    return accepted.run_id


def prompts(messages: Iterable[Message]) -> list[str]:
    return [
        part.text
        for message in messages
        for part in message.parts
        if message.role is Role.USER and isinstance(part, TextPart)
    ]


async def test_named_prompts_run_one_after_another_in_order_of_accept(tmp_path: Path) -> None:
    """L8, L10, E1: A, B, C with run_ids; each its own turn, its own answer, its own terminal event."""
    gate = Gate()
    model = ScriptedModel([[Pause(gate), Say("re A")], [Say("re B")], [Say("re C")]])
    async with launch(tmp_path, model) as running:
        await running.submit("A", "a")
        await gate.reached()
        await queue(running, "B", "b")
        await queue(running, "C", "c")
        page = await running.workspace.queued(running.session_id)
        assert [(run.run_id, run.position) for run in page.items] == [("b", 1), ("c", 2)]
        assert (await running.workspace.session_status(running.session_id)).queued == 2
        gate.open()
        await running.completed("c")
        ends = [(end.run_id, end.text, end.folded_into) for end in running.watcher.of("run_complete")]
        assert ends == [("a", "re A", None), ("b", "re B", None), ("c", "re C", None)]
        assert prompts(await running.messages()) == ["A", "B", "C"]
        check_requests(model.requests)
        await check_ends(running)


async def test_unnamed_prompts_are_folded_at_the_next_step_in_order(tmp_path: Path) -> None:
    """L9, L10, E1: A calls a tool; B and C steer it and end with it; D, which wants to queue, stays."""
    gate = Gate()
    model = ScriptedModel([[LOOK], [Say("all of it")], [Say("re D")]])
    async with launch(tmp_path, model, tools=[ScriptedTool("look", gate=gate)]) as running:
        a = (await running.submit("A")).run_id
        await gate.reached()
        b = await queue(running, "B")
        d = await queue(running, "D", delivery=Delivery.QUEUE)
        c = await queue(running, "C")
        gate.open()
        for run_id, host in ((a, None), (b, a), (c, a)):
            end = await running.completed(run_id)
            assert (end.text, end.outcome, end.folded_into) == ("all of it", Outcome.END_TURN, host)
        assert (await running.completed(d)).text == "re D"
        assert prompts(model.requests[1].messages) == ["A", "B", "C"]
        folded = await running.watcher.in_state(b, "folded")
        assert (folded.folded_into, folded.position) == (a, None)
        assert {end.message_id for end in running.watcher.of("run_complete") if end.run_id != d} == {
            (await running.completed(a)).message_id
        }
        check_requests(model.requests)
        await check_ends(running)


async def test_a_steering_prompt_that_finds_no_further_step_runs_as_its_own_turn(tmp_path: Path) -> None:
    """L10."""
    gate = Gate()
    model = ScriptedModel([[Pause(gate), Say("re A")], [Say("re B")]])
    async with launch(tmp_path, model) as running:
        a = (await running.submit("A")).run_id
        await gate.reached()
        b = await queue(running, "B")
        gate.open()
        assert [(await running.completed(run_id)).text for run_id in (a, b)] == ["re A", "re B"]
        assert (await running.completed(b)).folded_into is None
        await check_ends(running)


async def test_a_steering_prompt_that_came_too_late_gets_a_turn_of_its_own_before_the_queue(tmp_path: Path) -> None:
    """L10: it was meant for what was under way, not for the turn that somebody else has queued."""
    gate = Gate()
    model = ScriptedModel([[Pause(gate), Say("re A")], [Say("re C")], [Say("re B")]])
    async with launch(tmp_path, model) as running:
        await running.submit("A")
        await gate.reached()
        b = await queue(running, "B", delivery=Delivery.QUEUE)
        c = await queue(running, "C", delivery=Delivery.STEER)
        gate.open()
        assert [(await running.completed(run_id)).text for run_id in (b, c)] == ["re B", "re C"]
        late = await running.workspace.run(c)
        assert late.folded_into is None
        await check_ends(running)


@pytest.mark.parametrize("outcome", [Outcome.ERROR, Outcome.CANCELED])
async def test_folded_runs_share_the_outcome_of_their_turn(tmp_path: Path, outcome: Outcome) -> None:
    """E1: error and cancel alike."""
    gate, step = Gate(), Gate()
    end = Fail(ModelError("no such model")) if outcome is Outcome.ERROR else Hang()
    model = ScriptedModel([[LOOK], [Say("so far"), Pause(step), end]])
    async with launch(tmp_path, model, tools=[ScriptedTool("look", gate=gate)]) as running:
        a = (await running.submit("A")).run_id
        await gate.reached()
        b = await queue(running, "B")
        gate.open()
        await step.reached()
        if outcome is Outcome.CANCELED:
            assert await running.workspace.cancel_session(running.session_id) == Canceled(canceled=(a, b))
        step.open()
        ends = [await running.completed(run_id) for run_id in (a, b)]
        assert [(end.outcome, end.text, end.folded_into) for end in ends] == [
            (outcome, "so far", None),
            (outcome, "so far", a),
        ]
        assert ends[0].error == ends[1].error
        await check_ends(running)


@pytest.mark.parametrize("first", ["end_turn", "canceled", "error"])
async def test_the_queue_goes_on_whatever_became_of_the_run_before(tmp_path: Path, first: str) -> None:
    """L11; opencode #40955: on every outcome the next run starts, and none is reported under another's id."""
    gate = Gate()
    ends: dict[str, Item] = {"end_turn": Say("a"), "canceled": Hang(), "error": Fail(ModelError("broken"))}
    model = ScriptedModel([[Pause(gate), ends[first]], [Say("b")]])
    async with launch(tmp_path, model) as running:
        await running.submit("A", "a")
        await gate.reached()
        await queue(running, "B", "b")
        gate.open()
        if first == "canceled":
            await running.workspace.cancel_run("a")
        assert (await running.completed("a")).outcome == first
        assert (await running.completed("b")).text == "b"
        check_requests(model.requests)
        await check_ends(running)


async def test_a_long_queue_runs_without_recursion(tmp_path: Path) -> None:
    """L11: the session's own loop starts the next; a chain of turns is no stack of calls."""
    gate = Gate()
    model = ScriptedModel(lambda request: [Pause(gate), Say(last_prompt(request))])
    async with launch(tmp_path, model) as running:
        for number in range(200):
            await running.submit(str(number), f"r{number}")
        gate.open()
        await running.completed("r199")
        assert [end.text for end in running.watcher.of("run_complete")] == [str(number) for number in range(200)]
        await check_ends(running)


async def test_cancel_finishes_what_is_queued_and_clear_leaves_the_active_run_alone(tmp_path: Path) -> None:
    """L12, T2: a run canceled while queued leaves only its terminal event."""
    gate = Gate()
    model = ScriptedModel([[Pause(gate), Say("a")], [Hang()]])
    async with launch(tmp_path, model) as running:
        await running.submit("A", "a")
        await gate.reached()
        for run_id in ("b", "c"):
            await queue(running, run_id.upper(), run_id)
        assert await running.workspace.clear_queue(running.session_id) == Canceled(canceled=("b", "c"))
        assert await running.workspace.clear_queue(running.session_id) == Canceled(canceled=())
        gate.open()
        assert (await running.completed("a")).outcome is Outcome.END_TURN
        await running.submit("D", "d")
        await running.watcher.in_state("d", "active")
        await queue(running, "E", "e")
        assert await running.workspace.cancel_session(running.session_id) == Canceled(canceled=("d", "e"))
        for run_id in ("b", "c", "d", "e"):
            assert (await running.completed(run_id)).outcome is Outcome.CANCELED
        assert prompts(await running.messages()) == ["A", "D"]
        assert [run.prompt for run in await running.ledger()] == ["A", "B", "C", "D", "E"]
        await check_ends(running)


# Editing


async def test_a_queued_prompt_is_edited_before_it_runs(tmp_path: Path) -> None:
    """L8, http PATCH; crush #3558: the new text is what the model gets, in the same place of the queue."""
    gate = Gate()
    model = ScriptedModel([[Pause(gate), Say("a")], [Say("b")], [Say("c")]])
    async with launch(tmp_path, model) as running:
        await running.submit("A", "a")
        await gate.reached()
        await queue(running, "B", "b")
        await queue(running, "C", "c")
        run = await running.workspace.edit_run("b", EditRun(prompt="better B"))
        assert (run.prompt, run.state, run.position) == ("better B", RunState.QUEUED, 1)
        with pytest.raises(EmptyPrompt):
            await running.workspace.edit_run("c", EditRun(prompt="  "))
        with pytest.raises(RunNotEditable):
            await running.workspace.edit_run("a", EditRun(prompt="too late"))
        with pytest.raises(RunNotFound):
            await running.workspace.edit_run("none-such", EditRun(prompt="x"))
        gate.open()
        await running.completed("c")
        with pytest.raises(RunNotEditable):
            await running.workspace.edit_run("b", EditRun(prompt="far too late"))
        assert prompts(await running.messages()) == ["A", "better B", "C"]
        await check_ends(running)


async def test_an_edit_is_taken_as_a_new_prompt_would_be(tmp_path: Path) -> None:
    """A5: a command is spelled out, unless more than its text would change. A schema stays a turn of its own."""
    gate = Gate()
    model = ScriptedModel([[Pause(gate), Say("a")], [Say("b")], [Say("{}")]], context_window=100_000)
    async with launch(tmp_path, model) as running:
        commands = running.workspace.directory / ".agents" / "commands"
        commands.mkdir(parents=True)
        (commands / "review.md").write_text("Review $ARGUMENTS with care.")
        (commands / "small.md").write_text("---\nmodel: small\n---\nLook at it.")
        await running.submit("A", "a")
        await gate.reached()
        await running.submit("B", "b")
        await running.submit("C", "c", schema={"type": "object"})
        assert (await running.workspace.edit_run("b", EditRun(prompt="/review main.py"))).prompt == (
            "Review main.py with care."
        )
        with pytest.raises(BadInput, match="send a new one"):
            await running.workspace.edit_run("b", EditRun(prompt="/small"))
        with pytest.raises(BadInput, match="Queue it"):
            await running.workspace.edit_run("c", EditRun(delivery=Delivery.STEER))
        gate.open()
        for run_id in ("a", "b", "c"):
            await running.completed(run_id)


async def test_an_edited_delivery_counts_at_the_next_step(tmp_path: Path) -> None:
    """L9: queue becomes steer and steer becomes queue."""
    gate = Gate()
    model = ScriptedModel([[LOOK], [Say("a and b")], [Say("c")]])
    async with launch(tmp_path, model, tools=[ScriptedTool("look", gate=gate)]) as running:
        await running.submit("A", "a")
        await gate.reached()
        await queue(running, "B", "b")
        c = await queue(running, "C")
        assert (await running.workspace.edit_run("b", EditRun(delivery=Delivery.STEER))).delivery is Delivery.STEER
        assert (await running.workspace.edit_run(c, EditRun(delivery=Delivery.QUEUE))).delivery is Delivery.QUEUE
        gate.open()
        assert (await running.completed("b")).folded_into == "a"
        assert (await running.completed(c)).text == "c"
        await check_ends(running)


async def test_an_accepted_run_is_edited_before_it_enters(tmp_path: Path) -> None:
    """http PATCH: accepted or queued."""
    model = ScriptedModel([[Say("a")]])
    async with launch(tmp_path, model) as running:
        shut = await running.held_actor()
        submit = asyncio.create_task(running.submit("A", "a"))
        await running.posted(1)
        edit = asyncio.create_task(running.actor.edit_run("a", EditRun(prompt="better A")))
        await running.posted(2)
        shut.open()
        await submit
        run = await edit
        assert run is not None
        assert (run.state, run.prompt) == (RunState.ACCEPTED, "better A")
        await running.completed("a")
        assert last_prompt(model.requests[0]) == "better A"
        await check_ends(running)


async def test_an_edit_cannot_make_a_prompt_that_accept_would_refuse(tmp_path: Path) -> None:
    """T1: a document alone is no prompt; a text attachment is."""
    gate = Gate()
    document = Attachment(name="a.pdf", media_type="application/pdf", data="aGk=")
    notes = Attachment(name="a.txt", media_type="text/plain", text="do this")
    async with launch(tmp_path, ScriptedModel([[Pause(gate), Say("a")], [Say("b")], [Say("c")]])) as running:
        await running.submit("A", "a")
        await gate.reached()
        await running.submit("B", "b", attachments=(document,))
        await running.submit("C", "c", attachments=(notes,))
        with pytest.raises(EmptyPrompt):
            await running.workspace.edit_run("b", EditRun(prompt=""))
        assert (await running.workspace.edit_run("c", EditRun(prompt=""))).prompt == ""
        gate.open()
        await running.completed("c")
        await check_ends(running)


# Folded runs and their cancel


async def test_a_folded_run_is_withdrawn_until_its_step_is_sent(tmp_path: Path) -> None:
    """L12: between fold and send the prompt leaves the transcript again; the others of the fold stay."""
    gate = Gate()
    model = ScriptedModel([[LOOK], [Say("A and C")]])
    async with launch(tmp_path, model, tools=[ScriptedTool("look", gate=gate)]) as running:
        a = (await running.submit("A")).run_id
        await gate.reached()
        b, c = await queue(running, "B"), await queue(running, "C")
        shut = await running.held_actor()
        gate.open()
        await running.posted(1)  # the turn asks what to fold; it asks to send only after that
        cancel = asyncio.create_task(running.workspace.cancel_run(b))
        await running.posted(2)
        shut.open()
        run = await cancel
        assert (run.state, run.outcome, run.folded_into) == (RunState.FINISHED, Outcome.CANCELED, None)
        assert (await running.completed(b)).message_id is None
        assert (await running.completed(c)).folded_into == a
        assert prompts(model.requests[1].messages) == ["A", "C"]
        assert prompts(await running.messages()) == ["A", "C"]
        await running.watcher.in_state(b, "folded")
        check_requests(model.requests)
        await check_ends(running)


async def test_a_folded_run_whose_step_was_sent_cannot_be_canceled_alone(tmp_path: Path) -> None:
    """L12: too late, and the answer names the run to cancel instead."""
    gate, step = Gate(), Gate()
    model = ScriptedModel([[LOOK], [Pause(step), Say("both")]])
    async with launch(tmp_path, model, tools=[ScriptedTool("look", gate=gate)]) as running:
        a = (await running.submit("A")).run_id
        await gate.reached()
        b = await queue(running, "B")
        gate.open()
        await step.reached()
        with pytest.raises(TooLate, match=a):
            await running.workspace.cancel_run(b)
        step.open()
        assert (await running.completed(b)).outcome is Outcome.END_TURN
        assert (await running.workspace.cancel_run(b)).outcome is Outcome.END_TURN
        await check_ends(running)


async def test_a_fold_that_cannot_be_recorded_is_tried_again_and_the_turn_outlives_it(tmp_path: Path) -> None:
    """L15, L9: the store fails at a step boundary; the turn waits for it, then the fold is made, once."""
    gate = Gate()
    model = ScriptedModel([[LOOK], [Say("both")]])
    async with launch(tmp_path, model, tools=[ScriptedTool("look", gate=gate)]) as running:
        await running.submit("A", "a")
        await gate.reached()
        b = await queue(running, "B")
        with locked_store(running):
            shut = await running.held_actor()
            gate.open()
            await running.posted(1)
            shut.open()
            await running.behind_all()  # behind the fold, which has failed by now
            assert running.app.health().status == "degraded"
        assert (await running.completed("a")).text == "both"
        assert (await running.completed(b)).folded_into == "a"
        assert prompts(model.requests[1].messages) == ["A", "B"]
        assert running.app.health().status == "ok"
        check_requests(model.requests)
        await check_ends(running)
