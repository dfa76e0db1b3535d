"""D11: a long queue costs an accept nothing, and its cancel is one small commit, finished in batches (L9, L12, B6).

The batches stand in the session's mailbox. A gate that is posted right behind the cancel stands before them, so a test
can look at the actor, or crash it, while runs are canceled that have not ended yet.
"""

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from bench import heard
from checks import check_ends, locked_store
from crash import RESUME, check_log, crashed, restarted
from running_app import TITLES_OFF, RunningApp, launch, watch

from longboat.backoff import Backoff
from longboat.core import lifecycle
from longboat.core.commands import CANCEL_BATCH
from longboat.errors import RunNotEditable, SessionNotFound, StoreUnavailable
from longboat.runtime.session import actor, command_loop, live_session, unit_builder
from longboat.store.protocol import Unit
from longboat.store.sqlite.store import SqliteStore
from longboat.testing import CallTool, Gate, Say, ScriptedModel, ScriptedTool
from longboat.wire.models import Canceled, Delivery, Outcome, RunState
from longboat.wire.requests import CreateSession, EditRun

LONG = 2 * CANCEL_BATCH + 50


def names(first: int = 0, last: int = LONG) -> list[str]:
    return [f"q{number}" for number in range(first, last)]


@asynccontextmanager
async def long_queue(
    tmp_path: Path, count: int = LONG, *, then: str = "next", config: str = TITLES_OFF
) -> AsyncIterator[tuple[RunningApp, Gate]]:
    """Run r1 is at work in a tool, which the gate ends, and q0, q1 … wait behind it."""
    gate = Gate()
    model = ScriptedModel([[CallTool("work")], [Say(then)], [Say(then)]])
    async with launch(tmp_path, model, tools=[ScriptedTool("work", gate=gate)], config=config) as running:
        await running.submit("go", "r1")
        await gate.reached()
        for name in names(0, count):
            await running.submit(name, name)
        await running.watcher.in_state(names(0, count)[-1], "queued")
        yield running, gate


async def between_batches(
    running: RunningApp, cancel: Coroutine[Any, Any, Canceled], *more: Coroutine[Any, Any, Any]
) -> tuple[Canceled, Gate]:
    """The answer to the cancel, and a gate before its first batch. `more`: asked right after the cancel."""
    first = await running.held_actor()
    asked: list[asyncio.Task[Any]] = []
    for each in (cancel, *more):
        asked.append(asyncio.create_task(each))
        await running.posted(len(asked))
    second = running.hold_actor()
    first.open()
    answer, *_ = await asyncio.gather(*asked)
    await second.reached()
    return answer, second


def units_of(running: RunningApp) -> list[Unit]:
    """All units that are committed from now on."""
    units: list[Unit] = []

    def note(unit: Unit, error: Exception | None) -> bool:
        if error is None:
            units.append(unit)
        return False

    heard(running.workspace.store, note)
    return units


async def test_l12_e1_d11_a_cancel_of_a_long_queue_is_answered_after_one_small_commit_and_ends_each_run_once(
    tmp_path: Path,
) -> None:
    async with long_queue(tmp_path) as (running, _):
        units = units_of(running)
        answer = await running.workspace.cancel_session(running.session_id, "ann")
        assert answer == Canceled(canceled=("r1", *names()))
        (first,) = [unit for unit in units if any(entry.run_seq is not None for entry in unit.entries)]
        assert len(first.writes) <= CANCEL_BATCH + 2, "the head of the queue, the cover, the active run"
        await running.completed(names()[-1])
        await running.completed("r1")
        assert max(len(unit.writes) for unit in units) <= CANCEL_BATCH + 2
        ended = [complete.run_id for complete in running.watcher.of("run_complete") if complete.run_id != "r1"]
        assert ended == names(), "in order, once each"
        ledger = await running.ledger()
        assert {(run.outcome, run.canceled_by) for run in ledger} == {(Outcome.CANCELED, "ann")}
        assert await covers(running) == []
        await check_ends(running)


async def covers(running: RunningApp) -> list[Any]:
    """What the disk has of cancels that are not done."""
    store = running.workspace.store
    assert isinstance(store, SqliteStore)
    return store._connection.execute("SELECT * FROM cancel_covers").fetchall()


async def test_l9_d11_what_is_covered_looks_canceled_to_everybody_before_its_end_is_written(tmp_path: Path) -> None:
    async with long_queue(tmp_path) as (running, _):
        _, gate = await between_batches(running, running.workspace.cancel_session(running.session_id, "ann"))
        last = names()[-1]
        run = await running.workspace.run(last)
        assert (run.state, run.position, run.cancel_requested, run.canceled_by) == (RunState.QUEUED, None, True, "ann")
        assert (await running.workspace.queued(running.session_id)).items == ()
        assert (await running.workspace.session_status(running.session_id)).queued == 0
        async with watch(running.workspace, client_id="late") as late:
            assert [run.run_id for run in late.events[0].payload.runs] == ["r1"]
            cancel = asyncio.create_task(running.workspace.cancel_run(last, "ben"))
            edit = asyncio.create_task(running.workspace.edit_run(last, EditRun(prompt="something else")))
            again = asyncio.create_task(running.workspace.cancel_session(running.session_id, "ben"))
            await running.posted(4)
            gate.open()
            assert (await cancel).canceled_by == "ann"
            with pytest.raises(RunNotEditable, match="canceled"):
                await edit
            assert set((await again).canceled) <= {"r1", *names()}
            await late.completed(last)
        await running.completed("r1")
        assert {run.canceled_by for run in await running.ledger()} == {"ann"}
        await check_ends(running)


async def test_l9_l11_d11_covered_runs_are_neither_folded_nor_started_while_they_wait_for_their_ends(
    tmp_path: Path,
) -> None:
    async with long_queue(tmp_path) as (running, work):
        later = running.submit("later", "later", delivery=Delivery.STEER)
        _, gate = await between_batches(running, running.workspace.clear_queue(running.session_id), later)
        work.open()
        gate.open()
        assert (await running.completed("later")).outcome is Outcome.END_TURN
        assert (await running.completed("r1")).outcome is Outcome.END_TURN
        await running.completed(names()[-1])
        ledger = {run.run_id: run for run in await running.ledger()}
        assert {ledger[name].outcome for name in names()} == {Outcome.CANCELED}
        assert {ledger[name].started_at for name in names()} == {None}
        await check_ends(running)


@pytest.mark.parametrize("config", [TITLES_OFF, RESUME], ids=["interrupt", "resume"])
async def test_b6_d11_a_crash_between_batches_loses_no_cancel_and_starts_nothing_that_was_covered(
    tmp_path: Path, config: str
) -> None:
    async with long_queue(tmp_path, config=config) as (running, _):
        cancel = running.workspace.cancel_session(running.session_id, "ann")
        _, gate = await between_batches(running, cancel, running.submit("later", "later"))
        model = ScriptedModel([[Say("only this")]])
        async with restarted(running, model, config=config) as again:
            assert (await again.workspace.run("later", wait_s=30)).outcome is Outcome.END_TURN
            await again.workspace.run(names()[-1], wait_s=30)
            ledger = {run.run_id: run for run in await again.ledger()}
            assert ledger.pop("later").outcome is Outcome.END_TURN
            assert {(run.outcome, run.canceled_by) for run in ledger.values()} == {(Outcome.CANCELED, "ann")}
            assert len(model.requests) == 1
            assert await covers(again) == []
            reader = await check_log(again)
            assert len(reader.of("run_complete")) == LONG + 2
        gate.open()
        await running.completed("later")


async def test_b6_d11_crash_after_crash_between_batches_still_ends_each_run_once(tmp_path: Path) -> None:
    async with long_queue(tmp_path) as (running, _):
        _, gate = await between_batches(running, running.workspace.cancel_session(running.session_id))
        place = await crashed(running)
        gate.open()
        await running.completed(names()[-1])
    for _ in range(2):
        async with launch(place, ScriptedModel([]), session_id=running.session_id) as again:
            place = await crashed(again)
    async with launch(place, ScriptedModel([]), session_id=running.session_id) as again:
        await again.workspace.run(names()[-1], wait_s=30)
        await check_log(again)


async def test_e2_d11_batches_wait_for_a_store_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longboat.runtime.store_retry.BACKOFF", Backoff(base_s=0.01, factor=1.0))
    async with long_queue(tmp_path) as (running, _):
        _, gate = await between_batches(running, running.workspace.cancel_session(running.session_id))
        with locked_store(running):
            refused = heard(
                running.workspace.store,
                lambda unit, error: isinstance(error, StoreUnavailable) and len(unit.writes) >= CANCEL_BATCH,
            )
            gate.open()
            await refused.wait()
            assert (await running.workspace.run(names()[-1])).state is RunState.QUEUED
        await running.completed(names()[-1])
        await running.completed("r1")
        await check_ends(running)


async def test_d11_a_session_with_a_long_queue_can_be_deleted(tmp_path: Path) -> None:
    async with long_queue(tmp_path) as (running, _):
        await running.workspace.delete_session(running.session_id)
        ended = [complete.run_id for complete in running.watcher.of("run_complete")]
        assert sorted(ended) == sorted(["r1", *names()])
        with pytest.raises(SessionNotFound):
            await running.workspace.session(running.session_id)


async def test_b5_d11_a_server_that_stops_between_batches_finishes_them_or_leaves_them_to_the_next(
    tmp_path: Path,
) -> None:
    async with long_queue(tmp_path) as (running, _):
        _, gate = await between_batches(running, running.workspace.cancel_session(running.session_id))
        leaving = asyncio.create_task(running.app.leave(drain_s=30, hurry=asyncio.Event()))
        await running.posted(2)
        gate.open()
        await leaving
    async with launch(tmp_path, ScriptedModel([]), session_id=running.session_id) as again:
        assert {run.outcome for run in await again.ledger()} == {Outcome.CANCELED}
        await check_log(again)


async def test_l8_d11_positions_of_a_long_queue_agree_everywhere(tmp_path: Path) -> None:
    async with long_queue(tmp_path, 120) as (running, _):
        other = (await running.workspace.create_session(CreateSession())).id
        assert (await running.workspace.queued(other)).items == ()
        queued = (await running.workspace.queued(running.session_id)).items
        assert [(run.run_id, run.position) for run in queued] == [(f"q{n}", n + 1) for n in range(120)]
        async with watch(running.workspace, client_id="late") as late:
            seen = {run.run_id: run.position for run in late.events[0].payload.runs}
        assert seen == {"r1": 0, **{f"q{n}": n + 1 for n in range(120)}}
        assert (await running.workspace.run("q70")).position == 71
        await running.workspace.cancel_session(running.session_id)


async def work_of_a_submit(running: RunningApp, run_id: str) -> int:
    """How many bytecodes the session's own modules execute until the prompt is queued: no clock, no machine."""
    files = {inspect.getsourcefile(module) for module in (lifecycle, unit_builder, command_loop, live_session, actor)}
    files |= {str(Path(lifecycle.__file__).with_name("state.py"))}
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., object] | None:
        nonlocal count
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        await running.submit("one more", run_id)
        await running.watcher.in_state(run_id, "queued")
    finally:
        sys.settrace(before)
    return count


async def test_d11_accepting_behind_a_long_queue_takes_no_more_work(tmp_path: Path) -> None:
    async with long_queue(tmp_path, 10) as (running, _):
        short = await work_of_a_submit(running, "short")
        for name in names(20, 620):
            await running.submit(name, name)
        await running.watcher.in_state("q619", "queued")
        assert await work_of_a_submit(running, "long") <= short * 1.3
        await running.workspace.cancel_session(running.session_id)
