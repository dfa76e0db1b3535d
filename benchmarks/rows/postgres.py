"""The store in PostgreSQL: an accept at the owner against one commit there, and fifty runs at once against SQLite."""

from contextlib import ExitStack

from benchmarks.fleet import cluster, postgres
from benchmarks.harness import Row, compare, floor, longboat, milliseconds, scripted_endpoint, transposed
from benchmarks.rows.concurrent import CHUNKS, RUNS, run_many
from benchmarks.rows.prompt import ROUNDS, SAMPLES, WARM_UP, sample
from benchmarks.wires import Wire


def measure() -> list[Row]:
    return [_accept(), _concurrent()]


def _accept() -> Row:
    with (
        postgres() as database,
        floor("durable", database.new()) as socket,
        scripted_endpoint() as url,
        cluster(f"{url}/v1", database.new(), 1) as (owner,),
        Wire(socket) as bare,
    ):
        pairs = sample(owner, bare)
        for _ in range(WARM_UP):
            next(pairs)
        rounds = transposed((next(pairs) for _ in range(ROUNDS * SAMPLES)), SAMPLES)
    return compare("PostgreSQL: POST prompt → 202 at the owner, durable, p50", rounds, milliseconds, at_most=2)


def _concurrent() -> Row:
    with (
        postgres() as database,
        scripted_endpoint() as url,
        longboat(f"{url}/v1") as lone,
        cluster(f"{url}/v1", database.new(), 1) as (owner,),
        lone.subscriber() as at_lone,
        owner.subscriber() as at_owner,
        ExitStack() as stack,
    ):
        lone_wires, owner_wires = (
            [stack.enter_context(Wire(server.socket)) for _ in range(RUNS)] for server in (lone, owner)
        )

        def both() -> tuple[float, float]:
            return run_many(lone, at_lone, lone_wires), run_many(owner, at_owner, owner_wires)

        both()
        rounds = [both() for _ in range(ROUNDS)]
    work = f"PostgreSQL: {RUNS} runs × {CHUNKS} chunks at once, floor: SQLite"
    return compare(work, rounds, milliseconds, at_most=2)
