"""Real local models: the file, process, stream, cancel, restart, the prefix cache."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import psutil
import pytest
from local_files import demo_file, put, put_stub, qwen_file, spec_of
from model_events import answer_events
from running_app import launch

from longboat.core.tool import ToolSpec
from longboat.errors import ModelError
from longboat.models.local.known import DEMO, QWEN_CODER
from longboat.models.local.model import LocalModel, LocalModels
from longboat.models.local.process import runtime_installed
from longboat.models.protocol import Finished, Model, ModelEvent, ModelRequest, Progress, StopReason, TextDelta
from longboat.wire.models import Message, Outcome, Role, TextPart, ToolCallPart, ToolResultPart

pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(not runtime_installed(), reason="run: pip install 'longboat[local]'"),
]

LOADING = Progress("Loading smollm2-135m.")


@pytest.fixture(scope="module")
def demo() -> Path:
    return demo_file()


@pytest.fixture
def data_dir(demo: Path, tmp_path: Path) -> Path:
    put(demo, tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
async def models(data_dir: Path) -> AsyncIterator[LocalModels]:
    models = LocalModels(data_dir)
    try:
        yield models
    finally:
        await models.aclose()


@pytest.fixture
def model(models: LocalModels, data_dir: Path) -> LocalModel:
    return models.get(spec_of(DEMO.id, data_dir))


def prompt(text: str, *, at_most: int | None = None) -> ModelRequest:
    parts = (TextPart(text=text),)
    message = Message(id="m", session_id="s", run_id="r", seq=1, role=Role.USER, parts=parts, created_at="2026-01-01")
    return ModelRequest(system="You are a helpful assistant.", messages=(message,), max_output_tokens=at_most)


async def answer(model: LocalModel, text: str, *, at_most: int | None = None) -> list[ModelEvent]:
    async with model.stream(prompt(text, at_most=at_most)) as events:
        return [event async for event in events]


async def test_it_loads_tells_so_and_streams_an_answer(model: LocalModel):
    events = await answer(model, "Name three colors.")
    assert events[0] == LOADING
    words = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(words) > 1
    assert isinstance(events[-1], Finished)
    assert events[-1].reason in (StopReason.END_TURN, StopReason.MAX_TOKENS)
    assert events[-1].usage.output_tokens >= len(words) > 0
    again = await answer(model, "Name three colors.", at_most=3)
    assert not any(isinstance(event, Progress) for event in again), "it was loaded a second time"
    assert isinstance(again[-1], Finished)
    assert again[-1].reason is StopReason.MAX_TOKENS


async def test_a_cancel_in_mid_stream_frees_the_slot(model: LocalModel):
    """Twice as many stories as slots are left at their first word. A slot that went on telling its story would keep
    the later ones waiting longer than this test does."""
    await answer(model, "Hello", at_most=1)

    async def turn(heard: asyncio.Queue[ModelEvent | None]) -> None:
        try:
            async with model.stream(prompt("Tell a very long story of the sea.")) as events:
                async for event in answer_events(events):
                    heard.put_nowait(event)
        finally:
            heard.put_nowait(None)

    async with asyncio.timeout(8):
        for _ in range(4):
            heard: asyncio.Queue[ModelEvent | None] = asyncio.Queue()
            task = asyncio.create_task(turn(heard))
            assert isinstance(await heard.get(), TextDelta)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        events = await answer(model, "Hello", at_most=5)
    assert isinstance(events[-1], Finished)


async def test_prompts_at_the_same_time_share_one_process(model: LocalModel):
    async with asyncio.TaskGroup() as turns:
        tasks = [turns.create_task(answer(model, "Count to three.", at_most=8)) for _ in range(3)]
    assert all(isinstance(task.result()[-1], Finished) for task in tasks)
    loads = [event for task in tasks for event in task.result() if event == LOADING]
    assert len(loads) == 1


async def test_a_killed_process_is_started_again(model: LocalModel):
    await answer(model, "Hello", at_most=1)
    first = model.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    # Between the death and our knowing of it a request fails as retryable, and the turn retries it.
    events: list[ModelEvent] = []
    while not events:
        with contextlib.suppress(ModelError):
            events = await answer(model, "Hello", at_most=1)
    assert isinstance(events[-1], Finished)
    assert model.pid not in (first, None)


async def test_a_process_killed_in_mid_stream_breaks_the_stream_as_retryable(model: LocalModel):
    """T7"""

    async def killed_turn() -> None:
        async with model.stream(prompt("Tell a very long story of the sea.")) as events:
            async for event in events:
                if isinstance(event, TextDelta) and model.pid is not None:
                    os.kill(model.pid, signal.SIGKILL)

    with pytest.raises(ModelError) as caught:
        await killed_turn()
    assert caught.value.retryable
    assert isinstance((await answer(model, "Hello", at_most=1))[-1], Finished)


async def test_closing_ends_the_process(model: LocalModel):
    await answer(model, "Hello", at_most=1)
    pid = model.pid
    assert pid is not None
    await model.aclose()
    assert not psutil.pid_exists(pid)
    assert model.pid is None


PARENT = """
import asyncio, sys
from pathlib import Path
from longboat.config.settings import ModelEntry
from longboat.models.local.files import local_spec
from longboat.models.local.model import LocalModels
from longboat.models.protocol import ModelRequest

async def main():
    data_dir = Path(sys.argv[1])
    model = LocalModels(data_dir).get(local_spec("local", ModelEntry(id="smollm2-135m"), data_dir))
    async with model.stream(ModelRequest(system="Say hello.", messages=(), max_output_tokens=1)) as events:
        async for event in events:
            pass
    print(model.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_the_process_ends_with_its_parent_however_that_dies(data_dir: Path):
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, str(data_dir)), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    child = psutil.Process(int(await parent.stdout.readline()))
    parent.kill()
    await parent.wait()
    await asyncio.to_thread(child.wait, 10)


async def test_only_who_holds_its_key_is_served(model: LocalModel):
    await answer(model, "Hello", at_most=1)
    assert model.pid is not None
    [port] = {c.laddr.port for c in psutil.Process(model.pid).net_connections("tcp") if c.status == psutil.CONN_LISTEN}
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /v1/models HTTP/1.0\r\nHost: localhost\r\n\r\n")
    assert b" 401 " in await reader.readline()
    writer.close()
    await writer.wait_closed()


async def test_a_file_that_does_not_load_is_reported_with_what_to_do(tmp_path: Path):
    put_stub(tmp_path)
    models = LocalModels(tmp_path)
    with pytest.raises(ModelError, match="longboat models pull smollm2-135m") as caught:
        await answer(models.get(spec_of(DEMO.id, tmp_path)), "Hello")
    assert (caught.value.code, caught.value.retryable) == ("local_model_failed", False)
    await models.aclose()


@pytest.mark.parametrize("text", ["List the files in this directory.", "Read notes.txt"])
async def test_a_prompt_about_files_yields_a_call_that_parses_and_an_answer(
    model: LocalModel, tmp_path: Path, text: str
) -> None:
    """A6: for shape. What so small a model makes of it is another matter; the turn ends."""
    async with launch(tmp_path, model) as app:
        (tmp_path / "project" / "notes.txt").write_text("Buy rope.")
        await app.submit(text, "r1")
        complete = await app.completed("r1")
        messages = await app.messages()
    assert complete.outcome is Outcome.END_TURN
    assert complete.text.strip()
    for call in (part for each in messages for part in each.parts if isinstance(part, ToolCallPart)):
        assert isinstance(msgspec.json.decode(call.input), dict)
        assert call.name in ("ls", "view")


async def test_it_lists_the_files_when_it_is_asked_to(model: LocalModel, tmp_path: Path) -> None:
    """A6"""
    async with launch(tmp_path, model) as app:
        (tmp_path / "project" / "notes.txt").touch()
        await app.submit("List the files in this directory.", "r1")
        await app.completed("r1")
        results = [part for each in await app.messages() for part in each.parts if isinstance(part, ToolResultPart)]
    assert any("notes.txt" in result.content for result in results)


COLOR = {"type": "object", "properties": {"color": {"enum": ["red", "blue"]}}, "required": ["color"]}


async def held_to(model: LocalModel, text: str, schema: dict[str, object]) -> object:
    async with model.stream(replace(prompt(text), schema=schema)) as events:
        return msgspec.json.decode("".join([event.text async for event in events if isinstance(event, TextDelta)]))


async def test_an_answer_can_be_held_to_a_schema(model: LocalModel) -> None:
    """A6"""
    assert await held_to(model, "Which color is the sky?", COLOR) in ({"color": "red"}, {"color": "blue"})


async def test_people_are_told_how_far_it_has_read_a_long_prompt(model: LocalModel) -> None:
    events = await answer(model, "one two three " * 600, at_most=1)
    told = [event.message for event in events if isinstance(event, Progress)]
    assert told[0] == LOADING.message
    assert len(told) > 1
    assert all(each.startswith("Reading the prompt (") for each in told[1:])


# Any file


async def test_any_file_can_be_named_by_its_path(models: LocalModels, data_dir: Path, demo: Path) -> None:
    """The same file without what the list knows of it: a model like any other."""
    model = models.get(spec_of(str(demo), data_dir, context_window=1_024, max_output_tokens=4))
    events = await answer(model, "Count from one to a hundred.")
    assert events[0] == Progress(f"Loading {demo}.")
    assert isinstance(events[-1], Finished)
    assert (events[-1].reason, events[-1].usage.output_tokens) == (StopReason.MAX_TOKENS, 4)
    assert await held_to(models.get(spec_of(str(demo), data_dir)), "Which color?", COLOR)


async def test_a_prompt_beyond_the_configured_window_is_refused_as_too_long(
    models: LocalModels, data_dir: Path
) -> None:
    model = models.get(spec_of(DEMO.id, data_dir, context_window=256))
    with pytest.raises(ModelError) as caught:
        await answer(model, "word " * 400)
    assert caught.value.code == "context_overflow"


async def test_two_models_run_side_by_side(models: LocalModels, data_dir: Path, demo: Path) -> None:
    one, other = models.get(spec_of(DEMO.id, data_dir)), models.get(spec_of(str(demo), data_dir))
    for model in (one, other):
        await answer(model, "Hello", at_most=1)
    assert len({one.pid, other.pid} - {None}) == 2


async def test_one_that_does_not_fit_ends_idle_ones_and_then_says_how_much_is_missing(
    models: LocalModels, data_dir: Path, demo: Path
) -> None:
    idle = models.get(spec_of(DEMO.id, data_dir))
    await answer(idle, "Hello", at_most=1)
    huge = models.get(spec_of(str(demo), data_dir, context_window=900_000_000))
    with pytest.raises(ModelError, match=r"needs about [\d.]+ GB of memory .* GB is free") as caught:
        await answer(huge, "Hello")
    assert (caught.value.code, caught.value.retryable) == ("local_model_failed", False)
    assert (idle.pid, huge.pid) == (None, None)
    assert isinstance((await answer(idle, "Hello", at_most=1))[-1], Finished)


# The prefix cache


async def evaluated(model: Model, request: ModelRequest) -> tuple[int, str]:
    """How many input tokens the model had to evaluate, and what it said."""
    async with model.stream(request) as stream:
        events = [event async for event in stream]
    assert isinstance(events[-1], Finished)
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    return events[-1].usage.input_tokens - events[-1].cached_tokens, said


def conversation(*texts: str) -> ModelRequest:
    """Turn by turn, the user first."""
    messages = tuple(
        msgspec.structs.replace(
            prompt(text).messages[0], id=f"m{seq}", seq=seq, role=Role.ASSISTANT if seq % 2 else Role.USER
        )
        for seq, text in enumerate(texts)
    )
    return ModelRequest(system="You are brief. " * 60, messages=messages, max_output_tokens=12)


async def check_prefix_cache(model: LocalModel) -> None:
    texts = ["Name a color."]
    first, said = await evaluated(model, conversation(*texts))
    assert first > 240, "the whole prompt at first"
    for question in ("Another one.", "And a third."):
        texts += [said, question]
        count, said = await evaluated(model, conversation(*texts))
        assert count < 40, "what is new, and the bit of template around it"
        title, _ = await evaluated(model, replace(conversation("A title for: colors"), system="You write titles."))
        assert title < 60


async def test_the_next_turn_evaluates_only_what_is_new_even_after_a_title(model: LocalModel) -> None:
    await check_prefix_cache(model)


async def test_sessions_that_take_turns_keep_their_prefixes(model: LocalModel) -> None:
    """More of them than slots: those that lost theirs come back from memory."""
    systems = [f"You like the color {color}. " * 60 for color in ("red", "green", "blue")]
    for system in systems:
        await evaluated(model, replace(conversation("Name a color."), system=system))
    for system in systems:
        count, _ = await evaluated(model, replace(conversation("Name a color.", "Red.", "Again."), system=system))
        assert count < 40


VIEW = ToolSpec(
    name="view",
    description="Read a file of the project, and show it with line numbers. " * 6,
    schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


async def test_steps_evaluate_only_the_last_call_and_its_result(
    models: LocalModels, data_dir: Path, demo: Path
) -> None:
    """The tools are part of the prefix; the call is written as the model would have written it."""
    spec = spec_of(str(demo), data_dir, tools="steps", max_output_tokens=40)
    model = models.with_tools(spec)
    asked = replace(conversation("What is in notes.txt?"), tools=(VIEW,), max_output_tokens=None)
    first, _ = await evaluated(model, asked)
    call = ToolCallPart(id="c1", name="view", input='{"path": "notes.txt"}')
    result = ToolResultPart(tool_call_id="c1", name="view", content="Buy rope.", is_error=False)
    [prompted] = asked.messages
    called = msgspec.structs.replace(prompted, id="m1", seq=1, role=Role.ASSISTANT, parts=(call,))
    answered = msgspec.structs.replace(prompted, id="m2", seq=2, role=Role.TOOL, parts=(result,))
    second, _ = await evaluated(model, replace(asked, messages=(prompted, called, answered)))
    assert first > 300
    assert second < 100


class CountingModel:
    """A model that notes how many tokens of each request were evaluated."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.provider, self.name = model.provider, model.name
        self.context_window, self.abilities = model.context_window, model.abilities
        self.evaluated: list[int] = []

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        async with self.model.stream(request) as events:
            yield self._noted(events)

    async def _noted(self, events: AsyncIterator[ModelEvent]) -> AsyncIterator[ModelEvent]:
        async for event in events:
            if isinstance(event, Finished):
                self.evaluated.append(event.usage.input_tokens - event.cached_tokens)
            yield event


async def test_a_sessions_next_turn_evaluates_only_what_is_new(
    models: LocalModels, data_dir: Path, demo: Path, tmp_path: Path
) -> None:
    """As the server asks: its whole system prompt stays in the cache."""
    spec = spec_of(str(demo), data_dir, tools="none", max_output_tokens=10)
    counting = CountingModel(models.with_tools(spec))
    async with launch(tmp_path, counting) as app:
        for number, text in enumerate(("Name a color.", "Another one.", "And a third.")):
            await app.submit(text, f"r{number}")
            await app.completed(f"r{number}")
    first, *others = counting.evaluated
    assert len(others) == 2
    assert max(others) < first / 2
    assert max(others) < 40


@pytest.mark.timeout(600)
async def test_qwen_answers_keeps_its_prefix_and_is_held_to_a_schema(tmp_path: Path) -> None:
    """A gigabyte on two busy cores: once, with little to say."""
    put(qwen_file(), tmp_path, QWEN_CODER)
    models = LocalModels(tmp_path)
    model = models.get(spec_of(QWEN_CODER.id, tmp_path))
    try:
        await check_prefix_cache(model)
        sky = await held_to(model, "Which color is the sky? Reply as JSON.", COLOR)
    finally:
        await models.aclose()
    assert sky == {"color": "blue"}
