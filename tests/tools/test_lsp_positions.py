"""Columns found for models, UTF-16 for servers, and edits made where they belong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longboat.tools.context import ToolError
from longboat.tools.lsp.client.positions import Lines, apply, find, path_of
from longboat.tools.lsp.client.shapes import Position, Range, TextEdit

TEXT = st.text(alphabet="ab😀é\n\r\t ", max_size=40)


def position(line: int, character: int) -> Position:
    return Position(line=line, character=character)


def edit(start: tuple[int, int], end: tuple[int, int], new_text: str) -> TextEdit:
    return TextEdit(range=Range(start=position(*start), end=position(*end)), new_text=new_text)


def test_a_character_beyond_the_basic_plane_counts_twice() -> None:
    lines = Lines('x = "😀"; hello()')
    assert lines.position(9) == position(0, 10)
    assert lines.offset(position(0, 10)) == 9


def test_a_line_ends_at_lf_crlf_and_a_lone_cr() -> None:
    lines = Lines("a\r\nb\rc\nd")
    assert [lines.offset(position(number, 0)) for number in range(4)] == [0, 3, 5, 7]


def test_a_position_past_its_line_is_at_the_end_of_it() -> None:
    lines = Lines("ab\r\ncé\n")
    assert [lines.offset(position(0, 99)), lines.offset(position(1, 99)), lines.offset(position(99, 0))] == [2, 6, 7]


@given(TEXT, st.data())
def test_offset_and_position_undo_each_other(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    lines = Lines(text)
    back = lines.offset(lines.position(offset))
    # Between the two characters of a line end there is no place.
    assert back == offset or text[back:offset] == "\r"


def test_edits_are_all_seen_from_the_text_before() -> None:
    edits = [edit((1, 0), (1, 1), "two"), edit((0, 0), (0, 1), "one"), edit((1, 1), (1, 1), "!")]
    assert apply("a\nb\n", edits) == "one\ntwo!\n"


def test_insertions_at_one_place_keep_their_order() -> None:
    assert apply("ab", [edit((0, 1), (0, 1), "1"), edit((0, 1), (0, 1), "2")]) == "a12b"


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply("abcd", [edit((0, 0), (0, 3), "x"), edit((0, 2), (0, 4), "y")])


SOURCE = (
    "import os\n\ndef area(width, height):\n    return width * height\n\n\n\n\nprint(shape.area(2, 3), area_of, area)\n"
)


def places(symbol: str, line: int | None) -> list[str]:
    """The text from each place on, up to the end of its line."""
    return [SOURCE[offset:].splitlines()[0] for offset in find(SOURCE, symbol, line, "a.py")]


def test_a_symbol_is_found_on_its_line_as_a_whole_word() -> None:
    assert places("width", 4) == ["width * height"]
    assert places("area", 3) == ["area(width, height):"]
    assert places("area_of", 9) == ["area_of, area)"]


def test_all_places_on_the_line_are_given_since_one_may_be_in_a_string() -> None:
    assert places("area", 9) == ["area(2, 3), area_of, area)", "area)"]


def test_a_symbol_is_found_near_a_line_that_is_a_little_off() -> None:
    assert places("area", 5) == places("area", 3)


def test_without_a_line_the_first_places_are_taken() -> None:
    assert places("height", None) == ["height):", "height"]
    assert find("x " * 100, "x", None, "a.py") == [0, 2, 4, 6, 8]


def test_of_a_dotted_name_the_last_part_is_meant() -> None:
    assert places("shape.area", 9) == ["area(2, 3), area_of, area)"]
    assert places("math.area", 3) == ["area(width, height):"]


def test_a_symbol_elsewhere_is_told_with_its_lines() -> None:
    with pytest.raises(ToolError, match=r"'os' is not on line 9 of a\.py, which reads 'print.*It is on: 1\."):
        find(SOURCE, "os", 9, "a.py")
    with pytest.raises(ToolError, match=r"not on line 90 of a\.py \(9 lines long\)"):
        find(SOURCE, "os", 90, "a.py")


def test_a_symbol_that_is_nowhere_is_told() -> None:
    with pytest.raises(ToolError, match=r"'rea' is not in a\.py"):
        find(SOURCE, "rea", 3, "a.py")
    with pytest.raises(ToolError, match="symbol is empty"):
        find(SOURCE, "  ", 3, "a.py")


def test_only_uris_of_files_here_have_a_path() -> None:
    assert path_of("file:///a%20b/%C3%A9.py") == "/a b/é.py"
    assert path_of("file://localhost/a") == "/a"
    assert path_of("untitled:1") is None
    assert path_of("file://elsewhere/a") is None
