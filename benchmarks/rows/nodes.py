"""What a run costs the servers, in CPU time: three workspaces on one node, and on three. PostgreSQL is not counted."""

from collections.abc import Sequence
from contextlib import ExitStack

import psutil

from benchmarks.fleet import cluster, postgres, through
from benchmarks.harness import Row, RunningServer, compare, milliseconds, scripted_endpoint
from benchmarks.wires import RUN_COMPLETE, Wire, request

ROUNDS, RUNS, CHUNKS, WORKSPACES = 6, 20, 200, 3
"""Runs of each workspace in a round, one after the other."""


def measure() -> list[Row]:
    with (
        postgres() as database,
        scripted_endpoint() as url,
        cluster(f"{url}/v1", database.new(), 1) as (one,),
        cluster(f"{url}/v1", database.new(), WORKSPACES) as three,
    ):
        alone = [one, *(one.opened(one.project.with_name(f"work-{number}")) for number in range(1, WORKSPACES))]
        doors = [through(three[place - 1], owner) for place, owner in enumerate(three)]
        rounds = [(_spent(alone), _spent(three), _spent(doors)) for _ in range(ROUNDS + 1)][1:]
    work = f"CPU of the servers for a run of {CHUNKS} chunks"
    at_owners = [(floor, ours) for floor, ours, _ in rounds]
    through_doors = [(floor, ours) for floor, _, ours in rounds]
    return [
        compare(f"{work}: three nodes, floor: one", at_owners, milliseconds, at_most=1.3),
        compare(f"{work}: every client at another node than the owner", through_doors, milliseconds, at_most=3),
    ]


def _spent(servers: Sequence[RunningServer]) -> float:
    """Seconds for each run, of all servers together. One client for each workspace, which watches and asks."""
    with ExitStack() as stack:
        clients = [
            (server, stack.enter_context(server.subscriber()), stack.enter_context(Wire(server.socket)))
            for server in servers
        ]
        before = _cpu_s(servers)
        for _ in range(RUNS):
            for server, events, wire in clients:
                body = {"session_id": server.new_session(), "prompt": f"[[burst:{CHUNKS}:1]]"}
                wire.send(request("POST", f"{server.workspace}/agent", body))
                wire.answer()
                events.wait_for(RUN_COMPLETE)
        return (_cpu_s(servers) - before) / (RUNS * len(servers))


def _cpu_s(servers: Sequence[RunningServer]) -> float:
    times = [psutil.Process(pid).cpu_times() for pid in {server.pid for server in servers}]
    return float(sum(each.user + each.system for each in times))
