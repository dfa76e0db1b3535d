"""A crash in the middle of a round of calls, with on_restart resume: what was done is not done again (A2, B6, T3)."""

import asyncio
import json
from collections.abc import Awaitable, Sequence
from pathlib import Path

import pytest
from crash import check_log, restarted
from scenario import PLAIN, WINDOW, call, open_scenario
from wire_rules import check_wires

from longboat.errors import StoreUnavailable
from longboat.store.protocol import Unit
from longboat.store.sqlite.store import SqliteStore
from longboat.testing import Gate, Say, ScriptedModel, ScriptedTool
from longboat.wire.asks import PermissionAnswer
from longboat.wire.models import Message, Outcome, ToolResultPart
from longboat.wire.requests import AnswerPermission

RESUME = {**PLAIN, "on_restart": "resume"}
ROUND = [
    call("write", path="a.txt", content="a\n"),
    call("bash", command="mkdir b"),
    call("write", path="c.txt", content="c\n"),
]


async def test_of_three_calls_one_done_one_asked_one_not_begun_the_last_two_are_made_after_the_restart(
    tmp_path: Path,
) -> None:
    after = ScriptedModel([[Say("All three.")]], context_window=WINDOW)
    config = {**RESUME, "permissions": {"allow": ["write"]}}
    async with open_scenario(tmp_path, [ROUND], config=config) as scene:
        await scene.start("make three", ask=True)
        ask = await scene.asked()
        assert ask.argument == "mkdir b"
        async with restarted(scene.running, after, config=json.dumps(config)) as again:
            assert await again.workspace.asks.permissions() == (ask,)
            once = AnswerPermission(answer=PermissionAnswer.ONCE)
            await again.workspace.asks.answer_permission(ask.id, once)
            run = await again.workspace.run("r1", wait_s=30)
            assert run.outcome is Outcome.END_TURN, run
            reader = await check_log(again)
            assert len(reader.of("permission_request")) == 1
            messages = await again.messages()
            assert [part.is_error for part in results_in(messages)] == [False] * 3
            await check_wires(messages, summary_seq=0)
        assert (scene.read("a.txt"), (scene.path / "b").is_dir(), scene.read("c.txt")) == ("a\n", True, "c\n")
        await scene.cancel()


async def test_a_call_that_was_being_made_is_not_made_again(tmp_path: Path) -> None:
    """B6: it may have had effects, and the model is told so; the calls behind it were not begun, which it can see."""
    gate = Gate()
    hold = ScriptedTool("hold", "held", gate=gate)
    after = ScriptedModel([[Say("Gone on.")]], context_window=WINDOW)
    async with open_scenario(tmp_path, [[call("hold"), ROUND[0]]], config=RESUME, tools=[hold]) as scene:
        await scene.start("hold")
        await gate.reached()
        second = ScriptedTool("hold")
        async with restarted(scene.running, after, config=json.dumps(RESUME), tools=[second]) as again:
            assert (await again.workspace.run("r1", wait_s=60)).outcome is Outcome.END_TURN
            assert list(second.calls) == []
            await check_log(again)
            messages = await again.messages()
            assert [part.is_error for part in results_in(messages)] == [True, True]
            assert "may have had effects" in results_in(messages)[0].content
            await check_wires(messages, summary_seq=0)
        await scene.cancel()


def results_in(messages: Sequence[Message]) -> list[ToolResultPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolResultPart)]


class Refusing:
    """A store that takes nothing about permissions for so many times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self.times, self.refused = times, asyncio.Event()
        submit = SqliteStore.submit

        async def refuse() -> None:
            self.refused.set()
            raise StoreUnavailable("the disk is full")

        def take(store: SqliteStore, unit: Unit) -> Awaitable[None]:
            writes = (*unit.writes, *(entry.only_with for entry in unit.entries if entry.only_with is not None))
            if self.times and any(write.query.startswith("permission") for write in writes):
                self.times -= 1
                return refuse()
            return submit(store, unit)

        monkeypatch.setattr(SqliteStore, "submit", take)


async def test_an_ask_of_an_interrupted_run_is_withdrawn_although_the_store_refused_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A2, B6: the restore is tried again until the store takes it."""
    async with open_scenario(tmp_path, [[call("bash", command="mkdir b")]]) as scene:
        await scene.start("make one", ask=True)
        await scene.asked()
        store = Refusing(monkeypatch, 1)
        async with restarted(scene.running, ScriptedModel([])) as again:
            assert store.refused.is_set()
            assert (await again.workspace.run("r1")).outcome is Outcome.INTERRUPTED
            assert await again.workspace.asks.permissions() == ()
        monkeypatch.undo()
        await scene.cancel()


async def test_an_ask_that_could_not_be_withdrawn_with_its_call_is_withdrawn_with_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A2: the store refuses when a call is over, and its run is canceled before the store is tried again."""
    async with open_scenario(tmp_path, [[call("bash", command="mkdir b")]]) as scene:
        await scene.start("make one", ask=True)
        ask = await scene.asked()
        store = Refusing(monkeypatch, 1)
        over = asyncio.create_task(scene.workspace.asks.drop("r1", ask.tool_call_id))
        await store.refused.wait()
        over.cancel()
        await asyncio.wait([over])
        await scene.cancel()
        assert await scene.workspace.asks.permissions() == ()
