"""JSON with comments: what it spells, where things stand in it, and that no text takes long to read."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from benchmarks.texts import JSONC
from hypothesis import given, settings
from hypothesis import strategies as st

from longboat.config import jsonc
from work import check_proportion

GAP = st.sampled_from(["", " ", "\n", "\r\n", "\t", '// a, ] " comment\n', "/* two\nlines, ] */", "/**/", " /*,*/ "])
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["// no", "/* no */", "a,]", '"', "\\"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=10,
)


def spell(value: Any, gap: Callable[[], str]) -> str:
    """The value with gaps between its tokens and a comma after the last item of whatever has items."""
    match value:
        case list() if value:
            items = [spell(item, gap) for item in value]
        case dict() if value:
            items = [f"{json.dumps(key)}{gap()}:{spell(item, gap)}" for key, item in value.items()]
        case _:
            return f"{gap()}{json.dumps(value)}{gap()}"
    start, end = "[]" if isinstance(value, list) else "{}"
    return f"{gap()}{start}{gap()}{f',{gap()}'.join(items)},{gap()}{end}{gap()}"


@settings(deadline=None)
@given(VALUE, st.data())
def test_comments_and_trailing_commas_change_nothing(value: Any, data: st.DataObject) -> None:
    assert jsonc.parse(spell(value, lambda: data.draw(GAP))) == value


@settings(deadline=None)
@given(st.text() | st.text('"\\/*,[]{}:1a\n '))
def test_any_text_is_read_or_refused_with_a_line_of_it(text: str) -> None:
    try:
        jsonc.parse(text)
        line = jsonc.lines(text)[()]
    except jsonc.JsoncError as error:
        line = error.line
    assert 1 <= line <= text.count("\n") + 1


@pytest.mark.parametrize(
    "text", ["[,]", "[1,,]", "{,}", '{"a":,}', "[1 2,]", ",", "[1],", '"open', '["a\\', "1 // \n, /**/", "[1,/*]"]
)
def test_a_comma_trails_after_a_value_only(text: str) -> None:
    with pytest.raises(jsonc.JsoncError):
        jsonc.parse(text)


@pytest.mark.parametrize("number", ["-" + "1" * 5000, "1" * 5000 + "x", "NaN", "NaN5", "-Infinity"])
def test_what_is_no_number_here_is_told_with_its_line(number: str) -> None:
    with pytest.raises(jsonc.JsoncError, match=r"too many digits|not allowed as a number") as caught:
        jsonc.parse(f'{{\n"a": "{number}",\n"b": {number}}}')
    assert caught.value.line == 3


def test_nesting_without_end_is_told() -> None:
    with pytest.raises(jsonc.JsoncError, match="nested too deeply"):
        jsonc.parse("[" * 100_000)


def test_lines_are_known_down_to_a_sensible_depth_and_after_it() -> None:
    text = '{"a":' + "[" * 500 + "1,\n2" + "]" * 500 + ',\n"b": 1}'
    found = jsonc.lines(text)
    assert (found["a",], found["b",]) == (1, 3)
    assert max(map(len, found)) == jsonc.MAX_DEPTH


@pytest.mark.parametrize("shape", JSONC)
def test_no_text_takes_more_steps_than_its_length(shape: str) -> None:
    """It is read on the event loop."""

    def read(size: int) -> None:
        text = JSONC[shape](size)
        with suppress(jsonc.JsoncError):
            jsonc.parse(text)
            jsonc.lines(text)

    check_proportion(read, 500)
