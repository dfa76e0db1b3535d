"""The SSE decoder: whole frames from bytes in any pieces."""

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longboat.wire.sse import HEARTBEAT, Decoder, Frame


def decode(*chunks: bytes) -> list[Frame]:
    decoder = Decoder()
    return [frame for chunk in chunks for frame in decoder.decode(chunk)]


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


_lines = st.sampled_from(
    [b"", b"data: one", b"data:two", b"data", b"event: run", b"id: w/1/2", b"id", b": heartbeat", b"retry: 5", b"d: x"]
)
_ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
_streams = st.lists(st.tuples(_lines | st.binary(max_size=8), _ends).map(b"".join), max_size=20).map(b"".join)


@settings(deadline=None)
@given(stream=_streams, places=st.lists(st.integers(0, 400), max_size=30))
@example(stream=b"data: a\r\n\r\ndata: b\r\r", places=[8, 9, 10, 11])
def test_any_cut_of_a_stream_gives_the_same_frames(stream: bytes, places: list[int]) -> None:
    assert decode(*cut(stream, places)) == decode(stream)


@settings(deadline=None)
@given(stream=_streams)
def test_byte_by_byte_gives_the_same_frames_and_the_same_last_id(stream: bytes) -> None:
    whole, pieces = Decoder(), Decoder()
    frames = whole.decode(stream)
    assert [frame for byte in stream for frame in pieces.decode(bytes([byte]))] == frames
    assert pieces.last_id == whole.last_id


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_all_three_line_ends_mean_the_same(end: bytes) -> None:
    stream = end.join([b"id: w/1/2", b"event: run", b"data: {}", b"", b"data: next", b"", b": "])
    assert decode(stream) == [Frame("run", b"{}", "w/1/2"), Frame("message", b"next", "w/1/2")]


def test_a_frame_is_given_out_as_soon_as_its_empty_line_is_there() -> None:
    decoder = Decoder()
    assert decoder.decode(b"id: w/1/2\nevent: run\ndata: {}\n") == []
    assert decoder.decode(b"\n") == [Frame("run", b"{}", "w/1/2")]
    assert decoder.decode(b"data: 1\n\ndata: 2\n\ndata: 3") == [
        Frame("message", b"1", "w/1/2"),
        Frame("message", b"2", "w/1/2"),
    ]


def test_comments_heartbeats_and_unknown_fields_make_no_frame() -> None:
    assert decode(HEARTBEAT, b": words: more\n\nretry: 100\nwhatever\n\n") == []
    assert decode(b"data: 1\n", HEARTBEAT[:-1], b"data: 2\n\n") == [Frame("message", b"1\n2", None)]


def test_data_lines_are_joined_and_one_leading_space_is_dropped() -> None:
    assert decode(b"data: a\ndata:b\ndata\ndata:  c: d\n\n") == [Frame("message", b"a\nb\n\n c: d", None)]


def test_an_event_without_data_is_dropped_and_does_not_name_the_next_one() -> None:
    assert decode(b"event: run\n\ndata: x\n\n") == [Frame("message", b"x", None)]


def test_an_id_holds_until_the_next_and_an_empty_one_resets_it() -> None:
    assert [frame.id for frame in decode(b"id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n")] == ["7", "7", ""]


def test_an_id_with_a_null_is_ignored() -> None:
    assert [frame.id for frame in decode(b"id: 7\ndata: a\n\nid: 8\0\ndata: b\n\n")] == ["7", "7"]


def test_a_frame_cut_off_half_way_does_not_move_the_cursor() -> None:
    """R3: a client that goes on after `last_id` would otherwise never see the event that was cut off."""
    decoder = Decoder()
    decoder.decode(b"id: w/1/1\ndata: a\n\nid: w/1/2\nevent: run_complete\ndata: {")
    assert decoder.last_id == "w/1/1"
    decoder.decode(b"}\n\n")
    assert decoder.last_id == "w/1/2"


def test_bytes_that_are_no_utf8_do_not_break_the_stream() -> None:
    assert decode(b"event: \xff\nid: \xfe\ndata: \xfd\n\n") == [Frame("\ufffd", b"\xfd", "\ufffd")]


def test_a_frame_is_given_out_with_the_line_end_that_ends_it_whatever_may_follow() -> None:
    """A CR is a line end: nobody waits for the LF that may come after it, and it then makes no line of its own."""
    decoder = Decoder()
    assert decoder.decode(b"data: 1\r\r") == [Frame("message", b"1", None)]
    assert decoder.decode(b"") == []
    assert decoder.decode(b"\n") == []
    assert decoder.decode(b"data: 2\r") == []
    assert decoder.decode(b"\n\r") == [Frame("message", b"2", None)]


def test_a_long_line_in_many_pieces_is_copied_a_few_times_and_not_once_for_every_piece() -> None:
    """E5: counted in bytes that decoding allocates; a snapshot of long prompts is one such line."""
    piece, pieces = b"a" * 1024, 512
    decoder = Decoder()
    decoder.decode(b"data: ")
    allocated = 0
    tracemalloc.start()
    try:
        for chunk in [piece] * pieces + [b"\n\n"]:
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            frames = decoder.decode(chunk)
            allocated += tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert [len(frame.data) for frame in frames] == [len(piece) * pieces]
    assert allocated < 10 * len(piece) * pieces
