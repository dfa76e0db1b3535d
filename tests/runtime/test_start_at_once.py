"""A prompt to an idle session is accepted and started in one commit. What comes in between finds it in one state."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from checks import check_ends, check_requests
from crash import RESUME, check_log, restarted
from running_app import TITLES_OFF, RunningApp, launch

from longboat.core.history import text_of
from longboat.errors import StoreUnavailable
from longboat.store.protocol import Unit
from longboat.testing import CallTool, Gate, Say, ScriptedModel, ScriptedTool, Step, Use
from longboat.wire.models import Canceled, FinishPart, FinishReason, Outcome, Role, RunState, TextPart
from longboat.wire.requests import RunShell


def hold_commit(running: RunningApp, held: Callable[[Unit], bool]) -> Gate:
    """Keep back the workspace's first unit that is so, and all that come after it, until the gate opens."""
    store, gate, waiting = running.workspace.store, Gate("commit"), list[Unit]()
    submit = store.submit
    running.held.append(gate)

    def slow(unit: Unit) -> "asyncio.Future[None]":
        if unit.workspace_id != running.workspace.id or not (waiting or held(unit)):
            return submit(unit)
        waiting.append(unit)

        async def later() -> None:
            await gate.arrive()
            await submit(unit)

        return asyncio.ensure_future(later())

    store.submit = slow  # type: ignore[method-assign]
    return gate


def says(text: bytes) -> Callable[[Unit], bool]:
    return lambda unit: any(text in body for entry in unit.entries for body in entry.bodies)


STARTED = says(b'"state":"active"')


async def test_a_prompt_is_answered_before_its_turn_does_anything(tmp_path: Path) -> None:
    """B1: the 202 does not wait for the turn."""
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        lineup, done = running.workspace.services.lineup, list[str]()

        async def noting(*args: object, **more: object) -> object:
            done.append("turn")
            return await lineup(*args, **more)  # type: ignore[arg-type]

        running.workspace.services.lineup = noting  # type: ignore[assignment, method-assign]
        accepted = await running.submit("go", "r1")
        done.append("answered")
        assert (accepted.state, accepted.position) == (RunState.ACCEPTED, 0)
        await running.completed("r1")
        assert done == ["answered", "turn"]


@pytest.mark.parametrize("whole", [True, False], ids=["the session", "the run"])
async def test_l3_t2_a_cancel_while_accept_and_start_are_committed_keeps_the_model_from_being_asked(
    tmp_path: Path, whole: bool
) -> None:
    model = ScriptedModel([[Say("next")]])
    async with launch(tmp_path, model) as running:
        gate = hold_commit(running, STARTED)
        submit = asyncio.create_task(running.submit("go", "r1"))
        await gate.reached()
        actor = running.actor
        cancel = asyncio.create_task(actor.cancel() if whole else actor.cancel_run("r1"))
        await running.posted(1)
        assert running.watcher.of("run") == []  # commit, then publish
        gate.open()
        assert (await submit).state is RunState.ACCEPTED
        answered = await cancel
        assert answered == Canceled(canceled=("r1",)) if whole else answered is not None
        await check_canceled(running, model)


async def test_l6_t2_a_cancel_right_after_the_answer_keeps_the_model_from_being_asked(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("next")]])
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1")
        assert await running.workspace.cancel_session(running.session_id) == Canceled(canceled=("r1",))
        await check_canceled(running, model)


async def check_canceled(running: RunningApp, model: ScriptedModel) -> None:
    """T2: the user's message once, an answer that was canceled, one end; and the next prompt is untouched."""
    complete = await running.completed("r1")
    assert complete.outcome is Outcome.CANCELED
    user, answer = await running.messages()
    assert (user.role, user.parts) == (Role.USER, (TextPart(text="go"),))
    assert (answer.role, answer.parts) == (Role.ASSISTANT, (FinishPart(reason=FinishReason.CANCELED),))
    assert complete.message_id == answer.id
    assert len(model.requests) == 0
    await running.submit("again", "r2")
    assert (await running.completed("r2")).text == "next"
    check_requests(model.requests)
    await check_ends(running)


async def test_l8_a_prompt_that_comes_while_another_is_committed_waits_for_it(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        gate = hold_commit(running, STARTED)
        first = asyncio.create_task(running.submit("one", "r1"))
        await gate.reached()
        second = asyncio.create_task(running.submit("two", "r2"))
        await running.posted(1)
        gate.open()
        assert (await first).seq < (await second).seq
        await running.completed("r2")
        assert [text_of(message) for message in await running.messages()] == ["one", "echo: one", "two", "echo: two"]
        await check_ends(running)


def refuse_commits(running: RunningApp, count: int) -> None:
    """Fail the next units of the workspace."""
    store, refused = running.workspace.store, list[Unit]()
    submit = store.submit

    def refuse(unit: Unit) -> "asyncio.Future[None]":
        if len(refused) == count:
            return submit(unit)
        refused.append(unit)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_exception(StoreUnavailable("no room"))
        return future

    store.submit = refuse  # type: ignore[method-assign]


async def test_l15_if_only_the_start_cannot_be_committed_the_run_is_accepted_and_enters_later(tmp_path: Path) -> None:
    model = ScriptedModel.echo()
    async with launch(tmp_path, model) as running:
        refuse_commits(running, 1)
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "echo: go"
        assert len(model.requests) == 1
        await check_ends(running)


async def test_l15_if_the_accept_cannot_be_committed_nothing_is_accepted_and_nothing_starts(tmp_path: Path) -> None:
    model = ScriptedModel.echo()
    async with launch(tmp_path, model) as running:
        refuse_commits(running, 2)
        with pytest.raises(StoreUnavailable):
            await running.submit("go", "r1")
        assert (running.actor.state.seqs, running.actor._loop.turn, await running.ledger()) == ({}, None, ())
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "echo: go"
        assert len(model.requests) == 1
        await check_ends(running)


# After a crash


@pytest.mark.parametrize("config", [TITLES_OFF, RESUME], ids=["interrupt", "resume"])
async def test_b6_a_run_of_which_only_the_prompt_is_on_disk_starts_again(tmp_path: Path, config: str) -> None:
    """It has done nothing: for the client it is as if it had only been accepted."""
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        gate = hold_commit(running, says(b'"role":"assistant"'))
        await running.submit("go", "r1")
        await gate.reached()
        model = ScriptedModel.echo()
        async with restarted(running, model, config=config) as again:
            assert (await again.workspace.run("r1", wait_s=60)).outcome is Outcome.END_TURN
            assert [text_of(message) for message in await again.messages()] == ["go", "echo: go"]
            assert len(model.requests) == 1
            await check_log(again)
        gate.open()


async def test_b6_a_command_of_a_person_that_had_not_begun_is_run(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        gate = hold_commit(running, says(b'"role":"assistant"'))
        await running.workspace.run_shell(running.session_id, RunShell(command="echo done", run_id="r1"))
        await gate.reached()
        async with restarted(running, ScriptedModel()) as again:
            assert (await again.workspace.run("r1", wait_s=60)).outcome is Outcome.END_TURN
            assert "done" in str((await again.messages())[-1])
            await check_log(again)
        gate.open()


async def test_b6_a_canceled_run_of_which_only_the_prompt_is_on_disk_stays_canceled(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([[Say("never")]])) as running:
        gate = hold_commit(running, says(b"run_complete"))
        await running.submit("go", "r1")
        await running.workspace.cancel_run("r1")
        await gate.reached()
        model = ScriptedModel.echo()
        async with restarted(running, model) as again:
            assert (await again.workspace.run("r1", wait_s=60)).outcome is Outcome.CANCELED
            assert len(model.requests) == 0
            await check_log(again)
        gate.open()


async def test_b6_a_run_whose_work_a_summary_replaced_has_begun(tmp_path: Path) -> None:
    """T8: after the summary there is no message of its own, and it must not run again where that is not wanted."""
    summaries: list[Unit] = []

    def follows_summary(unit: Unit) -> bool:
        found = bool(summaries)
        summaries.extend([unit] if any(write.query == "session_summary" for write in unit.writes) else [])
        return found

    steps: list[Step] = [[CallTool("look"), Use(input_tokens=127_000)], [Say("in short")], [Say("end")]]
    async with launch(tmp_path, ScriptedModel(steps), tools=[ScriptedTool("look")]) as running:
        held = hold_commit(running, follows_summary)
        await running.submit("go", "r1")
        await held.reached()
        model = ScriptedModel.echo()
        async with restarted(running, model) as again:
            assert (await again.workspace.run("r1", wait_s=60)).outcome is Outcome.INTERRUPTED
            assert len(model.requests) == 0
            await check_log(again)
