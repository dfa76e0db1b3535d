"""Cancel by one client → terminal event at the other; cancel of a command → nothing that it started is left."""

import asyncio
import statistics
import time
import urllib.request
from collections.abc import Iterator

from benchmarks.harness import (
    Row,
    RunningServer,
    compare,
    floor,
    longboat,
    milliseconds,
    scratch,
    scripted_endpoint,
    transposed,
)
from benchmarks.wires import RUN_COMPLETE, Wire, request
from longboat.testing import Hang, Say, encode_script
from longboat.testing.tool_context import OpenToolContext
from longboat.tools.process import process_tree
from longboat.tools.process.bash import BashTool
from longboat.tools.process.jobs import Jobs

ROUNDS, SAMPLES, WARM_UP = 8, 30, 10
COMMANDS = 5
STUBBORN = """
trap '' TERM INT HUP
(trap '' TERM; sleep 600) &
(setsid sleep 600 &)
touch ready
while :; do sleep 0.1; done
"""
"""A shell that ignores TERM, with a child that does too, and one in a session of its own."""
GONE_S = 1.0
QUIET_S = 0.005
"""Before each sample: what the one before set off has ended."""
RUNS = 10
"""Of one session: a long history would make the runs, which are not measured here, ever longer."""


def measure() -> list[Row]:
    with floor("durable") as socket, scripted_endpoint() as url, longboat(f"{url}/v1") as server, Wire(socket) as bare:
        script = encode_script([[Say("I begin"), Hang()]], name="hang", repeat=True)
        urllib.request.urlopen(f"{url}/control/script", data=script).close()
        pairs = _samples(server, bare)
        for _ in range(WARM_UP):
            next(pairs)
        rounds = transposed((next(pairs) for _ in range(ROUNDS * SAMPLES)), SAMPLES)
    return [
        compare("cancel → terminal event at the other client, p50", rounds, milliseconds, at_most=4),
        _stubborn_command(),
    ]


def _samples(server: RunningServer, bare: Wire) -> Iterator[tuple[float, float]]:
    to_floor = request("POST", "/cancel")
    with server.subscriber("other") as events, Wire(server.socket) as wire:
        while True:
            session = server.new_session()
            to_server = request("POST", f"{server.workspace}/agent/sessions/{session}/cancel")
            for _ in range(RUNS):
                server.wire.ask("POST", f"{server.workspace}/agent", {"session_id": session, "prompt": "[[hang]]"})
                events.wait_for(b'"text":"I begin"')
                yield _cancel_bare(bare, to_floor), cancel(wire, to_server, events)


def _cancel_bare(wire: Wire, sent: bytes) -> float:
    time.sleep(QUIET_S)
    start = time.perf_counter()
    wire.send(sent)
    wire.answer()
    return time.perf_counter() - start


def cancel(wire: Wire, sent: bytes, events: Wire) -> float:
    time.sleep(QUIET_S)
    start = time.perf_counter()
    wire.send(sent)
    events.wait_for(RUN_COMPLETE)
    taken = time.perf_counter() - start
    wire.answer()
    return taken


def _stubborn_command() -> Row:
    taken = [asyncio.run(_cancel_command()) for _ in range(COMMANDS)]
    return Row(
        work="cancel of a command that ignores TERM → it and all that it started are gone",
        floor="–",
        longboat=milliseconds(statistics.median(taken)),
        score="–",
        spread=f"{milliseconds(min(taken))}–{milliseconds(max(taken))}",
        bound=f"≤ {GONE_S:g} s",
        passed=max(taken) <= GONE_S,
    )


async def _cancel_command() -> float:
    with scratch() as path:
        (path / "work").mkdir()
        jobs = Jobs(path / "scratch")
        running = asyncio.create_task(OpenToolContext(path / "work").use(BashTool(jobs), command=STUBBORN))
        while not (path / "work" / "ready").exists():  # noqa: ASYNC110
            await asyncio.sleep(QUIET_S)
        start = time.perf_counter()
        running.cancel()
        await asyncio.wait([running])
        taken = time.perf_counter() - start
        left = process_tree.find(None, f"{jobs.token}/")
        await jobs.aclose()
    if left:
        raise RuntimeError(f"{len(left)} processes are left")
    return taken
