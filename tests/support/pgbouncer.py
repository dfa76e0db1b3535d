"""A real pgbouncer in front of the tests' PostgreSQL, with the very configuration of docs/deploy/."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

import pytest
from postgres import NOT_ROOT, PostgresServer, shared_server

from parts import how, missing, where

EXAMPLE = Path(__file__).parents[2] / "docs" / "deploy" / "pgbouncer.ini"
PASSWORD = "kept-by-pgbouncer"
needs_pgbouncer = pytest.mark.skipif(missing("pgbouncer"), reason=how("pgbouncer"))
WAYS = ["direct", *(pytest.param(mode, marks=needs_pgbouncer) for mode in ("transaction", "session"))]
"""How a store may come to its database."""


@contextmanager
def open_way(way: str, dsn: str) -> Iterator[str]:
    """The address for a store. `dsn`: that of a database of the shared server."""
    if way == "direct":
        yield dsn
        return
    database = urlsplit(dsn).path.removeprefix("/")
    with open_pgbouncer(shared_server(), database, mode=way) as address:
        yield address


@contextmanager
def open_pgbouncer(
    server: PostgresServer,
    database: str,
    *,
    mode: str,
    sessions: int = 10,
    more: Mapping[str, object] = MappingProxyType({}),
) -> Iterator[str]:
    """The address of `database` through a pgbouncer, which has this many sessions for everybody together. `more`:
    further settings."""
    folder = Path(tempfile.mkdtemp(prefix="lb-pgb-", dir="/tmp"))
    folder.chmod(0o777)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "userlist.txt").write_text(f'"postgres" "{PASSWORD}"\n')
    changes = {
        "host=db.internal port=5432": f"host={server.sockets}",
        "0.0.0.0": "127.0.0.1",
        "6432": str(port),
        "auth_file = /etc/pgbouncer": f"auth_file = {folder}",
        "pool_mode = transaction": f"pool_mode = {mode}",
        "default_pool_size = 20": f"default_pool_size = {sessions}",
    }
    settings = "".join(f"{name} = {value}\n" for name, value in more.items())
    (folder / "pgbouncer.ini").write_text(_changed_example(changes) + settings)
    words = [str(where("pgbouncer")), "-q"]
    words += ["-u", NOT_ROOT] if os.geteuid() == 0 else []
    process = subprocess.Popen([*words, str(folder / "pgbouncer.ini")], stderr=subprocess.PIPE, text=True)
    try:
        _await_port(port, process)
        yield f"postgresql://postgres:{PASSWORD}@127.0.0.1:{port}/{database}"
    finally:
        process.send_signal(signal.SIGTERM)  # at once
        process.communicate(timeout=30)
        shutil.rmtree(folder)


def _changed_example(changes: dict[str, str]) -> str:
    text = EXAMPLE.read_text(encoding="utf-8")
    for placeholder, value in changes.items():
        assert placeholder in text, f"{EXAMPLE.name} has no {placeholder!r} any more"
        text = text.replace(placeholder, value)
    return text


def _await_port(port: int, process: "subprocess.Popen[str]") -> None:
    while process.poll() is None:
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        signal.sigtimedwait([], 0.02)
    raise RuntimeError(f"pgbouncer ended: {process.communicate()[1]}")
