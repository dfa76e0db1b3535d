"""The event stream endpoint: headers, cursors, and that a lost connection is noticed at once."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from server_harness import refusal, serve_in

from longboat.errors import StoreUnavailable
from longboat.server.routes.workspaces import EventStream
from longboat.wire.sse import Decoder, Frame


@pytest.fixture
async def served(tmp_path):
    async with serve_in(tmp_path) as served:
        yield served


@pytest.fixture
async def workspace(served, tmp_path):
    return await served.workspace(tmp_path / "project")


async def _first(response) -> Frame:
    decoder = Decoder()
    async for chunk in response.aiter_raw():
        if frames := decoder.decode(chunk):
            return frames[0]
    raise AssertionError("the stream ended without an event")


async def test_the_stream_begins_with_a_snapshot_and_is_not_to_be_cached_or_buffered(served, workspace):
    async with served.unix.stream("GET", f"{workspace}/events?client_id=a") as response:
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream"
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-accel-buffering"] == "no"
        assert (await _first(response)).event == "snapshot"
        shown = (await served.unix.get(workspace)).json()
        assert [client["client_id"] for client in shown["clients"]] == ["a"]


async def test_a_cursor_that_was_never_issued_is_answered_with_a_resync(served, workspace):
    async with served.unix.stream("GET", f"{workspace}/events?client_id=a&after=nonsense") as response:
        assert (await _first(response)).event == "resync"


async def test_the_last_event_id_header_beats_the_query(served, workspace):
    """The query holds a good cursor, the header a bad one: the resync shows which was taken."""
    url = f"{workspace}/events?client_id=a"
    async with served.unix.stream("GET", url) as response:
        cursor = json.loads((await _first(response)).data)["payload"]["cursor"]
    both = {"params": {"client_id": "a", "after": cursor}, "headers": {"last-event-id": "nonsense"}}
    async with served.unix.stream("GET", url, **both) as response:
        assert (await _first(response)).event == "resync"


async def test_other_methods_are_refused(served, workspace):
    for method in ("HEAD", "POST", "PUT", "DELETE"):
        answer = await served.unix.request(method, f"{workspace}/events?client_id=a")
        assert answer.status_code == 405
        if method != "HEAD":
            assert refusal(answer) == (405, "method_not_allowed")


async def test_what_opening_refuses_is_an_error_answer_and_no_stream(served, workspace):
    answer = await served.unix.get(f"{workspace}/events?client_id=a&session_id=nope")
    assert refusal(answer) == (404, "session_not_found")
    assert refusal(await served.unix.get("/v1/workspaces/nope/events?client_id=a")) == (404, "workspace_not_found")


async def test_whether_someone_can_answer_is_yes_or_no(served, workspace):
    refused = await served.unix.get(f"{workspace}/events?client_id=a&answers=perhaps")
    assert refused.status_code == 400
    async with served.unix.stream("GET", f"{workspace}/events?client_id=a&answers=true") as response:
        assert (await _first(response)).event == "snapshot"


async def test_open_streams_end_cleanly_when_the_server_leaves_b5(tmp_path):
    async with asyncio.TaskGroup() as group:
        opened = asyncio.Event()
        ended = None
        async with serve_in(tmp_path) as served:
            workspace = await served.workspace(tmp_path / "project")
            ended = group.create_task(_read_to_end(served.socket, f"{workspace}/events?client_id=a", opened))
            await opened.wait()
    assert ended.result().endswith(b"0\r\n\r\n")


async def _read_to_end(socket: str, url: str, opened: asyncio.Event) -> bytes:
    reader, writer = await asyncio.open_unix_connection(socket)
    writer.write(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    seen = await reader.readuntil(b"event: snapshot")
    opened.set()
    seen += await reader.read()
    writer.close()
    await writer.wait_closed()
    return seen


class _Source:
    """A stream that yields what the test puts in, and tells when it is left."""

    def __init__(self) -> None:
        self.chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.left = asyncio.Event()
        self.failure: Exception | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AsyncIterator[bytes]]:
        try:
            yield self._read()
        finally:
            self.left.set()

    async def _read(self) -> AsyncIterator[bytes]:
        while (chunk := await self.chunks.get()) is not None:
            if self.failure is not None:
                raise self.failure
            yield chunk


class _Connection:
    """The server's side of an ASGI connection, in the hands of the test."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[dict] = asyncio.Queue()
        self.gone = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()
        self._asked = False

    async def receive(self) -> dict:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict) -> None:
        await self.writable.wait()
        self.sent.put_nowait(message)


@pytest.fixture
async def opened():
    source, connection = _Source(), _Connection()
    task = asyncio.create_task(EventStream(source.open())({}, connection.receive, connection.send))
    assert (await connection.sent.get())["status"] == 200
    yield source, connection, task
    task.cancel()
    await asyncio.wait([task])


async def test_each_chunk_is_one_send(opened):
    source, connection, task = opened
    source.chunks.put_nowait(b"id: 1\n\nid: 2\n\n")
    assert await connection.sent.get() == {
        "type": "http.response.body",
        "body": b"id: 1\n\nid: 2\n\n",
        "more_body": True,
    }
    source.chunks.put_nowait(None)
    assert await connection.sent.get() == {"type": "http.response.body", "body": b"", "more_body": False}
    await task


async def test_g10_a_stream_that_cannot_be_read_any_further_ends_in_order(opened):
    """Found by chaos: it broke off, with a traceback in the log. Clients and other nodes continue at their cursor."""
    source, connection, task = opened
    source.failure = StoreUnavailable("away")
    source.chunks.put_nowait(b"never sent")
    assert await connection.sent.get() == {"type": "http.response.body", "body": b"", "more_body": False}
    await task


async def test_a_disconnect_is_noticed_while_nothing_is_sent(opened):
    source, connection, task = opened
    connection.gone.set()
    await source.left.wait()
    await task


async def test_a_disconnect_is_noticed_while_a_send_is_stuck(opened):
    source, connection, task = opened
    connection.writable.clear()
    source.chunks.put_nowait(b"x")
    connection.gone.set()
    await source.left.wait()
    await task


async def test_a_failing_source_is_left_and_its_failure_told(opened):
    source, _, task = opened
    source.failure = ConnectionError("the store broke")
    source.chunks.put_nowait(b"")
    with pytest.raises(ConnectionError):
        await task
    assert source.left.is_set()
