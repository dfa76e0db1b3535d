"""Which answers are tool calls that a model printed, and which only show one. What is not certain is an answer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from model_events import answer_events

from longboat.core.tool import ToolSpec
from longboat.models.protocol import (
    EVERYTHING,
    Finished,
    ModelEvent,
    ModelRequest,
    Notice,
    StopReason,
    TextDelta,
    ToolCallStart,
)
from longboat.models.tool_modes.memory import ToolMemory, ToolUse
from longboat.models.tool_modes.model import NATIVE, STEPS, ToolModel
from longboat.models.tool_modes.printed_calls import fits
from longboat.wire.models import Message, Role, TextPart, Usage
from longboat.wire.tools import Effect, ToolTraits


def offered(name: str, field: str, effect: Effect) -> ToolSpec:
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return ToolSpec(name=name, description="", schema=schema, traits=ToolTraits(effect=effect))


TOOLS = (offered("view", "path", Effect.READS), offered("bash", "command", Effect.RUNS))
CALL = '{"name": "bash", "arguments": {"command": "make deploy"}}'
FENCED = f"```json\n{CALL}\n```"
SCHEMA = '{"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}'
LIST = '```json\n[{"name": "bash", "description": "Run a command"}, {"name": "view", "description": "Read"}]\n```'
BROKEN = '```json\n{"name": "bash", "arguments": {"command": "echo "hello""}}\n```'
TASK = "Deploy this please."

REAL = {
    "fenced": FENCED,
    "bare": CALL,
    "tagged": f"<tool_call>\n{CALL}\n</tool_call>",
    "tagged in a fence": f"```xml\n<tool_call>{CALL}</tool_call>\n```",
    "Qwen's other tag": f"<tools>\n{CALL}\n</tools>",
    "Mistral": f"[TOOL_CALLS] [{CALL}]",
    "Llama": '<function=bash>{"command": "make deploy"}</function>',
    "parameters": '{"name": "bash", "parameters": {"command": "make deploy"}}',
    "one line before it": f"I will deploy it now.\n\n{FENCED}",
    "two calls": f'{FENCED}\n\n```json\n{{"name": "view", "arguments": {{"path": "a.py"}}}}\n```',
}
"""Answers of weak models and of servers without a parser, which are nothing but calls."""

SHOWN = {
    "an example after prose": f"Deploying works with a tool.\nIt takes a command:\n\n{FENCED}",
    "an example after one line": f"This is what a call looks like:\n\n{FENCED}",
    "an example in French": f"Voici un exemple :\n\n{FENCED}",
    "text after it": f"{FENCED}\nThat is all.",
    "made-up results": f"I deploy it.\n{FENCED}\nThe deployment has succeeded.",
    "two variants": f"Either\n{FENCED}\nor\n{FENCED}",
    "in the middle of a line": f"The model prints <tool_call>{CALL}</tool_call>",
    "the tools as a list": LIST,
    "the tools as OpenAI's API takes them": f'[{{"function": {{"name": "bash", "parameters": {SCHEMA}}}}}]',
    "the tools as Anthropic's API takes them": f'{{"name": "bash", "input_schema": {SCHEMA}}}',
    "one tool with its parameters": f'```json\n{{"name": "bash", "parameters": {SCHEMA}}}\n```',
    "a list that is cut off": '```json\n[{"name": "bash", "description": "Run a comm',
    "another tool": '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>',
    "a required field is missing": '{"name": "bash", "arguments": {}}',
    "a field has another type": '{"name": "bash", "arguments": {"command": {"run": "make"}}}',
    "XML with tools": '```xml\n<tools>\n  <tool name="hammer"/>\n</tools>\n```',
    "XML that begins with tools": '<tools>\n  <tool name="hammer"/>\n</tools>',
    "Mistral's token": "Mistral's answers begin with\n[TOOL_CALLS]\nand then JSON.",
    "Llama's tag": "<function=foo> is no C++.",
    "Llama's call of another tool": '```\n<function=get_time>{"tz": "UTC"}</function>\n```',
    "a package": '```json\n{"name": "view", "version": "1.0"}\n```',
    "a broken example": f"This would be wrong:\n\n{BROKEN}",
    "a broken call and an answer": f"{BROKEN}\n\nThe quotes are wrong.",
}
"""Answers that people want to read, with or without a call in them."""


class OneAnswer:
    """A model that gives these answers in order, in small pieces."""

    provider, name, context_window, abilities = "mine", "m", 32_000, EVERYTHING

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.requests: list[ModelRequest] = []

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        self.requests.append(request)
        yield self._events(self._answers.pop(0))

    async def _events(self, text: str) -> AsyncIterator[ModelEvent]:
        for start in range(0, len(text), 5):
            yield TextDelta(text[start : start + 5])
        yield Finished(StopReason.END_TURN, Usage(input_tokens=5_000, output_tokens=5))

    async def aclose(self) -> None:
        pass


class Outcome:
    """What came of an answer."""

    def __init__(self, events: list[ModelEvent], asked: int, remembered: ToolUse | None) -> None:
        self.text = "".join(event.text for event in events if isinstance(event, TextDelta))
        self.calls = [event.name for event in events if isinstance(event, ToolCallStart)]
        self.notices = [event.message for event in events if isinstance(event, Notice)]
        self.asked = asked
        self.remembered = remembered


async def answer(text: str, directory: Path, *, native: bool, prompt: str = TASK) -> Outcome:
    adapter = OneAnswer(text, '{"thought": "", "answer": "Asked again."}')
    memory = ToolMemory(directory, address="http://here", model="m")
    if native:
        memory.keep(NATIVE)
    said = Message(
        id="i", session_id="s", run_id="r", seq=1, role=Role.USER, parts=(TextPart(text=prompt),), created_at=""
    )
    async with ToolModel(adapter, memory).stream(ModelRequest(system="s", messages=(said,), tools=TOOLS)) as events:
        heard = [event async for event in answer_events(events)]
    return Outcome(heard, len(adapter.requests), memory.recall())


def each(answers: dict[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("text", answers.values(), ids=answers.keys())


@each(REAL)
async def test_a_model_that_is_not_known_and_prints_a_call_has_made_it(text: str, tmp_path: Path) -> None:
    found = await answer(text, tmp_path, native=False)
    assert (found.calls[:1], found.asked, found.remembered) == (["bash"], 1, STEPS)
    assert "make deploy" not in found.text


@each(SHOWN)
async def test_an_answer_that_may_be_more_than_a_call_stands(text: str, tmp_path: Path) -> None:
    found = await answer(text, tmp_path, native=False)
    assert (found.text, found.calls, found.asked, found.remembered) == (text, [], 1, None)


@each(REAL | SHOWN | {"a broken call": BROKEN})
async def test_text_of_a_model_that_calls_natively_is_never_executed_and_no_error(text: str, tmp_path: Path) -> None:
    found = await answer(text, tmp_path, native=True)
    assert (found.text, found.calls, found.asked, found.remembered) == (text, [], 1, NATIVE)


@pytest.mark.parametrize(
    "prompt",
    [
        "Show me an example of calling bash, as JSON.",
        "What does a tool call of bash look like?",
        "Which tools do you have? As JSON.",
        "Give me an example of a bash call.",
    ],
)
@pytest.mark.parametrize("native", [True, False])
async def test_a_call_that_the_prompt_asks_to_see_is_only_shown(prompt: str, native: bool, tmp_path: Path) -> None:
    found = await answer(FENCED, tmp_path, native=native, prompt=prompt)
    assert (found.text, found.calls, found.asked) == (FENCED, [], 1)


@pytest.mark.parametrize("prompt", ["Run the examples.", "Fix tools/build.py", "Add an example to the README."])
async def test_a_task_that_is_not_about_calls_is_carried_out(prompt: str, tmp_path: Path) -> None:
    found = await answer(FENCED, tmp_path, native=False, prompt=prompt)
    assert (found.calls[:1], found.remembered) == (["bash"], STEPS)


async def test_people_are_told_of_a_call_that_was_not_made(tmp_path: Path) -> None:
    """By a model that calls natively, only where the answer is nothing else."""
    for native, text, told in (
        (True, FENCED, 1),
        (True, SHOWN["an example after one line"], 0),
        (True, LIST, 0),
        (False, SHOWN["made-up results"], 1),
        (False, LIST, 0),
    ):
        found = await answer(text, tmp_path / f"{native}{text[:20]}", native=native)
        assert len(found.notices) == told, text
        assert all('"tools": "steps"' in notice for notice in found.notices)


async def test_a_call_that_cannot_be_parsed_is_asked_for_again(tmp_path: Path) -> None:
    found = await answer(BROKEN, tmp_path, native=False)
    assert (found.text, found.asked, found.remembered) == ("Asked again.", 2, STEPS)


@pytest.mark.parametrize(
    ("value", "schema", "verdict"),
    [
        (5, {"type": "integer"}, True),
        (True, {"type": "integer"}, False),
        (None, {"type": ["string", "null"]}, True),
        ("x", {"enum": ["y"]}, False),
        (["x", 1], {"type": "array", "items": {"type": "string"}}, False),
        ({"a": 1}, {"type": "object", "properties": {}, "additionalProperties": False}, False),
        ({"a": 1}, {"type": "object", "properties": {"a": True}}, True),
        ("x", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, False),
        ("x", {"$ref": "#/$defs/X"}, True),
        ("x", {"type": "a type of the future"}, True),
    ],
)
def test_arguments_fit_a_schema(value: object, schema: object, verdict: bool) -> None:
    assert fits(value, schema) is verdict
