"""Deltas per second of one run at full speed, through the native adapter to one subscriber."""

import json
import time

import httpx2
import uvloop

from benchmarks.harness import Row, RunningServer, compare, longboat, per_second, scripted_endpoint, timed
from benchmarks.wires import RUN_COMPLETE, Wire, request

ROUNDS, CHUNKS = 8, 20_000
PROMPT = f"[[burst:{CHUNKS}]]"
_BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": PROMPT}]}


def measure() -> list[Row]:
    with scripted_endpoint() as url, longboat(f"{url}/v1") as server, server.subscriber() as events:
        _read_bare(url)
        run_once(server, events, PROMPT)
        rounds = [(CHUNKS / _read_bare(url), CHUNKS / run_once(server, events, PROMPT)) for _ in range(ROUNDS)]
    return [compare("deltas/s of one run at full speed, 1 subscriber", rounds, per_second, at_least=0.25)]


def run_once(server: RunningServer, events: Wire, prompt: str) -> float:
    """Seconds from a prompt to its terminal event at the subscriber."""
    sent = request("POST", f"{server.workspace}/agent", {"session_id": server.new_session(), "prompt": prompt})

    def work() -> None:
        server.wire.send(sent)
        server.wire.answer()
        events.wait_for(RUN_COMPLETE)

    return timed(work)


def _read_bare(url: str) -> float:
    """Seconds to read the same stream with httpx2 and json, and nothing else."""
    return uvloop.run(_read(url))


async def _read(url: str) -> float:
    async with httpx2.AsyncClient() as client:
        await client.get(f"{url}/v1/models")
        start = time.perf_counter()
        seen = 0
        async with client.stream("POST", f"{url}/v1/chat/completions", json=_BODY) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    seen += bool(json.loads(line[6:])["choices"])
        if seen != CHUNKS + 1:  # the last one says why the answer ends
            raise RuntimeError(f"{seen} chunks came")
        return time.perf_counter() - start
