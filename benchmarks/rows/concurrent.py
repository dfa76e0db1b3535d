"""Fifty runs of 200 chunks at once, against one run of 10,000. Each chunk is a write of its own, as models write."""

from contextlib import ExitStack

from benchmarks.harness import Row, RunningServer, compare, longboat, milliseconds, scripted_endpoint, timed
from benchmarks.rows.rate import run_once
from benchmarks.wires import RUN_COMPLETE, Wire, request

ROUNDS, RUNS, CHUNKS = 8, 50, 200


def measure() -> list[Row]:
    with (
        scripted_endpoint() as url,
        longboat(f"{url}/v1") as server,
        server.subscriber() as events,
        ExitStack() as stack,
    ):
        wires = [stack.enter_context(Wire(server.socket)) for _ in range(RUNS)]

        def both() -> tuple[float, float]:
            return run_once(server, events, f"[[burst:{RUNS * CHUNKS}:1]]"), run_many(server, events, wires)

        both()
        rounds = [both() for _ in range(ROUNDS)]
    return [compare("50 runs × 200 chunks at once, floor: 1 run × 10,000", rounds, milliseconds, at_most=1.5)]


def run_many(server: RunningServer, events: Wire, wires: list[Wire]) -> float:
    bodies = [{"session_id": server.new_session(), "prompt": f"[[burst:{CHUNKS}:1]]"} for _ in wires]
    prompts = [request("POST", f"{server.workspace}/agent", body) for body in bodies]

    def work() -> None:
        for wire, prompt in zip(wires, prompts, strict=True):
            wire.send(prompt)
        for wire in wires:
            wire.answer()
        events.wait_for(RUN_COMPLETE, RUNS)

    return timed(work)
