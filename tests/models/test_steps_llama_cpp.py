"""Steps on a real llama.cpp server: a model that cannot call tools by itself is held to the form."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from local_files import demo_file, spec_of
from model_events import answer_events

from longboat.core.tool import ToolSpec
from longboat.models.local.model import LocalModels
from longboat.models.local.process import runtime_installed
from longboat.models.protocol import (
    Finished,
    Model,
    ModelEvent,
    ModelRequest,
    Notice,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from longboat.models.tool_modes.memory import ToolMemory, ToolUse
from longboat.models.tool_modes.model import OTHER_STEPS, STEPS, ToolModel
from longboat.wire.models import Message, Role, TextPart

pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(not runtime_installed(), reason="run: pip install 'longboat[local]'"),
]

VIEW = ToolSpec(
    name="view",
    description="Read a file.",
    schema={"type": "object", "properties": {"path": {"enum": ["a.py", "b.py"]}}, "required": ["path"]},
)


@pytest.fixture(scope="module")
def demo() -> Path:
    return demo_file()


@pytest.fixture
async def models(tmp_path: Path) -> AsyncIterator[LocalModels]:
    models = LocalModels(tmp_path)
    try:
        yield models
    finally:
        await models.aclose()


def request(text: str, *, may_call: bool = True) -> ModelRequest:
    parts = (TextPart(text=text),)
    message = Message(id="m", session_id="s", run_id="r", seq=1, role=Role.USER, parts=parts, created_at="2026-01-01")
    return ModelRequest(
        system="You are a coding agent.", messages=(message,), tools=(VIEW,), may_call=may_call, max_output_tokens=256
    )


async def ask(model: Model, asked: ModelRequest) -> list[ModelEvent]:
    async with model.stream(asked) as events:
        return [event async for event in answer_events(events)]


def check_step(events: list[ModelEvent]) -> None:
    """It calls what there is with what fits, or it answers; unless the output limit cut it off."""
    end = events[-1]
    assert isinstance(end, Finished)
    if end.reason is StopReason.MAX_TOKENS:
        return
    names = [event.name for event in events if isinstance(event, ToolCallStart)]
    inputs = [json.loads(event.text) for event in events if isinstance(event, ToolCallDelta)]
    assert {*names} <= {"view"}
    assert all(each.keys() == {"path"} and each["path"] in ("a.py", "b.py") for each in inputs)
    assert (end.reason is StopReason.TOOL_USE) == bool(names)
    assert not any(isinstance(event, TextDelta) and event.text.startswith("{") for event in events)
    assert not any(isinstance(event, Notice) for event in events), "it was not held to the form"


@pytest.mark.parametrize("use", [STEPS, OTHER_STEPS])
async def test_the_server_holds_the_model_to_the_form_in_either_field(
    models: LocalModels, demo: Path, tmp_path: Path, use: ToolUse
) -> None:
    memory = ToolMemory(tmp_path, address="here", model="m")
    memory.keep(use)
    model = ToolModel(models.get(spec_of("small", path=str(demo), context_window=4096)), memory)
    for prompt in ("Read a.py and b.py.", "Hello!"):
        check_step(await ask(model, request(prompt)))
    assert memory.recall() == use


async def test_a_summary_calls_nothing(models: LocalModels, demo: Path) -> None:
    model = models.with_tools(spec_of("small", path=str(demo), context_window=4096, tools="steps"))
    events = await ask(model, request("Read a.py.", may_call=False))
    assert not any(isinstance(event, ToolCallStart) for event in events)
