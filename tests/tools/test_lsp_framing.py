"""Frames of language servers, cut anywhere, and streams that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longboat.tools.lsp.client.framing import MAX_BODY, MAX_HEADER, Decoder, FramingError, frame


@given(st.lists(st.binary(max_size=40)), st.integers(min_value=1, max_value=17))
def test_bodies_come_out_as_they_went_in_wherever_the_stream_is_cut(bodies: list[bytes], step: int) -> None:
    stream = b"".join(map(frame, bodies))
    decoder, found = Decoder(), []
    for start in range(0, len(stream), step):
        found += decoder.decode(stream[start : start + step])
    assert found == bodies


def test_other_headers_in_any_case_are_fine() -> None:
    stream = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length: 2\r\n\r\n{}"
    assert Decoder().decode(stream) == [b"{}"]


def test_a_greeting_before_the_first_message_is_passed_over() -> None:
    assert Decoder().decode(b"Starting the server\n\nready.\n" + frame(b"{}")) == [b"{}"]
    assert Decoder().decode(b"no newline here: " + frame(b"{}")) == [b"{}"]


@pytest.mark.parametrize("chatter", [b"x" * (MAX_HEADER + 1), b"chatter\n" * MAX_HEADER], ids=["a line", "many lines"])
def test_endless_chatter_is_an_error(chatter: bytes) -> None:
    with pytest.raises(FramingError, match="something other than messages"):
        Decoder().decode(chatter)


def test_a_message_too_large_to_be_true_is_an_error() -> None:
    with pytest.raises(FramingError, match="announced"):
        Decoder().decode(b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1))
