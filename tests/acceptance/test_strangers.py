"""What callers without a token cost a real server over TCP: a few MB, however many they are (D4)."""

import asyncio
from contextlib import AsyncExitStack

import psutil
import pytest
from processes import Site, open_site

pytestmark = pytest.mark.acceptance

HOST = b"Host: 127.0.0.1\r\n"
LARGE = 15_900_000
"""Just below server.max_body_mb, as in the review."""
FEW_MB = 16
"""What RSS may grow by: bodies that were kept would be 950 MB, heads 128 MB."""
CONNECTIONS_MB = 40
"""What a thousand open connections cost by themselves, with room for a busy machine on which answers pile up."""


def rss_mb(site: Site) -> float:
    return psutil.Process(site.server.pid).memory_info().rss / 1e6


async def post(site: Site, path: bytes, framing: bytes, piece: bytes, size: int) -> bytes:
    """Send a large body without a token and return all that the server says until it closes."""
    reader, writer = await site.raw()
    answer = asyncio.ensure_future(_everything(reader))
    writer.write(b"POST " + path + b" HTTP/1.1\r\n" + HOST + framing + b"\r\n\r\n")
    try:
        for _ in range(size // 60_000):
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        pass
    said = await answer
    writer.close()
    return said


async def _everything(reader: asyncio.StreamReader) -> bytes:
    said = b""
    try:
        while piece := await reader.read(65536):
            said += piece
    except ConnectionError:
        pass
    return said


@pytest.mark.parametrize(
    ("path", "chunked", "status"),
    [
        (b"/login", False, b"413 "),
        (b"/login", True, b"411 "),
        (b"/v1/workspaces", False, b"401 "),
        (b"/v1/workspaces", True, b"401 "),
        (b"/v1/health", False, b"405 "),
    ],
)
async def test_large_bodies_without_a_token_are_refused_unread(path: bytes, chunked: bool, status: bytes) -> None:
    """D4: 60 of them, 15.9 MB each, took 950 MB and were held for ever."""
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % LARGE
    piece = b"a" * 60_000
    if chunked:
        piece = b"%x\r\n%b\r\n" % (len(piece), piece)
    async with open_site("tcp") as site:
        await site.serve()
        await post(site, path, framing, piece, 0 if chunked else 60_000)  # what is imported at the first request
        before = rss_mb(site)
        answers = await asyncio.gather(*(post(site, path, framing, piece, LARGE) for _ in range(60)))
        assert rss_mb(site) - before < FEW_MB
        assert [answer.partition(b" ")[2][:4] for answer in answers] == [status] * 60
        assert all(b"connection: close\r\n" in answer for answer in answers)


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        (b"GET /v1/health HTTP/1.1\r\n" + HOST + b"X: ").ljust(60_000, b"a"),
        b"GET /v1/health HTTP/1.1\r\n" + HOST + b"a:\r\n" * 250,
        b"GET /v1/health HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 60_000 + b"\r\n\r\n",
        b"POST /login HTTP/1.1\r\n" + HOST + b"Content-Length: 4096\r\n\r\n" + b"a" * 4095,
        (b"GET /v1/health HTTP/1.1\r\n" + HOST + b"\r\n") * 2_000,
        (b"GET / HTTP/1.1\r\n" + HOST + b"\r\n") * 2_000,
    ],
    ids=["nothing", "long head", "many headers", "whole head", "login form", "pipelined", "pipelined pages"],
)
async def test_a_thousand_strangers_hold_a_few_mb(begun: bytes) -> None:
    """D4: whatever they have sent, and whether or not they read what they are told."""
    async with open_site("tcp") as site, AsyncExitStack() as held:
        await site.serve()
        client = await site.client()
        assert (await client.get("/v1/workspaces")).status_code == 200
        before = rss_mb(site)
        for _ in range(1_000):
            reader, writer = await site.raw()
            held.callback(writer.close)
            reader._transport.pause_reading()  # type: ignore[attr-defined]  # a client that reads no answer
            writer.write(begun)
        assert (await client.get("/v1/workspaces")).status_code == 200
        assert rss_mb(site) - before < CONNECTIONS_MB
        assert (await (await site.client()).get("/v1/workspaces")).status_code == 200
