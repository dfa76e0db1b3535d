"""D6: an ask has exactly one end, whoever is faster, and the log says what the row says (A2, E1).

The races are made: the session's mailbox and the store's writer wait at gates while the others take their places.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from bench import WriterGate, said
from checks import check_ends
from crash import crashed, restarted
from mirror import log_of
from running_app import RunningApp, Watcher, launch
from scenario import PLAIN, WINDOW, Scene, call, open_scenario

from longboat.errors import AlreadyAnswered
from longboat.store.sqlite.store import SqliteStore
from longboat.testing import Gate, Say, ScriptedModel
from longboat.wire.asks import AskState, Permission, PermissionAnswer, Question
from longboat.wire.models import Outcome
from longboat.wire.requests import AnswerPermission, AnswerQuestion

CALLS = {
    "permission": call("bash", command="touch made"),
    "question": call("question", text="Which one?", choices=["a", "b"]),
}
kinds = pytest.mark.parametrize("kind", CALLS)


def steps(kind: str) -> list[list[Any]]:
    return [[CALLS[kind]], [Say("The call went through.")]]


async def asked(scene: Scene, kind: str) -> Permission | Question:
    await scene.start("go", ask=True)
    ask: Permission | Question = (await scene.watcher.until(lambda event: event.type == f"{kind}_request")).payload
    return ask


async def answer(running: RunningApp, ask: Permission | Question) -> None:
    asks = running.workspace.asks
    if isinstance(ask, Permission):
        await asks.answer_permission(ask.id, AnswerPermission(answer=PermissionAnswer.SESSION, client_id="ann"))
    else:
        await asks.answer_question(ask.id, AnswerQuestion(answer=("a",), client_id="ann"))


async def canceled_with_the_end_held_back(scene: Scene) -> Gate:
    """The cancel is committed and the turn is over, but its end waits in the mailbox behind the gate."""
    running = scene.running
    first = await running.held_actor()
    canceling = asyncio.create_task(running.workspace.cancel_session(running.session_id))
    await running.posted(1)
    second = running.hold_actor()
    first.open()
    await canceling
    await second.reached()
    await running.posted(1)
    return second


async def queued_units(running: RunningApp, count: int) -> None:
    """Wait until so many units are behind the one that the writer is at."""
    store: Any = running.workspace.store
    waiting = store._inbox.qsize if isinstance(store, SqliteStore) else store._writer._waiting.__len__
    while waiting() < count:  # noqa: ASYNC110 — the other side may be a thread
        await asyncio.sleep(0)


def writer_gate(running: RunningApp) -> WriterGate:
    return WriterGate(running.workspace.store)


async def ends(running: RunningApp, ask: Permission | Question) -> list[AskState]:
    """How the ask ended by the whole log, and by its row."""
    reader = Watcher()
    for row in await log_of(running.workspace):
        reader.take(row["frames"])
    notes = [*reader.of("permission_notification"), *reader.of("question_notification")]
    table: Any = (
        running.workspace.asks._permissions if isinstance(ask, Permission) else running.workspace.asks._questions
    )
    row = await table.find(ask.id)
    assert await table.pending() == ()
    return [*(note.state for note in notes if note.id == ask.id), row.state]


@kinds
async def test_d6_an_answer_that_is_committed_between_the_cancel_and_the_end_of_the_run_is_the_one_end(
    tmp_path: Path, kind: str
) -> None:
    async with open_scenario(tmp_path, steps(kind)) as scene:
        ask = await asked(scene, kind)
        end = await canceled_with_the_end_held_back(scene)
        await answer(scene.running, ask)
        end.open()
        assert (await scene.running.completed("r1")).outcome is Outcome.CANCELED
        assert await ends(scene.running, ask) == [AskState.ANSWERED, AskState.ANSWERED]
        assert not (scene.path / "made").exists(), "the call must not run after the cancel"
        await check_ends(scene.running)


@kinds
async def test_d6_an_answer_and_a_cancel_in_one_commit_end_the_ask_once_and_the_call_is_not_run(
    tmp_path: Path, kind: str
) -> None:
    async with open_scenario(tmp_path, steps(kind)) as scene:
        running = scene.running
        ask = await asked(scene, kind)
        gate = writer_gate(running)
        before = running.workspace.store.submit(said("before"))
        await gate.reached()
        answering = asyncio.create_task(answer(running, ask))
        await queued_units(running, 1)
        canceling = asyncio.create_task(running.workspace.cancel_session(running.session_id))
        await queued_units(running, 2)
        gate.open()
        await asyncio.gather(answering, canceling, before, return_exceptions=True)
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        assert await ends(running, ask) == [AskState.ANSWERED, AskState.ANSWERED]
        assert not (scene.path / "made").exists()
        assert len(scene.model.requests) == 1
        await check_ends(scene.running)


@kinds
async def test_d6_an_answer_right_behind_the_end_of_the_run_is_too_late_and_told_so(tmp_path: Path, kind: str) -> None:
    async with open_scenario(tmp_path, steps(kind)) as scene:
        running = scene.running
        ask = await asked(scene, kind)
        end = await canceled_with_the_end_held_back(scene)
        gate = writer_gate(running)
        before = running.workspace.store.submit(said("before"))
        await gate.reached()
        end.open()
        await queued_units(running, 1)
        answering = asyncio.create_task(answer(running, ask))
        await queued_units(running, 2)
        gate.open()
        with pytest.raises(AlreadyAnswered, match="its run ended"):
            await answering
        await asyncio.gather(before, return_exceptions=True)
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        assert await ends(running, ask) == [AskState.WITHDRAWN, AskState.WITHDRAWN]
        rows = await running.workspace.store.read(
            lambda reader: reader.fetch("grants_of", session_id=running.session_id)
        )
        assert rows == [], "an answer that came too late grants nothing"
        await check_ends(scene.running)


@pytest.mark.parametrize("policy", ["interrupt", "resume"])
@kinds
async def test_d6_b6_a_crash_between_the_answer_and_the_end_of_the_run_leaves_the_ask_its_one_end(
    tmp_path: Path, kind: str, policy: str
) -> None:
    after = ScriptedModel([[Say("never asked")]], context_window=WINDOW)
    async with open_scenario(tmp_path, steps(kind)) as scene:
        ask = await asked(scene, kind)
        end = await canceled_with_the_end_held_back(scene)
        await answer(scene.running, ask)
        config = json.dumps({**PLAIN, "on_restart": policy})
        async with restarted(scene.running, after, config=config) as again:
            assert (await again.workspace.run("r1", wait_s=30)).outcome is Outcome.CANCELED
            assert await ends(again, ask) == [AskState.ANSWERED, AskState.ANSWERED]
            assert len(after.requests) == 0
        end.open()
        await scene.running.completed("r1")


@kinds
async def test_d6_b6_a_crash_between_the_cancel_and_the_end_of_the_run_withdraws_the_ask_once(
    tmp_path: Path, kind: str
) -> None:
    async with open_scenario(tmp_path, steps(kind)) as scene:
        ask = await asked(scene, kind)
        end = await canceled_with_the_end_held_back(scene)
        place = await crashed(scene.running)
        end.open()
        await scene.running.completed("r1")
        async with restarted(scene.running, ScriptedModel([]), config=json.dumps(PLAIN)) as later:
            assert await ends(later, ask) == [AskState.WITHDRAWN, AskState.WITHDRAWN]
        async with launch(
            place, ScriptedModel([]), config=json.dumps(PLAIN), session_id=scene.running.session_id
        ) as again:
            assert (await again.workspace.run("r1", wait_s=30)).outcome is Outcome.CANCELED
            with pytest.raises(AlreadyAnswered):
                await answer(again, ask)
            assert await ends(again, ask) == [AskState.WITHDRAWN, AskState.WITHDRAWN]
