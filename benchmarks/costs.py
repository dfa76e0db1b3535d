"""`python -m benchmarks.costs`: what one accept, run, workspace and watcher costs a node and its PostgreSQL.

CPU time, memory and bytes, not waiting time: figures that hardly depend on what else the machine does. docs/scaling.md
explains what follows from them.
"""

import urllib.request
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from benchmarks.clocked import DELTAS
from benchmarks.fleet import Database, cluster, postgres
from benchmarks.harness import RunningServer, line_of, process, scripted_endpoint
from benchmarks.rows.fanout import crowd, deliver, prompt_of
from benchmarks.wires import RUN_COMPLETE
from longboat.testing import Hang, Say, encode_script

RUNS, CHUNKS, PACED = 200, 200, 10
ACCEPTS, WORKSPACES, WATCHERS, EVENTS = 1_000, 100, 100, 20_000
_WROTE = """
SELECT (SELECT sum(n_tup_ins - n_tup_del) FROM pg_stat_user_tables), pg_current_wal_lsn() - '0/0'::pg_lsn,
    pg_database_size(current_database()), (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())
"""


@dataclass(frozen=True, slots=True)
class Spent:
    server_s: float
    postgres_s: float
    rows: float
    wal: float
    size: float
    transactions: float

    def __sub__(self, other: "Spent") -> "Spent":
        names = self.__slots__
        return Spent(*(getattr(self, name) - getattr(other, name) for name in names))

    def each(self, count: int) -> str:
        """One of so many."""
        node_ms, postgres_ms = (seconds / count * 1000 for seconds in (self.server_s, self.postgres_s))
        return (
            f"{node_ms:.2f} ms CPU of the node, {postgres_ms:.2f} ms of PostgreSQL,"
            f" {self.transactions / count:.1f} transactions, {self.rows / count:.1f} rows kept,"
            f" {self.wal / count / 1000:.1f} KB of WAL, {self.size / count / 1000:.1f} KB of database"
        )


def main() -> None:
    with scripted_endpoint() as url, postgres() as database:
        script = encode_script([[Say("I begin"), Hang()]], name="hang", repeat=True)
        urllib.request.urlopen(f"{url}/control/script", data=script).close()
        dsn = database.new()
        with cluster(f"{url}/v1", dsn, 1) as (node,):
            _measure(node, lambda: _spent(node, database, dsn))
        with process("-m", "benchmarks.clocked") as endpoint:
            dsn = database.new()
            with cluster(f"{line_of(endpoint)}/v1", dsn, 1) as (node,):
                _pace(node, lambda: _spent(node, database, dsn))


def _pace(node: RunningServer, spent: Callable[[], Spent]) -> None:
    """The model writes a chunk every 5 ms: each is committed by itself."""
    _run(node, CHUNKS)
    before = spent()
    for _ in range(PACED):
        _run(node, CHUNKS)
    print(f"a chunk that comes alone, 1 watcher: {(spent() - before).each(PACED * DELTAS)}")


def _measure(node: RunningServer, spent: Callable[[], Spent]) -> None:
    _make_runs(node, 20)
    before = spent()
    _make_runs(node, RUNS)
    print(f"a run of {CHUNKS} chunks: {(spent() - before).each(RUNS)}")
    session = node.new_session()
    _ask(node, session, "[[hang]]")
    before = spent()
    for number in range(ACCEPTS):
        _ask(node, session, f"prompt {number}")
    print(f"an accept: {(spent() - before).each(ACCEPTS)}")
    resident = _resident_kb(node)
    for number in range(WORKSPACES):
        other = node.opened(node.project.with_name(f"work-{number}"))
    print(f"an open workspace: {(_resident_kb(node) - resident) / WORKSPACES:.0f} KB of memory")
    _watch(other, spent)


def _watch(node: RunningServer, spent: Callable[[], Spent]) -> None:
    """In a workspace with nothing else in it."""
    _run(node, EVENTS)
    before = spent()
    _run(node, EVENTS)
    alone = spent() - before
    resident = _resident_kb(node)
    with crowd(node.socket, WATCHERS, node.events("c{n}")) as watching:
        print(f"a watcher: {(_resident_kb(node) - resident) / WATCHERS:.0f} KB of memory")
        before = spent()
        deliver(watching, node.wire, prompt_of(node, EVENTS))
        watched = spent() - before
    print(f"a chunk: {alone.server_s / EVENTS * 1e6:.1f} µs CPU of the node at full speed")
    delivery_s = (watched.server_s - alone.server_s) / (EVENTS * WATCHERS)
    print(f"a chunk to one more watcher: {delivery_s * 1e6:.2f} µs CPU of the node at full speed")


def _make_runs(node: RunningServer, count: int) -> None:
    for _ in range(count):
        _run(node, CHUNKS)


def _run(node: RunningServer, chunks: int) -> None:
    with node.subscriber() as events:
        _ask(node, node.new_session(), f"[[burst:{chunks}:1]]")
        events.wait_for(RUN_COMPLETE)


def _ask(node: RunningServer, session: str, prompt: str) -> None:
    node.wire.ask("POST", f"{node.workspace}/agent", {"session_id": session, "prompt": prompt, "delivery": "queue"})


def _spent(node: RunningServer, database: Database, dsn: str) -> Spent:
    postmaster = psutil.Process(database.server.pid)
    database.ask(dsn, "CHECKPOINT; SELECT pg_stat_force_next_flush();")
    rows, wal, size, transactions = map(float, database.ask(dsn, _WROTE).strip().split("|"))
    of_database = sum(_cpu_s(each) for each in (postmaster, *postmaster.children()))
    return Spent(_cpu_s(psutil.Process(node.pid)), of_database, rows, wal, size, transactions)


def _cpu_s(measured: psutil.Process) -> float:
    times = measured.cpu_times()
    return float(times.user + times.system)


def _resident_kb(node: RunningServer) -> float:
    return float(psutil.Process(node.pid).memory_info().rss) / 1000


if __name__ == "__main__":
    main()
