"""What was asked in a turn, as hooks and summaries are told of it (A5, A7)."""

from longboat.core.turn import Asked


def test_each_prompt_is_told_once_and_only_the_first_began_the_turn() -> None:
    asked = Asked("fix it")
    assert list(asked.untold()) == [("fix it", True)]
    asked.add("and test it")
    assert list(asked.untold()) == [("and test it", False)]
    assert list(asked.untold()) == []


def test_what_is_added_while_the_others_are_told_is_told_too() -> None:
    asked = Asked("a")
    told = []
    for prompt, first in asked.untold():
        told.append((prompt, first))
        if first:
            asked.add("b")
    assert told == [("a", True), ("b", False)]


def test_taking_back_takes_the_newest_of_two_that_read_the_same() -> None:
    asked = Asked("again")
    asked.add("other")
    asked.add("again")
    asked.take_back("again")
    assert asked.text() == "again\n\nother"


def test_one_that_was_taken_back_before_it_was_told_hides_none_that_comes_later() -> None:
    asked = Asked("a")
    asked.add("b")
    list(asked.untold())
    asked.take_back("b")
    asked.add("c")
    assert list(asked.untold()) == [("c", False)]


def test_one_that_is_taken_back_while_it_is_told_hides_none_that_came_behind_it() -> None:
    """A hook guards what the model reads: none may slip past it."""
    asked = Asked("a")
    asked.add("b")
    asked.add("c")
    told = []
    for prompt, _ in asked.untold():
        told.append(prompt)
        if prompt == "b":
            asked.take_back("b")
    assert told == ["a", "b", "c"]


def test_what_is_forgotten_is_in_no_summary() -> None:
    asked = Asked("a")
    asked.begin_with("what a server made of it")
    assert asked.text() == "what a server made of it"
    asked.forget()
    assert asked.text() == ""
