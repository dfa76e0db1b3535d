"""Model's byte → subscriber, per delta, at a pace that leaves the machine idle in between."""

import re
import statistics
import time

from benchmarks.clocked import DELTAS
from benchmarks.harness import Row, compare, floor, line_of, longboat, milliseconds, process
from benchmarks.wires import RUN_COMPLETE, Wire, request

ROUNDS = 8
_STAMP = re.compile(rb"t(\d{20})")


def measure() -> list[Row]:
    with (
        process("-m", "benchmarks.clocked") as endpoint,
        floor("relay", url := line_of(endpoint)) as socket,
        Wire(socket) as relay,
        longboat(f"{url}/v1") as server,
        server.subscriber() as events,
    ):
        prompt = request("POST", f"{server.workspace}/agent", {"session_id": server.new_session(), "prompt": "Go."})

        def at_server() -> float:
            server.wire.send(prompt)
            server.wire.answer()
            return delay(events, RUN_COMPLETE)

        def at_floor() -> float:
            relay.send(b"!")
            return delay(relay, b"0\r\n\r\n")

        at_floor(), at_server()
        rounds = [(at_floor(), at_server()) for _ in range(ROUNDS)]
    return [compare("model's byte → subscriber, per delta, p50", rounds, milliseconds, at_most=3)]


def delay(wire: Wire, end: bytes) -> float:
    """The median delay of a stream's deltas, in seconds. The clock is one for all processes of a machine."""
    delays: dict[bytes, int] = {}
    rest, ended = b"", False
    while not ended:
        rest += wire.receive()
        now = time.monotonic_ns()
        for found in _STAMP.finditer(rest):
            delays.setdefault(found[1], now - int(found[1]))
        ended = end in rest
        rest = rest[-20:]
    if len(delays) != DELTAS:
        raise RuntimeError(f"{len(delays)} deltas of {DELTAS} came")
    return statistics.median(delays.values()) / 1e9
