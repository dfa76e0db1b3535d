"""Provides a server for commands that need one: finds a running one or starts one in the background.

Owns the start lock, so that two commands starting at once end with one server. Must not know what the server does.
"""

import fcntl
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from longboat import regular_files
from longboat.backoff import Backoff
from longboat.cli.connection import Connection
from longboat.cli.environment import missing_keys
from longboat.cli.main import Failure
from longboat.client import calls
from longboat.client.address import find, is_alive, read_discovery
from longboat.errors import LongboatError, ServerBusy, ServerUnreachable
from longboat.wire.discovery import data_dir, runtime_dir
from longboat.wire.models import PROTOCOL, Version

IDLE_EXIT_S = 600
START_S = 60.0
STOP_S = 30.0
DYING_S = 5.0
REVIVAL = Backoff(base_s=1.0, attempts=6)
POLL_S = 0.02
LOG_NAME = "server.log"
LOG_LIMIT = 5_000_000


def ensure_server(cwd: str) -> Connection:
    """A connection to a server of our protocol that has the keys set in this shell that the directory's models need.

    Starts one unless the user named another address.
    """
    connection = Connection()
    running = probe(connection)
    if running is not None and running.protocol == PROTOCOL and (connection.address.named or not missing_keys(cwd)):
        return connection
    if connection.address.named:
        raise _foreign(running) if running else _nobody(connection)
    with _start_lock():
        return _settled_start(cwd)


def probe(connection: Connection) -> Version | None:
    """The version of the server that answers; None if none does."""
    try:
        return connection.send(calls.version())
    except ServerUnreachable as error:
        if isinstance(error.__cause__, TimeoutError | ssl.SSLError):
            raise  # something holds the address but hangs or is not trusted: a second server would not help
        return None


def revive() -> None:
    """Restart the background server if it crashed, in a thread, while the caller keeps waiting for it. Leaves a server
    alone that was stopped or that someone started by hand."""
    if not find().named:
        threading.Thread(target=_start_again, name="revive", daemon=True).start()


def _start_again() -> None:
    """Restart a server that keeps dying a few times, with growing pauses."""
    failures = 0
    while not REVIVAL.gives_up(failures):
        time.sleep(REVIVAL.delay(failures))
        with suppress(LongboatError, click.ClickException, OSError):
            if not _died():
                return
            with _start_lock():
                if probe(Connection()) is None:
                    _wait_healthy(_spawn())
        failures += 1


def _died() -> bool:
    """Whether the background server is gone but its discovery file is not. Waits a moment for the process to end."""
    end = time.monotonic() + DYING_S
    while time.monotonic() < end:
        found = read_discovery(os.environ)
        if found is None or not found.background:
            return False
        with suppress(ChildProcessError):
            os.waitpid(found.pid, os.WNOHANG)  # it may be our own child
        if not is_alive(found.pid):
            return True
        time.sleep(POLL_S)
    return False


def log_file() -> Path:
    return data_dir(os.environ, Path.home()) / LOG_NAME


def private_dir(path: Path) -> Path:
    """Create the directory for this user only; fail if it belongs to another user."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid != os.getuid():
        raise Failure(f"{path} belongs to another user.", "Set LONGBOAT_RUNTIME_DIR to your own directory.")
    return path


def wait_until_gone(connection: Connection, seconds: float) -> bool:
    """Whether the server stops answering within that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if probe(connection) is None:
            return True
        time.sleep(POLL_S)
    return False


@contextmanager
def _start_lock() -> Iterator[None]:
    directory = private_dir(runtime_dir(os.environ, os.getuid()))
    with open(directory / "start.lock", "w", opener=regular_files.opener) as file:
        end = time.monotonic() + START_S
        while not _locked(file.fileno()):
            if time.monotonic() > end:
                raise Failure("Another command has been starting the server for a minute.", "Run `longboat doctor`.")
            time.sleep(POLL_S)
        yield


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _settled_start(cwd: str) -> Connection:
    """Start a server while holding the lock, unless the previous holder has started one."""
    connection = Connection()
    running = probe(connection)
    if running is not None and running.protocol == PROTOCOL and not _renewed(connection, cwd):
        return connection
    if running is not None and running.protocol != PROTOCOL:
        _retire(connection, running)
    click.echo("Starting a Longboat server in the background…", err=True)
    began = time.monotonic()
    connection = _wait_healthy(_spawn())
    click.echo(f"Ready in {time.monotonic() - began:.1f} s. Stop it with `longboat stop`.", err=True)
    return connection


def _renewed(connection: Connection, cwd: str) -> bool:
    """Stop a server that lacks a key set in this shell, so that one with the key can replace it.

    Only if a command started it and it is idle; otherwise print what to do.
    """
    missing = missing_keys(cwd)
    if not missing:
        return False
    found = read_discovery(os.environ)
    names = ", ".join(missing)
    if found is not None and found.background:
        with suppress(ServerBusy):
            connection.send(calls.shutdown(if_idle=True))
            click.echo(f"Replacing the server, which was started without {names}…", err=True)
            return wait_until_gone(connection, STOP_S)
    click.echo(f"The running server was started without {names}. To use it: `longboat stop`, then try again.", err=True)
    return False


def _retire(connection: Connection, running: Version) -> None:
    """Stop an idle server with another protocol version, so that ours can replace it."""
    click.echo(f"Replacing the running server, version {running.version}…", err=True)
    try:
        connection.send(calls.shutdown(if_idle=True))
    except ServerBusy:
        raise _foreign(running) from None
    if not wait_until_gone(connection, STOP_S):
        raise Failure(f"The running server, version {running.version}, does not stop.", "Run `longboat stop --force`.")


def _spawn() -> subprocess.Popen[bytes]:
    log = log_file()
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        log.replace(log.with_suffix(".log.1"))
    # -P and another directory: modules in the user's directory must not shadow ours.
    command = [sys.executable, "-P", "-m", "longboat", "serve", "--idle-exit", str(IDLE_EXIT_S)]
    with open(log, "ab", opener=regular_files.opener) as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=log.parent,
            start_new_session=True,
        )


def _wait_healthy(process: subprocess.Popen[bytes]) -> Connection:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        # Before the probe: if it ended because another server was first, the probe finds that one.
        ended = process.poll()
        connection = Connection()
        if _answers(connection):
            return connection
        if ended is not None:
            raise Failure(f"The server did not start: {_last_line()}", f"Its log is {log_file()}.")
        time.sleep(POLL_S)
    raise Failure(f"The server did not answer within {START_S:g} s.", f"Its log is {log_file()}.")


def _answers(connection: Connection) -> bool:
    """Whether a starting server answers. It accepts connections before it can, so a timeout is not a failure yet."""
    try:
        return probe(connection) is not None
    except ServerUnreachable:
        return False


def _last_line() -> str:
    try:
        lines = regular_files.read(log_file()).decode(errors="replace").splitlines()
    except OSError as error:
        return f"no log ({error.strerror})"
    said = [line for line in lines if line.startswith("longboat: ")]
    return (said or lines or ["its log is empty"])[-1].removeprefix("longboat: ")


def _nobody(connection: Connection) -> LongboatError:
    return ServerUnreachable(f"No answer from the Longboat server at {connection.address}.")


def _foreign(running: Version) -> Failure:
    return Failure(
        f"The running server has another version ({running.version}, protocol {running.protocol}; "
        f"this command uses protocol {PROTOCOL}). It cannot be replaced: it is busy, or you chose its address.",
        "Let its runs finish, or stop it with `longboat stop --force`.",
    )
