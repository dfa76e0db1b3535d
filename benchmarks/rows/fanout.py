"""One run at full speed to many subscribers: how many chunks of the model reach one of them per second, in all."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness import (
    Process,
    Row,
    RunningServer,
    compare,
    floor,
    line_of,
    longboat,
    per_second,
    process,
    scripted_endpoint,
)
from benchmarks.wires import Wire, request

ROUNDS = 6


def measure() -> list[Row]:
    return [_measure(20, chunks=20_000, at_least=0.25), _measure(200, chunks=5_000, at_least=0.5)]


def _measure(subscribers: int, *, chunks: int, at_least: float) -> Row:
    with (
        floor("fanout", str(chunks)) as socket,
        scripted_endpoint() as url,
        longboat(f"{url}/v1") as server,
        crowd(socket, subscribers, "/{n}") as at_floor,
        crowd(server.socket, subscribers, server.events("c{n}")) as at_server,
        Wire(socket) as bare,
    ):

        def round_of(crowd: Process, wire: Wire, prompt: bytes) -> float:
            return chunks * subscribers / deliver(crowd, wire, prompt)

        def both() -> tuple[float, float]:
            return round_of(at_floor, bare, request("POST", "/")), round_of(
                at_server, server.wire, prompt_of(server, chunks)
            )

        both()
        rounds = [both() for _ in range(ROUNDS)]
    return compare(f"the same to {subscribers} subscribers, deliveries/s", rounds, per_second, at_least=at_least)


def prompt_of(server: RunningServer, chunks: int) -> bytes:
    body = {"session_id": server.new_session(), "prompt": f"[[burst:{chunks}]]"}
    return request("POST", f"{server.workspace}/agent", body)


@contextmanager
def crowd(socket: Path, count: int, target: str) -> Iterator[Process]:
    with process("-m", "benchmarks.crowd", str(socket), str(count), target) as child:
        line_of(child)
        yield child


def deliver(crowd: Process, wire: Wire, prompt: bytes) -> float:
    """Seconds from the request to the last subscriber's end."""
    assert crowd.stdin is not None
    print(file=crowd.stdin, flush=True)
    start = time.monotonic_ns()
    wire.send(prompt)
    wire.answer()
    return (int(line_of(crowd)) - start) / 1e9
