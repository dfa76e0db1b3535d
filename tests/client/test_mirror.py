"""The SDK's copy of a workspace: whoever attaches, whenever, ends with what the server has."""

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from running_app import RunningApp, Watcher, launch, watch

from longboat.client import Mirror, Transcript
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel
from longboat.wire.asks import PermissionAnswer
from longboat.wire.events import Change, Event
from longboat.wire.models import Message, MessageDelta, Role, TextPart
from longboat.wire.requests import AnswerPermission

BIG = 100_000


def message(seq: int, text: str = "", *, finished: bool = False) -> Message:
    at = "2026-01-01T00:00:00.000000Z"
    return Message(
        id=f"m{seq}",
        session_id="s",
        run_id="r",
        seq=seq,
        role=Role.ASSISTANT,
        parts=(TextPart(text=text),),
        created_at=at,
        finished_at=at if finished else None,
    )


def delta(seq: int, offset: int, text: str) -> MessageDelta:
    return MessageDelta(message_id=f"m{seq}", session_id="s", run_id="r", part=0, offset=offset, text=text)


def texts(transcript: Transcript) -> list[str]:
    return [part.text for message in transcript.messages for part in message.parts if isinstance(part, TextPart)]


def read(transcript: Transcript, *messages: Message) -> Transcript:
    transcript.take(messages, newest=True)
    return transcript


def test_deltas_grow_a_message_and_a_repeat_changes_nothing() -> None:
    transcript = read(Transcript(), message(1))
    for each in (delta(1, 0, "one "), delta(1, 0, "one "), delta(1, 2, "e two")):
        transcript.extend(each)
    assert texts(transcript) == ["one two"]
    assert not transcript.stale


@pytest.mark.parametrize("late", [delta(1, 5, "x"), delta(7, 0, "x")])
def test_a_gap_makes_the_copy_stale_until_the_page_is_read(late: MessageDelta) -> None:
    transcript = read(Transcript(), message(1, "one"))
    transcript.extend(late)
    assert transcript.stale
    read(transcript, message(1, "one twox"), message(7, "x"))
    assert texts(transcript) == ["one twox", "x"]
    assert not transcript.stale


def test_what_the_stream_told_is_newer_than_what_was_read() -> None:
    """A page that was asked for before, and arrives after, takes nothing back."""
    transcript = read(Transcript(), message(1))
    transcript.extend(delta(1, 0, "all of it"))
    transcript.put(message(2, "new", finished=True))
    transcript.drop(message(3))
    transcript.take([message(0, "older", finished=True), message(1, "all"), message(3, "withdrawn")])
    assert texts(transcript) == ["older", "all of it", "new"]


def test_what_was_undone_comes_back_with_a_redo() -> None:
    transcript = read(Transcript(), message(1, "one", finished=True))
    transcript.drop(message(1))
    assert texts(transcript) == []
    transcript.put(message(1, "one", finished=True))
    assert texts(transcript) == ["one"]


def test_a_page_that_was_asked_for_before_a_snapshot_is_not_taken_after_it() -> None:
    """What it tells of may have been undone since, and nothing would say so again."""
    transcript = read(Transcript(), message(1, "kept", finished=True))
    asked_in = transcript.life
    transcript.begin()
    transcript.take([message(1, "kept", finished=True), message(2, "undone")], newest=True, life=asked_in)
    assert (texts(transcript), transcript.stale) == ([], True)
    transcript.take([message(1, "kept", finished=True)], newest=True, life=transcript.life)
    assert (texts(transcript), transcript.stale) == (["kept"], False)


def test_messages_of_sessions_that_nobody_looks_at_are_not_kept() -> None:
    mirror = Mirror()
    mirror.apply(Event("message", Change.CREATED, message(1, "x")))
    mirror.apply(Event("message_delta", Change.UPDATED, delta(1, 1, "y")))
    assert mirror.transcript("s").messages == []
    mirror.apply(Event("message", Change.CREATED, message(2, "z")))
    assert texts(mirror.transcript("s")) == ["z"]
    mirror.forget("s")
    assert mirror.transcript("s").messages == []


async def mirrored(running: RunningApp, events: Sequence[Event]) -> Mirror:
    mirror = Mirror()
    transcript = mirror.transcript(running.session_id)
    for event in events:
        mirror.apply(event)
    transcript.take(await running.messages(), newest=True)
    return mirror


async def test_whoever_attaches_at_whatever_moment_ends_with_the_same_copy(tmp_path: Path) -> None:
    """R and E: before, in the middle of a stream, while somebody is asked, after the end."""
    middle = Gate()
    steps = [
        [Say("Let me "), Pause(middle), Say("write"), CallTool("write", json.dumps({"path": "a", "content": "1\n"}))],
        [CallTool("todos", json.dumps({"items": [{"text": "rest"}]})), Say("")],
        [Say("done")],
    ]
    async with launch(tmp_path, ScriptedModel(steps, context_window=BIG)) as running, watch(running.workspace) as early:
        await running.submit("write a", "r1")
        await middle.reached()
        async with watch(running.workspace, client_id="middle") as halfway:
            middle.open()
            ask = (await running.watcher.until(lambda e: e.type == "permission_request")).payload
            async with watch(running.workspace, client_id="asked") as asked:
                waiting = await mirrored(running, asked.events)
                assert list(waiting.permissions) == [ask.id]
                assert [run.run_id for run in waiting.runs.values()] == ["r1"]
                answer = AnswerPermission(answer=PermissionAnswer.ONCE, client_id="ann")
                await running.workspace.asks.answer_permission(ask.id, answer)
                for watcher in (early, halfway, asked):
                    await watcher.completed("r1")
                async with watch(running.workspace, client_id="late") as late:
                    await _all_alike(running, early, halfway, asked, late)


async def _all_alike(running: RunningApp, *watchers: Watcher) -> None:
    whole = list(await running.messages())
    for watcher in watchers:
        mirror = await mirrored(running, watcher.events)
        assert mirror.transcript(running.session_id).messages == whole
        assert (mirror.runs, mirror.permissions, mirror.questions) == ({}, {}, {})
        assert set(mirror.sessions) == {running.session_id}
    told = [item.text for item in (await mirrored(running, watchers[0].events)).todos[running.session_id]]
    assert told == ["rest"]


async def test_a_resync_starts_the_copy_anew(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([[Say("hello")]], context_window=BIG)) as running:
        await running.submit("hi", "r1")
        await running.completed("r1")
        mirror = await mirrored(running, running.watcher.events)
        unknown = running.watcher.of("snapshot")[0].cursor.replace("/", "/9", 1)
        async with watch(running.workspace, client_id="lost", after=unknown) as lost:
            await lost.until(lambda event: event.type == "snapshot")
            for event in lost.events:
                mirror.apply(event)
        assert [event.type for event in lost.events][:2] == ["resync", "snapshot"]
        transcript = mirror.transcript(running.session_id)
        assert (transcript.stale, transcript.messages) == (True, [])
        transcript.take(await running.messages(), newest=True)
        assert msgspec.json.encode(transcript.messages) == msgspec.json.encode(list(await running.messages()))
