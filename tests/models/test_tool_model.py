"""How the way in which a model uses tools is found out and remembered, against a real HTTP server."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from model_events import answer_events

from longboat.core.tool import ToolSpec
from longboat.errors import ModelError
from longboat.models.openai_chat import OpenAIChatModel
from longboat.models.protocol import (
    Finished,
    ModelEvent,
    ModelRequest,
    Notice,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from longboat.models.tool_modes.memory import ToolMemory, ToolUse
from longboat.models.tool_modes.model import NATIVE, OTHER_STEPS, STEPS, TEXT, ToolModel
from longboat.testing import CallTool, Refuse, Say, Stop, Use, words
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.wire.models import Message, Role, TextPart, ToolCallPart, ToolResultPart
from longboat.wire.tools import Effect, ToolTraits

VIEW = ToolSpec(
    name="view",
    description="Read a file. " * 20,
    schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
FENCED = '```json\n{"name": "view", "arguments": {"path": "a.py"}}\n```'
STEP = '{"thought": "I look.", "calls": [{"tool": "view", "args": {"path": "a.py"}}]}'
ANSWER = '{"thought": "All is well.", "answer": "Done."}'
NO_TOOLS = Refuse(400, "registry.ollama.ai/library/gemma:2b does not support tools")
LOOKED = [("view", '{"path": "a.py"}')]


@pytest.fixture
async def endpoint() -> AsyncIterator[ScriptedEndpoint]:
    async with ScriptedEndpoint() as running:
        yield running


class Models:
    """Makes the same model again and again, as after restarts."""

    def __init__(self, endpoint: ScriptedEndpoint, data_dir: Path) -> None:
        self._endpoint = endpoint
        self._memory = ToolMemory(data_dir, address=endpoint.base_url, model="m")
        self._made: list[ToolModel] = []

    def make(self, wanted: Any = None, *, has_tools: bool = False) -> ToolModel:
        chat = OpenAIChatModel(provider="mine", name="m", base_url=self._endpoint.base_url)
        self._made.append(ToolModel(chat, self._memory, wanted=wanted, has_tools=has_tools))
        return self._made[-1]

    @property
    def remembered(self) -> ToolUse | None:
        return self._memory.recall()

    async def aclose(self) -> None:
        for model in self._made:
            await model.aclose()


@pytest.fixture
async def models(endpoint: ScriptedEndpoint, tmp_path: Path) -> AsyncIterator[Models]:
    made = Models(endpoint, tmp_path)
    yield made
    await made.aclose()


def message(role: Role, *parts: Any) -> Message:
    return Message(id="i", session_id="s", run_id="r", seq=1, role=role, parts=parts, created_at="")


def request(**more: Any) -> ModelRequest:
    asked = (message(Role.USER, TextPart(text="Look at a.py.")),)
    return ModelRequest(**{"system": "You work.", "messages": asked, "tools": (VIEW,)} | more)


async def ask(model: ToolModel, asked: ModelRequest | None = None) -> list[ModelEvent]:
    async with model.stream(asked or request()) as events:
        return [event async for event in answer_events(events)]


def said(events: list[ModelEvent]) -> str:
    """What stays after a withdrawal."""
    text = ""
    for event in events:
        match event:
            case TextDelta():
                text += event.text
            case Notice(withdraw=True):
                text = ""
    return text


def thoughts(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))


def calls(events: list[ModelEvent]) -> list[tuple[str, str]]:
    names = {event.index: event.name for event in events if isinstance(event, ToolCallStart)}
    written = {event.index: "" for event in events if isinstance(event, ToolCallDelta)}
    for event in events:
        if isinstance(event, ToolCallDelta):
            written[event.index] += event.text
    return [(name, json.dumps(json.loads(written[index]))) for index, name in names.items()]


def notices(events: list[ModelEvent]) -> list[str]:
    return [event.message for event in events if isinstance(event, Notice)]


def reason(events: list[ModelEvent]) -> StopReason:
    end = events[-1]
    assert isinstance(end, Finished)
    return end.reason


def form_of(endpoint: ScriptedEndpoint, number: int) -> set[str]:
    """Which fields for tools and schemas a request had."""
    return {"tools", "response_format", "json_schema", "format"} & endpoint.requests[number].body.keys()


async def test_a_model_with_native_tools_is_left_alone_and_remembered(
    endpoint: ScriptedEndpoint, models: Models
) -> None:
    endpoint.add([Say("I look."), CallTool("view", {"path": "a.py"})])
    events = await ask(models.make())
    assert (said(events), calls(events), notices(events)) == ("I look.", LOOKED, [])
    assert (reason(events), models.remembered) == (StopReason.TOOL_USE, NATIVE)


@pytest.mark.parametrize(
    "refusal",
    [
        NO_TOOLS,
        Refuse(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        Refuse(500, "tools param requires --jinja flag"),
        Refuse(404, "No endpoints found that support tool use. Try disabling view."),
        Refuse(400, "`tool calling` is not supported with this model"),
        Refuse(400, "Function calling is not enabled for this model"),
        Refuse(400, "This model doesn't support tool use."),
        Refuse(400, "Unsupported parameter: 'tools'."),
        Refuse(400, "deepseek-reasoner does not support Function Calling"),
    ],
)
async def test_a_server_that_refuses_tools_is_asked_for_steps_at_once(
    endpoint: ScriptedEndpoint, models: Models, refusal: Refuse
) -> None:
    endpoint.add([refusal], [Say(STEP)], [Say(ANSWER)])
    model = models.make()
    events = await ask(model)
    assert (thoughts(events), said(events), calls(events)) == ("I look.", "", LOOKED)
    assert reason(events) is StopReason.TOOL_USE
    (told,) = notices(events)
    assert told.startswith("The server does not support tools for mine/m. Longboat now asks it for steps in JSON.")
    again = await ask(model)
    assert (said(again), calls(again), notices(again), reason(again)) == ("Done.", [], [], StopReason.END_TURN)
    assert [form_of(endpoint, number) for number in range(3)] == [{"tools"}, {"response_format"}, {"response_format"}]
    assert models.remembered == STEPS


async def test_what_was_found_out_outlives_a_restart(endpoint: ScriptedEndpoint, models: Models) -> None:
    endpoint.add([NO_TOOLS], [Say(ANSWER)], [Say(ANSWER)])
    await ask(models.make())
    events = await ask(models.make())
    assert (said(events), notices(events)) == ("Done.", [])
    assert form_of(endpoint, 2) == {"response_format"}


async def test_a_printed_call_is_made_and_the_model_gets_steps_from_then_on(
    endpoint: ScriptedEndpoint, models: Models
) -> None:
    endpoint.add(words(f"I look.\n{FENCED}"), [Say(ANSWER)])
    model = models.make()
    events = await ask(model)
    assert (said(events), calls(events), reason(events)) == ("I look.\n", LOOKED, StopReason.TOOL_USE)
    (told,) = notices(events)
    assert told.startswith("mine/m printed a tool call as text. Longboat now asks it for steps in JSON.")
    assert (said(await ask(model)), form_of(endpoint, 1)) == ("Done.", {"response_format"})


async def test_a_model_that_has_called_natively_keeps_its_way(endpoint: ScriptedEndpoint, models: Models) -> None:
    """A printed call is never made: it may be an example."""
    example = f"It looks like this:\n{FENCED}\nThat is all."
    endpoint.add([CallTool("view", {"path": "a.py"})], words(FENCED), words(example), [Say(ANSWER)])
    model = models.make()
    await ask(model)
    slip, shown, json_answer = await ask(model), await ask(model), await ask(model)
    assert (said(slip), calls(slip), len(notices(slip))) == (FENCED, [], 1)
    assert (said(shown), calls(shown)) == (example, [])
    assert said(json_answer) == ANSWER
    assert models.remembered == NATIVE


async def test_a_refusal_changes_nothing_for_a_model_that_has_called_natively(
    endpoint: ScriptedEndpoint, models: Models
) -> None:
    """It may be about one request. The error says how to get steps."""
    endpoint.add([CallTool("view", {"path": "a.py"})], [NO_TOOLS], [Say("Done.")])
    await ask(models.make())
    with pytest.raises(ModelError, match='"tools": "steps"'):
        await ask(models.make())
    assert said(await ask(models.make())) == "Done."
    assert models.remembered == NATIVE


async def test_a_call_that_is_cut_off_is_asked_for_again_in_steps(endpoint: ScriptedEndpoint, models: Models) -> None:
    endpoint.add(words('I look.\n{"name": "view", "arguments": {"path": '), [Say(STEP)])
    events = await ask(models.make())
    assert (thoughts(events), said(events), calls(events)) == ("I look.", "", LOOKED)
    assert len(notices(events)) == 1


async def test_a_server_that_ignores_tools_is_known_by_what_it_counts(
    endpoint: ScriptedEndpoint, models: Models, tmp_path: Path
) -> None:
    system = "You work. " * 10
    tools = tuple(ToolSpec(name=f"tool{n}", description="Does a thing. " * 40, schema={}) for n in range(10))
    counted = Use(input_tokens=40, output_tokens=5)
    endpoint.add([Say("I cannot see files."), counted], [Say(ANSWER)])
    events = await ask(models.make(), request(system=system, tools=tools))
    assert said(events) == "Done."
    assert notices(events)[0].startswith("The server does not pass the tools to mine/m.")
    # Whoever counts the tools, or nothing at all, has not ignored them.
    for tokens in (0, 1, 1_500):
        endpoint.add([Say("Hello."), Use(input_tokens=tokens)])
        found = ToolModel(models.make().adapter, ToolMemory(tmp_path, address="x", model=str(tokens)))
        assert said(await ask(found, request(system=system, tools=tools))) == "Hello."


async def test_a_schema_that_is_refused_goes_into_other_fields_and_then_calls_go_as_text(
    endpoint: ScriptedEndpoint, models: Models, tmp_path: Path
) -> None:
    no_schema = Refuse(400, "'response_format' is not a valid field")
    endpoint.add([NO_TOOLS], [no_schema], [Say(STEP)], [Say(ANSWER)])
    model = models.make()
    events = await ask(model)
    assert (calls(events), len(notices(events)), models.remembered) == (LOOKED, 1, OTHER_STEPS)
    await ask(model)
    assert [form_of(endpoint, number) for number in (1, 2, 3)] == [
        {"response_format"},
        *[{"json_schema", "format"}] * 2,
    ]
    endpoint.add(
        [no_schema], [no_schema], words(f"I look.\n<tool_call>{json.dumps({'name': 'view', 'arguments': {}})}")
    )
    other = ToolModel(model.adapter, ToolMemory(tmp_path, address="x", model="y"), wanted="steps")
    events = await ask(other)
    assert (said(events), calls(events)) == ("I look.\n", [("view", "{}")])
    assert notices(events)[0].startswith("The server does not hold mine/m to a JSON schema. Longboat now asks it to")
    assert form_of(endpoint, 6) == set()


async def test_a_server_that_takes_a_schema_and_forgets_it_is_found_out(
    endpoint: ScriptedEndpoint, models: Models
) -> None:
    endpoint.add([NO_TOOLS], [Say("I would look.")], [Say("I would look.")], [Say("I would look.")])
    events = await ask(models.make())
    assert (said(events), models.remembered) == ("I would look.", TEXT)


async def test_any_other_refusal_is_nobody_elses_matter(endpoint: ScriptedEndpoint, models: Models) -> None:
    endpoint.add([Refuse(400, "The image is too large.")])
    with pytest.raises(ModelError, match="image"):
        await ask(models.make())
    endpoint.add([NO_TOOLS], *[[Refuse(400, "The image is too large.")]] * 3)
    with pytest.raises(ModelError, match="image"):
        await ask(models.make())
    assert models.remembered is None


async def test_a_request_that_is_refused_after_a_restart_does_not_change_the_way(
    endpoint: ScriptedEndpoint, models: Models
) -> None:
    endpoint.add([NO_TOOLS], [Say(ANSWER)], [Refuse(400, "The image is too large.")])
    await ask(models.make())
    with pytest.raises(ModelError, match="image"):
        await ask(models.make())
    assert (len(endpoint.requests), models.remembered) == (3, STEPS)


async def test_the_configuration_wins(endpoint: ScriptedEndpoint, models: Models) -> None:
    endpoint.add([NO_TOOLS], [Say(ANSWER)])
    await ask(models.make())
    endpoint.add([NO_TOOLS])
    with pytest.raises(ModelError) as caught:
        await ask(models.make("native"))
    assert caught.value.code == "tools_unsupported"
    assert '"tools": "steps"' in caught.value.message
    endpoint.add([Say("Plain.")])
    assert said(await ask(models.make("text"))) == "Plain."
    assert form_of(endpoint, 3) == set()
    assert models.remembered == STEPS


@pytest.mark.parametrize(
    ("wanted", "written"),
    [("native", "Done."), ("steps", ANSWER), ("text", "Done."), (None, "Done."), ("steps", STEP), ("text", FENCED)],
)
async def test_what_an_adapter_withdraws_is_no_part_of_the_answer(
    endpoint: ScriptedEndpoint, models: Models, wanted: Any, written: str
) -> None:
    """As where only `</think>` tells that what came before it were thoughts."""
    endpoint.add([Say('I could write\n{"answer": "this"}\nor\n{"name": "vi'), Say("\n</think>\n\n"), Say(written)])
    events = await ask(models.make(wanted))
    assert said(events) == ("Done." if written in ("Done.", ANSWER) else "")
    assert calls(events) == (LOOKED if written in (STEP, FENCED) else [])


async def test_without_tools_there_is_no_form(endpoint: ScriptedEndpoint, models: Models) -> None:
    """But the transcript of a model that has no native calls has none."""
    history = (
        message(Role.USER, TextPart(text="Look.")),
        message(Role.ASSISTANT, ToolCallPart(id="c", name="view", input="{}", finished=True)),
        message(Role.TOOL, ToolResultPart(tool_call_id="c", name="view", content="x = 1")),
    )
    endpoint.add([Say(FENCED)])
    assert said(await ask(models.make("steps"), request(messages=history, tools=()))) == FENCED
    body = endpoint.requests[0].body
    assert [each["role"] for each in body["messages"]] == ["system", "user", "assistant", "user"]
    assert not any("tool_calls" in each for each in body["messages"])


async def test_a_cut_off_step_keeps_its_calls(endpoint: ScriptedEndpoint, models: Models) -> None:
    endpoint.add([Say(STEP[:-8]), Stop(StopReason.MAX_TOKENS)])
    events = await ask(models.make("steps"))
    (started,) = [event for event in events if isinstance(event, ToolCallStart)]
    (delta,) = [event for event in events if isinstance(event, ToolCallDelta)]
    assert (started.name, delta.text, reason(events)) == ("view", '{"path": "a', StopReason.MAX_TOKENS)


async def test_a_call_in_text_that_cannot_be_read_goes_to_its_tool_or_ends_the_run(
    endpoint: ScriptedEndpoint, models: Models
) -> None:
    endpoint.add([Say('<tool_call>{"name": "view", "arguments": {"path": oops}}</tool_call>')])
    events = await ask(models.make("text"))
    assert [event.text for event in events if isinstance(event, ToolCallDelta)] == ['{"path": oops}}</tool_call>']
    endpoint.add([Say("<tool_call>view a.py</tool_call>")])
    with pytest.raises(ModelError) as caught:
        await ask(models.make("text"))
    assert caught.value.code == "unreadable_tool_call"


async def test_endless_repetition_inside_a_step_is_stopped(endpoint: ScriptedEndpoint, models: Models) -> None:
    endpoint.add([Say('{"thought": "", "calls": [{"tool": "view", "args": {"path": "'), *[Say("a/")] * 5_000])
    with pytest.raises(ModelError) as caught:
        await ask(models.make("steps"))
    assert caught.value.code == "repetition"


@pytest.mark.parametrize("wanted", [None, "text"])
async def test_endless_repetition_in_text_that_is_held_back_is_stopped(
    endpoint: ScriptedEndpoint, models: Models, wanted: Any
) -> None:
    endpoint.add([Say('{"name": "view", "arguments": {"path": "'), *[Say("a/")] * 5_000])
    with pytest.raises(ModelError) as caught:
        await ask(models.make(wanted))
    assert caught.value.code == "repetition"


async def test_no_secret_of_an_address_is_remembered(tmp_path: Path) -> None:
    memory = ToolMemory(tmp_path, address="https://user:sesame@host/v1?key=sesame", model="m")
    memory.keep(STEPS)
    assert b"sesame" not in b"".join(file.read_bytes() for file in (tmp_path / "models").iterdir())
    assert memory.recall() == STEPS


# Prose

PROSE = "You should change line 3 of a.py."
COUNT = Use(input_tokens=1_000)
TASK = message(Role.USER, TextPart(text="Fix the mean in a.py."))
LS, EDIT = (
    ToolSpec(name=name, description="", schema={"type": "object"}, traits=ToolTraits(effect=effect))
    for name, effect in (("ls", Effect.READS), ("edit", Effect.CHANGES))
)


def task(**more: Any) -> ModelRequest:
    return request(**{"messages": (TASK,), "tools": (LS, EDIT)} | more)


async def test_a_model_that_only_writes_prose_is_told_of_once_and_its_answer_stands(
    endpoint: ScriptedEndpoint, models: Models
) -> None:
    endpoint.add([Say(PROSE), COUNT], [Say(PROSE), COUNT])
    model = models.make()
    first, second = await ask(model, task()), await ask(model, task())
    assert (said(first), said(second), notices(second)) == (PROSE, PROSE, [])
    (told,) = notices(first)
    assert told.startswith("mine/m answered without looking at any file.")
    assert '"tools": "steps"' in told
    assert (len(endpoint.requests), models.remembered) == (2, None)


@pytest.mark.parametrize(
    "asked",
    [
        task(messages=(message(Role.USER, TextPart(text="Hello!")),)),
        task(tools=(LS,)),
        task(may_call=False),
        task(schema={"type": "object"}),
    ],
    ids=["greeting", "cannot-change", "summary", "answer-for-a-program"],
)
async def test_an_answer_that_needs_no_tool_is_no_sign(
    endpoint: ScriptedEndpoint, models: Models, asked: ModelRequest
) -> None:
    endpoint.add([Say(PROSE), COUNT])
    events = await ask(models.make(), asked)
    assert (said(events), notices(events)) == (PROSE, [])


async def test_a_model_that_has_called_or_is_known_to_call_may_answer_without(
    endpoint: ScriptedEndpoint, models: Models
) -> None:
    endpoint.add([CallTool("ls", {})], [Say(PROSE), COUNT], [Say(PROSE), COUNT], [Say(PROSE), COUNT])
    caller = models.make()
    await ask(caller, task())
    assert notices(await ask(caller, task())) == []
    assert notices(await ask(models.make("native"), task())) == []
    assert notices(await ask(models.make(has_tools=True), task())) == []
