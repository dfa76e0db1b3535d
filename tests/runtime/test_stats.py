"""Statistics: tokens, cost, outcomes, tools and waiting times, as the store has them."""

import sqlite3
from pathlib import Path

import msgspec
import pytest
from running_app import RunningApp, launch

from longboat.errors import ModelError
from longboat.models.protocol import ModelRequest
from longboat.store.datadir import STORE_NAME
from longboat.testing import CallTool, Fail, Gate, Pause, Say, ScriptedModel, ScriptedTool, Step, Use
from longboat.testing.scripted import last_prompt
from longboat.wire.models import Outcome, Role, Session, Usage
from longboat.wire.requests import CreateSession
from longboat.wire.statistics import Latency, ModelFigures, OutcomeCount, RunFigures, SessionUsage, Stats

BIG = 100_000


async def stats(running: RunningApp, *, everywhere: bool = False, days: int = 30) -> Stats:
    return await running.app.stats(None if everywhere else running.workspace.id, days=days)


async def test_what_a_run_used_is_counted_by_day_model_and_session(tmp_path: Path) -> None:
    """A6."""
    model = ScriptedModel(
        [
            [CallTool("look"), CallTool("nothing"), Use(input_tokens=100, output_tokens=10)],
            [Say("ok"), Use(input_tokens=200, output_tokens=20)],
            [Fail(ModelError("no"))],
        ],
        context_window=BIG,
    )
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        await running.submit("two", "r2")
        await running.completed("r2")
        found = await stats(running)
        used = Usage(input_tokens=300, output_tokens=30, cost=None, unpriced_tokens=330)
        assert found.usage == used
        assert found.models == (ModelFigures(model="scripted/scripted", requests=2, usage=used),)
        assert [(tool.tool, tool.calls, tool.errors) for tool in found.tools] == [("look", 1, 0), ("nothing", 1, 1)]
        ended = (OutcomeCount(outcome=Outcome.END_TURN, runs=1), OutcomeCount(outcome=Outcome.ERROR, runs=1))
        assert found.outcomes == ended
        (day,) = found.days
        assert (day.usage, day.outcomes) == (used, ended)
        (session,) = found.sessions
        assert (session.session_id, session.title, session.runs, session.requests) == (running.session_id, "one", 1, 2)
        assert session.usage == (await running.workspace.session(running.session_id)).usage
        (stored,) = (await running.workspace.ledger.sessions(limit=9, after=None)).items
        assert stored.context_tokens == 220, "the window holds the newest request and its answer"
        assert found.whole.p50 is not None


async def test_a_session_tells_what_each_of_its_runs_used(tmp_path: Path) -> None:
    """F3: the chart of a session."""
    model = ScriptedModel(
        [
            [CallTool("look"), Use(input_tokens=100, output_tokens=10, cost=0.5)],
            [Say("ok"), Use(input_tokens=200, output_tokens=20)],
            [Say("ok"), Use(input_tokens=7, cost=0.0)],
        ],
        context_window=BIG,
    )
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        for run_id in ("r1", "r2"):
            await running.submit(run_id, run_id)
            await running.completed(run_id)
        assert await running.workspace.ledger.usage(running.session_id) == SessionUsage(
            session_id=running.session_id,
            items=(
                RunFigures(
                    run_id="r1",
                    requests=2,
                    usage=Usage(input_tokens=300, output_tokens=30, cost=0.5, unpriced_tokens=220),
                ),
                RunFigures(run_id="r2", requests=1, usage=Usage(input_tokens=7)),
            ),
        )
        assert (await running.workspace.ledger.usage("another")).items == ()


async def test_money_that_was_spent_stays_spent_when_its_session_is_deleted(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("ok"), Use(input_tokens=7, cost=0.0)]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        await running.workspace.delete_session(running.session_id)
        found = await stats(running)
        assert found.usage == Usage(input_tokens=7)
        assert [session.title for session in found.sessions] == [None]


async def test_a_workspace_has_its_own_numbers_and_all_together_have_all(tmp_path: Path) -> None:
    """B7."""
    model = ScriptedModel([[Say("ok"), Use(input_tokens=7, cost=0.0)]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        (tmp_path / "other").mkdir()
        other, _ = await running.app.join(str(tmp_path / "other"), None)
        empty = await running.app.stats(other.id, days=1)
        nobody = Latency(p50=None, p90=None, p99=None, most=None)
        assert empty == Stats(
            since=empty.since,
            usage=Usage(),
            outcomes=(),
            days=(),
            models=(),
            sessions=(),
            tools=(),
            waiting=nobody,
            working=nobody,
            asking=nobody,
            whole=nobody,
        )
        assert (await stats(running, everywhere=True)).usage == Usage(input_tokens=7)


@pytest.mark.only_sqlite
async def test_numbers_of_earlier_days_and_of_imported_runs_are_left_out(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("ok"), Use(input_tokens=7, cost=0.0)]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        document = await running.workspace.archive.export(running.session_id)
        await running.workspace.archive.take(msgspec.json.encode(document))
        found = await stats(running)
        assert found.usage == Usage(input_tokens=7)
        assert found.outcomes == (OutcomeCount(outcome=Outcome.END_TURN, runs=1),)
        _age(running)
        old = await stats(running, days=5)
        assert (old.days, old.usage, old.outcomes, old.whole.p50) == ((), Usage(), (), None)
        found = await stats(running, days=3_650)
        (day,) = found.days
        assert day.day == "2020-02-02"
        assert day.working == found.working, "with a single day, its latencies are those of all"


def _age(running: RunningApp) -> None:
    """Make what is in the store old."""
    store = sqlite3.connect(running.app.settings.data_dir / STORE_NAME)
    with store:
        store.execute("UPDATE spendings SET day = '2020-02-02'")
        store.execute("UPDATE runs SET accepted_at = '2020-02-02' || substr(accepted_at, 11)")
    store.close()


@pytest.mark.only_sqlite
async def test_percentiles_are_those_of_the_nearest_rank(tmp_path: Path) -> None:
    """accepted → started → finished; a run that never started has no times."""
    model = ScriptedModel([[Say("ok")]] * 10, context_window=BIG)
    async with launch(tmp_path, model) as running:
        for number in range(10):
            await running.submit("x", f"r{number}")
            await running.completed(f"r{number}")
        store = sqlite3.connect(running.app.settings.data_dir / STORE_NAME)
        with store:
            for number in range(10):
                waited, worked = f"00:00:0{number}.500000Z", f"00:01:0{number}.500000Z"
                day = "2099-01-01T"
                store.execute(
                    "UPDATE runs SET accepted_at = ?, started_at = ?, finished_at = ? WHERE run_id = ?",
                    (f"{day}00:00:00.000000Z", day + waited, day + worked, f"r{number}"),
                )
        store.close()
        found = await stats(running)
        assert found.waiting == Latency(p50=4.5, p90=8.5, p99=9.5, most=9.5)
        assert found.working == Latency(p50=60.0, p90=60.0, p99=60.0, most=60.0)
        assert found.whole == Latency(p50=64.5, p90=68.5, p99=69.5, most=69.5)


async def test_a_run_that_was_canceled_in_the_queue_counts_and_has_no_times(tmp_path: Path) -> None:
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Say("x"), Pause(gate)]], context_window=BIG)) as running:
        await running.submit("one", "r1")
        await gate.reached()
        await running.submit("two", "r2")
        await running.workspace.cancel_run("r2")
        await running.completed("r2")
        found = await stats(running)
        assert found.outcomes == (OutcomeCount(outcome=Outcome.CANCELED, runs=1),)
        assert found.waiting.p50 is None
        gate.open()
        await running.completed("r1")


async def test_sums_say_what_of_them_is_unknown_and_unknown_comes_last(tmp_path: Path) -> None:
    """Finding 10: never $0 for a model whose price nobody knows."""
    model = ScriptedModel(
        [
            [Say("ok"), Use(input_tokens=1_000)],
            [Say("ok"), Use(input_tokens=10, cost=0.0)],
            [Say("ok"), Use(input_tokens=10, cost=0.25)],
        ],
        context_window=BIG,
    )
    async with launch(tmp_path, model) as running:
        sessions = [
            running.session_id,
            *[(await running.workspace.create_session(CreateSession())).id for _ in range(2)],
        ]
        for session_id in sessions:
            await running.submit("x", session_id, session_id=session_id)
            await running.completed(session_id)
        found = await stats(running)
        assert found.usage == Usage(input_tokens=1_020, cost=0.25, unpriced_tokens=1_000)
        unknown, free, paid = sessions
        assert [each.session_id for each in found.sessions] == [paid, free, unknown]
        assert [each.usage.cost for each in found.sessions] == [0.25, 0.0, None]
        assert (await running.workspace.session(unknown)).usage == Usage(
            input_tokens=1_000, cost=None, unpriced_tokens=1_000
        )
        (stored,) = [each for each in await all_sessions(running) if each.id == unknown]
        assert stored.usage.cost is None, "as the store has it"


async def all_sessions(running: RunningApp) -> tuple[Session, ...]:
    return (await running.workspace.ledger.sessions(limit=9, after=None)).items


async def test_sub_agents_are_counted_under_the_session_that_started_them(tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> Step:
        if last_prompt(request) == "look left":
            return [Say("nothing"), Use(input_tokens=5, cost=0.5)]
        done = any(message.role is Role.TOOL for message in request.messages)
        return [
            Say("done") if done else CallTool("agent", '{"prompt": "look left"}'),
            Use(input_tokens=10, cost=0.25),
        ]

    async with launch(tmp_path, ScriptedModel(answer, context_window=BIG)) as running:
        await running.submit("look around", "r1")
        await running.completed("r1")
        (session,) = (await stats(running)).sessions
        assert (session.session_id, session.title, session.runs, session.requests) == (
            running.session_id,
            "look around",
            1,
            3,
        )
        assert session.usage == Usage(input_tokens=25, cost=1.0)
        (sub_agent,) = session.sub_agents
        assert (sub_agent.title, sub_agent.usage) == ("look left", Usage(input_tokens=5, cost=0.5))


async def test_a_session_says_how_its_last_turn_ended(tmp_path: Path) -> None:
    """Finding 13: failed sessions look like others."""
    gate = Gate()
    model = ScriptedModel([[Fail(ModelError("no"))], [Say("x"), Pause(gate)]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        assert (await running.workspace.session(running.session_id)).last_outcome is None
        await running.submit("one", "r1")
        await running.completed("r1")
        assert (await running.workspace.session(running.session_id)).last_outcome is Outcome.ERROR
        assert [session.last_outcome for session in await all_sessions(running)] == [Outcome.ERROR]
        assert running.watcher.of("session")[-1].last_outcome is Outcome.ERROR, "told before the run's end"
        await running.submit("two", "r2")
        await gate.reached()
        await running.submit("three", "r3")
        await running.workspace.cancel_run("r3")
        assert (await running.workspace.session(running.session_id)).last_outcome is Outcome.ERROR, "that was no turn"
        gate.open()
        await running.completed("r2")
        assert (await running.workspace.session(running.session_id)).last_outcome is Outcome.END_TURN
