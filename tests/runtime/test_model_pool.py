"""The pool of models: an edit of longboat.json brings new ones, and the old ones leave nothing behind."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longboat.config.load import user_config_file
from longboat.errors import ConfigInvalid, ModelError
from longboat.models.protocol import Finished, Model, ModelEvent, ModelRequest, Sent, StopReason, TextDelta
from longboat.runtime.workspace.models import ModelPool

ANSWER = [
    b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n',
    b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
]


class Provider:
    """A server that keeps connections open and knows how many there are."""

    def __init__(self) -> None:
        self.url = ""
        self.opened = 0
        self.open = 0
        self.go_on = asyncio.Event()
        """Clear it to hold answers in the middle."""
        self.go_on.set()
        self._changed = asyncio.Condition()
        self._talks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        self.opened += 1
        await self._count(1)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
                await reader.readexactly(int(length.partition(b":")[2]))
                size = sum(map(len, ANSWER))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % size)
                writer.write(ANSWER[0])
                await self.go_on.wait()
                writer.write(ANSWER[1])
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            await self._count(-1)

    async def wait_open(self, number: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.open == number)

    async def ended(self) -> None:
        await asyncio.gather(*self._talks)

    async def _count(self, change: int) -> None:
        async with self._changed:
            self.open += change
            self._changed.notify_all()


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    served = Provider()
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    yield served
    server.close()
    await served.ended()


@pytest.fixture
async def pool(tmp_path: Path, provider: Provider) -> AsyncIterator[ModelPool]:
    section = {"type": "openai-compatible", "base_url": provider.url, "models": [{"id": "m"}]}
    user = user_config_file(os.environ, Path.home())
    user.parent.mkdir(parents=True)
    user.write_text(json.dumps({"providers": {"mine": section}}))
    async with ModelPool(tmp_path / "data") as opened:
        yield opened


def write(directory: Path, edit: int) -> Path:
    """A project; each `edit` is another configuration."""
    directory.mkdir(exist_ok=True)
    (directory / "longboat.json").write_text(json.dumps({"retry": {"base_s": edit}}))
    return directory


async def ask(model: Model) -> list[object]:
    async with model.stream(ModelRequest(system="", messages=())) as events:
        return [event async for event in events if not isinstance(event, Sent)]


async def begin(events: AsyncIterator[ModelEvent]) -> ModelEvent:
    """The first piece of the answer."""
    assert isinstance(await anext(events), Sent)
    return await anext(events)


WHOLE = [TextDelta("a"), Finished(StopReason.END_TURN)]


async def test_edits_leave_no_connection_behind(tmp_path: Path, provider: Provider, pool: ModelPool) -> None:
    for edit in range(10):
        project = write(tmp_path / "project", edit)
        model = (await pool.lineup(project, None, "large")).first()
        assert model is (await pool.lineup(project, None, "small")).first(), "one model, one set of connections"
        assert await ask(model) == WHOLE
        assert await ask(model) == WHOLE
        await provider.wait_open(1)
        assert provider.opened == edit + 1, "a connection is kept as long as the configuration stays"


async def test_an_edit_leaves_an_open_stream_alone_and_closes_it_after_its_end(
    tmp_path: Path, provider: Provider, pool: ModelPool
) -> None:
    project = write(tmp_path / "project", 1)
    old = (await pool.lineup(project, None, "large")).first()
    provider.go_on.clear()
    async with old.stream(ModelRequest(system="", messages=())) as events:
        assert await begin(events) == TextDelta("a")
        other = asyncio.create_task(ask(old))
        await provider.wait_open(2)
        write(project, 2)
        assert (await pool.lineup(project, None, "large")).first() is not old
        provider.go_on.set()
        assert await other == WHOLE
        assert provider.open == 2, "the other stream is still open"
        assert [event async for event in events] == WHOLE[1:]
    await provider.wait_open(0)


async def test_a_turn_that_began_before_an_edit_goes_on_with_its_model(
    tmp_path: Path, provider: Provider, pool: ModelPool
) -> None:
    project = write(tmp_path / "project", 1)
    old = (await pool.lineup(project, None, "large")).first()
    assert await ask(old) == WHOLE
    write(project, 2)
    (await pool.lineup(project, None, "large")).first()
    await provider.wait_open(0)
    for _ in range(2):
        assert await ask(old) == WHOLE
        await provider.wait_open(0)


async def test_a_stream_that_is_left_early_closes_an_old_model_too(
    tmp_path: Path, provider: Provider, pool: ModelPool
) -> None:
    project = write(tmp_path / "project", 1)
    old = (await pool.lineup(project, None, "large")).first()
    assert await ask(old) == WHOLE
    provider.go_on.clear()
    async with old.stream(ModelRequest(system="", messages=())) as events:
        assert await begin(events) == TextDelta("a")
        write(project, 2)
        (await pool.lineup(project, None, "large")).first()
    provider.go_on.set()
    await provider.wait_open(0)


async def test_an_edit_in_one_project_does_not_touch_another_of_the_same_configuration(
    tmp_path: Path, provider: Provider, pool: ModelPool
) -> None:
    one, two = (write(tmp_path / name, 1) for name in ("one", "two"))
    shared = (await pool.lineup(one, None, "large")).first()
    assert (await pool.lineup(two, None, "large")).first() is shared
    assert await ask(shared) == WHOLE
    write(one, 2)
    (await pool.lineup(one, None, "large")).first()
    assert await ask(shared) == WHOLE
    assert provider.opened == 1
    write(two, 2)
    (await pool.lineup(two, None, "large")).first()
    await provider.wait_open(0)


async def test_a_configuration_that_names_no_model_retires_the_old_ones_too(
    tmp_path: Path, provider: Provider, pool: ModelPool
) -> None:
    project = write(tmp_path / "project", 1)
    assert await ask((await pool.lineup(project, None, "large")).first()) == WHOLE
    (project / "longboat.json").write_text('{"models": {"large": "nobody/none"}}')
    with pytest.raises(ModelError, match="There is no provider"):
        (await pool.lineup(project, None, "large")).first()
    await provider.wait_open(0)


async def test_a_wrong_configuration_is_told_again_and_again_without_growing(tmp_path: Path, pool: ModelPool) -> None:
    (tmp_path / "longboat.json").write_text("{")

    def frames() -> int:
        with pytest.raises(ConfigInvalid) as caught:
            pool.config(tmp_path)
        return len(list(caught.traceback))

    frames()
    assert [frames() for _ in range(3)] == [frames()] * 3
