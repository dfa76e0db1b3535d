"""An asyncio relay: the bytes of a model's stream, committed once per piece, passed on to one subscriber.

The commit is of the kind that Longboat's deltas have (no fsync), so that the floor has no advantage to give away."""

import asyncio
import sys
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from benchmarks.floors.commits import Commits

_REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"


async def _relay(commits: Commits, port: int, subscriber: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One stream for each byte that the subscriber sends."""
    reader, to_model = await asyncio.open_connection("127.0.0.1", port)
    while await subscriber.read(1):
        to_model.write(_REQUEST)
        piece = b""
        while not piece.endswith(b"0\r\n\r\n"):
            piece = await reader.read(65536)
            await commits.commit(piece)
            writer.write(piece)
    to_model.close()
    writer.close()


async def _serve() -> None:
    commits = Commits(Path(sys.argv[1] + ".db"), synchronous="NORMAL")
    port = urlsplit(sys.argv[2]).port
    assert port is not None
    server = await asyncio.start_unix_server(partial(_relay, commits, port), sys.argv[1])
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())
