"""Ids and cursors: what we mint, what we let clients choose, and what we refuse."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longboat.errors import BadInput
from longboat.wire.ids import Cursor, check_own_id, new_id

OWN = string.ascii_letters + string.digits + "._:-"
_numbers = st.integers(0, 10**18 - 1)


def test_minted_ids_are_different_ordered_by_time_and_fit_for_own_ids() -> None:
    ids = [new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert ids == sorted(ids)
    assert all(check_own_id(one, field="run_id") == one for one in ids)


@settings(deadline=None)
@given(st.text(OWN, min_size=1, max_size=128).filter(lambda text: text not in (".", "..")))
def test_a_client_may_choose_any_id_of_the_allowed_characters(value: str) -> None:
    assert check_own_id(value, field="run_id") == value


@pytest.mark.parametrize(
    "value", ["", "a" * 129, "a b", "a/b", "a\n", "\n", "é", "a\0", "٣", "a%20b", "../x?y", ".", "..", "x" * 10_000]
)
def test_any_other_id_is_refused_by_the_name_of_its_field(value: str) -> None:
    with pytest.raises(BadInput, match=r"^client_id must be 1 to 128 characters") as refused:
        check_own_id(value, field="client_id")
    assert refused.value.code == "bad_client_id"
    assert len(refused.value.message) < 700, "a huge id is not echoed whole"


@settings(deadline=None)
@given(workspace_id=st.text(OWN, min_size=1, max_size=40), epoch=_numbers, number=_numbers)
def test_a_cursor_survives_the_way_to_the_client_and_back(workspace_id: str, epoch: int, number: int) -> None:
    cursor = Cursor(workspace_id, epoch, number)
    assert Cursor.parse(str(cursor)) == cursor


NOT_CURSORS = ["", "w", "w/1", "w/1/2/3", "w/1/", "w//2", "w/-1/2", "w/1/+2", "w/1/2 ", "w/1/2\n", "w/1/٣", "w/1/²"]
TOO_LONG = [f"w/1/{'9' * 19}", f"w/{'9' * 100_000}/1"]


@pytest.mark.parametrize("text", [*NOT_CURSORS, *TOO_LONG, "w/x/2", "w/1/1_0", "w/1/2.0", "w/0x1/2"])
def test_what_is_no_cursor_parses_to_none(text: str) -> None:
    assert Cursor.parse(text) is None


@settings(deadline=None)
@given(st.text(max_size=60))
def test_parse_never_raises(text: str) -> None:
    cursor = Cursor.parse(text)
    assert cursor is None or Cursor.parse(str(cursor)) == cursor


def test_cursors_of_one_workspace_are_ordered_by_epoch_then_number() -> None:
    assert Cursor("w", 1, 10) < Cursor("w", 2, 1) < Cursor("w", 2, 9) < Cursor("w", 2, 10)
