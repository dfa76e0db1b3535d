"""What a door notes of a stream that passes by."""

import tracemalloc

import pytest

from longboat.fleet.frames import Follower
from longboat.wire.events import Change, encode_body, encode_unlogged
from longboat.wire.models import ClientInfo, Resync, Snapshot

SNAPSHOT = encode_unlogged(Snapshot(cursor="w/3/7", sessions=(), runs=(), messages=()))
HEARTBEAT = b": heartbeat\n\n"


def frame(number: int, name: str = 'say "id: w/9/9" and "cursor":"w/8/8"') -> bytes:
    return f"id: w/3/{number}\n".encode() + encode_body(Change.CREATED, ClientInfo(client_id=name, attached_at=""))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_frames_pass_whole_and_the_cursor_is_that_of_the_last_one(size: int) -> None:
    stream = SNAPSHOT + frame(8) + HEARTBEAT + frame(9) + b"id: w/3/10\nevent: client\ndata: {"
    frames, passed = Follower(), b""
    for start in range(0, len(stream), size):
        passed += frames.feed(stream[start : start + size])
        assert passed == b"" or passed.endswith(b"\n\n")
    assert passed == SNAPSHOT + frame(8) + HEARTBEAT + frame(9)
    assert frames.cursor == "w/3/9"


def test_a_snapshot_has_a_cursor_and_a_later_event_another() -> None:
    frames = Follower()
    frames.feed(encode_unlogged(Resync(reason="gone")) + SNAPSHOT)
    assert frames.cursor == "w/3/7"
    frames.feed(frame(8) + SNAPSHOT)
    assert frames.cursor == "w/3/7", "a snapshot after an event counts"
    frames.feed(SNAPSHOT + frame(8))
    assert frames.cursor == "w/3/8"


def test_after_a_break_the_next_frame_is_one_of_its_own() -> None:
    frames = Follower()
    frames.feed(frame(1) + frame(2)[:20])
    frames.drop_tail()
    assert frames.feed(frame(2)) == frame(2)


def test_a_large_frame_in_many_pieces_is_copied_once_and_not_once_for_every_piece() -> None:
    """Counted in bytes that are allocated; a snapshot of long prompts is one such frame, and a door reads 64 KB."""
    piece, pieces = b"a" * 1024, 512
    frames, passed, allocated = Follower(), b"", 0
    tracemalloc.start()
    try:
        for chunk in [b"id: w/3/1\ndata: ", *[piece] * pieces, b"\n", b"\nid: w/3/2\n"]:
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            passed = frames.feed(chunk) or passed
            allocated += tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert passed == b"id: w/3/1\ndata: " + piece * pieces + b"\n\n"
    assert frames.cursor == "w/3/1"
    assert allocated < 3 * len(piece) * pieces
