"""What a program wrote for a terminal, as plain text."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longboat.tools.process.terminal_text import LONGEST_ESCAPE, Plain


def plain(data: bytes, *cuts: int) -> str:
    """The text of `data`, given to the decoder cut at these places."""
    decoder, places = Plain(), [0, *sorted(cuts), len(data)]
    return "".join(decoder.decode(data[a:b]) for a, b in itertools.pairwise(places)) + decoder.flush()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b[1;31mred\x1b[0m\n", "red\n"),
        (b"\x1b[2J\x1b[H\x1b[?25lclean", "clean"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        (b"\x1b]52;c;c2VjcmV0\x07copied", "copied"),
        (b"\x1bP1$r\x1b\\\x1b(B\x1b7\x1bcx", "x"),
        (b"10%\r20%\r\ndone\r", "10%\n20%\ndone\n"),
        (b"a\x00\x08\x7fb\tc\xc2\x9b31m", "ab\tc31m"),
        ("ä€😀".encode() + b"\xff\xe2\x82", "ä€😀��"),
        (b"end\x1b", "end"),
        (b"end\x1b[31", "end[31"),
    ],
)
def test_escapes_and_controls_are_taken_out(data: bytes, text: str) -> None:
    assert plain(data) == text


PIECES = st.sampled_from(
    [b"\x1b", b"[", b"31m", b"]0;t", b"\x07", b"\\", b"\r", b"\n", b"x", "ä".encode(), b"\xe2\x82", b"P", b"(B"]
)


@given(pieces=st.lists(PIECES, max_size=12), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_text_cut_anywhere_comes_out_the_same_and_without_escapes(pieces: list[bytes], cuts: list[int]) -> None:
    data = b"".join(pieces)
    text = plain(data, *(min(cut, len(data)) for cut in cuts))
    assert text == plain(data)
    assert not set(text) & {"\x1b", "\r", "\x07"}


def test_an_escape_that_never_ends_is_not_kept_for_ever() -> None:
    decoder = Plain()
    decoder.decode(b"\x1b]0;")
    shown = "".join(decoder.decode(b"x" * 1_000) for _ in range(20))
    assert len(shown) > 20_000 - LONGEST_ESCAPE - 1_000
