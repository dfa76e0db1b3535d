"""A node that is not the owner: what its clients wait for, against the same at the owner, on one PostgreSQL."""

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.fleet import cluster, postgres, through
from benchmarks.harness import (
    Row,
    RunningServer,
    compare,
    line_of,
    milliseconds,
    per_second,
    process,
    scripted_endpoint,
    transposed,
)
from benchmarks.rows.cancel import RUNS, cancel
from benchmarks.rows.fanout import crowd, deliver, prompt_of
from benchmarks.rows.latency import delay
from benchmarks.rows.prompt import PROMPTS, TEXT, post
from benchmarks.wires import RUN_COMPLETE, Wire, request
from longboat.testing import Hang, Say, encode_script

ROUNDS, SAMPLES, WARM_UP = 8, 20, 10
CHUNKS, WATCHERS = 20_000, 20
Pairs = Iterator[tuple[float, float]]


def measure() -> list[Row]:
    with scripted_endpoint() as url, _two(f"{url}/v1") as (owner, door):
        script = encode_script([[Say("I begin"), Hang()]], name="hang", repeat=True)
        urllib.request.urlopen(f"{url}/control/script", data=script).close()
        rows = [
            _in_turn("POST prompt → 202", _accepts(owner, door)),
            _in_turn("cancel → terminal event at the other client", _cancels(owner, door)),
            _fanout(owner, door),
        ]
    with process("-m", "benchmarks.clocked") as endpoint, _two(f"{line_of(endpoint)}/v1") as (owner, door):
        return [*rows, _deltas(owner, door)]


@contextmanager
def _two(base_url: str) -> Iterator[tuple[RunningServer, RunningServer]]:
    """A workspace at its owner, and the same through another node."""
    with postgres() as database, cluster(base_url, database.new(), 2) as (owner, other):
        yield owner, through(other, owner)


def _in_turn(work: str, pairs: Pairs) -> Row:
    for _ in range(WARM_UP):
        next(pairs)
    rounds = transposed((next(pairs) for _ in range(ROUNDS * SAMPLES)), SAMPLES)
    return compare(f"door: {work}, floor: at the owner, p50", rounds, milliseconds, at_most=1.6)


def _accepts(owner: RunningServer, door: RunningServer) -> Pairs:
    with owner.subscriber() as events, Wire(owner.socket) as direct, Wire(door.socket) as other:
        while True:
            body = {"session_id": owner.new_session(), "prompt": TEXT}
            sent = request("POST", f"{owner.workspace}/agent", body)
            for _ in range(PROMPTS):
                taken = []
                for wire in (direct, other):
                    taken.append(post(wire, sent))
                    events.wait_for(RUN_COMPLETE)
                yield taken[0], taken[1]


def _cancels(owner: RunningServer, door: RunningServer) -> Pairs:
    """Both clients, the one that cancels and the one that waits, are at the owner or at the door."""
    while True:
        session = owner.new_session()
        sent = request("POST", f"{owner.workspace}/agent/sessions/{session}/cancel")
        for _ in range(RUNS):
            taken = []
            for server in (owner, door):
                with server.subscriber("other") as events, Wire(server.socket) as wire:
                    owner.wire.ask("POST", f"{owner.workspace}/agent", {"session_id": session, "prompt": "[[hang]]"})
                    events.wait_for(b'"text":"I begin"')
                    taken.append(cancel(wire, sent, events))
            yield taken[0], taken[1]


def _fanout(owner: RunningServer, door: RunningServer) -> Row:
    def deliveries(server: RunningServer) -> float:
        with crowd(server.socket, WATCHERS, server.events("c{n}")) as watching:
            return CHUNKS * WATCHERS / deliver(watching, owner.wire, prompt_of(owner, CHUNKS))

    rounds = [(deliveries(owner), deliveries(door)) for _ in range(ROUNDS + 1)][1:]
    work = f"door: {CHUNKS:,} chunks to {WATCHERS} subscribers, deliveries/s, floor: at the owner"
    return compare(work, rounds, per_second, at_least=0.5)


def _deltas(owner: RunningServer, door: RunningServer) -> Row:
    sent = request("POST", f"{owner.workspace}/agent", {"session_id": owner.new_session(), "prompt": "Go."})

    def run(server: RunningServer) -> float:
        """Nobody else reads: a door passes events on only while it has a client for them."""
        with server.subscriber() as events:
            owner.wire.send(sent)
            owner.wire.answer()
            return delay(events, RUN_COMPLETE)

    rounds = [(run(owner), run(door)) for _ in range(ROUNDS + 1)][1:]
    return compare("door: model's byte → subscriber, floor: at the owner, p50", rounds, milliseconds, at_most=2)
