"""A snapshot is the committed state exactly at its cursor, and events carry it on without a seam (http.md)."""

import asyncio
import random
from pathlib import Path

import msgspec
import pytest
from bench import WriterGate
from boat import Boat, Watcher, launch, watch
from mirror import Mirror, check_places, number_of, states
from voyage import draw, launch_busy, logged, voyage

from longboat.store.sqlite.store import SqliteStore
from longboat.testing import Gate, Pause, Say, ScriptedModel, Use
from longboat.wire.models import Usage
from longboat.wire.requests import CreateSession, UpdateSession


async def test_a_snapshot_is_the_committed_state_exactly_at_its_cursor(tmp_path: Path) -> None:
    """Attach at random moments of a busy workspace: what one has then, and what comes after, is what all have."""
    chance = random.Random(7)
    over = asyncio.Event()
    readers: list[Watcher] = []

    async def attach_now_and_then(boat: Boat) -> None:
        while not over.is_set():
            for _ in range(chance.randrange(40)):
                await asyncio.sleep(0)
            async with watch(boat.workspace, client_id=f"reader{len(readers) % 5}") as reader:
                readers.append(reader)
                await reader.until(lambda event: event.type == "snapshot")
                for _ in range(chance.randrange(40)):
                    await asyncio.sleep(0)

    async with launch_busy(tmp_path) as boat:
        attaching = [asyncio.create_task(attach_now_and_then(boat)) for _ in range(3)]
        await voyage(boat)
        over.set()
        await asyncio.gather(*attaching)
        async with draw(boat) as stream:
            (final,) = await stream.take(1)
        cursor = msgspec.json.decode(final.partition(b"data: ")[2])["payload"]["cursor"]
        await boat.watcher.until(lambda event: event.cursor == cursor)
        known = states(boat.watcher.events)
        numbered = zip(boat.watcher.events[1:], logged(boat.watcher), strict=True)
        frames = {number_of(event.cursor): frame for event, frame in numbered}

    assert len(readers) > 30
    in_mid_stream = 0
    for reader in readers:
        snapshot = reader.events[0].payload
        at = number_of(snapshot.cursor)
        assert Mirror.of(snapshot) == known[at]
        check_places(snapshot.runs)
        in_mid_stream += any(part for message in snapshot.messages for part in message.parts)
        assert [frames[number_of(event.cursor)] for event in reader.events[1:]] == logged(reader)
        numbers = [number_of(event.cursor) for event in reader.events[1:]]
        assert numbers == list(range(at + 1, at + 1 + len(numbers)))
    assert in_mid_stream > 10, "the proof is worth something only if messages were open"


async def test_a_client_that_follows_from_its_snapshot_ends_with_what_the_store_has(tmp_path: Path) -> None:
    async with launch_busy(tmp_path) as boat:
        await voyage(boat)
        mirror = Mirror.of(boat.watcher.events[0].payload)
        whole: dict[str, object] = {}
        for event in boat.watcher.events[1:]:
            mirror.apply(event)
            if event.type == "message" and event.payload.session_id == boat.session_id:
                whole[event.payload.id] = event.payload
        assert list(whole.values()) == list(await boat.messages())
        assert (mirror.runs, mirror.messages) == ({}, {})
        assert list(mirror.sessions.values()) == [await boat.workspace.session(boat.session_id)]


async def test_a_snapshot_of_one_session_has_it_however_old_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longboat.runtime.workspace.hub.SNAPSHOT_SESSIONS", 2)
    async with launch(tmp_path, ScriptedModel.echo()) as boat:
        newer = [(await boat.workspace.create_session(CreateSession())).id for _ in range(2)]
        async with watch(boat.workspace, session_id=boat.session_id) as one, watch(boat.workspace) as everything:
            mine = (await one.until(lambda event: event.type == "snapshot")).payload
            all_of_them = (await everything.until(lambda event: event.type == "snapshot")).payload
        assert [session.id for session in mine.sessions] == [boat.session_id]
        assert [session.id for session in all_of_them.sessions] == newer[::-1]


async def test_a_rename_and_the_usage_of_a_step_that_meet_are_both_told(tmp_path: Path) -> None:
    """The step ends while the rename is on its way to disk: no client is left with the old title."""
    gate = Gate()
    script = [[Say("done"), Pause(gate), Use(input_tokens=3, output_tokens=5)]]
    async with launch(tmp_path, ScriptedModel(script)) as boat:
        await boat.submit("go", "r1")
        await gate.reached()
        await boat.watcher.until(lambda event: event.type == "message_delta")
        assert isinstance(boat.workspace.store, SqliteStore)
        writer = WriterGate(boat.workspace.store)
        renaming = asyncio.create_task(boat.workspace.update_session(boat.session_id, UpdateSession(title="new")))
        await writer.reached()
        gate.open()
        await asyncio.wait([boat.actor._loop.turn._task])  # type: ignore[union-attr]
        writer.open()
        await renaming
        await boat.completed("r1")
        told = boat.watcher.of("session")[-1]
        assert (told.title, told.usage) == ("new", Usage(input_tokens=3, output_tokens=5, cost=None, unpriced_tokens=8))
        assert told == await boat.workspace.session(boat.session_id)
        before = [session.usage for session in boat.watcher.of("session")[:-1]]
        assert before == [Usage()] * len(before), "what is not on disk is not told"
