"""How slowly and how much anybody may send, and what is thrown away unread (D4)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from raw_http import HEALTH, HOST, TOKEN_SHOWN, WORKSPACES, answer_of, connected, rest_of
from server_harness import Served, serve_in

from longboat.server import connection

POST = b"POST /v1/workspaces HTTP/1.1\r\n" + HOST + TOKEN_SHOWN
LOGIN = b"POST /login HTTP/1.1\r\n" + HOST


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serve_in(tmp_path) as served:
        yield served


# Time


@pytest.mark.parametrize("unix", [False, True], ids=["tcp", "unix"])
@pytest.mark.parametrize("framing", [b"Content-Length: 100000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{"])
async def test_a_body_that_stops_is_answered_408_and_closed(
    served: Served, monkeypatch: pytest.MonkeyPatch, framing: bytes, unix: bool
) -> None:
    """D4: with the token, 300 of 300 were open after 20 s."""
    monkeypatch.setattr(connection, "BODY_S", 0.1)
    async with connected(served, unix=unix) as (reader, writer):
        writer.write(POST + framing)
        said = await rest_of(reader)
    assert said.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b'"code":"body_too_slow"' in said


async def test_a_body_that_trickles_is_closed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BODY_S", 0.2)
    async with connected(served) as (reader, writer):
        writer.write(POST + b"Content-Length: 100000\r\n\r\n")
        closed = asyncio.create_task(rest_of(reader))
        while not closed.done():
            writer.write(b"a")
            await asyncio.wait((closed,), timeout=0.01)
        assert b" 408 " in await closed


async def test_a_body_that_comes_slowly_but_fast_enough_is_taken(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often its rate is looked at."""
    looks = asyncio.Semaphore(0)
    check = connection.Connection._check_body

    def look(self: connection.Connection) -> None:
        check(self)
        looks.release()

    monkeypatch.setattr(connection.Connection, "_check_body", look)
    monkeypatch.setattr(connection, "BODY_S", 0.2)
    monkeypatch.setattr(connection, "BODY_RATE", 5)
    (tmp_path / "project").mkdir()
    body = b'{"path": "%b"%b}' % (str(tmp_path / "project").encode(), b" " * 1_000)
    async with connected(served) as (reader, writer):
        writer.write(POST + b"Content-Length: %d\r\n\r\n" % len(body))
        for at in range(0, 800, 400):
            writer.write(body[at : at + 400])
            await looks.acquire()
        writer.write(body[800:])
        assert b"201 Created" in await answer_of(reader)


@pytest.mark.parametrize("sent", [b"Content-Length: 20\r\n\r\ntoken=", b"Content-Length: 20\r\n"])
async def test_a_stranger_has_no_longer_for_a_body_than_for_a_head(
    served: Served, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.1)
    async with connected(served) as (reader, writer):
        writer.write(LOGIN + sent)
        assert await rest_of(reader) == b""


async def test_who_reads_on_after_a_refusal_is_cut_off(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LINGER_S", 0.1)
    async with connected(served) as (reader, writer):
        writer.write(LOGIN + b"Content-Length: 1000000\r\n\r\n")
        assert b"413 " in await answer_of(reader)
        lost = asyncio.create_task(writer.wait_closed())
        while not lost.done():
            writer.write(b"a")
            await asyncio.wait((lost,), timeout=0.01)
        lost.exception()


# Bodies of strangers


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"POST /v1/workspaces", b"401 Unauthorized"),
        (b"GET /v1/health", b"200 OK"),
        (b"GET /login", b"401 Unauthorized"),
        (b"POST /", b"401 Unauthorized"),
        (b"POST /login", b"413 Content Too Large"),
        (b"PUT /login", b"405 Method Not Allowed"),
    ],
)
async def test_a_strangers_body_is_answered_before_it_comes(served: Served, request_line: bytes, status: bytes) -> None:
    async with connected(served) as (reader, writer):
        writer.write(request_line + b" HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 5000\r\n\r\n")
        said = await rest_of(reader)
    assert status.split()[0] == said.split()[1], said
    assert b"\r\nconnection: close\r\n" in said
    assert b"100 Continue" not in said


async def test_who_has_the_token_is_told_to_go_on(served: Served) -> None:
    async with connected(served) as (reader, writer):
        writer.write(POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"{}")
        assert b"400 Bad Request" in await answer_of(reader)


async def test_a_login_form_is_read_whole(served: Served) -> None:
    async with connected(served) as (reader, writer):
        form = b"token=" + b"a" * (4_096 - 6)
        for piece in (LOGIN + b"Content-Length: 4096\r\n\r\n", form[:2_000], form[2_000:]):
            writer.write(piece)
            await writer.drain()
        assert b"401 Unauthorized" in await answer_of(reader)
        writer.write(HEALTH + b"\r\n")
        assert b"200 OK" in await answer_of(reader)


async def test_the_stranger_that_holds_the_most_goes_first(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_STRANGER_BYTES", 50_000)
    async with (
        connected(served) as (patient, small),
        connected(served) as (greedy, large),
        connected(served) as (known, writer),
    ):
        small.write(HEALTH)
        writer.write(WORKSPACES)
        assert b"200 OK" in await answer_of(known)
        large.write(HEALTH + b"X: " + b"a" * 60_000)
        await rest_of(greedy)
        small.write(b"\r\n")
        assert b"200 OK" in await answer_of(patient)
        writer.write(HEALTH + b"X: " + b"a" * 60_000)
        await writer.drain()
        writer.write(b"\r\n\r\n")
        assert b"200 OK" in await answer_of(known), "who has shown the token is not counted"


# Heads and lines


async def test_there_are_only_so_many_headers(served: Served) -> None:
    for number, status in ((200, b" 200 "), (300, b" 431 ")):
        async with connected(served) as (reader, writer):
            writer.write(HEALTH + b"Connection: close\r\n" + b"a:\r\n" * number + b"\r\n")
            assert status in await rest_of(reader)


async def test_there_are_only_so_many_trailers(served: Served) -> None:
    async with connected(served) as (reader, writer):
        writer.write(POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"a:b\r\n" * 300)
        assert b" 431 " in await rest_of(reader)


async def test_what_is_not_http_is_refused_with_a_code(served: Served) -> None:
    async with connected(served) as (reader, writer):
        writer.write(b"\x16\x03\x01 hello\r\n\r\n")
        said = await rest_of(reader)
    assert said.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b'"code":"bad_http"' in said


async def test_http_1_0_is_answered_and_closed(served: Served) -> None:
    async with connected(served) as (reader, writer):
        writer.write(b"GET /v1/health HTTP/1.0\r\n" + HOST + b"\r\n")
        assert b" 200 OK\r\n" in await rest_of(reader)


async def test_a_line_of_requests_is_answered_up_to_a_length(served: Served) -> None:
    """The last answer says that the connection closes, so a client knows which requests to send again."""
    async with connected(served) as (reader, writer):
        writer.write((HEALTH + b"\r\n") * 500)
        said = await rest_of(reader)
    assert said.count(b"HTTP/1.1 200 OK\r\n") == connection.MAX_PIPELINED + 1
    assert said.count(b"connection: close\r\n") == 1
    assert b"connection: close\r\n" in said.rpartition(b"HTTP/1.1 200 OK\r\n")[2]


async def test_a_stream_with_a_request_behind_it_ends_with_its_connection(served: Served, tmp_path: Path) -> None:
    workspace = (await served.workspace(tmp_path / "project")).encode()
    clients = served.serving.app.gauges
    async with connected(served, unix=True) as (reader, writer):
        writer.write(b"GET " + workspace + b"/events?client_id=me HTTP/1.1\r\n" + HOST + b"\r\n" + HEALTH + b"\r\n")
        await reader.readuntil(b"event: snapshot")
        assert clients()["streams_open"] == 1
    while clients()["streams_open"]:  # the server learns of the close in its own time
        assert (await served.unix.get("/v1/health")).status_code == 200


async def test_a_search_ends_when_its_client_leaves(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Page and terminal app search while someone types: most searches are wanted only for a moment."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def search_for_long(*_: object, **__: object) -> None:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    monkeypatch.setattr(served.serving.app, "search", search_for_long)
    async with connected(served, unix=True) as (_, writer):
        writer.write(b"GET /v1/search?q=keel HTTP/1.1\r\n" + HOST + b"\r\n")
        await begun.wait()
    await ended.wait()
    await served.unix.get("/v1/health")
    assert [line for line in caplog.records if line.levelname in ("WARNING", "ERROR")] == []
