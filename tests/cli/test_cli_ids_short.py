"""Ids in tables: short on a terminal, and never two that are the same; people instead of windows."""

import sys

import pytest

from longboat.cli.console import elapsed
from longboat.cli.ids import SHORT, short_ids
from longboat.wire.ids import describe_people, new_id


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)


def test_ids_for_programs_are_whole() -> None:
    ids = [new_id(), new_id()]
    assert short_ids(ids) == ids


@pytest.mark.usefixtures("terminal")
def test_ids_on_a_terminal_are_as_short_as_tells_them_apart() -> None:
    first, second, third = "0198c2f4-91ab-7000-8000-a", "0198c2f4-91ab-7000-8000-b", "0198c2f5-0000-7000-8000-c"
    assert short_ids([third, first], [first, second, third]) == ["0198c2f5-0000", first]
    assert short_ids([third]) == [third[:SHORT]]
    assert short_ids(["job-1", "job-12"]) == ["job-1", "job-12"]
    assert short_ids([]) == []


@pytest.mark.usefixtures("terminal")
def test_thousands_of_ids_of_one_moment_stay_unambiguous() -> None:
    ids = [new_id() for _ in range(3_000)]
    short = short_ids(ids)
    assert len(set(short)) == len(ids)
    ordered = sorted(ids)
    for name, whole in zip(short[::97], ids[::97], strict=True):
        assert [each for each in ordered if each.startswith(name)] == [whole]


def test_each_person_is_named_once() -> None:
    clients = ["ben", "anna:tui-1", "anna:web-2", "anna", ":odd"]
    assert describe_people(clients) == [":odd", "anna (3 windows)", "ben"]
    assert describe_people([]) == []


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("12:00:00.400", "0.4 s"),
        ("12:00:42.9", "42 s"),
        ("12:03:10", "3 min"),
        ("14:05:00", "2 h 5 min"),
        ("11:00:00", "0.0 s"),
    ],
)
def test_how_long_something_took(end: str, told: str) -> None:
    assert elapsed("2026-11-15T12:00:00Z", f"2026-11-15T{end}Z") == told
