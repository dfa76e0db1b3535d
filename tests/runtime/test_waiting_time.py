"""Time in which a call waits for a person is not the tool's time: in results, runs, statistics and the timeline."""

import asyncio
import json
import os
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from crash import restarted
from running_app import RunningApp
from scenario import PLAIN, WINDOW, Parts, call, open_scenario

from longboat.runtime import clock
from longboat.store.sqlite.queries import load_queries
from longboat.store.sqlite.store import SqliteStore
from longboat.testing import Say, ScriptedModel
from longboat.wire.asks import PermissionAnswer
from longboat.wire.models import Outcome, ToolResultPart
from longboat.wire.requests import AnswerPermission, AnswerQuestion
from longboat.wire.statistics import CallOutcome, CallSpan, Latency

ONCE = PermissionAnswer.ONCE


class Clock:
    """Stands still until somebody moves it."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
        self.begun = f"{self.at:%Y-%m-%d}T12:00:00.000000Z"

    def __call__(self) -> datetime:
        return self.at

    def pass_s(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(clock, "utc", made)
    return made


async def results(running: RunningApp) -> list[ToolResultPart]:
    parts = [part for message in await running.messages() for part in message.parts]
    return [part for part in parts if isinstance(part, ToolResultPart)]


async def calls(running: RunningApp, session_id: str | None = None) -> dict[str, tuple[CallSpan, ...]]:
    page = await running.workspace.ledger.timeline(session_id or running.session_id)
    return {item.run_id: item.calls for item in page.items}


MAKES: list[list[Any]] = [[call("bash", command="mkdir made")], [Say("Made.")]]


def waited(time: Clock, outcome: CallOutcome = CallOutcome.DONE) -> dict[str, tuple[CallSpan, ...]]:
    """The timeline of a run whose only call waited for a minute."""
    return {"r1": (CallSpan(tool="bash", began_at=time.begun, waited_s=60.0, ran_s=0.0, outcome=outcome),)}


async def test_a_minute_in_which_nobody_answers_is_not_the_tools(tmp_path: Path, time: Clock) -> None:
    async with open_scenario(tmp_path, MAKES) as scene:
        await scene.start("go", ask=True)
        ask = await scene.asked()
        time.pass_s(60)
        await scene.answer(ask, ONCE, by="ann")
        await scene.running.completed("r1")
        (result,) = await results(scene.running)
        assert (result.began_at, result.waited_s, result.ran_s) == (time.begun, 60.0, 0.0)
        (run,) = await scene.running.ledger()
        assert run.waited_s == 60.0
        assert await calls(scene.running) == waited(time)
        found = await scene.running.app.stats(None, days=3)
        nothing, minute = (Latency(p50=at, p90=at, p99=at, most=at) for at in (0.0, 60.0))
        assert (found.working, found.asking, found.whole) == (nothing, minute, minute)
        (tool,) = found.tools
        assert (tool.ran, tool.waited_s) == (nothing, 60.0)
        assert found.days[0].working == nothing


async def test_the_time_after_the_answer_is_the_tools(tmp_path: Path, time: Clock) -> None:
    steps: list[list[Any]] = [[call("bash", command="mkdir x; echo begun; cat pipe")], [Say("Read.")]]
    async with open_scenario(tmp_path, steps) as scene:
        os.mkfifo(scene.path / "pipe")
        await scene.start("go", ask=True)
        ask = await scene.asked()
        time.pass_s(60)
        await scene.answer(ask, ONCE)
        await scene.showing("begun")
        (unfinished,) = await results(scene.running)
        assert (unfinished.waited_s, unfinished.ran_s) == (60.0, None), "told while it runs"
        time.pass_s(7)
        (scene.path / "pipe").write_text("x")
        await scene.running.completed("r1")
        (result,) = await results(scene.running)
        assert (result.waited_s, result.ran_s) == (60.0, 7.0)


async def test_a_question_waits_all_the_time(tmp_path: Path, time: Clock) -> None:
    async with open_scenario(tmp_path, [[call("question", text="Which?")], [Say("Fine.")]]) as scene:
        await scene.start("go")
        question = (await scene.watcher.until(lambda event: event.type == "question_request")).payload
        time.pass_s(30)
        await scene.workspace.asks.answer_question(question.id, AnswerQuestion(answer=("b",)))
        await scene.running.completed("r1")
        (result,) = await results(scene.running)
        assert (result.waited_s, result.ran_s) == (30.0, 0.0)


async def test_a_call_that_is_canceled_while_it_waits_has_waited_and_not_run(tmp_path: Path, time: Clock) -> None:
    async with open_scenario(tmp_path, MAKES) as scene:
        await scene.start("go", ask=True)
        await scene.asked()
        time.pass_s(60)
        assert (await scene.cancel()).outcome is Outcome.CANCELED
        (result,) = await results(scene.running)
        assert (result.began_at, result.waited_s, result.ran_s) == (time.begun, 60.0, 0.0)
        (run,) = await scene.running.ledger()
        assert run.waited_s == 60.0
        assert await calls(scene.running) == waited(time, CallOutcome.CUT_OFF)
        assert (await scene.running.app.stats(None, days=3)).tools == (), "only calls with a result are counted"


async def test_who_sends_a_sub_agent_waits_with_it(tmp_path: Path, time: Clock) -> None:
    """Two sub-agents that wait at the same time are one wait of their parent."""
    two = [call("agent", prompt=prompt, agent="hand") for prompt in ("one", "two")]
    model = Parts(
        {
            "go": [two, [Say("Both.")]],
            "one": [[call("bash", command="mkdir one")], [Say("Made.")]],
            "two": [[call("bash", command="mkdir two")], [Say("Made.")]],
        }
    )
    files = {".agents/agents/hand.md": "---\ndescription: Does things.\nread_only: false\n---\nDo it.\n"}
    async with open_scenario(tmp_path, model, files=files) as scene:
        await scene.start("go", ask=True)
        first, second = await scene.asked(1), await scene.asked(2)
        time.pass_s(60)
        await scene.answer(first, ONCE)
        await scene.answer(second, ONCE)
        await scene.running.completed("r1")
        assert {run.waited_s for run in await scene.running.ledger()} == {60.0}
        assert [(part.waited_s, part.ran_s) for part in await results(scene.running)] == [(60.0, 0.0)] * 2


async def test_the_timeline_outlives_a_restart_an_undo_and_the_next_prompt(tmp_path: Path, time: Clock) -> None:
    async with open_scenario(tmp_path, [*MAKES, [Say("Next.")]]) as scene:
        await scene.start("go", ask=True)
        ask = await scene.asked()
        time.pass_s(60)
        await scene.answer(ask, ONCE)
        await scene.running.completed("r1")
        await scene.workspace.undo_turn(scene.running.session_id)
        assert await calls(scene.running) == waited(time)
        await scene.turn("again", "r2")
        assert await calls(scene.running) == waited(time), "what was undone cannot be redone now"
        async with restarted(
            scene.running, ScriptedModel([], context_window=WINDOW), config=json.dumps(PLAIN)
        ) as again:
            assert await calls(again) == waited(time)


async def test_b6_a_call_that_waited_through_a_restart_waited_since_it_was_asked(tmp_path: Path, time: Clock) -> None:
    config = {**PLAIN, "on_restart": "resume"}
    after = ScriptedModel([[Say("Made.")]], context_window=WINDOW)
    async with open_scenario(tmp_path, MAKES[:1], config=config) as scene:
        await scene.start("make", ask=True)
        ask = await scene.asked()
        time.pass_s(30)
        async with restarted(scene.running, after, config=json.dumps(config)) as again:
            time.pass_s(30)
            await again.workspace.asks.answer_permission(ask.id, AnswerPermission(answer=ONCE, client_id="ben"))
            run = await again.workspace.run("r1", wait_s=30)
            assert (run.outcome, run.waited_s) == (Outcome.END_TURN, 60.0)
            assert await calls(again) == waited(time)
        await scene.cancel()


async def test_a_timeline_of_ten_thousand_calls_is_bounded_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, MAKES) as scene:
        await scene.turn("go")
        store = scene.workspace.store
        assert isinstance(store, SqliteStore)
        await asyncio.to_thread(_add_calls, store._path, 10_000)
        (run,) = (await scene.workspace.ledger.timeline(scene.running.session_id)).items
        assert (len(run.calls), run.left_out) == (500, 9_501)
        assert {call.ran_s for call in run.calls} == {2.0}, "the longest"
        assert [call.began_at for call in run.calls] == sorted(call.began_at for call in run.calls)
        assert run.left_out_s == pytest.approx(9_500 * 0.5, abs=60)
        assert len(msgspec.json.encode(run)) < 100_000
        assert await asyncio.to_thread(_tables_read_whole, store._path) == []


def _add_calls(path: Path, count: int) -> None:
    """Of which 500 are longer than the others."""
    with sqlite3.connect(path) as connection:
        connection.executemany(
            "INSERT INTO tool_calls (workspace_id, session_id, run_id, day, tool, began_at, waited_s, ran_s, outcome)"
            " SELECT workspace_id, session_id, run_id, day, 'view', ?, 0, ?, 'done' FROM tool_calls LIMIT 1",
            [(f"2026-01-01T00:{at // 60 % 60:02}:{at % 60:02}Z", 0.5 if at % 20 else 2.0) for at in range(count)],
        )
    connection.close()


def _tables_read_whole(path: Path) -> list[str]:
    """Of the timeline's query: it must not read the calls of other runs."""
    query = load_queries()["timeline_of_session"].sql
    params = {"workspace_id": "w", "session_id": "s", "limit": 20, "most": 500}
    with sqlite3.connect(path) as connection:
        steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", params)]
    connection.close()
    return [step for step in steps if step.startswith(("SCAN tool_calls", "SCAN calls", "SCAN runs"))]
