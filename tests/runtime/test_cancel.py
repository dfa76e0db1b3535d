"""Cancel, of a session and of one run: it reaches all that was accepted before it, and nothing after."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from checks import check_ends, check_requests
from running_app import launch

from longboat.core.tool import ToolSpec
from longboat.errors import ModelError, RunNotFound, SessionNotFound, StoreUnavailable
from longboat.models.protocol import Finished, ModelEvent, ModelRequest, StopReason, TextDelta
from longboat.runtime.ownership import NODE_KEY
from longboat.testing import (
    CallTool,
    Gate,
    Hang,
    Pause,
    Say,
    ScriptedModel,
)
from longboat.tools.context import ToolContext
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.wire.ids import new_key, repeated_key
from longboat.wire.models import (
    AgentEventType,
    Canceled,
    FinishPart,
    FinishReason,
    Outcome,
    Role,
    RunState,
    TextPart,
    ToolResultPart,
)

CANCELED = FinishPart(reason=FinishReason.CANCELED)


async def test_a_cancel_of_an_idle_session_never_touches_the_next_prompt(tmp_path: Path) -> None:
    """L2."""
    async with launch(tmp_path, ScriptedModel([[Say("untouched")], [Say("untouched too")]])) as running:
        assert await running.workspace.cancel_session(running.session_id) == Canceled(canceled=())
        await running.submit("one", "r1")
        assert (await running.completed("r1")).outcome is Outcome.END_TURN
        assert await running.workspace.cancel_session(running.session_id) == Canceled(canceled=())
        await running.submit("two", "r2")
        assert (await running.completed("r2")).text == "untouched too"
        await check_ends(running)


async def test_a_cancel_between_accept_and_enter_is_not_lost(tmp_path: Path) -> None:
    """L3, L5, T2: canceled on entry to an idle session: the user message once, an answer canceled, no model."""
    model = ScriptedModel([[Say("next")]])
    async with launch(tmp_path, model) as running:
        gate = await running.held_actor()
        submit = asyncio.create_task(running.submit("go", "r1"))
        await running.posted(1)
        cancel = asyncio.create_task(running.workspace.cancel_session(running.session_id))
        await running.posted(2)
        gate.open()
        assert (await submit).state is RunState.ACCEPTED
        assert await cancel == Canceled(canceled=("r1",))
        complete = await running.completed("r1")
        user, answer = await running.messages()
        assert (user.role, user.parts) == (Role.USER, (TextPart(text="go"),))
        assert (answer.role, answer.parts) == (Role.ASSISTANT, (CANCELED,))
        assert complete.message_id == answer.id
        assert len(model.requests) == 0
        assert running.actor.state.mark is None
        await running.submit("again", "r2")
        assert (await running.completed("r2")).text == "next"
        check_requests(model.requests)
        await check_ends(running)


async def test_one_cancel_covers_all_accepted_before_it_and_none_after(tmp_path: Path) -> None:
    """L3, L5, L6, L7: the mark is not consumed by the first, does not reach the third, and then goes away."""
    async with launch(tmp_path, ScriptedModel([[Say("untouched")]])) as running:
        gate = await running.held_actor()
        commands: list[Coroutine[object, object, object]] = [
            running.submit("one", "r1"),
            running.submit("two", "r2"),
            running.workspace.cancel_session(running.session_id),
            running.workspace.cancel_session(running.session_id),
            running.submit("three", "r3"),
        ]
        tasks = []
        for command in commands:
            tasks.append(asyncio.create_task(command))
            await running.posted(len(tasks))
        gate.open()
        answers = await asyncio.gather(*tasks)
        assert answers[2:4] == [Canceled(canceled=("r1", "r2"))] * 2
        assert (await running.completed("r3")).text == "untouched"
        assert [(await running.completed(run_id)).outcome for run_id in ("r1", "r2")] == [Outcome.CANCELED] * 2
        assert running.actor.state.mark is None
        await check_ends(running)


async def test_a_cancel_reaches_the_active_run_and_the_one_about_to_enter(tmp_path: Path) -> None:
    """L4, T2: both; and the one that enters a busy session leaves only its terminal event, its text on the run."""
    model = ScriptedModel([[Say("half"), Hang()], [Say("next")]])
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await running.watcher.until(lambda event: event.type == "message_delta")
        gate = await running.held_actor()
        submit = asyncio.create_task(running.submit("two", "r2"))
        await running.posted(1)
        cancel = asyncio.create_task(running.workspace.cancel_session(running.session_id))
        await running.posted(2)
        gate.open()
        await submit
        assert await cancel == Canceled(canceled=("r1", "r2"))
        one, two = await running.completed("r1"), await running.completed("r2")
        assert (one.outcome, one.text, two.outcome, two.message_id) == (
            Outcome.CANCELED,
            "half",
            Outcome.CANCELED,
            None,
        )
        kinds = [event.type for event in running.watcher.events]
        assert [e.run_id for e in running.watcher.of("run_complete")] == ["r2", "r1"], kinds
        assert {message.run_id for message in await running.messages()} == {"r1"}
        assert (await running.workspace.run("r2")).prompt == "two"
        await running.submit("three", "r3")
        assert (await running.completed("r3")).text == "next"
        check_requests(model.requests)
        await check_ends(running)


class Slow:
    """A tool that takes its time to clean up when it is canceled."""

    spec = ToolSpec(name="slow", description="", schema={"type": "object"})

    def __init__(self, *, swallow: bool = False) -> None:
        self.started, self.cleaning = Gate(), Gate()
        self._swallow = swallow

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        try:
            await self.started.arrive()
        except asyncio.CancelledError:
            await self.cleaning.arrive()
            if not self._swallow:
                raise
        return ToolResult(content="finished all the same")


async def test_a_prompt_that_follows_a_cancel_is_not_folded_into_the_canceled_turn(tmp_path: Path) -> None:
    """L6, L9, T6: a steer prompt accepted while the canceled turn still unwinds runs, as a turn of its own."""
    tool = Slow()
    model = ScriptedModel([[CallTool("slow")], [Say("mine")]])
    async with launch(tmp_path, model, tools=[tool]) as running:
        await running.submit("one", "r1")
        await tool.started.reached()
        await running.workspace.cancel_session(running.session_id)
        await tool.cleaning.reached()
        later = (await running.submit("two")).run_id
        await running.watcher.in_state(later, "queued")
        assert (await running.workspace.session_status(running.session_id)).busy
        tool.cleaning.open()
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        complete = await running.completed(later)
        assert (complete.outcome, complete.text, complete.folded_into) == (Outcome.END_TURN, "mine", None)
        check_requests(model.requests)
        await check_ends(running)


async def test_a_tool_that_swallows_its_cancellation_does_not_keep_the_turn_going(tmp_path: Path) -> None:
    """T3, L6: the model is not asked again, and a prompt that steers is not drawn in."""
    tool = Slow(swallow=True)
    model = ScriptedModel([[CallTool("slow")], [Say("mine")]])
    async with launch(tmp_path, model, tools=[tool]) as running:
        await running.submit("one", "r1")
        await tool.started.reached()
        await running.workspace.cancel_session(running.session_id)
        await tool.cleaning.reached()
        later = (await running.submit("two")).run_id
        await running.watcher.in_state(later, "queued")
        tool.cleaning.open()
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        assert (await running.completed(later)).text == "mine"
        assert len(model.requests) == 2
        results = [part for message in await running.messages() for part in message.parts if message.role is Role.TOOL]
        (result,) = results
        assert isinstance(result, ToolResultPart)
        assert (result.tool_call_id, result.content, result.is_error) == ("call_1", "finished all the same", False)
        check_requests(model.requests)
        await check_ends(running)


async def test_a_turn_that_completed_although_a_cancel_was_requested_is_end_turn(tmp_path: Path) -> None:
    """L13: the turn is over; its report stands in the mailbox behind the cancel."""
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Pause(gate), Say("done")]])) as running:
        await running.submit("go", "r1")
        await gate.reached()
        shut = await running.held_actor()
        cancel = asyncio.create_task(running.workspace.cancel_session(running.session_id))
        await running.posted(1)
        gate.open()
        await running.posted(2)
        shut.open()
        assert await cancel == Canceled(canceled=("r1",))
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text, complete.cancelled) == (Outcome.END_TURN, "done", False)
        run = await running.workspace.run("r1")
        assert (run.cancel_requested, run.outcome) == (True, Outcome.END_TURN)
        await check_ends(running)


class Stubborn(ScriptedModel):
    """A model that does not stop when it is told to: it ends its answer, or fails."""

    def __init__(self, end: Finished | ModelError) -> None:
        super().__init__()
        self.asked = Gate()
        self._end = end

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        async def play() -> AsyncIterator[ModelEvent]:
            yield TextDelta("all of ")
            with suppress(asyncio.CancelledError):
                await self.asked.arrive()
            if isinstance(self._end, ModelError):
                raise self._end
            yield TextDelta("it")
            yield self._end

        yield play()


async def test_an_answer_that_came_to_its_end_in_spite_of_the_cancel_is_end_turn(tmp_path: Path) -> None:
    """L13: the turn was asked to stop, and completed."""
    model = Stubborn(Finished(StopReason.END_TURN))
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1")
        await model.asked.reached()
        run = await running.workspace.cancel_run("r1")
        assert (run.state, run.cancel_requested) == (RunState.ACTIVE, True)
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "all of it")
        await check_ends(running)


async def test_an_error_on_the_way_out_of_a_cancel_is_a_cancel(tmp_path: Path) -> None:
    """E4: an adapter that fails because it was stopped is no error to anyone."""
    model = Stubborn(ModelError("connection closed", retryable=False))
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1")
        await model.asked.reached()
        await running.workspace.cancel_session(running.session_id)
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text, complete.error) == (Outcome.CANCELED, "all of ", "")
        assert not [event for event in running.watcher.of("agent_event") if event.type is AgentEventType.ERROR]
        await check_ends(running)


async def test_a_cancel_in_the_hand_over_reaches_the_next_run(tmp_path: Path) -> None:
    """L11: the report of the first turn stands in the mailbox before the cancel, so the cancel finds the second."""
    gate = Gate()
    model = ScriptedModel([[Pause(gate), Say("done")]])
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await gate.reached()
        await running.submit("two", "r2")
        await running.watcher.in_state("r2", "queued")
        shut = await running.held_actor()
        gate.open()
        await running.posted(1)
        cancel = asyncio.create_task(running.workspace.cancel_session(running.session_id))
        await running.posted(2)
        shut.open()
        assert await cancel == Canceled(canceled=("r2",))
        assert (await running.completed("r1")).outcome is Outcome.END_TURN
        assert (await running.completed("r2")).outcome is Outcome.CANCELED
        busy = [session.busy for session in running.watcher.of("session")]
        assert busy.index(False) == len(busy) - 1  # it never looked idle in between
        assert [message.role for message in await running.messages()] == [Role.USER, Role.ASSISTANT] * 2
        await check_ends(running)


# One run by its id


async def test_one_run_is_canceled_in_every_state_it_can_be_in(tmp_path: Path) -> None:
    """L12: accepted, queued, active and finished; the others go on."""
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Say("a"), Pause(gate)], [Say("b")]])) as running:
        await running.submit("active", "active")
        await gate.reached()
        await running.submit("queued", "queued")
        await running.watcher.in_state("queued", "queued")
        assert (await running.workspace.cancel_run("queued")).outcome is Outcome.CANCELED
        shut = await running.held_actor()
        submit = asyncio.create_task(running.submit("accepted", "accepted"))
        await running.posted(1)
        cancel = asyncio.create_task(running.actor.cancel_run("accepted"))
        await running.posted(2)
        shut.open()
        await submit
        run = await cancel
        assert run is not None
        assert (run.state, run.cancel_requested) == (RunState.ACCEPTED, True)
        assert (await running.completed("accepted")).outcome is Outcome.CANCELED
        await running.submit("other", "other")
        run = await running.workspace.cancel_run("active")
        assert (run.state, run.cancel_requested) == (RunState.ACTIVE, True)
        assert (await running.completed("active")).outcome is Outcome.CANCELED
        assert (await running.completed("other")).text == "b"
        finished = await running.workspace.cancel_run("other")
        assert (finished.state, finished.outcome, finished.cancel_requested) == (
            RunState.FINISHED,
            Outcome.END_TURN,
            False,
        )
        with pytest.raises(RunNotFound):
            await running.workspace.cancel_run("none-such")
        await check_ends(running)


async def test_a_second_cancel_changes_nothing(tmp_path: Path) -> None:
    """L3, E1; codex #36926: repeated interrupts neither hang nor end a run twice."""
    tool = Slow()
    async with launch(tmp_path, ScriptedModel([[CallTool("slow")]]), tools=[tool]) as running:
        await running.submit("go", "r1")
        await tool.started.reached()
        await running.workspace.cancel_session(running.session_id)
        await tool.cleaning.reached()
        again = await asyncio.gather(*[running.workspace.cancel_session(running.session_id) for _ in range(10)])
        assert again == [Canceled(canceled=("r1",))] * 10
        tool.cleaning.open()
        await running.completed("r1")
        await check_ends(running)


@pytest.mark.parametrize("own_key", [f"{NODE_KEY}1", new_key()], ids=["node", "client"])
async def test_g5_a_cancel_that_may_be_a_repeated_one_stops_nothing_while_the_store_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_key: str
) -> None:
    """Found by chaos: it stopped a newer run. Nodes and our clients say in the key that they repeat it, so that the
    first one can stop all the same (L15)."""

    async def unreadable(*_: object) -> None:
        raise StoreUnavailable("away")

    async with launch(tmp_path, ScriptedModel([[Say("half"), Hang()]])) as running:
        await running.submit("one", "r1")
        await running.watcher.until(lambda event: event.type == "message_delta")
        monkeypatch.setattr(running.workspace.store.reads, "canceled_with", unreadable)
        for key in ("k", repeated_key(own_key)):
            with pytest.raises(StoreUnavailable):
                await running.workspace.cancel_session(running.session_id, key=key)
        assert not (await running.workspace.run("r1")).cancel_requested
        made = await running.workspace.cancel_session(running.session_id, key=own_key)
        assert made == Canceled(canceled=("r1",))
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        await check_ends(running)


async def test_a_repeated_cancel_with_its_key_covers_nothing_newer(tmp_path: Path) -> None:
    """G5: the same key has the same mark and the same answer, however the session has gone on."""
    model = ScriptedModel([[Say("half"), Hang()], [Say("half"), Hang()], [Say("done")]])
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await running.watcher.until(lambda event: event.type == "message_delta")
        first = await running.workspace.cancel_session(running.session_id, key="k")
        assert first == Canceled(canceled=("r1",))
        await running.completed("r1")
        await running.submit("two", "r2")
        assert await running.workspace.cancel_session(running.session_id, key="k") == first
        assert await running.workspace.clear_queue(running.session_id, key="k") == Canceled(canceled=())
        assert await running.workspace.cancel_session(running.session_id, key="other") == Canceled(canceled=("r2",))
        assert (await running.completed("r2")).outcome is Outcome.CANCELED
        await check_ends(running)


async def test_a_keyed_cancel_of_an_idle_session_is_remembered_too(tmp_path: Path) -> None:
    """L2, G5: its answer may have been lost, and the next prompt came after it."""
    async with launch(tmp_path, ScriptedModel([[Say("untouched")]])) as running:
        assert await running.workspace.cancel_session(running.session_id, key="k") == Canceled(canceled=())
        gate = await running.held_actor()
        submit = asyncio.create_task(running.submit("one", "r1"))
        await running.posted(1)
        cancel = asyncio.create_task(running.workspace.cancel_session(running.session_id, key="k"))
        await running.posted(2)
        gate.open()
        await submit
        assert await cancel == Canceled(canceled=())
        assert (await running.completed("r1")).text == "untouched"
        await check_ends(running)


async def test_a_keyed_cancel_of_a_session_that_was_just_deleted_finds_none(tmp_path: Path) -> None:
    """Found by chaos: it got 500."""
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        actor = await running.workspace.sessions.get(running.session_id)
        await running.workspace.delete_session(running.session_id)
        with pytest.raises(SessionNotFound):
            await actor.cancel(key="k")
