"""The bars of `longboat stats`."""

from longboat.cli.stats import WIDTH, bar


def test_the_largest_has_the_whole_width_and_half_of_it_half() -> None:
    assert bar(10, 10) == "█" * WIDTH
    assert bar(5, 10) == "█" * (WIDTH // 2)


def test_what_is_there_at_all_is_seen_and_nothing_is_not() -> None:
    assert bar(1, 10**9) == "▏"
    assert bar(0, 10) == ""
    assert bar(0, 0) == ""
