"""HTTP as bytes, for what no well-behaved client sends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from server_harness import TOKEN, Served

HOST = b"Host: 127.0.0.1\r\n"
HEALTH = b"GET /v1/health HTTP/1.1\r\n" + HOST
TOKEN_SHOWN = b"Authorization: Bearer " + TOKEN.encode() + b"\r\n"
WORKSPACES = b"GET /v1/workspaces HTTP/1.1\r\n" + HOST + TOKEN_SHOWN + b"\r\n"


@asynccontextmanager
async def connected(
    served: Served, *, unix: bool = False
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    if unix:
        reader, writer = await asyncio.open_unix_connection(served.socket)
    else:
        assert served.serving.discovery.url is not None
        port = int(served.serving.discovery.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """What comes until the server closes, by a reset too."""
    came = b""
    try:
        while piece := await reader.read(65536):
            came += piece
    except ConnectionError:
        pass
    return came


async def answer_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.partition(b":")[2]))
    return head
