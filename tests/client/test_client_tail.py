"""A reader's place in the log, across connections."""

import pytest

from longboat.client.tail import Tail
from longboat.errors import LongboatError
from longboat.wire.events import Change, encode_body, encode_unlogged
from longboat.wire.models import MessageDelta, Resync, Snapshot


def delta(number: int) -> bytes:
    text = MessageDelta(message_id="m", session_id="s", run_id="r", part=0, offset=number, text=str(number))
    return f"id: w/1/{number}\n".encode() + encode_body(Change.UPDATED, text)


SNAPSHOT = encode_unlogged(Snapshot(cursor="w/1/4", sessions=(), runs=(), messages=()))


def test_the_first_connection_asks_for_no_place_and_the_snapshot_gives_one() -> None:
    tail = Tail(None)
    assert "last-event-id" not in tail.headers
    assert [event.type for event in tail.feed(SNAPSHOT)] == ["snapshot"]
    assert tail.headers["last-event-id"] == "w/1/4"


def test_half_a_frame_is_dropped_with_its_connection_and_its_cursor_not_taken() -> None:
    tail = Tail("w/1/0")
    frames = delta(1) + delta(2)
    assert [event.cursor for event in tail.feed(frames[:-1])] == ["w/1/1"]
    tail.connected()
    assert tail.headers["last-event-id"] == "w/1/1"
    assert [event.cursor for event in tail.feed(delta(2))] == ["w/1/2"]


def test_bytes_may_come_one_by_one() -> None:
    tail = Tail(None)
    events = [event for byte in SNAPSHOT + delta(5) for event in tail.feed(bytes([byte]))]
    assert [event.type for event in events] == ["snapshot", "message_delta"]


def test_unknown_types_are_passed_over_but_their_cursor_counts() -> None:
    tail = Tail("w/1/0")
    assert tail.feed(b'id: w/1/1\nevent: hologram\ndata: {"type":"hologram","payload":{}}\n\n') == []
    assert tail.cursor == "w/1/1"


def test_after_a_resync_the_snapshots_cursor_holds() -> None:
    tail = Tail("w/1/99")
    events = tail.feed(encode_unlogged(Resync(reason="too old")) + SNAPSHOT)
    assert [event.type for event in events] == ["resync", "snapshot"]
    assert tail.cursor == "w/1/4"


def test_an_event_that_cannot_be_read_is_a_clear_error() -> None:
    with pytest.raises(LongboatError) as caught:
        Tail(None).feed(b"event: run\ndata: {\n\n")
    assert caught.value.code == "bad_event"
