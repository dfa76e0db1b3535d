"""Endless repetition in a text."""

import random

import pytest

from longboat.core.repetition import CHECKED, CHECKED_LONG, EVERY, RepetitionGuard


def first_stop(text: str, *, piece: int) -> int | None:
    """How much of the text was let through."""
    guard = RepetitionGuard()
    for start in range(0, len(text), piece):
        if guard.is_endless(text[start : start + piece]):
            return start + piece
    return None


@pytest.mark.parametrize("unit", ["a", "no, ", "I will read the file.\n", "x" * 299 + "\n"])
@pytest.mark.parametrize("piece", [1, 7, 400])
def test_the_same_words_over_and_over_are_noticed(unit: str, piece: int) -> None:
    lead = "Here is what I found.\n"
    stopped = first_stop(lead + unit * (6_000 // len(unit)), piece=piece)
    assert stopped is not None
    assert stopped <= CHECKED + len(lead) + EVERY + piece


@pytest.mark.parametrize("piece", [7, 400])
def test_the_same_paragraph_over_and_over_is_noticed_later(piece: int) -> None:
    dice = random.Random(1)
    paragraph = " ".join(dice.choice(["boat", "sea", "oar", "sail", "wind"]) for _ in range(200)) + "\n\n"
    stopped = first_stop(paragraph * 50, piece=piece)
    assert stopped is not None
    assert CHECKED_LONG <= stopped <= CHECKED_LONG + EVERY + piece
    assert first_stop(paragraph * 15, piece=piece) is None


def test_a_guard_of_what_a_call_writes_lets_a_file_of_equal_lines_be() -> None:
    guard = RepetitionGuard(CHECKED_LONG)
    assert not any(guard.is_endless("0, 0, 0\\n") for _ in range(1_000))
    assert any(guard.is_endless("0, 0, 0\\n") for _ in range(2_000))


def test_a_text_that_goes_somewhere_is_left_alone() -> None:
    dice = random.Random(1)
    prose = " ".join(dice.choice(["boat", "sea", "oar", "sail", "wind"]) for _ in range(5_000))
    numbered = "".join(f"{number}. The same line.\n" for number in range(1_000))
    ruler = "-" * 1_000 + "\n"
    assert [first_stop(text, piece=11) for text in (prose, numbered, ruler + prose)] == [None, None, None]
