"""A PostgreSQL that syncs to disk, and several `longboat serve` on it. The nodes talk to each other over TCP; clients
use each node's unix socket, so that a door and an owner are reached alike."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.postgres import PostgresServer

from benchmarks.harness import RunningServer, environ_of, running, scratch, serve

LEASE_S = 60.0
"""Longer than any row takes; the row of the takeover has its own."""
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Database:
    server: PostgresServer

    def new(self) -> str:
        """The address of an empty database."""
        name = f"bench_{next(_numbers)}"
        self.server.run("createdb", "-h", str(self.server.sockets), "-U", "postgres", "-T", "template0", name)
        return self.server.dsn(name)

    def ask(self, dsn: str, sql: str) -> str:
        return self.server.run("psql", "-qAtX", "-v", "ON_ERROR_STOP=1", dsn, said=sql)


@contextmanager
def postgres() -> Iterator[Database]:
    """A server with the settings that PostgreSQL has by itself, for as long as the block lasts."""
    server = PostgresServer(Path(tempfile.mkdtemp(prefix="lbb-pg-", dir="/tmp")), fsync=True)
    try:
        server.start()
        yield Database(server)
    finally:
        server.remove()


@contextmanager
def cluster(base_url: str, dsn: str, size: int, **settings: Any) -> Iterator[list[RunningServer]]:
    """So many nodes. Each has a workspace of its own, and is its owner."""
    with ExitStack() as stack:
        nodes = []
        for number in range(size):
            home = stack.enter_context(scratch())
            environ = environ_of(home, base_url, **{"lease_s": LEASE_S, **settings}) | {
                "LONGBOAT_STORE": dsn,
                "LONGBOAT_NODE": f"node-{number}",
                "LONGBOAT_CLUSTER_SECRET": "a secret of the benchmarks",
                "LONGBOAT_TOKEN": "a token of the benchmarks",
            }
            child, wire = stack.enter_context(serve(home, environ, "--host", "127.0.0.1"))
            nodes.append(running(home, child, wire, environ))
        yield nodes


def through(door: RunningServer, owner: RunningServer) -> RunningServer:
    """The workspace of one node, by way of another."""
    return replace(door, workspace=owner.workspace, project=owner.project)
