"""Steps: the form that a model without native tools fills in, and how it is read."""

import json
from typing import Any

import jsonschema_rs
import pytest

from longboat.core.tool import ToolSpec
from longboat.models.protocol import ModelRequest
from longboat.models.tool_modes.steps import MAX_CALLS, Step, StepReader, as_steps
from longboat.models.tool_modes.tool_texts import TextCall
from longboat.wire.models import Message, Part, Role, TextPart, ToolCallPart, ToolResultPart

VIEW = ToolSpec(
    name="view",
    description="Read a file.",
    schema={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file.", "pattern": "^(?!x)"},
            "limit": {"type": "integer", "minimum": 1},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)
FREE = ToolSpec(name="free", description="Takes anything.", schema={"type": "object"})


def message(role: Role, *parts: Part) -> Message:
    return Message(id="i", session_id="s", run_id="r", seq=1, role=role, parts=parts, created_at="")


def request(**more: Any) -> ModelRequest:
    asked = (message(Role.USER, TextPart(text="Look.")),)
    return ModelRequest(**{"system": "Work.", "messages": asked, "tools": (VIEW, FREE)} | more)


def fits(asked: ModelRequest, value: Any) -> bool:
    assert asked.schema is not None
    return jsonschema_rs.is_valid(dict(asked.schema), value)


def a_call(tool: str = "view", **args: Any) -> dict[str, Any]:
    return {"tool": tool, "args": args}


def test_the_form_takes_calls_or_an_answer_and_nothing_else() -> None:
    form = as_steps(request(), openai_schema=True)
    good = [
        {"say": "I look.", "calls": [a_call(path="a"), a_call(path="b", limit=3), a_call("free", x=1)]},
        {"answer": "Done."},
    ]
    bad = [
        {},
        {"say": "I look."},
        {"say": "I look.", "calls": []},
        {"say": "I look.", "calls": [a_call(path="a")] * (MAX_CALLS + 1)},
        {"say": "I look.", "calls": [a_call("cook", path="a")]},
        {"say": "I look.", "calls": [a_call(limit=1)]},
        {"say": "I look.", "calls": [a_call(path="a", why="so")]},
        {"answer": "Done.", "calls": [a_call(path="a")]},
        {"answer": {"x": 1}},
    ]
    assert [fits(form, value) for value in good] == [True] * len(good)
    assert [fits(form, value) for value in bad] == [False] * len(bad)


def test_words_that_no_grammar_has_are_left_out_of_the_schema() -> None:
    written = json.dumps(as_steps(request(), openai_schema=True).schema)
    assert [word for word in ("pattern", "minimum", "description") if word in written] == []


def test_a_summary_may_not_call() -> None:
    form = as_steps(request(may_call=False), openai_schema=True)
    assert (fits(form, {"answer": "So far."}), fits(form, {"say": "", "calls": [a_call(path="a")]})) == (True, False)
    assert form.system == as_steps(request(), openai_schema=True).system, "the server's cache would be lost"


def test_the_schema_of_the_prompt_is_that_of_the_answer() -> None:
    wanted = {
        "$defs": {"count": {"type": "integer"}},
        "type": "object",
        "properties": {"files": {"$ref": "#/$defs/count"}},
        "required": ["files"],
    }
    form = as_steps(request(schema=wanted), openai_schema=True)
    assert fits(form, {"answer": {"files": 3}})
    assert fits(form, {"say": "I count.", "calls": [a_call(path="a")]})
    assert not fits(form, {"answer": "three"})
    reader = StepReader()
    reader.feed('{"answer": {"files": 3}}')
    assert reader.finish() == Step(text='{"files":3}')


def test_the_transcript_is_what_the_model_would_have_written() -> None:
    call = ToolCallPart(id="c1", name="view", input='{"path":"a.py"}', finished=True)
    messages = (
        message(Role.USER, TextPart(text="Hello.")),
        message(Role.ASSISTANT, TextPart(text="Hello!")),
        message(Role.USER, TextPart(text="Look.")),
        message(Role.ASSISTANT, TextPart(text="I look."), call),
        message(Role.TOOL, ToolResultPart(tool_call_id="c1", name="view", content="x = 1")),
    )
    form = as_steps(request(messages=messages), openai_schema=True)
    assert form.tools == ()
    said = [(each.role.value, part.text) for each in form.messages for part in each.parts if isinstance(part, TextPart)]
    assert said == [
        ("user", "Hello."),
        ("assistant", '{"answer":"Hello!"}'),
        ("user", "Look."),
        ("assistant", '{"say":"I look.","calls":[{"tool":"view","args":{"path":"a.py"}}]}'),
        ("user", "Result of call 1 (view):\nx = 1"),
    ]


# Reading


def read(text: str, *, piece: int) -> tuple[str, Step | None]:
    """What was shown while it came, and the rest."""
    reader = StepReader()
    shown = "".join(reader.feed(text[start : start + piece]) for start in range(0, len(text), piece))
    assert reader.written == text
    return shown, reader.finish()


WORDS = 'A "quoted" line\nand 🛶 — \\ ok'


@pytest.mark.parametrize("piece", [1, 2, 7, 1000])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_an_answer_is_shown_as_it_comes(piece: int, ascii_only: bool) -> None:
    written = json.dumps({"answer": WORDS}, ensure_ascii=ascii_only)
    assert read(written, piece=piece) == (WORDS, Step())


@pytest.mark.parametrize("piece", [1, 1000])
def test_calls_come_at_the_end(piece: int) -> None:
    step = {"say": WORDS, "calls": [a_call(path="a"), a_call("free")]}
    calls = (TextCall(name="view", arguments='{"path":"a"}'), TextCall(name="free", arguments="{}"))
    assert read(f"\n{json.dumps(step, indent=2)}\n", piece=piece) == (WORDS, Step(calls=calls))


def test_words_that_could_not_be_shown_before_come_with_the_rest() -> None:
    assert read('{"calls": [], "say": "late"}', piece=1) == ("", Step(text="late"))
    assert read('{"answer": "half \\ud83d of it"}', piece=1) == ("half ", Step(text="\ud83d of it"))


def test_a_step_that_was_cut_off_has_its_whole_calls_and_the_beginning_of_the_last() -> None:
    cut = '{"say": "I write.", "calls": [{"tool": "view", "args": {"path": "a"}}, {"tool": "free", "args": {"text": "on'
    calls = (TextCall(name="view", arguments='{"path": "a"}'), TextCall(name="free", arguments='{"text": "on'))
    assert read(cut, piece=1) == ("I write.", Step(calls=calls))
    assert read('{"answer": "So far', piece=1) == ("So far", Step())


@pytest.mark.parametrize("text", ["A plain answer.", '{"name": "view", "arguments": {}}', "", "{"])
def test_what_is_no_step_is_known_as_such(text: str) -> None:
    assert read(text, piece=1) == ("", None)
