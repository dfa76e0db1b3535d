"""A turn on a store that fails, lags or refuses: the run outlives it, and ends once."""

import asyncio
import json
from pathlib import Path

import pytest
from checks import check_ends, full_disk, locked_store
from running_app import launch

from longboat.backoff import Backoff
from longboat.errors import StoreUnavailable
from longboat.runtime.turn.outbox import ROOM_CHARACTERS
from longboat.store.protocol import Unit
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel, ScriptedTool, Step, Use
from longboat.wire.asks import AskState
from longboat.wire.events import decode_event
from longboat.wire.models import Delivery, Outcome, RunState, Usage
from longboat.wire.requests import UpdateSession


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that failed is tried again soon."""
    monkeypatch.setattr("longboat.runtime.store_retry.BACKOFF", Backoff(base_s=0.01, factor=1.0))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("failure", [locked_store, full_disk])
async def test_a_turn_outlives_a_store_that_fails_while_it_streams(tmp_path: Path, failure: object) -> None:
    """L15, E2: the run stays active, health says why, nobody sees what is not on disk; then all of it, once."""
    begun, middle, end = Gate(), Gate(), Gate()
    long = "x" * 30_000
    script: Step = [Say("before. "), Pause(begun), Say(long), Pause(middle), Say(" after."), Pause(end)]
    async with launch(tmp_path, ScriptedModel([script])) as running:
        await running.submit("go", "r1")
        await begun.reached()
        await running.watcher.until(lambda event: event.type == "message_delta")
        with failure(running):  # type: ignore[operator]
            begun.open()
            await middle.reached()
            with pytest.raises(StoreUnavailable):
                await running.submit("me too" * 20_000, "r2")  # more than the pages that are there have room for
            assert running.app.health().status == "degraded"
            assert "".join(delta.text for delta in running.watcher.of("message_delta")) == "before. "
            assert (await running.workspace.run("r1")).state is RunState.ACTIVE
        middle.open()
        await end.reached()
        end.open()
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, f"before. {long} after.")
        assert running.app.health().status == "ok"
        await check_ends(running)


@pytest.mark.usefixtures("quick")
async def test_a_canceled_run_whose_end_cannot_be_written_ends_once_it_can(tmp_path: Path) -> None:
    """T4, T6, E2: the cancel is on disk, its end is not: the run stays active, no second cancel hurts, it ends once."""
    gate = Gate()
    tool = ScriptedTool("look", gate=gate)
    async with launch(tmp_path, ScriptedModel([[Say("so"), CallTool("look")], [Say("next")]]), tools=[tool]) as running:
        await running.submit("go", "r1")
        await gate.reached()
        shut = await running.held_actor()
        cancel = asyncio.create_task(running.workspace.cancel_run("r1"))
        await running.posted(1)
        failing = locked_store(running)

        async def fail() -> None:
            failing.__enter__()

        running.post(fail)
        shut.open()
        assert (await cancel).cancel_requested
        turn = running.actor._loop.turn
        assert turn is not None
        await asyncio.wait([turn._task])
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await running.submit("refused", "r2")
            assert (await running.workspace.cancel_run("r1")).state is RunState.ACTIVE
        assert running.app.health().status == "degraded"
        assert (await running.workspace.session_status(running.session_id)).busy
        assert running.watcher.terminals("r1") == []
        failing.__exit__(None, None, None)
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.CANCELED, "so")
        await running.submit("next", "r3")
        assert (await running.completed("r3")).text == "next"
        await check_ends(running)


@pytest.mark.usefixtures("quick")
async def test_a_model_is_held_back_while_the_store_fails(tmp_path: Path) -> None:
    """L15: what waits for the store is bounded, however often the write is tried again in vain."""
    begun = Gate()
    piece = "x" * (ROOM_CHARACTERS // 4)
    gates = [Gate() for _ in range(40)]
    script: Step = [Say("a"), Pause(begun), *[item for gate in gates for item in (Say(piece), Pause(gate))]]
    for gate in gates:
        gate.open()
    async with launch(tmp_path, ScriptedModel([script])) as running:
        await running.submit("go", "r1")
        await begun.reached()
        await running.watcher.until(lambda event: event.type == "message_delta")
        with locked_store(running):
            begun.open()
            outbox = running.actor._loop.turn._outbox  # type: ignore[union-attr]
            for _ in range(5):
                await outbox._settling()  # one more attempt was refused
            assert sum(gate.is_reached for gate in gates) < 10
        assert len((await running.completed("r1")).text) == 1 + 40 * len(piece)
        await check_ends(running)


async def test_a_rename_during_a_step_keeps_the_usage(tmp_path: Path) -> None:
    """The two meet while the rename is on its way to disk."""
    gate = Gate()
    async with launch(
        tmp_path, ScriptedModel([[Pause(gate), Say("a"), Use(input_tokens=7, output_tokens=5)]])
    ) as running:
        await running.submit("go", "r1")
        await gate.reached()
        submit, held = running.workspace.store.submit, Gate()

        def slow(unit: Unit) -> "asyncio.Future[None]":
            if all(write.query != "session_title" for write in unit.writes):
                return submit(unit)  # of the turn: the request that has just left, for one

            async def later() -> None:
                await held.arrive()
                await submit(unit)

            return asyncio.ensure_future(later())

        running.workspace.store.submit = slow  # type: ignore[method-assign]
        rename = asyncio.create_task(running.actor.update(UpdateSession(title="by a person")))
        await held.reached()
        gate.open()
        await running.posted(1)  # the turn has ended; its report waits behind the rename
        held.open()
        await rename
        await running.completed("r1")
        session = await running.workspace.session(running.session_id)
        assert (session.title, session.usage) == (
            "by a person",
            Usage(input_tokens=7, output_tokens=5, cost=None, unpriced_tokens=12),
        )
        stored = (await running.workspace.ledger.sessions(limit=10, after=None)).items
        assert [(s.title, s.usage) for s in stored] == [(session.title, session.usage)]
        await check_ends(running)


async def test_what_the_log_refuses_for_good_does_not_hold_up_the_turn(tmp_path: Path) -> None:
    """E1: a unit that will never commit is dropped and told of; whoever waits for the rest goes on."""
    model = ScriptedModel([[CallTool("look")], [Say("done")]])
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        writer = running.app._store._connection  # type: ignore[attr-defined]
        faults: list[str] = []

        def note(loop: object, context: dict[str, str]) -> None:
            faults.append(context["message"])
            writer.execute("DROP TRIGGER refuse")

        asyncio.get_running_loop().set_exception_handler(note)
        rule = "BEFORE INSERT ON messages WHEN new.role = 'assistant' BEGIN SELECT RAISE(IGNORE); END"
        writer.execute(f"CREATE TRIGGER refuse {rule}")
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "done"
        assert faults == ["the log rejected events of a turn"]


async def test_a_run_that_cannot_be_started_ends_instead_of_waiting_for_ever(tmp_path: Path) -> None:
    """E1: a unit that will never commit, at the very start of a run. The next run is not hurt."""
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        writer = running.app._store._connection  # type: ignore[attr-defined]
        rule = "BEFORE INSERT ON messages WHEN new.role = 'user' BEGIN SELECT RAISE(IGNORE); END"
        writer.execute(f"CREATE TRIGGER refuse {rule}")
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert complete.outcome is Outcome.ERROR
        assert "could not be started" in complete.error
        writer.execute("DROP TRIGGER refuse")
        await running.submit("again", "r2")
        assert (await running.completed("r2")).text == "echo: again"
        await check_ends(running)


@pytest.mark.parametrize("delivery", [Delivery.QUEUE, Delivery.STEER])
async def test_a_queued_run_that_cannot_be_started_does_not_hold_the_one_before_it(
    tmp_path: Path, delivery: Delivery
) -> None:
    """E1, L11: both end, and so does the third."""
    gate = Gate()
    model = ScriptedModel([[Pause(gate), CallTool("look")], [Say("done")], [Say("third")]])
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        await running.submit("go", "r1")
        await gate.reached()
        writer = running.app._store._connection  # type: ignore[attr-defined]
        rule = "BEFORE INSERT ON messages WHEN new.run_id = 'r2' BEGIN SELECT RAISE(IGNORE); END"
        writer.execute(f"CREATE TRIGGER refuse {rule}")
        await running.submit("poison", "r2", delivery=delivery)
        await running.watcher.in_state("r2", "queued")
        await running.submit("third", "r3")
        gate.open()
        assert (await running.completed("r2")).outcome is Outcome.ERROR
        assert (await running.completed("r3")).outcome is Outcome.END_TURN
        assert (await running.completed("r1")).outcome in (Outcome.END_TURN, Outcome.ERROR)


@pytest.mark.parametrize("kind", ["permission", "question"])
async def test_an_end_whose_last_words_are_refused_withdraws_what_its_run_asked(tmp_path: Path, kind: str) -> None:
    """E1, A2: the words are lost to a unit that will never commit; the ask goes with its run all the same."""
    calls = {"permission": ("bash", {"command": "touch x"}), "question": ("question", {"text": "Which?"})}
    name, arguments = calls[kind]
    model = ScriptedModel([[Say("so"), CallTool(name, json.dumps(arguments))], [Say("next")]])
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1")
        await running.watcher.until(lambda event: event.type == f"{kind}_request")
        writer = running.app._store._connection  # type: ignore[attr-defined]
        rule = "BEFORE INSERT ON messages WHEN new.run_id = 'r1' BEGIN SELECT RAISE(IGNORE); END"
        writer.execute(f"CREATE TRIGGER refuse {rule}")
        await running.workspace.cancel_run("r1")
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        writer.execute("DROP TRIGGER refuse")
        assert await running.workspace.asks.permissions() == ()
        assert await running.workspace.asks.questions() == ()
        (told,) = running.watcher.of(f"{kind}_notification")
        assert (told.run_id, told.state) == ("r1", AskState.WITHDRAWN)
        await running.submit("again", "r2")
        assert (await running.completed("r2")).text == "next"


async def test_a_prompt_to_an_idle_session_starts_in_its_accept_and_what_a_tool_is_about_to_do_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B1, B6: one commit, synced before the 202. What a turn streams may be lost in a power cut, a tool call not."""
    units: list[Unit] = []
    gate = Gate()
    tool = ScriptedTool("look", gate=gate)
    async with launch(tmp_path, ScriptedModel([[CallTool("look")], [Say("seen")]]), tools=[tool]) as running:
        submit = running.workspace.store.submit

        def noting(unit: Unit) -> "asyncio.Future[None]":
            units.append(unit)
            return submit(unit)

        monkeypatch.setattr(running.workspace.store, "submit", noting)
        await running.submit("go", "r1")
        await gate.reached()
        before = list(units)
        gate.open()
        await running.completed("r1")
    started, *later = before
    assert started.durable
    told = [decode_event(body.split(b"data: ", 1)[1], None) for body in bodies(started)]
    assert [(event.type, getattr(event.payload, "state", None)) for event in told if event is not None] == [
        ("run", RunState.ACCEPTED),
        ("run", RunState.ACTIVE),
        ("message", None),
        ("session", None),
    ]
    assert any(not unit.durable for unit in later)
    assert any(unit.durable and any(b"tool_call" in body for body in bodies(unit)) for unit in later)


async def test_the_start_of_a_queued_run_is_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B6: it was accepted before, and after a power cut it starts once more."""
    units: list[Unit] = []
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        submit = running.workspace.store.submit

        def noting(unit: Unit) -> "asyncio.Future[None]":
            units.append(unit)
            return submit(unit)

        monkeypatch.setattr(running.workspace.store, "submit", noting)
        gate = await running.held_actor()
        accepted = asyncio.create_task(running.submit("go", "r1"))
        await running.posted(1)
        other = running.hold_actor()  # something waits behind the accept: the run enters after it
        gate.open()
        await accepted
        other.open()
        await running.completed("r1")
    assert [unit.durable for unit in units[:2]] == [True, False]
    assert [b'"state":"active"' in b"".join(bodies(unit)) for unit in units[:2]] == [False, True]


def bodies(unit: Unit) -> list[bytes]:
    return [body for entry in unit.entries for body in entry.bodies]
