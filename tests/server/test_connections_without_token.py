"""What connections may cost that have shown no token: time, memory and file descriptors are bounded."""

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
from raw_http import HEALTH, HOST, TOKEN_SHOWN, WORKSPACES, answer_of, connected, rest_of
from server_harness import Served, serve_in

from longboat.server import connection
from longboat.wire.sse import Decoder, Frame


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serve_in(tmp_path) as served:
        yield served


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.2)


# Time


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("unix", [False, True], ids=["tcp", "unix"])
@pytest.mark.parametrize("begun", [b"", b"GET /v1/health HT", HEALTH, b"\r\n\r\n"])
async def test_a_connection_that_sends_no_whole_request_is_closed(served: Served, begun: bytes, unix: bool) -> None:
    async with connected(served, unix=unix) as (reader, writer):
        writer.write(begun)
        assert await rest_of(reader) == b""


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(("begun", "drop"), [(b"GET /", b"a"), (b"", b"\r\n")], ids=["head", "blank lines"])
@pytest.mark.parametrize("before", [0, 1], ids=["first request", "later request"])
async def test_dribbling_does_not_help(served: Served, before: int, begun: bytes, drop: bytes) -> None:
    async with connected(served) as (reader, writer):
        for _ in range(before):
            writer.write(HEALTH + b"\r\n")
            assert b"200 OK" in await answer_of(reader)
        writer.write(begun)
        closed = asyncio.create_task(rest_of(reader))
        while not closed.done():
            writer.write(drop)
            await asyncio.wait((closed,), timeout=0.02)
        assert await closed == b""


@pytest.mark.usefixtures("hasty")
async def test_a_body_that_nobody_reads_does_not_keep_a_connection_open(served: Served) -> None:
    async with connected(served) as (reader, writer):
        writer.write(b"POST /v1/workspaces HTTP/1.1\r\n" + HOST + b"Content-Length: 1000000\r\n\r\n")
        assert b"401 Unauthorized" in await answer_of(reader)
        closed = asyncio.create_task(rest_of(reader))
        while not closed.done():
            writer.write(b"a")
            await asyncio.wait((closed,), timeout=0.02)


@pytest.mark.usefixtures("hasty")
async def test_a_connection_may_rest_between_requests(served: Served) -> None:
    async with connected(served) as (reader, writer), connected(served) as (idle, _):
        writer.write(HEALTH + b"\r\n")
        assert b"200 OK" in await answer_of(reader)
        await rest_of(idle)
        async with connected(served) as (later, _):
            await rest_of(later)
        writer.write(HEALTH + b"\r\n")
        assert b"200 OK" in await answer_of(reader)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("unix", [False, True], ids=["tcp", "unix"])
async def test_an_open_event_stream_lives_on(served: Served, tmp_path: Path, unix: bool) -> None:
    workspace = await served.workspace(tmp_path / "project")
    client = served.unix if unix else served.tcp
    async with client.stream("GET", f"{workspace}/events?client_id=a") as response:
        frames = _frames(response.aiter_raw())
        assert (await anext(frames)).event == "snapshot"
        async with connected(served) as (idle, _):
            await rest_of(idle)
        async with connected(served) as (later, _):
            await rest_of(later)
        await served.session(workspace)
        assert (await anext(frame async for frame in frames if frame.event == "session")).event == "session"


async def _frames(pieces: AsyncIterator[bytes]) -> AsyncIterator[Frame]:
    decoder = Decoder()
    async for piece in pieces:
        for frame in decoder.decode(piece):
            yield frame


# Size


@pytest.mark.parametrize("unix", [False, True], ids=["tcp", "unix"])
@pytest.mark.parametrize("size", [1000, 100_000], ids=["in pieces", "at once"])
async def test_a_head_without_end_is_refused(served: Served, size: int, unix: bool) -> None:
    async with connected(served, unix=unix) as (reader, writer):
        head = (HEALTH + b"X: ").ljust(connection.MAX_HEAD + 1, b"a")
        for at in range(0, len(head), size):
            writer.write(head[at : at + size])
            await writer.drain()
        came = await rest_of(reader)
    assert came.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert came.endswith(b'{"code":"head_too_large","message":"The head of a request may have at most 64 KB."}')


@pytest.mark.parametrize("line", [b"X: " + b"a" * 70_000 + b"\r\n", b"a: b\r\n" * 12_000], ids=["one", "many"])
async def test_a_whole_head_that_is_too_large_is_refused(served: Served, line: bytes) -> None:
    async with connected(served) as (reader, writer):
        writer.write(HEALTH + line + b"\r\n")
        assert b"200 OK" not in await rest_of(reader)
    assert (await served.tcp.get("/v1/health")).status_code == 200


async def test_a_url_that_is_too_long_is_refused(served: Served) -> None:
    answer = await served.unix.get("/v1/health?" + "a" * (connection.MAX_HEAD - 10_000))
    assert answer.status_code == 200
    async with connected(served) as (reader, writer):
        writer.write(b"GET /v1/health?" + b"a" * 70_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n")
        assert b"200 OK" not in await rest_of(reader)


async def test_a_head_of_nearly_the_limit_is_taken(served: Served) -> None:
    answer = await served.tcp.get("/v1/health", headers={"x-long": "a" * (connection.MAX_HEAD - 1000)})
    assert answer.status_code == 200


async def test_a_body_is_no_head(served: Served, tmp_path: Path) -> None:
    """Also where both arrive together, and where the next head comes with the end of a body."""
    body = b'{"path": "' + b"a" * 200_000 + b'"}'
    post = b"POST /v1/workspaces HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    async with connected(served, unix=True) as (reader, writer):
        for _ in range(3):
            writer.write(post + HEALTH + b"\r\n")
            assert b"400 Bad Request" in await answer_of(reader)
            assert b"200 OK" in await answer_of(reader)


@pytest.mark.parametrize("endless", [b"0\r\nX: ", b"5;ext="], ids=["trailers", "extensions"])
async def test_what_surrounds_a_body_is_bounded_too(served: Served, endless: bytes) -> None:
    async with connected(served) as (reader, writer):
        head = HOST + TOKEN_SHOWN + b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(b"POST /v1/workspaces HTTP/1.1\r\n" + head)
        assert b"100 Continue" in await reader.readuntil(b"\r\n\r\n")
        writer.write(endless + b"a" * 70_000)
        assert b" 431 " in await rest_of(reader)


# Number


def limited_to(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_CONNECTIONS", number)


async def test_there_are_only_so_many_tcp_connections_and_the_owner_still_comes_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limited_to(2, monkeypatch)
    async with serve_in(tmp_path) as served, AsyncExitStack() as held:
        for _ in range(2):
            reader, writer = await held.enter_async_context(connected(served))
            writer.write(HEALTH + TOKEN_SHOWN + b"\r\n")
            assert b"200 OK" in await answer_of(reader)
        for _ in range(5):
            async with connected(served) as (refused, _):
                came = await rest_of(refused)
                assert came.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
                assert b'"code":"too_many_connections"' in came
        assert len([record for record in caplog.records if "connections are open" in record.message]) == 1
        for _ in range(5):
            async with connected(served, unix=True) as (owner, sender):
                sender.write(HEALTH + b"\r\n")
                assert b"200 OK" in await answer_of(owner)
        writer.close()
        came = b""
        while b"200 OK" not in came:  # the server learns of the close in its own time
            async with connected(served) as (admitted, sender):
                sender.write(HEALTH + b"Connection: close\r\n\r\n")
                came = await rest_of(admitted)


@pytest.mark.parametrize("asked", [b"", b"GET /", HEALTH + b"\r\n", (HEALTH + b"\r\n") * 20], ids=len)
async def test_who_shows_no_token_does_not_keep_out_who_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: bytes
) -> None:
    limited_to(8, monkeypatch)
    async with serve_in(tmp_path) as served, AsyncExitStack() as held, connected(served) as (known, writer):
        writer.write(WORKSPACES)
        assert b"200 OK" in await answer_of(known)
        strangers = [await held.enter_async_context(connected(served)) for _ in range(20)]
        for _, sender in strangers:
            sender.write(asked)
        for _ in range(10):
            async with connected(served) as (newcomer, sender):
                sender.write(WORKSPACES)
                assert b"200 OK" in await answer_of(newcomer)
        for reader, _ in strangers[:16]:  # the first to come are the first to go
            await rest_of(reader)
        writer.write(WORKSPACES)
        assert b"200 OK" in await answer_of(known), "a connection that showed the token is never the one that goes"


async def test_a_stranger_that_reads_no_answers_makes_room_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limited_to(2, monkeypatch)
    async with serve_in(tmp_path) as served, connected(served) as (_, stuck):
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                while True:
                    stuck.write((HEALTH + b"\r\n") * 1000)
                    await stuck.drain()
        for _ in range(3):
            async with connected(served) as (newcomer, sender):
                sender.write(WORKSPACES)
                assert b"200 OK" in await answer_of(newcomer)


async def test_a_connection_without_a_token_may_rest_only_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "STRANGER_REST_S", 0.1)
    async with (
        serve_in(tmp_path) as served,
        connected(served) as (stranger, asking),
        connected(served) as (known, writer),
        connected(served, unix=True) as (owner, sender),
    ):
        writer.write(WORKSPACES)
        assert b"200 OK" in await answer_of(known)
        sender.write(HEALTH + b"\r\n")
        assert b"200 OK" in await answer_of(owner)
        asking.write(HEALTH + b"\r\n")
        assert b"200 OK" in await answer_of(stranger)
        assert await rest_of(stranger) == b""
        for reader, asker in ((known, writer), (owner, sender)):
            asker.write(WORKSPACES)
            assert b"200 OK" in await answer_of(reader)


def test_as_many_descriptors_are_taken_as_there_may_be_within_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        monkeypatch.setattr(connection, "MAX_DESCRIPTORS", 300)
        assert connection.raise_descriptor_limit() == 300
        monkeypatch.setattr(connection, "MAX_DESCRIPTORS", 280)
        assert connection.raise_descriptor_limit() == 300, "it is never lowered"
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (300, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_connections_leave_half_of_few_descriptors_to_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "raise_descriptor_limit", lambda: 100)
    assert connection.open_connection_limits().limit == 50
    monkeypatch.setattr(connection, "raise_descriptor_limit", lambda: 1_000_000)
    assert connection.open_connection_limits().limit == connection.MAX_CONNECTIONS
