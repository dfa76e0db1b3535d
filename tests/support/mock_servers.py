"""Model servers that others wrote, as processes of a test: started on a free loopback port, asked until they are ready,
and ended with the test.
"""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import httpx2

EVERY_S = 0.05


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def started(
    command: Sequence[str], *, port: int, health: str, within_s: float = 20, environ: Mapping[str, str] | None = None
) -> Iterator[httpx2.Client]:
    """A client of the server that `command` starts on `port`, once `health` answers 200."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(environ or {})}
        )
        try:
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
                if not _is_ready(http, health, process, within_s):
                    log.seek(0)
                    ended = f"ended with {process.poll()}" if process.poll() is not None else f"not in {within_s} s"
                    raise AssertionError(f"{command[0]} is not ready, {ended}:\n{log.read()[-2000:].decode()}")
                yield http
        finally:
            process.kill()
            process.wait()


def _is_ready(http: httpx2.Client, health: str, process: "subprocess.Popen[bytes]", within_s: float) -> bool:
    """These servers say nothing reliable when they are ready, so they are asked, until they answer or have ended."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        with suppress(httpx2.TransportError):
            if http.get(health).status_code == 200:
                return True
        with suppress(subprocess.TimeoutExpired):
            process.wait(EVERY_S)
            return False
    return False
