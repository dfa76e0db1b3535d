"""POST prompt → 202, durable."""

import time
from collections.abc import Iterator

from benchmarks.harness import Row, RunningServer, compare, floor, longboat, milliseconds, scripted_endpoint, transposed
from benchmarks.wires import RUN_COMPLETE, Wire, request

ROUNDS, SAMPLES, WARM_UP = 8, 40, 20
QUIET_S = 0.005
"""Before each sample: what the one before set off has ended."""
TEXT = "How do I sort a list of dictionaries by two keys?"
PROMPTS = 10
"""Of one session: a long history would make the runs, which are not measured here, ever longer."""


def measure() -> list[Row]:
    with floor("durable") as socket, scripted_endpoint() as url, longboat(f"{url}/v1") as server, Wire(socket) as bare:
        pairs = sample(server, bare)
        for _ in range(WARM_UP):
            next(pairs)
        rounds = transposed((next(pairs) for _ in range(ROUNDS * SAMPLES)), SAMPLES)
    return [compare("POST prompt → 202, durable, p50", rounds, milliseconds, at_most=2)]


def sample(server: RunningServer, bare: Wire) -> Iterator[tuple[float, float]]:
    """In turn, one of each. The run that a prompt starts has ended before the next is timed."""
    with server.subscriber() as events, Wire(server.socket) as wire:
        while True:
            body = {"session_id": server.new_session(), "prompt": TEXT}
            to_floor, to_server = request("POST", "/agent", body), request("POST", f"{server.workspace}/agent", body)
            for _ in range(PROMPTS):
                at_floor = post(bare, to_floor)
                at_server = post(wire, to_server)
                events.wait_for(RUN_COMPLETE)
                yield at_floor, at_server


def post(wire: Wire, sent: bytes) -> float:
    time.sleep(QUIET_S)
    start = time.perf_counter()
    wire.send(sent)
    status, _ = wire.answer()
    taken = time.perf_counter() - start
    if status != 202:
        raise RuntimeError(f"not accepted: {status}")
    return taken
