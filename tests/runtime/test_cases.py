"""A corpus in one test: every case is checked, and each that fails is named."""

import pytest

from cases import for_each


def test_every_case_is_checked_and_each_that_fails_is_named() -> None:
    seen = []

    @for_each("number", [1, 2, 3, 4])
    def is_odd(number: int, fixture: str) -> None:
        seen.append((number, fixture))
        assert number % 2 == 1

    with pytest.raises(ExceptionGroup) as raised:
        is_odd(fixture="shared")
    assert seen == [(number, "shared") for number in (1, 2, 3, 4)]
    assert raised.value.message == "2 of 4 cases failed:\n2\n4\n"
    assert [failure.__notes__ for failure in raised.value.exceptions] == [["Case: 2"], ["Case: 4"]]


def test_two_corpora_are_checked_in_every_combination() -> None:
    seen = []

    @for_each("letter", "ab")
    @for_each(("number", "name"), [(1, "one"), (2, "two")])
    def check(letter: str, number: int, name: str) -> None:
        seen.append((letter, number, name))

    check()
    assert seen == [("a", 1, "one"), ("a", 2, "two"), ("b", 1, "one"), ("b", 2, "two")]


def test_a_corpus_without_cases_is_refused() -> None:
    with pytest.raises(AssertionError, match="checks nothing"):
        for_each("number", [])
