"""A PostgreSQL with a standby, by streaming replication: the primary can fail, and the standby be promoted."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from postgres import PostgresServer

_CAUGHT_UP = (
    "DO $$ BEGIN WHILE NOT EXISTS (SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"
    " AND replay_lsn >= pg_current_wal_lsn()) LOOP PERFORM pg_sleep(0.01), pg_stat_clear_snapshot(); END LOOP; END $$"
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    primary: PostgresServer
    standby: PostgresServer

    @property
    def dsn(self) -> str:
        """Both hosts, as the docs say."""
        return f"postgresql://postgres@/postgres?host={self.primary.sockets},{self.standby.sockets}"

    def wait_until_copied(self) -> None:
        """The standby has everything that was committed until now."""
        self.primary.ask(_CAUGHT_UP)

    def replicate_synchronously(self) -> None:
        """From now on a commit waits for the standby."""
        self.primary.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.ask("SELECT pg_reload_conf()")


@contextmanager
def open_pair() -> Iterator[Pair]:
    with ExitStack() as stack:
        primary = PostgresServer(Path(tempfile.mkdtemp(prefix="lb-pg-", dir="/tmp")), fsync=True)
        stack.callback(primary.remove)
        primary.start()
        standby = PostgresServer(Path(tempfile.mkdtemp(prefix="lb-pg-", dir="/tmp")), fsync=True, primary=primary)
        stack.callback(standby.remove)
        standby.start()
        yield Pair(primary=primary, standby=standby)
