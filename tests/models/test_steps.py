"""Steps: the form that a model without native tools fills in, and how it is read."""

import json
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from longboat.core.limits import NUDGE_AT, Bounds, LimitCounter
from longboat.core.tool import ToolSpec
from longboat.models.protocol import ModelRequest
from longboat.models.tool_modes.steps import MAX_CALLS, MAX_LOOKS, Step, StepReader, as_steps
from longboat.models.tool_modes.tool_texts import TextCall
from longboat.wire.models import Message, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from longboat.wire.tools import Effect, ToolTraits

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
        {"thought": "I look.", "calls": [a_call(path="a"), a_call(path="b", limit=3), a_call("free", x=1)]},
        {"thought": "Done.", "answer": "Done."},
    ]
    bad = [
        {},
        {"thought": "I look."},
        {"thought": "I look.", "calls": []},
        {"thought": "I look.", "calls": [a_call(path="a")] * (MAX_CALLS + 1)},
        {"thought": "I look.", "calls": [a_call("cook", path="a")]},
        {"thought": "I look.", "calls": [a_call(limit=1)]},
        {"thought": "I look.", "calls": [a_call(path="a", why="so")]},
        {"thought": "", "answer": "Done.", "calls": [a_call(path="a")]},
        {"thought": "", "answer": {"x": 1}},
        {"answer": "Done."},
    ]
    assert [fits(form, value) for value in good] == [True] * len(good)
    assert [fits(form, value) for value in bad] == [False] * len(bad)


def examples(*tools: str) -> list[dict[str, Any]]:
    offered = tuple(ToolSpec(name=name, description="", schema={"type": "object"}) for name in tools)
    system = as_steps(request(tools=offered), openai_schema=True).system
    return [json.loads(line) for line in system.splitlines() if line.startswith('{"thought"') and "NAME" not in line]


def test_the_example_has_only_tools_that_are_offered_and_no_thought_twice() -> None:
    """Small models copy what they see: a thought that fits everywhere is all that they then think."""
    whole = examples("ls", "view", "edit", "bash")
    assert [call["tool"] for step in whole for call in step.get("calls", ())] == ["view", "edit", "bash"]
    assert len({step["thought"] for step in whole}) == len(whole) == 4
    assert [call["tool"] for step in examples("view") for call in step.get("calls", ())] == ["view"]
    assert [step.keys() for step in examples("free")] == [{"thought", "answer"}]


def test_words_that_no_grammar_has_are_left_out_of_the_schema() -> None:
    written = json.dumps(as_steps(request(), openai_schema=True).schema)
    assert [word for word in ("pattern", "minimum", "description") if word in written] == []


def test_a_step_that_was_made_twice_in_a_row_is_not_offered_again() -> None:
    """Small models repeat themselves for ever; the tool is back after the next step."""
    asked = message(Role.USER, TextPart(text="Look."))
    look, other = (
        (
            message(Role.ASSISTANT, ToolCallPart(id="c", name=name, input='{"path":"a"}', finished=True)),
            message(Role.TOOL, ToolResultPart(tool_call_id="c", name=name, content="x = 1")),
        )
        for name in ("view", "free")
    )
    again = {"thought": "", "calls": [a_call(path="a")]}
    for made, offered in [(look, True), (look + look, False), (look + look + other, True), (look + other + look, True)]:
        form = as_steps(request(messages=(asked, *made)), openai_schema=True)
        assert fits(form, again) is offered
        assert fits(form, {"thought": "", "calls": [a_call("free")]})


def test_a_step_whose_results_were_all_known_must_be_followed_by_an_answer() -> None:
    """Otherwise a small model repeats the same few calls until the limit ends the run without an answer."""
    call = ToolCallPart(id="c", name="view", input='{"path":"a"}', finished=True)
    counter = LimitCounter(Bounds(steps=99, failures=99, seconds=99))
    answer, again = {"thought": "", "answer": "x is 1."}, {"thought": "", "calls": [a_call("free")]}
    for time in range(1, NUDGE_AT + 1):
        result = ToolResultPart(tool_call_id="c", name="view", content="x = 1")
        note = counter.nudge(call, result) or ""
        shown = message(Role.TOOL, msgspec.structs.replace(result, content=f"{result.content}\n\n{note}"))
        asked = (message(Role.USER, TextPart(text="What is x?")), message(Role.ASSISTANT, call), shown)
        form = as_steps(request(messages=asked), openai_schema=True)
        assert fits(form, answer)
        assert fits(form, again) is (time < NUDGE_AT)


LS, EDIT = (
    ToolSpec(name=name, description="", schema={"type": "object"}, traits=ToolTraits(effect=effect))
    for name, effect in (("ls", Effect.READS), ("edit", Effect.CHANGES))
)
LOOKED = (
    message(Role.ASSISTANT, ToolCallPart(id="c", name="ls", input="{}", finished=True)),
    message(Role.TOOL, ToolResultPart(tool_call_id="c", name="ls", content="a.py")),
)
TASK = message(Role.USER, TextPart(text="Fix the mean in a.py."))


@pytest.mark.parametrize(
    ("more", "free"),
    [
        ({"messages": (TASK,)}, False),
        ({"messages": (TASK, *LOOKED, message(Role.ASSISTANT, TextPart(text="Done.")), TASK)}, False),
        ({"messages": (TASK, *LOOKED)}, True),
        ({"messages": (message(Role.USER, TextPart(text="Hello, who's there?")),)}, True),
        ({"messages": (TASK,), "tools": (LS,)}, True),
        ({"messages": (TASK,), "tools": (EDIT,)}, True),
        ({"messages": (TASK,), "schema": {"type": "string"}}, True),
    ],
    ids=["task", "second-task", "looked", "greeting", "cannot-change", "cannot-look", "answer-for-a-program"],
)
def test_a_turn_that_may_change_files_begins_with_a_look(more: dict[str, Any], free: bool) -> None:
    """Asked for a call or an answer, small models answer at once that all is done."""
    form = as_steps(request(**{"tools": (LS, EDIT)} | more), openai_schema=True)
    assert fits(form, {"thought": "", "answer": "Done."}) is free
    for tool in more.get("tools", (LS, EDIT)):
        assert fits(form, {"thought": "", "calls": [a_call(tool.name)]}) is (free or tool is LS)
        assert fits(form, {"thought": "", "calls": [a_call(tool.name)] * (MAX_LOOKS + 1)}) is free


def test_a_summary_may_not_call() -> None:
    form = as_steps(request(may_call=False), openai_schema=True)
    assert (
        fits(form, {"thought": "", "answer": "So far."}),
        fits(form, {"thought": "", "calls": [a_call(path="a")]}),
    ) == (True, False)
    assert form.system == as_steps(request(), openai_schema=True).system, "the server's cache would be lost"


def test_the_schema_of_the_prompt_is_that_of_the_answer() -> None:
    wanted = {
        "$defs": {"count": {"type": "integer"}},
        "type": "object",
        "properties": {"files": {"$ref": "#/$defs/count"}},
        "required": ["files"],
    }
    form = as_steps(request(schema=wanted), openai_schema=True)
    assert fits(form, {"thought": "", "answer": {"files": 3}})
    assert fits(form, {"thought": "I count.", "calls": [a_call(path="a")]})
    assert not fits(form, {"thought": "", "answer": "three"})
    reader = StepReader()
    reader.feed('{"thought": "", "answer": {"files": 3}}')
    assert reader.finish() == Step(answer='{"files":3}')


def test_the_transcript_is_what_the_model_would_have_written() -> None:
    call = ToolCallPart(id="c1", name="view", input='{"path":"a.py"}', finished=True)
    messages = (
        message(Role.USER, TextPart(text="Hello.")),
        message(Role.ASSISTANT, ReasoningPart(text="A greeting."), TextPart(text="Hello!")),
        message(Role.USER, TextPart(text="Look.")),
        message(Role.ASSISTANT, TextPart(text="I look."), call),
        message(Role.TOOL, ToolResultPart(tool_call_id="c1", name="view", content="x = 1")),
    )
    form = as_steps(request(messages=messages), openai_schema=True)
    assert form.tools == ()
    said = [(each.role.value, part.text) for each in form.messages for part in each.parts if isinstance(part, TextPart)]
    assert said == [
        ("user", "Hello."),
        ("assistant", '{"thought":"A greeting.","answer":"Hello!"}'),
        ("user", "Look."),
        ("assistant", '{"thought":"I look.","calls":[{"tool":"view","args":{"path":"a.py"}}]}'),
        ("user", "Result of call 1 (view):\nx = 1"),
    ]


# Reading


def read(text: str, *, piece: int) -> tuple[str, str, Step | None]:
    """What was read of the thought and of the answer while they came, and the rest."""
    reader = StepReader()
    pieces = [reader.feed(text[start : start + piece]) for start in range(0, len(text), piece)]
    assert reader.written == text
    return "".join(thought for thought, _ in pieces), "".join(answer for _, answer in pieces), reader.finish()


WORDS = 'A "quoted" line\nand 🛶 — \\ ok'


@pytest.mark.parametrize("piece", [1, 2, 7, 1000])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_thought_and_answer_are_read_as_they_come(piece: int, ascii_only: bool) -> None:
    written = json.dumps({"thought": WORDS, "answer": WORDS[::-1]}, ensure_ascii=ascii_only)
    assert read(written, piece=piece) == (WORDS, WORDS[::-1], Step())


@pytest.mark.parametrize("piece", [1, 1000])
def test_calls_come_at_the_end(piece: int) -> None:
    step = {"thought": WORDS, "calls": [a_call(path="a"), a_call("free")]}
    calls = (TextCall(name="view", arguments='{"path":"a"}'), TextCall(name="free", arguments="{}"))
    assert read(f"\n{json.dumps(step, indent=2)}\n", piece=piece) == (WORDS, "", Step(calls=calls))


def test_an_answer_that_could_not_be_read_before_comes_with_the_rest() -> None:
    assert read('{"answer": "late", "thought": ""}', piece=1) == ("", "", Step(answer="late"))
    half = '{"thought": "", "answer": "half \\ud83d of it"}'
    assert read(half, piece=1) == ("", "half ", Step(answer="\ud83d of it"))


def test_a_step_that_was_cut_off_has_its_whole_calls_and_the_beginning_of_the_last() -> None:
    whole = '{"thought": "I write.", "calls": [{"tool": "view", "args": {"path": "a"}}'
    cut = f'{whole}, {{"tool": "free", "args": {{"text": "on'
    calls = (TextCall(name="view", arguments='{"path": "a"}'), TextCall(name="free", arguments='{"text": "on'))
    assert read(cut, piece=1) == ("I write.", "", Step(calls=calls))
    assert read('{"thought": "", "answer": "So far', piece=1) == ("", "So far", Step())


@pytest.mark.parametrize("text", ["A plain answer.", '{"name": "view", "arguments": {}}', "", "{"])
def test_what_is_no_step_is_known_as_such(text: str) -> None:
    assert read(text, piece=1) == ("", "", None)


def test_a_field_that_takes_anything_or_several_types_can_be_asked_for() -> None:
    """MCP servers write such schemas."""
    fields = {"any": True, "text": {"type": ["string", "null"]}, "list": {"type": "array", "items": True}}
    odd = ToolSpec(name="odd", description="Odd.", schema={"type": "object", "properties": fields})
    asked = as_steps(request(tools=(odd,)), openai_schema=True)
    assert "any (any JSON, optional)\n    text (any JSON, optional)\n    list (list of any JSON" in asked.system
    assert asked.schema is not None
    validator = jsonschema_rs.validator_for(dict(asked.schema))
    for given in ({"any": 5}, {"any": "x", "text": None}, {"list": [1, "x"]}):
        arguments = {"any": None, "text": "", "list": []} | given
        assert validator.is_valid({"thought": "", "calls": [{"tool": "odd", "args": arguments}]})
