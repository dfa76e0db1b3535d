"""Resident memory: of a healthy server; what 1,000 idle sessions add; what 200 clients add that attach all at once.

The ring of events and SQLite's page caches fill up once, whatever the number of sessions: they are full before the
sessions are counted, and their size is shown with the healthy server's."""

import psutil

from benchmarks.harness import Row, RunningServer, line_of, longboat, process, scripted_endpoint
from benchmarks.wires import RUN_COMPLETE, Wire

WARM_UP, SESSIONS, CLIENTS = 700, 1_000, 200


def measure() -> list[Row]:
    with scripted_endpoint() as url, longboat(f"{url}/v1") as server:
        healthy = _resident_mb(server)
        worked = _after_runs(server, WARM_UP)
        idle = _after_runs(server, SESSIONS)
        with process("-m", "benchmarks.crowd", str(server.socket), str(CLIENTS), server.events("c{n}")) as crowd:
            line_of(crowd)
            attached = _resident_mb(server)
    return [
        _row("memory: healthy", healthy, 90),
        _row(f"memory: after {WARM_UP} runs", worked, 90),
        _row(f"memory: + {SESSIONS:,} idle sessions, each with a finished run", idle - worked, 10),
        _row(f"memory: + {CLIENTS} attached clients", attached - idle, 20),
    ]


def _after_runs(server: RunningServer, count: int) -> float:
    """Sessions that are idle because their runs have ended, not because nothing ever happened in them."""
    with server.subscriber() as events:
        for _ in range(count):
            _run(server, events)
    return _resident_mb(server)


def _run(server: RunningServer, events: Wire) -> None:
    """One prompt in a session of its own, to its end."""
    body = {"session_id": server.new_session(), "prompt": "Say something short."}
    server.wire.ask("POST", f"{server.workspace}/agent", body)
    events.wait_for(RUN_COMPLETE)


def _resident_mb(server: RunningServer) -> float:
    return psutil.Process(server.pid).memory_info().rss / 1e6


def _row(work: str, megabytes: float, at_most: float) -> Row:
    figure = f"{megabytes:.1f} MB"
    bound, passed = f"≤ {at_most:g} MB", megabytes <= at_most
    return Row(work=work, floor="–", longboat=figure, score="–", spread="–", bound=bound, passed=passed)
