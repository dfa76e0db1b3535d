"""D7, L15: a cancel that cannot be written stops what it covers all the same, and is written when there is room."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
from bench import WriterGate, heard
from checks import check_ends, locked_store
from crash import RESUME, crashed
from running_app import TITLES_OFF, Deaf, RunningApp, launch

from longboat.backoff import Backoff
from longboat.core.tool import ToolSpec
from longboat.errors import CancelNotDurable, StoreUnavailable
from longboat.models.protocol import ModelEvent, ModelRequest, TextDelta
from longboat.runtime.ownership import NODE_KEY
from longboat.runtime.workspace.workspace import Workspace
from longboat.store.protocol import Unit
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel, ScriptedTool
from longboat.tools.context import ToolContext
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.wire.ids import RETRY_KEY, repeated_key
from longboat.wire.models import Canceled, Delivery, Outcome, RunState

Cancel = Callable[[Workspace, str], Awaitable[object]]
CANCELS: dict[str, Cancel] = {
    "session": lambda workspace, session_id: workspace.cancel_session(session_id, "ann"),
    "run": lambda workspace, _: workspace.cancel_run("r1", "ann"),
}
by_session_and_by_run = pytest.mark.parametrize("cancel", CANCELS.values(), ids=CANCELS)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longboat.runtime.store_retry.BACKOFF", Backoff(base_s=0.01, factor=1.0))


async def cancel_refused(running: RunningApp, cancel: Cancel = CANCELS["session"]) -> None:
    with pytest.raises(CancelNotDurable, match="was stopped, but the cancel could not be saved") as refused:
        await cancel(running.workspace, running.session_id)
    assert refused.value.code == "cancel_not_durable"


def a_try_to_write(running: RunningApp) -> asyncio.Event:
    """Set once the store has refused a unit from now on."""

    def refused(_: Unit, error: Exception | None) -> bool:
        return isinstance(error, StoreUnavailable)

    return heard(running.workspace.store, refused)


class Endless:
    """A tool that works until it is canceled."""

    spec = ToolSpec(name="work", description="", schema={"type": "object"})

    def __init__(self) -> None:
        self.started, self.ended = asyncio.Event(), asyncio.Event()

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        self.started.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.ended.set()
        raise AssertionError("nobody answers")


class Streaming(ScriptedModel):
    """A model whose first answer never ends by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.closed = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        async def play() -> AsyncIterator[ModelEvent]:
            yield TextDelta("half")
            self.asked.set()
            await asyncio.get_running_loop().create_future()

        try:
            yield play()
        finally:
            self.closed.set()


@by_session_and_by_run
async def test_d7_l15_a_cancel_that_cannot_be_written_ends_the_tool_at_once_and_the_run_once_it_can(
    tmp_path: Path, cancel: Cancel
) -> None:
    tool = Endless()
    model = ScriptedModel([[CallTool("work")], [Say("never asked")]])
    async with launch(tmp_path, model, tools=[tool]) as running:
        await running.submit("go", "r1")
        await tool.started.wait()
        with locked_store(running):
            again = a_try_to_write(running)
            await cancel_refused(running, cancel)
            await tool.ended.wait()
            await again.wait()
            run = await running.workspace.run("r1")
            assert (run.state, run.cancel_requested, running.watcher.terminals("r1")) == (RunState.ACTIVE, False, [])
        complete = await running.completed("r1")
        assert (complete.outcome, complete.error) == (Outcome.CANCELED, "")
        run = await running.workspace.run("r1")
        assert (run.cancel_requested, run.canceled_by) == (True, "ann")
        assert len(model.requests) == 1
        await check_ends(running)


@by_session_and_by_run
async def test_d7_l15_a_cancel_that_cannot_be_written_closes_the_models_stream(tmp_path: Path, cancel: Cancel) -> None:
    model = Streaming()
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1")
        await model.asked.wait()
        with locked_store(running):
            await cancel_refused(running, cancel)
            await model.closed.wait()
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.CANCELED, "half")
        await check_ends(running)


async def test_d7_l15_what_is_accepted_after_the_request_is_not_covered_by_a_cancel_that_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark is fixed at the time of the request. Nobody else retries here: the next prompt itself writes it."""
    monkeypatch.setattr("longboat.runtime.store_retry.BACKOFF", Backoff(base_s=3600.0))
    gate = Gate()
    tool = Deaf("work", gate=gate)
    async with launch(tmp_path, ScriptedModel([[CallTool("work")], [Say("mine")]]), tools=[tool]) as running:
        await running.submit("one", "r1")
        await gate.reached()
        await running.submit("two", "r2")
        await running.watcher.in_state("r2", "queued")
        with locked_store(running):
            await cancel_refused(running)
            with pytest.raises(StoreUnavailable):
                await running.submit("refused", "r0")
        await running.submit("three", "r3")
        assert (await running.completed("r2")).outcome is Outcome.CANCELED
        gate.open()
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        assert (await running.completed("r3")).text == "mine"
        assert [run.run_id for run in await running.ledger()] == ["r1", "r2", "r3"]
        await check_ends(running)


async def test_d7_e1_repeated_cancels_end_each_run_once(tmp_path: Path) -> None:
    tool = Endless()
    async with launch(tmp_path, ScriptedModel([[CallTool("work")], [Say("next")]]), tools=[tool]) as running:
        await running.submit("one", "r1")
        await tool.started.wait()
        await running.submit("two", "r2")
        await running.watcher.in_state("r2", "queued")
        with locked_store(running):
            for cancel in (*CANCELS.values(), *CANCELS.values()):
                await cancel_refused(running, cancel)
        answer = await running.workspace.cancel_session(running.session_id)
        assert set(answer.canceled) <= {"r1", "r2"}
        assert [(await running.completed(run_id)).outcome for run_id in ("r1", "r2")] == [Outcome.CANCELED] * 2
        await running.submit("three", "r3")
        assert (await running.completed("r3")).text == "next"
        await check_ends(running)


async def test_d7_a_cancel_of_a_queued_run_leaves_the_active_turn_alone_and_is_written_later(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[CallTool("work")], [Say("done")]])
    async with launch(tmp_path, model, tools=[ScriptedTool("work", gate=gate)]) as running:
        await running.submit("one", "r1")
        await gate.reached()
        await running.submit("two", "r2")
        await running.watcher.in_state("r2", "queued")
        with locked_store(running):
            with pytest.raises(CancelNotDurable):
                await running.workspace.cancel_run("r2")
            gate.open()
            await model.requests.wait(2)
        assert (await running.completed("r2")).outcome is Outcome.CANCELED
        assert (await running.completed("r1")).text == "done"
        await check_ends(running)


async def test_d7_l9_a_prompt_whose_cancel_is_not_written_yet_steers_no_step(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[CallTool("work")], [Say("done")]])
    async with launch(tmp_path, model, tools=[ScriptedTool("work", gate=gate)]) as running:
        await running.submit("one", "r1")
        await gate.reached()
        steer = (await running.submit("not this")).run_id
        await running.watcher.in_state(steer, "queued")
        with locked_store(running):
            with pytest.raises(CancelNotDurable):
                await running.workspace.cancel_run(steer)
            tried = a_try_to_write(running)
            gate.open()
            await tried.wait()
        assert (await running.completed(steer)).outcome is Outcome.CANCELED
        assert (await running.completed("r1")).text == "done"
        assert "not this" not in str(model.requests[1].messages)
        await check_ends(running)


async def test_d7_a_queue_that_cannot_be_cleared_is_cleared_later(tmp_path: Path) -> None:
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Pause(gate), Say("done")]])) as running:
        await running.submit("one", "r1")
        await gate.reached()
        await running.submit("two", "r2")
        await running.watcher.in_state("r2", "queued")
        with locked_store(running), pytest.raises(CancelNotDurable):
            await running.workspace.clear_queue(running.session_id)
        assert (await running.completed("r2")).outcome is Outcome.CANCELED
        gate.open()
        assert (await running.completed("r1")).outcome is Outcome.END_TURN
        await check_ends(running)


async def test_d7_g5_a_keyed_cancel_that_was_written_later_covers_nothing_newer_when_it_is_repeated(
    tmp_path: Path,
) -> None:
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Pause(gate), Say("half")], [Say("done")]])) as running:
        await running.submit("one", "r1")
        await gate.reached()
        with locked_store(running), pytest.raises(CancelNotDurable):
            await running.workspace.cancel_session(running.session_id, key="k")
        await running.submit("two", "r2")
        assert await running.workspace.cancel_session(running.session_id, key="k") == Canceled(canceled=("r1",))
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        assert (await running.completed("r2")).text == "done"
        await check_ends(running)


async def test_d7_g5_a_keyed_cancel_stops_the_turn_although_an_earlier_cancel_is_not_written_yet(
    tmp_path: Path,
) -> None:
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Pause(gate), Say("half")], [Say("done")]])) as running:
        await running.submit("one", "r1")
        await gate.reached()
        await running.submit("two", "r2", delivery=Delivery.QUEUE)
        with locked_store(running):
            with pytest.raises(CancelNotDurable):
                await running.workspace.clear_queue(running.session_id, key="k")
            for _ in range(2):
                with pytest.raises(CancelNotDurable):
                    await running.workspace.cancel_session(running.session_id, key="k")
        both = Canceled(canceled=("r1", "r2"))
        assert await running.workspace.cancel_session(running.session_id, key="k") == both
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        assert (await running.completed("r2")).outcome is Outcome.CANCELED
        await check_ends(running)


async def test_d7_l2_where_there_is_nothing_to_cancel_a_failing_store_does_not_matter(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        with locked_store(running):
            assert await running.workspace.cancel_session(running.session_id) == Canceled(canceled=())
            assert (await running.workspace.cancel_run("r1")).outcome is Outcome.END_TURN


@pytest.mark.parametrize("config", [TITLES_OFF, RESUME], ids=["interrupt", "resume"])
async def test_d7_b6_a_cancel_that_a_kill_kept_from_being_written_is_not_promised(tmp_path: Path, config: str) -> None:
    """It was answered 503. The next start does what it does with any run that was active."""
    tool = Endless()
    async with launch(tmp_path, ScriptedModel([[CallTool("work")]]), tools=[tool]) as running:
        await running.submit("go", "r1")
        await tool.started.wait()
        before = await crashed(running)  # what is on disk cannot change while the store fails
        with locked_store(running):
            await cancel_refused(running)
            await tool.ended.wait()
            model = ScriptedModel([[Say("gone on")]])
            async with launch(before, model, config=config, session_id=running.session_id) as again:
                ended = await again.workspace.run("r1", wait_s=30)
                assert ended.outcome is (Outcome.END_TURN if config == RESUME else Outcome.INTERRUPTED)
        assert (await running.completed("r1")).outcome is Outcome.CANCELED


async def test_d7_a_server_that_stops_before_the_cancel_could_be_written_does_not_wait_for_it(tmp_path: Path) -> None:
    """B5: it leaves in time; the next start settles the run."""
    tool = Endless()
    with ExitStack() as until_it_is_gone:
        async with launch(tmp_path, ScriptedModel([[CallTool("work")]]), tools=[tool]) as running:
            await running.submit("go", "r1")
            await tool.started.wait()
            until_it_is_gone.enter_context(locked_store(running))
            await cancel_refused(running)
            await running.app.leave(drain_s=0, hurry=asyncio.Event())
    async with launch(tmp_path, ScriptedModel.echo(), session_id=running.session_id) as again:
        assert (await again.workspace.run("r1", wait_s=30)).outcome is Outcome.INTERRUPTED


async def test_l15_a_cancel_that_is_being_saved_when_the_workspace_is_lost_is_left_to_the_next_owner(
    tmp_path: Path,
) -> None:
    tool = Endless()
    async with launch(tmp_path, ScriptedModel([[CallTool("work")]]), tools=[tool]) as running:
        await running.submit("go", "r1")
        await tool.started.wait()
        with locked_store(running):
            await cancel_refused(running)
            gate = WriterGate(running.workspace.store)
            await gate.reached()
        workspace = running.workspace
        workspace.close()
        try:
            await workspace.aclose()
            (cancel,) = workspace.sessions.unsaved_cancels[running.session_id]
            assert (cancel.run_ids, cancel.by) == ({"r1"}, "ann")
        finally:
            gate.open()


@pytest.mark.parametrize("key", [None, RETRY_KEY + "1"])
@pytest.mark.parametrize("waits", [True, False], ids=["behind another command", "for its own commit"])
async def test_l15_a_cancel_stops_what_it_covers_while_the_store_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: bool, key: str | None
) -> None:
    monkeypatch.setattr("longboat.runtime.session.actor.SLOW_STORE_S", 0.0)
    tool = Endless()
    async with launch(tmp_path, ScriptedModel([[CallTool("work")], [Say("newer")]]), tools=[tool]) as running:
        await running.submit("go", "r1")
        await tool.started.wait()
        gate = WriterGate(running.workspace.store)
        try:
            sent = []
            if waits:
                sent.append(asyncio.create_task(running.submit("two", "r2")))
                await gate.reached()
            sent.append(asyncio.create_task(running.workspace.cancel_session(running.session_id, "ann", key=key)))
            await tool.ended.wait()
            sent.append(asyncio.create_task(running.submit("three", "r3")))
        finally:
            gate.open()
        await asyncio.gather(*sent)
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        assert (await running.workspace.run("r1")).canceled_by == "ann"
        if waits:
            assert (await running.completed("r2")).outcome is Outcome.CANCELED
        assert (await running.completed("r3")).text == "newer"
        await check_ends(running)


@pytest.mark.parametrize("key", ["mine", RETRY_KEY + "1", NODE_KEY + "1"])
async def test_l2_g5_while_the_store_does_not_answer_a_repeated_cancel_does_not_stop_what_is_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """It may be as old as its session, and answered by an earlier owner."""
    monkeypatch.setattr("longboat.runtime.session.actor.SLOW_STORE_S", 0.0)
    held = Gate()
    async with launch(tmp_path, ScriptedModel([[Pause(held), Say("done")], [Say("second")]])) as running:
        cancel = running.workspace.cancel_session
        assert await cancel(running.session_id, key=key) == Canceled(canceled=())
        await running.submit("go", "r1")
        await held.reached()
        gate = WriterGate(running.workspace.store)
        try:
            waiting = asyncio.create_task(running.submit("two", "r2"))
            await gate.reached()
            key = key if key == "mine" else repeated_key(key)
            repeated = asyncio.create_task(cancel(running.session_id, key=key))
            # A timer of no time would have gone off before a read from another thread returns.
            assert (await running.workspace.run("r1")).state is RunState.ACTIVE
            held.open()
        finally:
            gate.open()
        await waiting
        assert await repeated == Canceled(canceled=())
        assert (await running.completed("r1")).text == "done"
        assert (await running.completed("r2")).outcome is Outcome.END_TURN
        await check_ends(running)


async def test_d7_a_store_that_fails_and_recovers_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="longboat.store.publishing")
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        with locked_store(running):
            for _ in range(3):
                with pytest.raises(StoreUnavailable):
                    await running.submit("refused", "r1")
        await running.submit("hello", "r1")
        await running.completed("r1")
    said = [record.getMessage() for record in caplog.records if record.name == "longboat.store.publishing"]
    assert len(said) == 2
    assert "cannot be written: database is locked" in said[0]
    assert "can be written again" in said[1]
