"""`python -m benchmarks.paced`: a model endpoint that writes Markdown at 200 tokens per second, as many as `[[N]]` in
the prompt asks for; about every tenth token is the time of its own writing."""

import asyncio
import re
import time
from itertools import cycle, islice

import uvloop

from benchmarks.clocked import HEAD, chunk, event

PER_S = 200
EVERY = 10
TEXT = """\
## A heading of some length

Some **bold** words and `code` here, then a [link](https://example.org) and a list:

- one item of it
- two items of it, *of which* this one is longer

```python
def area(width: float, height: float) -> float:
    return width * height  # in square metres
```

| name | count |
|---|---|
| one | 1 |
| two | 2 |

And a paragraph that goes on for a while with many words in it, as answers of models do. """
WORDS = re.findall(r"\S+\s*", TEXT)
_PLAIN = re.compile("[a-z]+ ")
"""Before such a word a stamp makes nothing else of the Markdown."""
_COUNT = re.compile(rb"\[\[(\d+)\]\]")


def stamp() -> str:
    return f"t{time.monotonic_ns():020d} "


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
            count = int(_COUNT.findall(await reader.readexactly(length))[-1])
            writer.write(HEAD)
            await _write(writer, count)
            writer.write(chunk(event({}, "stop") + b"data: [DONE]\n\n") + b"0\r\n\r\n")
    except asyncio.IncompleteReadError:
        writer.close()


async def _write(writer: asyncio.StreamWriter, count: int) -> None:
    """By the clock and not by the pause: a busy machine makes none of it slower on the whole."""
    start = time.monotonic()
    for number, word in enumerate(islice(cycle(WORDS), count - 1), 1):
        await asyncio.sleep(max(0.0, start + number / PER_S - time.monotonic()))
        text = f"{stamp()}{word}" if number % EVERY == 0 and _PLAIN.fullmatch(word) else word
        writer.write(chunk(event({"content": text}, None)))
    writer.write(chunk(event({"content": f"\n\n{stamp()}"}, None)))


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())
