"""`python -m benchmarks.clocked`: a model endpoint whose deltas carry the time of their own writing, one every 5 ms."""

import asyncio
import time

import msgspec
import uvloop

DELTAS, EVERY_S = 100, 0.005
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
            await reader.readexactly(length)
            writer.write(HEAD)
            for _ in range(DELTAS):
                await asyncio.sleep(EVERY_S)
                writer.write(chunk(event({"content": f"t{time.monotonic_ns():020d} "}, None)))
            writer.write(chunk(event({}, "stop") + b"data: [DONE]\n\n") + b"0\r\n\r\n")
    except asyncio.IncompleteReadError:
        writer.close()


def event(delta: dict[str, str], finish_reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())
