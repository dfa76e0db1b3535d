"""One log, many cursors: the same events in the same order for everybody, from any place, at any pace (http.md)."""

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from busy_workspace import launch_busy, logged, read_at_own_pace, work_in_two_sessions
from mirror import frames_in, log_of, number_of
from running_app import RunningApp, launch, watch

from longboat.errors import SessionNotFound
from longboat.runtime.workspace.hub import CHUNK_BYTES
from longboat.store.protocol import Entry, Row, Unit
from longboat.store.sqlite.store import SqliteReader
from longboat.testing import Gate, Pause, Say, ScriptedModel, Step
from longboat.wire.events import Change, encode_body
from longboat.wire.ids import Cursor
from longboat.wire.models import ClientInfo, RunState
from longboat.wire.requests import CreateSession
from longboat.wire.sse import HEARTBEAT


def small_ring(monkeypatch: pytest.MonkeyPatch, size: int = 1) -> None:
    monkeypatch.setattr("longboat.runtime.workspace.hub.RING_BYTES", size)


# One order


async def test_every_client_sees_the_same_bytes_in_the_same_order(tmp_path: Path) -> None:
    async with launch_busy(tmp_path) as running, watch(running.workspace, client_id="two") as two:
        async with watch(running.workspace, client_id="three") as three:
            await work_in_two_sessions(running)
            last = running.watcher.events[-1].cursor
            for other in (two, three):
                await other.until(lambda event: event.cursor == last)
                mine = logged(other)
                assert mine == logged(running.watcher)[-len(mine) :]
        frames = [frame for row in await log_of(running.workspace) for frame in frames_in(row["frames"])]
        first = number_of(running.watcher.events[1].cursor)
        mine = logged(running.watcher)
        assert frames[first - 1 : first - 1 + len(mine)] == mine


async def test_numbers_have_no_gap_and_every_event_its_own_cursor(tmp_path: Path) -> None:
    async with launch_busy(tmp_path) as running:
        await work_in_two_sessions(running)
        rows = await log_of(running.workspace)
        assert [row["first"] for row in rows] == [1, *(row["last"] + 1 for row in rows[:-1])]
        frames = [frame for row in rows for frame in frames_in(row["frames"])]
        ids = [frame.partition(b"\n")[0] for frame in frames]
        log = f"{running.workspace.id}/{running.workspace.store.epoch}"
        assert ids == [f"id: {log}/{number}".encode() for number in range(1, len(frames) + 1)]


def cursor_at(running: RunningApp, number: int) -> str:
    return str(Cursor(running.workspace.id, running.workspace.store.epoch, number))


async def newest_cursor(running: RunningApp) -> str:
    return cursor_at(running, (await log_of(running.workspace))[-1]["last"])


# Cursors


@pytest.mark.parametrize("source", ["ring", "store", "store, page by page"])
async def test_every_cursor_of_a_log_continues_with_the_very_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """Last-Event-ID: deltas included, and also from the middle of an entry."""
    if source != "ring":
        small_ring(monkeypatch)
    if source == "store, page by page":
        monkeypatch.setattr("longboat.runtime.workspace.hub.STORE_PAGE", 2)
        monkeypatch.setattr("longboat.runtime.workspace.hub.CHUNK_BYTES", 100)
    async with launch_busy(tmp_path) as running:
        await running.submit("one two", "r1")
        await running.completed("r1")
        rows = await log_of(running.workspace)
        assert any(row["first"] < row["last"] for row in rows), "there is a middle of an entry"
        frames = [frame for row in rows for frame in frames_in(row["frames"])]
        assert len(frames) > 50
        for place in range(1, len(frames)):
            async with read_at_own_pace(running, after=cursor_at(running, place)) as stream:
                assert await stream.take(len(frames) - place) == frames[place:]


@pytest.mark.parametrize(
    "cursor",
    ["{w}/{e}/999999", "{w}/2/1", "{w}/0/1", "{w}/{e}/0", "elsewhere/{e}/1", "{w}/{e}", "{w}/{e}/-1", "garbage", ""],
)
async def test_a_cursor_that_is_not_in_the_log_brings_resync_and_snapshot(tmp_path: Path, cursor: str) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        named = cursor.format(w=running.workspace.id, e=running.workspace.store.epoch)
        async with watch(running.workspace, after=named) as late:
            await running.submit("hello", "r1")
            await late.completed("r1")
        assert [event.type for event in late.events[:2]] == ["resync", "snapshot"]
        assert number_of(late.events[2].cursor) == number_of(late.events[1].payload.cursor) + 1


async def test_a_stream_of_one_session_leaves_the_others_out(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        other = (await running.workspace.create_session(CreateSession())).id
        async with watch(running.workspace, client_id="narrow", session_id=other) as narrow:
            for index in range(3):
                await running.submit("mine", f"m{index}")
                await running.submit("other", f"o{index}", session_id=other)
                await running.completed(f"m{index}")
                await running.completed(f"o{index}")
            await narrow.completed("o2")
        expected = [
            frame
            for event, frame in zip(running.watcher.events[1:], logged(running.watcher), strict=True)
            if getattr(event.payload, "session_id", getattr(event.payload, "id", other)) == other
        ]
        assert logged(narrow) == expected[-len(logged(narrow)) :]
        assert len(narrow.terminals("o2")) == 1
        third = narrow.events[-3].cursor
        async with read_at_own_pace(running, after=third, session_id=other) as again:
            assert await again.take(2) == logged(narrow)[-2:]


async def test_a_stream_of_a_session_that_is_not_there_is_refused(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        with pytest.raises(SessionNotFound):
            async with running.workspace.stream(client_id="c", after=None, session_id="nobody"):
                pass


# Pace


async def test_a_quiet_stream_has_a_heartbeat(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo(), heartbeat_s=0.01) as running, read_at_own_pace(running) as stream:
        frames = await stream.take(4)
        assert frames[0].startswith(b"event: snapshot")
        assert frames[1:] == [HEARTBEAT] * 3


async def test_r3_a_stream_that_resumes_where_nothing_was_missed_begins_with_a_heartbeat(tmp_path: Path) -> None:
    """Else a client that lost its connection for a moment shows an outage until the next regular one."""
    async with launch(tmp_path, ScriptedModel.echo(), heartbeat_s=3600) as running:
        await running.submit("hello", "r1")
        await running.completed("r1")
        async with read_at_own_pace(running, after=await newest_cursor(running)) as stream:
            assert await stream.take(1) == [HEARTBEAT]


async def test_a_stuck_reader_slows_nobody_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E5: runs come to their ends, memory stays bounded, and the reader gets everything once it reads."""
    small_ring(monkeypatch, 5_000)
    async with launch_busy(tmp_path) as running, read_at_own_pace(running) as stuck:
        (snapshot,) = await stuck.take(1)
        for index in range(2):
            await running.submit("all the seas of the world", f"r{index}")
            await running.completed(f"r{index}")
        hub = running.workspace.presence.hub
        assert hub._size <= 5_000
        assert hub._size == sum(len(entry.data) for entry in hub._ring.values())
        assert len(hub._waiting) <= 1, "only the watcher waits"
        seen = logged(running.watcher)
        assert sum(map(len, seen)) > 10 * 5_000, "the ring has long moved on"
        at = number_of(msgspec.json.decode(snapshot.partition(b"data: ")[2])["payload"]["cursor"])
        numbers = [number_of(event.cursor) for event in running.watcher.events[1:]]
        expected = seen[numbers.index(at + 1) :]
        assert await stuck.take(len(expected)) == expected


async def test_a_closed_hub_ends_streams_after_the_last_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B5: also for a reader that is far behind."""
    small_ring(monkeypatch)
    async with launch_busy(tmp_path) as running, read_at_own_pace(running) as slow:
        await slow.take(1)
        await running.submit("one", "r1")
        await running.completed("r1")
        await running.app.leave(drain_s=0, hurry=asyncio.Event())
        await running.watcher.ended.wait()
        rest = await slow.rest()
        assert rest == logged(running.watcher)[-len(rest) :]
        assert b'"type":"run_complete"' in rest[-1]


# Large frames


@dataclass
class Drain:
    """What is read from the store: the bytes of the log's frames, and how often the reader was asked."""

    size: int = 0
    fetches: int = 0


@pytest.fixture
def drain(monkeypatch: pytest.MonkeyPatch) -> Drain:
    """Look only: nothing is changed."""
    seen, fetch = Drain(), SqliteReader.fetch

    async def look(self: SqliteReader, query: str, **params: Any) -> list[Row]:
        rows = await fetch(self, query, **params)
        if query.startswith("events_"):
            seen.fetches += 1
            seen.size += sum(len(row["frames"]) for row in rows if "frames" in row.keys())  # noqa: SIM118 - a Row
        return rows

    monkeypatch.setattr(SqliteReader, "fetch", look)
    return seen


async def written(running: RunningApp, sizes: Sequence[int], session_id: str) -> None:
    """Entries of these sizes in the log, one after the other."""
    for size in sizes:
        client = ClientInfo(client_id="x" * size, attached_at="")
        entry = Entry(bodies=(encode_body(Change.CREATED, client),), session_id=session_id)
        await running.workspace.store.submit(Unit(workspace_id=running.workspace.id, entries=[entry]))


@pytest.mark.only_sqlite
async def test_a_replay_reads_every_byte_of_the_log_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drain: Drain
) -> None:
    """E5: large and small entries in turns, and an end that is not at the end of a page."""
    small_ring(monkeypatch)
    sizes = [10, 3 * CHUNK_BYTES, 20, 30, CHUNK_BYTES, *[1000] * 200, 2 * CHUNK_BYTES, 5] * 2
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        start = await newest_cursor(running)
        await written(running, sizes, running.session_id)
        expected = [row["frames"] for row in await log_of(running.workspace)][-len(sizes) :]
        drain.size = drain.fetches = 0
        async with read_at_own_pace(running, after=start) as stream:
            assert await stream.take(len(sizes)) == expected
        total = sum(map(len, expected))
        assert drain.size == total - len(expected[-1]), "the newest comes from the ring"
        assert drain.fetches < 4 * total / CHUNK_BYTES, "small entries come many at a time"


async def test_an_unwanted_frame_is_passed_over_without_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drain: Drain
) -> None:
    small_ring(monkeypatch)
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        start = await newest_cursor(running)
        await written(running, [CHUNK_BYTES] * 20, "somebody else's")
        await written(running, [10, 20], running.session_id)
        mine = [row["frames"] for row in await log_of(running.workspace)][-2:]
        drain.size = 0
        async with read_at_own_pace(running, after=start, session_id=running.session_id) as stream:
            assert await stream.take(2) == mine
        assert drain.size <= sum(map(len, mine))


@pytest.mark.parametrize("source", ["ring", "store"])
async def test_no_chunk_is_larger_than_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """E5: what a stuck connection holds in its buffer is bounded, whatever the size of a frame."""
    if source == "store":
        small_ring(monkeypatch)
    sizes = [10, 3 * CHUNK_BYTES + 7, 20, CHUNK_BYTES // 2, CHUNK_BYTES // 2 + 1, 1000, 2 * CHUNK_BYTES]
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        start = await newest_cursor(running)
        await written(running, sizes, running.session_id)
        expected = [row["frames"] for row in await log_of(running.workspace)][-len(sizes) :]
        async with read_at_own_pace(running, after=start) as stream:
            assert await stream.take(len(sizes)) == expected
            assert max(stream.chunks) <= CHUNK_BYTES


async def test_a_snapshot_larger_than_a_chunk_comes_in_slices(tmp_path: Path) -> None:
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Pause(gate), Say("done")]])) as running:
        await running.submit("x" * 3 * CHUNK_BYTES, "r1")
        await gate.reached()
        async with read_at_own_pace(running) as stream:
            (snapshot,) = await stream.take(1)
            assert max(stream.chunks) == CHUNK_BYTES
        payload = msgspec.json.decode(snapshot.partition(b"data: ")[2])["payload"]
        assert [len(run["prompt"]) for run in payload["runs"]] == [3 * CHUNK_BYTES]
        gate.open()
        await running.completed("r1")


async def test_all_who_read_a_large_entry_from_the_ring_hold_the_same_bytes(tmp_path: Path) -> None:
    """E5: sixty stuck readers of ten megabytes cost ten megabytes."""
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        before = (await log_of(running.workspace))[-1]["last"]
        await written(running, [10, 3 * CHUNK_BYTES], running.session_id)
        hub = running.workspace.presence.hub
        small = hub._from_ring(before, None)
        assert small is not None
        large = hub._from_ring(before + 1, None)
        assert large is not None
        assert (small.number, large.number) == (before + 1, before + 2)
        assert large.frames is hub._ring[before + 2].data


@pytest.mark.only_sqlite
async def test_all_who_stand_at_the_same_large_entry_of_the_store_hold_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drain: Drain
) -> None:
    """E5: the same for those who fell behind. It is forgotten when the last of them has gone on."""
    small_ring(monkeypatch)
    async with launch(tmp_path, ScriptedModel.echo()) as running, AsyncExitStack() as stack:
        before = (await log_of(running.workspace))[-1]["last"]
        await written(running, [3 * CHUNK_BYTES, 10], running.session_id)
        large = (await log_of(running.workspace))[-2]["frames"]
        drain.size = 0
        after = cursor_at(running, before)
        chunks = [
            await stack.enter_async_context(running.workspace.stream(client_id="watcher", after=after, session_id=None))
            for _ in range(5)
        ]
        assert [await anext(stream) for stream in chunks] == [large[:CHUNK_BYTES]] * 5
        assert drain.size == len(large)
        assert len(running.workspace.presence.hub._pages) == 1
        for stream in chunks:
            rest = [await anext(stream) for _ in range(3)]
            assert b"".join(rest) == large[CHUNK_BYTES:]
            await anext(stream)
        assert len(running.workspace.presence.hub._pages) == 0


@pytest.mark.only_sqlite
async def test_a_run_does_not_wait_for_those_who_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E5: every replay stands still in the middle of a read, and a run goes from its prompt to its end."""
    small_ring(monkeypatch)
    async with launch_busy(tmp_path) as running, AsyncExitStack() as stack:
        await running.submit("one", "r1")
        await running.completed("r1")
        start = cursor_at(running, 1)
        stuck, on, fetch, loop = asyncio.Event(), threading.Event(), SqliteReader.fetch, asyncio.get_running_loop()

        async def stall(self: SqliteReader, query: str, **params: Any) -> list[Row]:
            if query.startswith("events_") and params["number"] == 1:
                loop.call_soon_threadsafe(stuck.set)
                on.wait()
            return await fetch(self, query, **params)

        monkeypatch.setattr(SqliteReader, "fetch", stall)
        stack.callback(on.set)
        streams = [await stack.enter_async_context(read_at_own_pace(running, after=start)) for _ in range(5)]
        reading = [asyncio.create_task(stream.take(1)) for stream in streams]
        await stuck.wait()
        async with asyncio.timeout(30):
            await running.submit("two", "r2")
            assert (await running.workspace.run("r2", wait_s=60)).state is RunState.FINISHED
        on.set()
        frames = [frames_in(row["frames"]) for row in await log_of(running.workspace)]
        second = [frame for row in frames for frame in row][1]
        assert await asyncio.gather(*reading) == [[second]] * 5


# Retention


def make_old(directory: Path, *, up_to: int) -> None:
    """As if these events had been written long ago."""
    store = sqlite3.connect(directory / "data" / "longboat.db")
    store.execute("UPDATE events SET written_s = 0 WHERE last <= ?", (up_to,))
    store.commit()
    store.close()


@pytest.mark.only_sqlite
async def test_pruning_forgets_the_oldest_and_leaves_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_ring(monkeypatch)
    async with launch_busy(tmp_path) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        before = await log_of(running.workspace)
        middle = before[len(before) // 2]["last"]
        make_old(tmp_path, up_to=middle)
        await running.app.prune_once()
        rows = await log_of(running.workspace)
        assert rows == [row for row in before if row["first"] > middle]
        async with read_at_own_pace(running, after=cursor_at(running, middle)) as late:
            resync, snapshot = await late.take(2)
            assert resync.startswith(b"event: resync")
            assert snapshot.startswith(b"event: snapshot")
        async with read_at_own_pace(running, after=cursor_at(running, middle + 1)) as early:
            expected = [frame for row in rows for frame in frames_in(row["frames"])][1:]
            assert await early.take(len(expected)) == expected


@pytest.mark.only_sqlite
async def test_pruning_everything_keeps_the_newest_so_that_numbers_go_on(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        newest = (await log_of(running.workspace))[-1]
        make_old(tmp_path, up_to=newest["last"])
        await running.app.prune_once()
        assert await log_of(running.workspace) == [newest]
        session_id = running.session_id
    async with launch(tmp_path, ScriptedModel.echo(), session_id=session_id) as running:
        first = await running.watcher.until(lambda event: event.type == "snapshot")
        assert number_of(first.payload.cursor) > newest["last"]


@pytest.mark.only_sqlite
async def test_pruning_keeps_what_an_open_message_needs(tmp_path: Path) -> None:
    gate = Gate()
    script: list[Step] = [[Say("All "), Say("of "), Say("it"), Pause(gate), Say(".")]]
    async with launch(tmp_path, ScriptedModel(script)) as running:
        await running.submit("go", "r1")
        await gate.reached()
        await running.watcher.until(lambda event: event.type == "message_delta" and event.payload.text.endswith("it"))
        before = await log_of(running.workspace)
        make_old(tmp_path, up_to=before[-1]["last"])
        await running.app.prune_once()
        assert len(await log_of(running.workspace)) < len(before)
        async with read_at_own_pace(running) as stream:
            (snapshot,) = await stream.take(1)
        assert b'"text":"All of it"' in snapshot
        gate.open()
        assert (await running.completed("r1")).text == "All of it."


@pytest.mark.only_sqlite
async def test_a_reader_caught_by_pruning_gets_a_resync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_ring(monkeypatch)
    async with launch_busy(tmp_path) as running, read_at_own_pace(running) as stuck:
        await stuck.take(1)
        await running.submit("one", "r1")
        await running.completed("r1")
        make_old(tmp_path, up_to=1_000_000)
        await running.app.prune_once()
        resync, snapshot = await stuck.take(2)
        assert resync.startswith(b"event: resync")
        assert snapshot.startswith(b"event: snapshot")
        await running.submit("two", "r2")
        await running.completed("r2")
        seen = logged(running.watcher)
        at = number_of(msgspec.json.decode(snapshot.partition(b"data: ")[2])["payload"]["cursor"])
        numbers = [number_of(event.cursor) for event in running.watcher.events[1:]]
        expected = seen[numbers.index(at + 1) :]
        assert await stuck.take(len(expected)) == expected
