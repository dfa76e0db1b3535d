"""Deltas per second of one run at full speed, through the native adapter to one subscriber."""

import asyncio
import json
import time

import httpx2
import uvloop

from benchmarks.harness import Row, RunningServer, compare, longboat, per_second, scripted_endpoint, timed
from benchmarks.wires import RUN_COMPLETE, Wire, request

ROUNDS, CHUNKS = 8, 20_000
PROMPT = f"[[burst:{CHUNKS}]]"


def measure() -> list[Row]:
    with scripted_endpoint() as url, longboat(f"{url}/v1") as server, server.subscriber() as events:
        read_bare(url, PROMPT, CHUNKS)
        run_once(server, events, PROMPT)
        rounds = [
            (CHUNKS / read_bare(url, PROMPT, CHUNKS), CHUNKS / run_once(server, events, PROMPT)) for _ in range(ROUNDS)
        ]
    return [compare("deltas/s of one run at full speed, 1 subscriber", rounds, per_second, at_least=0.25)]


def run_once(server: RunningServer, events: Wire, prompt: str) -> float:
    """Seconds from a prompt to its terminal event at the subscriber."""
    sent = request("POST", f"{server.workspace}/agent", {"session_id": server.new_session(), "prompt": prompt})

    def work() -> None:
        server.wire.send(sent)
        server.wire.answer()
        events.wait_for(RUN_COMPLETE)

    return timed(work)


def read_bare(url: str, prompt: str, chunks: int, *, streams: int = 1) -> float:
    """Seconds to read so many of the same stream at once with httpx2 and json, and nothing else."""
    return uvloop.run(_read_all(url, prompt, chunks, streams))


async def _read_all(url: str, prompt: str, chunks: int, streams: int) -> float:
    async with httpx2.AsyncClient() as client:
        await client.get(f"{url}/v1/models")
        start = time.perf_counter()
        for seen in await asyncio.gather(*(_read(client, url, prompt) for _ in range(streams))):
            if seen != chunks + 1:  # the last one says why the answer ends
                raise RuntimeError(f"{seen} chunks came")
        return time.perf_counter() - start


async def _read(client: httpx2.AsyncClient, url: str, prompt: str) -> int:
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": prompt}]}
    seen = 0
    async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                seen += bool(json.loads(line[6:])["choices"])
    return seen
