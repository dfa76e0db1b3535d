"""B4, B5: the server leaves. What runs may finish, what waits is kept, everybody is told, nobody hangs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
from checks import check_ends, check_requests, finish_of, locked_store
from crash import check_log, crashed
from running_app import Deaf, OneModel, RunningApp, launch, settings_in, watch

from longboat.core.history import text_of
from longboat.errors import ServerLeaving
from longboat.models.protocol import ModelRequest
from longboat.runtime.app import open_app
from longboat.testing import CallTool, Gate, Hang, Pause, Say, ScriptedModel, ScriptedTool, Step
from longboat.testing.scripted import last_prompt
from longboat.wire.models import FinishReason, Outcome, RunState
from longboat.wire.requests import CreateSession, EditRun, Submit

LONG = 3600.0


@asynccontextmanager
async def leaving(
    running: RunningApp, *, drain_s: float = LONG, hurry: asyncio.Event | None = None
) -> AsyncIterator["asyncio.Task[None]"]:
    """The server is on its way out and refuses prompts; the task ends when it is out."""
    task = asyncio.create_task(running.app.leave(drain_s=drain_s, hurry=hurry or asyncio.Event()))
    await running.actor.live.wait_until(lambda state: state.leaving)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_active_run_finishes_within_the_drain_and_streams_end_after_it(tmp_path: Path) -> None:
    """B5."""
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Say("All "), Pause(gate), Say("of it.")]])) as running:
        await running.submit("go", "r1")
        await gate.reached()
        async with leaving(running) as left:
            assert running.app.health().status == "leaving"
            gate.open()
            await left
        await running.watcher.ended.wait()
        assert running.watcher.events[-1].type == "run_complete"
        complete = running.watcher.events[-1].payload
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "All of it.")
        await check_ends(running)


async def test_a_run_that_outlasts_the_drain_is_interrupted_and_closed(tmp_path: Path) -> None:
    """B5, T3, T4: its words are kept, its end is on disk and on the stream before the stream ends."""
    model = ScriptedModel([[Say("So far."), CallTool("look", "{"), Hang()]])
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        await running.submit("go", "r1")
        await running.watcher.until(lambda event: event.type == "message_delta" and event.payload.text == "{")
        async with leaving(running, drain_s=0.01) as left:
            await left
        await running.watcher.ended.wait()
        complete = running.watcher.events[-1].payload
        assert (complete.run_id, complete.outcome, complete.text) == ("r1", Outcome.INTERRUPTED, "So far.")
        assert (complete.cancelled, bool(complete.error)) == (False, True)
        _, answer, _ = await running.messages()
        assert finish_of(answer).reason is FinishReason.INTERRUPTED
        await check_ends(running)
        session_id = running.session_id
    again_model = ScriptedModel.echo()
    async with launch(tmp_path, again_model, session_id=session_id) as running:
        assert [run.outcome for run in await running.ledger()] == [Outcome.INTERRUPTED]
        await running.submit("go on", "r2")
        await running.completed("r2")
        check_requests(again_model.requests)


async def test_a_hurry_before_every_session_knows_of_it_starts_nothing_that_waits(tmp_path: Path) -> None:
    """L11, B5: the second signal may come while the sessions are still being told."""
    model = ScriptedModel([[Say("one"), Hang()], [Say("two"), Hang()], [Say("three"), Hang()]])
    async with launch(tmp_path, model) as running:
        sessions = [
            running.session_id,
            *[(await running.workspace.create_session(CreateSession())).id for _ in range(2)],
        ]
        for session_id in sessions:
            for place in ("active", "queued"):
                await running.submit("go", f"{place}-{session_id}", session_id=session_id)
            await running.watcher.in_state(f"queued-{session_id}", "queued")
        await model.requests.wait(len(sessions))
        hurry = asyncio.Event()
        hurry.set()
        slow = asyncio.Event()
        running.post(slow.wait)  # the first session is busy, so it learns of it last
        left = asyncio.create_task(running.app.leave(drain_s=LONG, hurry=hurry))
        for session_id in sessions[1:]:
            await running.completed(f"active-{session_id}")
        slow.set()
        await left
        assert len(model.requests) == len(sessions)
        ends = [event.payload for event in running.watcher.events if event.type == "run_complete"]
        assert {end.run_id: end.outcome for end in ends} == {f"active-{each}": Outcome.INTERRUPTED for each in sessions}


@pytest.mark.parametrize("drain_s", [LONG, 0.01], ids=["the active run ends", "the active run is interrupted"])
async def test_what_is_queued_stays_queued_and_runs_in_order_after_the_next_start(
    tmp_path: Path, drain_s: float
) -> None:
    """L11, B5: nothing starts while the server leaves, whatever becomes of the active run."""
    gate = Gate()
    first = ScriptedModel([[Say("one"), Pause(gate)]])
    async with launch(tmp_path, first) as running:
        other = (await running.workspace.create_session(CreateSession())).id
        for run_id in ("r1", "r2", "r3"):
            await running.submit(f"prompt {run_id}", run_id)
        await running.watcher.in_state("r3", "queued")
        await gate.reached()
        async with leaving(running, drain_s=drain_s) as left:
            if drain_s == LONG:
                gate.open()
            await left
        assert [run.state for run in await running.ledger()] == [RunState.FINISHED, RunState.QUEUED, RunState.QUEUED]
        assert len(first.requests) == 1
        session_id = running.session_id
    second = ScriptedModel.echo()
    async with launch(tmp_path, second, session_id=session_id) as running:
        for run_id in ("r2", "r3"):
            assert (await running.workspace.run(run_id, wait_s=60)).outcome is Outcome.END_TURN
        assert [last_prompt(request) for request in second.requests] == ["prompt r2", "prompt r3"]
        await running.workspace.delete_session(other)
        await check_log(running)


async def test_new_prompts_are_refused_while_cancels_edits_and_streams_go_on(tmp_path: Path) -> None:
    """B5."""
    async with launch(tmp_path, ScriptedModel([[Say("busy"), Hang()]])) as running:
        await running.submit("one", "r1")
        await running.submit("two", "r2")
        await running.submit("three", "r3")
        await running.watcher.in_state("r3", "queued")
        other = (await running.workspace.create_session(CreateSession())).id
        async with leaving(running) as left, watch(running.workspace, client_id="late") as late:
            for session_id in (running.session_id, other):
                with pytest.raises(ServerLeaving):
                    await running.workspace.submit(Submit(session_id=session_id, prompt="four"))
            assert (await running.workspace.edit_run("r3", EditRun(prompt="edited"))).prompt == "edited"
            assert (await running.workspace.cancel_run("r2")).run_id == "r2"
            assert (await late.completed("r2")).cancelled
            await running.workspace.cancel_run("r1")
            await left
            await late.ended.wait()
            assert late.events[-1].payload == (await running.completed("r1"))
        states = {run.run_id: (run.state, run.outcome) for run in await running.ledger()}
        assert states == {
            "r1": (RunState.FINISHED, Outcome.CANCELED),
            "r2": (RunState.FINISHED, Outcome.CANCELED),
            "r3": (RunState.QUEUED, None),
        }


async def test_hurry_skips_the_drain(tmp_path: Path) -> None:
    """B5: a second signal."""
    hurry = asyncio.Event()
    async with launch(tmp_path, ScriptedModel([[Say("slow"), Hang()]])) as running:
        await running.submit("go", "r1")
        await running.watcher.until(lambda event: event.type == "message_delta")
        async with leaving(running, hurry=hurry) as left:
            assert not left.done()
            hurry.set()
            await left
        assert (await running.completed("r1")).outcome is Outcome.INTERRUPTED
        await check_ends(running)


async def test_a_tool_that_ignores_cancellation_does_not_hold_the_exit(tmp_path: Path) -> None:
    """B5: out within drain + 5 s; the run stays active on disk, and the next start settles it (B6)."""
    gate = Gate()
    tool = Deaf("dig", gate=gate)
    async with launch(tmp_path, ScriptedModel([[CallTool("dig")]]), tools=[tool]) as running:
        session_id = running.session_id
        await running.submit("go", "r1")
        await tool.wait_calls(1)
        async with asyncio.timeout(0.1 + 5):
            await running.app.leave(drain_s=0.1, hurry=asyncio.Event())
        await running.watcher.ended.wait()
        assert running.watcher.terminals("r1") == []
        assert tool.canceled >= 1
    gate.open()
    async with launch(tmp_path, ScriptedModel.echo(), session_id=session_id, tools=[tool]) as running:
        assert [run.outcome for run in await running.ledger()] == [Outcome.INTERRUPTED]
        await running.submit("and now?", "r2")
        await running.completed("r2")
        await check_log(running)


async def test_a_workspace_that_opens_during_the_drain_is_left_in_order_too(tmp_path: Path) -> None:
    """B5: its streams end cleanly, it takes no prompts."""
    gate = Gate()
    (tmp_path / "second").mkdir()
    async with launch(tmp_path, ScriptedModel([[Pause(gate), Say("done")]])) as running:
        await running.submit("go", "r1")
        await gate.reached()
        async with leaving(running) as left:
            second, _ = await running.app.join(str(tmp_path / "second"), None)
            async with watch(second, client_id="late") as late:
                session = await second.create_session(CreateSession())
                with pytest.raises(ServerLeaving):
                    await second.submit(Submit(session_id=session.id, prompt="go"))
                gate.open()
                await left
                await late.ended.wait()
            assert late.events[-1].payload.id == session.id


async def test_runs_of_all_workspaces_get_the_same_drain(tmp_path: Path) -> None:
    """B7: one that hangs does not take the drain from another that finishes."""
    gate = Gate()

    def answer(request: ModelRequest) -> Step:
        return [Say("slow"), Hang()] if last_prompt(request) == "hang" else [Pause(gate), Say("done")]

    (tmp_path / "second").mkdir()
    async with launch(tmp_path, ScriptedModel(answer)) as running:
        second, _ = await running.app.join(str(tmp_path / "second"), None)
        session = await second.create_session(CreateSession())
        async with watch(second, client_id="second") as watcher:
            hurry = asyncio.Event()
            await running.submit("hang", "r1")
            await running.watcher.until(lambda event: event.type == "message_delta")
            await second.submit(Submit(session_id=session.id, prompt="go", run_id="r2"))
            await gate.reached()
            async with leaving(running, hurry=hurry) as left:
                gate.open()
                assert (await watcher.completed("r2")).outcome is Outcome.END_TURN
                assert not left.done()
                hurry.set()
                await left
                await watcher.ended.wait()
        assert (await running.completed("r1")).outcome is Outcome.INTERRUPTED


async def test_leaving_an_idle_server_ends_its_streams_and_may_be_asked_twice(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        await running.submit("hello", "r1")
        await running.completed("r1")
        for _ in range(2):
            await running.app.leave(drain_s=LONG, hurry=asyncio.Event())
        await running.watcher.ended.wait()
        assert [text_of(message) for message in await running.messages()] == ["hello", "echo: hello"]


async def test_the_end_of_the_app_interrupts_what_still_runs(tmp_path: Path) -> None:
    """B4: terminal events are in the log before the store closes, even when nobody asked the app to leave."""
    async with launch(tmp_path, ScriptedModel([[Say("mid"), Hang()]])) as running:
        session_id = running.session_id
        await running.submit("go", "r1")
        await running.watcher.until(lambda event: event.type == "message_delta")
    async with launch(tmp_path, ScriptedModel(), session_id=session_id) as running:
        reader = await check_log(running)
        (complete,) = reader.terminals("r1")
        assert (complete.outcome, complete.text) == (Outcome.INTERRUPTED, "mid")
        terminal = next(event for event in reader.events if event.type == "run_complete")
        assert terminal.cursor is not None
        assert terminal.cursor.split("/")[1] == "1", "written by the server that left"


async def test_a_server_that_is_stopped_before_it_is_open_begins_nothing(tmp_path: Path) -> None:
    """B5: what was active stays as the crash left it and what was queued stays queued, both for the next start."""
    async with launch(tmp_path, ScriptedModel([[Say("mid"), Hang()]])) as running:
        await running.submit("go", "r1")
        await running.watcher.until(lambda event: event.type == "message_delta")
        await running.submit("later", "r2")
        await running.watcher.in_state("r2", "queued")
        place = await crashed(running)
    model = ScriptedModel.echo()
    stop = asyncio.Event()
    stop.set()
    with pytest.raises(ServerLeaving):
        async with open_app(settings_in(place), models=OneModel(model), stop=stop):
            pass
    assert model.requests == []
    async with launch(place, model, session_id=running.session_id) as again:
        assert (await again.workspace.run("r2", wait_s=60)).outcome is Outcome.END_TURN
        assert (await again.workspace.run("r1")).outcome is Outcome.INTERRUPTED
        await check_log(again)


async def test_a_locked_store_does_not_hold_the_exit(tmp_path: Path) -> None:
    """B5: out in time though nothing can be written; what could not be told is settled by the next start (B6)."""
    with ExitStack() as held:
        async with launch(tmp_path, ScriptedModel([[Say("mid"), Hang()]])) as running:
            await running.submit("go", "r1")
            await running.watcher.until(lambda event: event.type == "message_delta")
            held.enter_context(locked_store(running))
            async with asyncio.timeout(5):
                await running.app.leave(drain_s=0, hurry=asyncio.Event())
            assert running.watcher.terminals("r1") == []
    async with launch(tmp_path, ScriptedModel.echo(), session_id=running.session_id) as again:
        assert (await again.workspace.run("r1", wait_s=60)).outcome is Outcome.INTERRUPTED
        await check_log(again)


async def test_l12_a_cancel_that_comes_when_the_workspace_is_closed_is_refused_and_not_answered_for_nothing(
    tmp_path: Path,
) -> None:
    """Found by chaos: a fresh workspace, opened for the request, knew nothing of the queued run, said 200 and canceled
    nothing; the run then ran after the next start."""
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Say("one"), Pause(gate)]])) as running:
        for run_id in ("r1", "r2"):
            await running.submit(f"prompt {run_id}", run_id)
        await running.watcher.in_state("r2", "queued")
        async with leaving(running, drain_s=0.01) as left:
            await left
        with pytest.raises(ServerLeaving):
            await (await running.app.workspace(running.workspace.id)).cancel_session(running.session_id)
