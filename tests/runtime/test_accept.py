"""Accept: what is refused leaves no trace, what is answered is durable, and a run_id names one run for ever."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from checks import check_ends, full_disk, locked_store
from running_app import RunningApp, launch

from longboat.errors import (
    BadInput,
    EmptyPrompt,
    OwnerLost,
    RunIdTaken,
    ServerLeaving,
    SessionMissing,
    SessionNotFound,
    StoreUnavailable,
    WorkspaceClosing,
)
from longboat.testing import Gate, Hang, Pause, Say, ScriptedModel
from longboat.wire.models import Accepted, Attachment, Delivery, FilePart, Outcome, RunState, TextPart
from longboat.wire.requests import CreateSession, EditRun, UpdateSession


def attached(
    text: str | None = None, data: str | None = None, media_type: str = "text/plain"
) -> tuple[Attachment, ...]:
    return (Attachment(name="notes.txt", media_type=media_type, text=text, data=data),)


async def log_end(running: RunningApp) -> int:
    rows = await running.app._store.read(lambda reader: reader.fetch("event_newest", workspace_id=running.workspace.id))
    return int(rows[0]["last"])


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"prompt": ""}, EmptyPrompt, "empty_prompt"),
    ({"prompt": " \n\t "}, EmptyPrompt, "empty_prompt"),
    ({"prompt": "", "attachments": attached(text="  ")}, EmptyPrompt, "empty_prompt"),
    ({"prompt": "", "attachments": attached(data="aGk=")}, EmptyPrompt, "empty_prompt"),
    ({"prompt": "x", "session_id": ""}, SessionMissing, "session_missing"),
    ({"prompt": "x", "session_id": "none-such"}, SessionNotFound, "session_not_found"),
    ({"prompt": "x", "model": "no-slash"}, BadInput, "bad_model"),
    ({"prompt": "x", "attachments": attached()}, BadInput, "bad_attachment"),
    ({"prompt": "x", "attachments": attached(text="a", data="aGk=")}, BadInput, "bad_attachment"),
    ({"prompt": "x", "attachments": attached(data="not base64!")}, BadInput, "bad_attachment"),
    ({"prompt": "x", "attachments": attached(data="iVBORw0KGgo=", media_type="image/png")}, BadInput, "bad_attachment"),
    ({"prompt": "x", "run_id": ""}, BadInput, "bad_run_id"),
    ({"prompt": "x", "run_id": "has space"}, BadInput, "bad_run_id"),
    ({"prompt": "x", "run_id": "r" * 129}, BadInput, "bad_run_id"),
    ({"prompt": "x", "run_id": "r1\n"}, BadInput, "bad_run_id"),
    ({"prompt": "x", "client_id": "two words"}, BadInput, "bad_client_id"),
]


@pytest.mark.parametrize(("request_", "error", "code"), REFUSED)
async def test_a_refused_prompt_leaves_no_trace(
    tmp_path: Path, request_: dict[str, Any], error: type[Exception], code: str
) -> None:
    """T1, B1: refused at once, with nothing in the ledger, the log or the transcript, and the next one works."""
    model = ScriptedModel([[Say("fine")]])
    async with launch(tmp_path, model) as running:
        before = await log_end(running)
        with pytest.raises(error) as refusal:
            await running.submit(**request_)
        assert refusal.value.code == code  # type: ignore[attr-defined]
        assert await running.ledger() == ()
        assert await log_end(running) == before
        assert await running.messages() == ()
        assert not running.actor.state.runs
        await running.submit("now a good one", "good")
        assert (await running.completed("good")).text == "fine"
        await check_ends(running)


async def test_a_text_attachment_is_a_prompt(tmp_path: Path) -> None:
    """T1: text or a text attachment is enough."""
    model = ScriptedModel([[Say("read")]])
    async with launch(tmp_path, model) as running:
        await running.submit("", "r1", attachments=attached(text="the notes"))
        assert (await running.completed("r1")).text == "read"
        part = FilePart(name="notes.txt", media_type="text/plain", text="the notes")
        assert (await running.messages())[0].parts == (part,)
        assert model.requests[0].messages[0].parts == (part,)


async def test_submit_answers_while_the_turn_hangs(tmp_path: Path) -> None:
    """B1: it never waits for the turn; the ledger has the run when it answers."""
    async with launch(tmp_path, ScriptedModel([[Hang()]])) as running:
        accepted = await running.submit("go", "r1")
        (run,) = await running.ledger()
        assert accepted == Accepted(run_id="r1", seq=run.seq, state=RunState.ACCEPTED, position=0)
        second = await running.submit("me too", "r2")
        assert second.seq > accepted.seq
        assert second.position == 1


async def test_delivery_depends_on_who_named_the_run(tmp_path: Path) -> None:
    """L10, L14: queue with a run_id, steer without, what the client says in either case; and none is untracked."""
    gate = Gate()
    async with launch(
        tmp_path, ScriptedModel([[Pause(gate), Say("a")], [Say("b")], [Say("c")], [Say("d")]])
    ) as running:
        await running.submit("own name", "own")
        await gate.reached()
        minted = (await running.submit("minted name")).run_id
        await running.submit("own, steer", "own-steer", delivery=Delivery.STEER)
        asked = (await running.submit("minted, queue", delivery=Delivery.QUEUE)).run_id
        deliveries = {run.run_id: run.delivery for run in await running.ledger()}
        assert deliveries == {
            "own": Delivery.QUEUE,
            minted: Delivery.STEER,
            "own-steer": Delivery.STEER,
            asked: Delivery.QUEUE,
        }
        gate.open()
        await running.completed(asked)
        await check_ends(running)


async def test_a_server_that_leaves_and_a_workspace_that_closes_refuse(tmp_path: Path) -> None:
    """B1: each with its own answer, and no trace."""
    async with launch(tmp_path, ScriptedModel()) as running:
        running.workspace.closing = True
        with pytest.raises(WorkspaceClosing):
            await running.submit("go", "r1")
        running.workspace.closing = False
        running.workspace.sessions.refuse()
        with pytest.raises(ServerLeaving):
            await running.submit("go", "r1")
        assert await running.ledger() == ()


# The same run_id again


async def test_the_same_submit_again_is_the_same_run(tmp_path: Path) -> None:
    """B1: while it is active, while it is queued, after it was edited and after it finished: nothing new."""
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Pause(gate), Say("a")], [Say("b")]])) as running:
        first = await running.submit("one", "r1")
        await gate.reached()
        again = await running.submit("one", "r1")
        assert again == Accepted(run_id="r1", seq=first.seq, state=RunState.ACTIVE, position=0)
        queued = await running.submit("two", "r2")
        await running.watcher.in_state("r2", "queued")
        await running.workspace.edit_run("r2", EditRun(prompt="two, but better"))
        again = await running.submit("two", "r2")
        assert again == Accepted(run_id="r2", seq=queued.seq, state=RunState.QUEUED, position=1)
        with pytest.raises(RunIdTaken):  # what counts is the prompt as it was submitted
            await running.submit("two, but better", "r2")
        gate.open()
        await running.completed("r2")
        again = await running.submit("two", "r2")
        assert again == Accepted(run_id="r2", seq=queued.seq, state=RunState.FINISHED, position=None)
        with pytest.raises(RunIdTaken):
            await running.submit("another", "r1")
        assert [run.run_id for run in await running.ledger()] == ["r1", "r2"]
        await check_ends(running)


async def test_a_run_id_with_other_attachments_is_taken(tmp_path: Path) -> None:
    """B1: attachments are part of the prompt."""
    async with launch(tmp_path, ScriptedModel([[Say("a")]])) as running:
        await running.submit("read", "r1", attachments=attached(text="one"))
        await running.completed("r1")
        await running.submit("read", "r1", attachments=attached(text="one"))
        with pytest.raises(RunIdTaken):
            await running.submit("read", "r1", attachments=attached(text="two"))
        await check_ends(running)


async def test_a_run_id_belongs_to_one_session(tmp_path: Path) -> None:
    """B1: unique in the workspace."""
    async with launch(tmp_path, ScriptedModel([[Say("a")]])) as running:
        other = await running.workspace.create_session(CreateSession())
        await running.submit("one", "r1")
        await running.completed("r1")
        with pytest.raises(RunIdTaken):
            await running.submit("one", "r1", session_id=other.id)
        assert await running.messages(other.id) == ()
        await check_ends(running)


async def test_many_submits_of_one_run_at_once_make_one_run(tmp_path: Path) -> None:
    """B1: concurrently."""
    async with launch(tmp_path, ScriptedModel([[Say("once")]])) as running:
        answers = await asyncio.gather(*[running.submit("one", "r1") for _ in range(20)])
        assert {answer.seq for answer in answers} == {answers[0].seq}
        await running.completed("r1")
        assert len(await running.ledger()) == 1
        assert len(await running.messages()) == 2
        await check_ends(running)


async def test_two_sessions_race_for_a_run_id_and_one_wins(tmp_path: Path) -> None:
    """B1: concurrently on two sessions, forced into one group commit; the loser's session is untouched."""
    async with launch(tmp_path, ScriptedModel([[Say("won")], [Say("next")]])) as running:
        other = (await running.workspace.create_session(CreateSession())).id
        answers = await asyncio.gather(
            running.submit("one", "r1"), running.submit("one", "r1", session_id=other), return_exceptions=True
        )
        assert sorted(type(answer).__name__ for answer in answers) == ["Accepted", "RunIdTaken"]
        await running.completed("r1")
        (run,) = await running.ledger()
        loser = other if run.session_id == running.session_id else running.session_id
        assert await running.messages(loser) == ()
        await running.submit("next", "r2", session_id=loser)
        assert (await running.completed("r2")).text == "next"


# Callers that vanish


async def test_a_caller_that_vanishes_leaves_the_accept_whole(tmp_path: Path) -> None:
    """B2: the run belongs to the workspace, from the moment it was asked for."""
    async with launch(tmp_path, ScriptedModel([[Say("done anyway")]])) as running:
        gate = await running.held_actor()
        caller = asyncio.create_task(running.submit("go", "r1"))
        await running.posted(1)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        gate.open()
        assert (await running.completed("r1")).text == "done anyway"
        await check_ends(running)


async def test_a_cancel_whose_caller_vanishes_still_cancels(tmp_path: Path) -> None:
    """B2: a command once taken runs to its end."""
    async with launch(tmp_path, ScriptedModel([[Hang()]])) as running:
        await running.submit("go", "r1")
        await running.watcher.in_state("r1", "active")
        gate = await running.held_actor()
        caller = asyncio.create_task(running.workspace.cancel_session(running.session_id))
        await running.posted(1)
        caller.cancel()
        gate.open()
        assert (await running.completed("r1")).cancelled
        await check_ends(running)


async def test_who_asks_a_closing_workspace_is_not_left_waiting(tmp_path: Path) -> None:
    """B4: the end of the workspace refuses what waits. What it cuts short may be in the store already (G5)."""
    async with launch(tmp_path, ScriptedModel()) as running:
        gate = Gate()
        working = asyncio.create_task(running.behind_all(gate.arrive))
        await gate.reached()
        waiting = asyncio.create_task(running.actor.update(UpdateSession(title="too late")))
        await running.posted(1)
        await running.workspace.aclose()
        ends = await asyncio.gather(working, waiting, return_exceptions=True)
        assert [type(end) for end in ends] == [OwnerLost, ServerLeaving]


# A store that fails at accept


@pytest.mark.parametrize("failure", [locked_store, full_disk])
async def test_a_failing_store_refuses_the_prompt(tmp_path: Path, failure: Any) -> None:
    """L15: refused with nothing half-accepted, health says so, and the same submit works when the store does."""
    model = ScriptedModel([[Say("at last")]])
    async with launch(tmp_path, model) as running:
        before = await log_end(running)
        prompt = "x" * 20_000  # more than fits into pages that are there
        with failure(running):
            with pytest.raises(StoreUnavailable):
                await running.submit(prompt, "r1")
            assert running.app.health().status == "degraded"
            assert await running.ledger() == ()
            assert await log_end(running) == before
            assert not running.actor.state.runs
            assert len(model.requests) == 0
        await running.submit(prompt, "r1")
        assert (await running.completed("r1")).text == "at last"
        assert running.app.health().status == "ok"
        assert (await running.messages())[0].parts == (TextPart(text=prompt),)
        await check_ends(running)


async def test_an_accepted_run_enters_when_the_store_is_back_and_keeps_its_place(tmp_path: Path) -> None:
    """L15, L8: the store fails between accept and enter. The run is kept; one accepted later does not overtake it."""
    async with launch(tmp_path, ScriptedModel([[Say("first")], [Say("second")]])) as running:
        failing = locked_store(running)

        async def fail() -> None:
            failing.__enter__()

        gate = await running.held_actor()
        first = asyncio.create_task(running.submit("one", "r1"))
        await running.posted(1)
        running.post(fail)
        gate.open()
        await first
        await running.behind_all()  # behind the entry, which has failed by now
        assert [run.state for run in await running.ledger()] == [RunState.ACCEPTED]
        failing.__exit__(None, None, None)
        await running.submit("two", "r2")
        assert (await running.completed("r1")).text == "first"
        assert (await running.completed("r2")).text == "second"
        await check_ends(running)


async def test_a_run_id_is_free_again_once_its_session_is_deleted(tmp_path: Path) -> None:
    """E1: the second run of that name has a terminal event of its own."""
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        await running.submit("one", "same")
        await running.completed("same")
        await running.workspace.delete_session(running.session_id)
        other = (await running.workspace.create_session(CreateSession())).id
        accepted = await running.submit("two", "same", session_id=other)
        assert (await running.workspace.run("same", wait_s=30)).outcome is Outcome.END_TURN
        assert accepted.seq == 2
        assert [done.text for done in running.watcher.terminals("same")] == ["echo: one", "echo: two"]
