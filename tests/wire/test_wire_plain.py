"""longboat.wire.plain: foreign text that cannot act on a terminal, and cannot hide in it."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from longboat.wire.plain import mark_hidden, plain, plain_line


def test_words_of_every_script_stay_as_they_are() -> None:
    for text in ("Grüße, 世界! ½", "نمی\u200cخواهم", "👩\u200d👩\u200d👧 ❤\ufe0f", "हिन्दी", "a\nb"):
        assert plain(text) == text


def test_what_would_act_is_shown_as_a_sign() -> None:
    assert plain("\x1b]52;c;AAAA\x07") == "␛]52;c;AAAA␇"
    assert plain("a\x9b2J\x7f") == "a�2J␡"
    assert plain("safe\u202egnp.exe") == "safe�gnp.exe"
    assert plain("r\u200dm r\u200bm \U000e0072 \ud83d") == "r�m r�m � �"


def test_lines_stay_and_tabs_become_columns() -> None:
    assert plain("a\tb\r\nc\rd") == "a   b\nc␍d"
    assert mark_hidden("a\tb\r\n") == "a\tb\n"
    assert plain_line(" a\tb\n\n c ") == "a b c"


@given(st.text(st.characters()))
def test_nothing_that_acts_is_left_of_any_text(text: str) -> None:
    for character in plain(text):
        assert character == "\n" or unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(character) not in (
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        )


@given(st.text())
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert plain(plain(text)) == plain(text)
