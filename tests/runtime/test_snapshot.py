"""A snapshot is the committed state exactly at its cursor, and events carry it on without a seam (http.md)."""

import asyncio
import random
from pathlib import Path

import msgspec
import pytest
from bench import WriterGate
from busy_workspace import launch_busy, logged, read_at_own_pace, work_in_two_sessions
from mirror import Mirror, check_places, number_of, states
from running_app import RunningApp, Watcher, launch, watch

from longboat.store.sqlite.store import SqliteStore
from longboat.testing import Gate, Pause, Say, ScriptedModel, Use
from longboat.wire.models import Usage
from longboat.wire.requests import CreateSession, UpdateSession


async def test_a_snapshot_is_the_committed_state_exactly_at_its_cursor(tmp_path: Path) -> None:
    """Attach at random moments of a busy workspace: what one has then, and what comes after, is what all have."""
    chance = random.Random(7)
    over = asyncio.Event()
    readers: list[Watcher] = []

    async def attach_now_and_then(running: RunningApp) -> None:
        while not over.is_set():
            for _ in range(chance.randrange(40)):
                await asyncio.sleep(0)
            async with watch(running.workspace, client_id=f"reader{len(readers) % 5}") as reader:
                readers.append(reader)
                await reader.until(lambda event: event.type == "snapshot")
                for _ in range(chance.randrange(40)):
                    await asyncio.sleep(0)

    async with launch_busy(tmp_path) as running:
        attaching = [asyncio.create_task(attach_now_and_then(running)) for _ in range(3)]
        await work_in_two_sessions(running)
        over.set()
        await asyncio.gather(*attaching)
        async with read_at_own_pace(running) as stream:
            (final,) = await stream.take(1)
        cursor = msgspec.json.decode(final.partition(b"data: ")[2])["payload"]["cursor"]
        await running.watcher.until(lambda event: event.cursor == cursor)
        known = states(running.watcher.events)
        numbered = zip(running.watcher.events[1:], logged(running.watcher), strict=True)
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
    async with launch_busy(tmp_path) as running:
        await work_in_two_sessions(running)
        mirror = Mirror.of(running.watcher.events[0].payload)
        whole: dict[str, object] = {}
        for event in running.watcher.events[1:]:
            mirror.apply(event)
            if event.type == "message" and event.payload.session_id == running.session_id:
                whole[event.payload.id] = event.payload
        assert list(whole.values()) == list(await running.messages())
        assert (mirror.runs, mirror.messages) == ({}, {})
        assert list(mirror.sessions.values()) == [await running.workspace.session(running.session_id)]


async def test_a_snapshot_of_one_session_has_it_however_old_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longboat.runtime.workspace.hub.SNAPSHOT_SESSIONS", 2)
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        newer = [(await running.workspace.create_session(CreateSession())).id for _ in range(2)]
        async with (
            watch(running.workspace, session_id=running.session_id) as one,
            watch(running.workspace) as everything,
        ):
            mine = (await one.until(lambda event: event.type == "snapshot")).payload
            all_of_them = (await everything.until(lambda event: event.type == "snapshot")).payload
        assert [session.id for session in mine.sessions] == [running.session_id]
        assert [session.id for session in all_of_them.sessions] == newer[::-1]


@pytest.mark.only_sqlite
async def test_a_rename_and_the_usage_of_a_step_that_meet_are_both_told(tmp_path: Path) -> None:
    """The step ends while the rename is on its way to disk: no client is left with the old title."""
    gate = Gate()
    script = [[Say("done"), Pause(gate), Use(input_tokens=3, output_tokens=5)]]
    async with launch(tmp_path, ScriptedModel(script)) as running:
        await running.submit("go", "r1")
        await gate.reached()
        await running.watcher.until(lambda event: event.type == "message_delta")
        assert isinstance(running.workspace.store, SqliteStore)
        writer = WriterGate(running.workspace.store)
        renaming = asyncio.create_task(running.workspace.update_session(running.session_id, UpdateSession(title="new")))
        await writer.reached()
        gate.open()
        await asyncio.wait([running.actor._loop.turn._task])  # type: ignore[union-attr]
        writer.open()
        await renaming
        await running.completed("r1")
        told = running.watcher.of("session")[-1]
        assert (told.title, told.usage) == ("new", Usage(input_tokens=3, output_tokens=5, cost=None, unpriced_tokens=8))
        assert told == await running.workspace.session(running.session_id)
        before = [session.usage for session in running.watcher.of("session")[:-1]]
        assert before == [Usage()] * len(before), "what is not on disk is not told"
