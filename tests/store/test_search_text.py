"""What is searched, and what a person types: pure, and never an error."""

import sqlite3

import pytest

from hostile import PAYLOADS
from longboat.store.search_text import (
    MAX_CALL,
    MAX_TEXT,
    MAX_WORDS,
    Term,
    parse_search,
    searchable_text,
    snippet_from,
)
from longboat.store.sqlite.search import match_expression
from longboat.wire.models import (
    FilePart,
    Message,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from longboat.wire.search import Snippet


def message(*parts: Part, role: Role = Role.ASSISTANT) -> Message:
    return Message(id="m", session_id="s", run_id="r", seq=1, role=role, parts=parts, created_at="")


def test_what_people_and_the_agent_said_is_searched_and_what_tools_answered_is_not() -> None:
    said = message(
        ReasoningPart(text="secret thought"),
        TextPart(text="Two\n\nlines"),
        ToolCallPart(id="c", name="bash", input='{"command": "make test", "timeout": 3}'),
    )
    assert searchable_text(said) == "Two lines bash make test"
    assert searchable_text(message(ToolResultPart(tool_call_id="c", content="x"), role=Role.TOOL)) == ""
    prompt = message(TextPart(text="Look"), FilePart(name="plan.md", media_type="text/plain", text="x"), role=Role.USER)
    assert searchable_text(prompt) == "Look plan.md"


@pytest.mark.parametrize("arguments", ["", "{", "[1]", '"x"', "[" * 5000, '{"a": 1}'])
def test_a_call_without_words_is_found_by_its_name(arguments: str) -> None:
    assert searchable_text(message(ToolCallPart(id="c", name="look", input=arguments))) == "look"


def test_long_texts_and_calls_are_cut() -> None:
    assert len(searchable_text(message(TextPart(text="a" * (MAX_TEXT + 5))))) == MAX_TEXT
    call = ToolCallPart(id="c", name="write", input=f'{{"content": "{"b" * 5000}"}}')
    assert searchable_text(message(call)) == f"write {'b' * MAX_CALL}"


@pytest.mark.parametrize(
    ("typed", "terms"),
    [
        ("", []),
        ("  ", []),
        ("!!! --", []),
        ('"', []),
        ("one two", [Term("one"), Term("two", prefix=True)]),
        ('one "two three"', [Term("one"), Term("two three")]),
        ('"two three" fo', [Term("two three"), Term("fo", prefix=True)]),
        ('unfinished "quote her', [Term("unfinished"), Term("quote her", prefix=True)]),
        ("foo-bar* NOT (x", [Term("foo-bar*"), Term("NOT"), Term("(x", prefix=True)]),
        ("a " * 40, [Term("a")] * MAX_WORDS),
    ],
)
def test_what_is_typed_becomes_terms(typed: str, terms: list[Term]) -> None:
    assert list(parse_search(typed)) == terms


HOSTILE = [
    '"', '""', '"""', "'", "*", "a*", "^a", "a:b", "body:a", "-a", "+a", "a AND", "AND", "OR OR", "NOT a", "NEAR(a b)",
    "NEAR(", "(a", "a)", "{a b}:c", "a\0b", "\0", "\ud800", "a\ud800", "%", "_", "\\", ";DROP TABLE texts", "é\u0301",
    "\u202ea", "😀", "日本語", "a" * 1000, '"a" "b', "a\nb", "\x01a\x02", "ﬀ", "١٢", "a\u200bb",
]  # fmt: skip


@pytest.mark.parametrize("typed", [*HOSTILE, *PAYLOADS])
def test_nothing_that_is_typed_is_an_error_of_the_index(typed: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE VIRTUAL TABLE texts USING fts5 (body, tokenize = "unicode61 remove_diacritics 2")')
    terms = parse_search(typed)
    if terms:
        connection.execute("SELECT * FROM texts WHERE texts MATCH ?", (match_expression(terms),)).fetchall()


def test_a_snippet_tells_where_its_matches_are() -> None:
    assert snippet_from("…the \x01broken\x02 build, \x01broken\x02") == Snippet(
        text="…the broken build, broken", matches=((5, 11), (19, 25))
    )
    assert snippet_from("none") == Snippet(text="none")
    assert snippet_from("\x01unclosed") == Snippet(text="unclosed")
