"""Fifty runs of 200 chunks at once, against one run of 10,000, and against a program that only reads and decodes the
same fifty answers. Each chunk is a write of its own, as models write."""

from contextlib import ExitStack

from benchmarks.harness import Row, RunningServer, compare, longboat, milliseconds, scripted_endpoint, timed
from benchmarks.rows.rate import read_bare, run_once
from benchmarks.wires import RUN_COMPLETE, Wire, request

ROUNDS, RUNS, CHUNKS = 8, 50, 200
PROMPT = f"[[burst:{CHUNKS}:1]]"


def measure() -> list[Row]:
    with (
        scripted_endpoint() as url,
        longboat(f"{url}/v1") as server,
        server.subscriber() as events,
        ExitStack() as stack,
    ):
        wires = [stack.enter_context(Wire(server.socket)) for _ in range(RUNS)]

        def each() -> tuple[float, float, float]:
            one = run_once(server, events, f"[[burst:{RUNS * CHUNKS}:1]]")
            return one, read_bare(url, PROMPT, CHUNKS, streams=RUNS), run_many(server, events, wires)

        each()
        rounds = [each() for _ in range(ROUNDS)]
    work = f"{RUNS} runs × {CHUNKS} chunks at once, floor:"
    to_one = [(one, many) for one, _, many in rounds]
    to_bare = [(bare, many) for _, bare, many in rounds]
    return [
        compare(f"{work} 1 run × {RUNS * CHUNKS:,}", to_one, milliseconds, at_most=1.5),
        compare(f"{work} httpx2 and json read the same", to_bare, milliseconds, at_most=1.5),
    ]


def run_many(server: RunningServer, events: Wire, wires: list[Wire]) -> float:
    bodies = [{"session_id": server.new_session(), "prompt": PROMPT} for _ in wires]
    prompts = [request("POST", f"{server.workspace}/agent", body) for body in bodies]

    def work() -> None:
        for wire, prompt in zip(wires, prompts, strict=True):
            wire.send(prompt)
        for wire in wires:
            wire.answer()
        events.wait_for(RUN_COMPLETE, RUNS)

    return timed(work)
