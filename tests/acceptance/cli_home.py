"""A user's home for tests that drive real `longboat` processes: own directories and a scripted model endpoint."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from longboat.testing import HttpStep, encode_script
from longboat.testing.server import GIVE_UP_S, home_environ
from longboat.wire.discovery import DISCOVERY_NAME, SOCKET_NAME, Discovery
from secrecy import ENVIRON, check_files, check_for_secrets, provider

Process = subprocess.Popen[str]
LONGBOAT = (sys.executable, "-m", "longboat")
"""The command, as every test starts it."""


@dataclass
class Endpoint:
    """The scripted endpoint, in a process of its own. `[[name]]` in a prompt plays the script of that name."""

    url: str

    def script(self, name: str | None, *steps: HttpStep) -> None:
        """Without a name: what the next prompts without a marker get."""
        self._ask("/control/script", encode_script(steps, name=name))

    def open_gate(self, name: str) -> None:
        self._ask(f"/control/gate/{name}", b"")

    def wait_for_gate(self, name: str) -> None:
        """Until a script stands at the gate."""
        assert self._ask(f"/control/gate/{name}?wait={GIVE_UP_S}")["reached"]

    def reset(self) -> None:
        """Forget scripts, gates and requests."""
        self._ask("/control/reset", b"")

    def _ask(self, path: str, body: bytes | None = None) -> Any:
        with urllib.request.urlopen(self.url + path, data=body, timeout=GIVE_UP_S + 5) as answer:
            return json.load(answer)


@dataclass
class Home:
    """Where one user's server, data and configuration live."""

    path: Path
    endpoint: Endpoint
    environ: dict[str, str]
    processes: list[Process] = field(default_factory=list)

    @property
    def socket(self) -> Path:
        return self.path / "run" / SOCKET_NAME

    @property
    def log(self) -> str:
        return (self.path / "data" / "server.log").read_text()

    def discovery(self) -> Discovery:
        return msgspec.json.decode((self.path / "run" / DISCOVERY_NAME).read_bytes(), type=Discovery)

    def workspace(self, name: str) -> Path:
        path = self.path / "work" / name
        path.mkdir(parents=True)
        return path

    def start(self, *arguments: str, cwd: Path, stdin: Any = subprocess.DEVNULL, **changes: Any) -> Process:
        """A `longboat` process that the test goes on beside. Its stdout is a pipe unless `stdout` says otherwise."""
        environ = self.environ | changes.pop("environ", {})
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | changes
        process = subprocess.Popen([*LONGBOAT, *arguments], cwd=cwd, stdin=stdin, env=environ, **options)
        self.processes.append(process)
        return process

    def longboat(self, *arguments: str, cwd: Path, given: str | None = None, **environ: str) -> "Done":
        """Run a command to its end."""
        stdin = subprocess.DEVNULL if given is None else subprocess.PIPE
        process = self.start(*arguments, cwd=cwd, stdin=stdin, environ=environ)
        return finished(process, given)

    def serve(self, *arguments: str) -> Process:
        """A server in the foreground, once it answers."""
        process = self.start("serve", *arguments, cwd=self.path)
        assert process.stdout is not None
        first = process.stdout.readline()
        assert "is ready" in first, finished(process)
        return process

    def kill_server(self) -> None:
        """As a power cut would."""
        pid = self.discovery().pid
        os.kill(pid, signal.SIGKILL)
        for process in self.processes:
            if process.pid == pid:
                process.wait(GIVE_UP_S)


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of `--format json`."""
        return [json.loads(line) for line in self.lines]


def finished(process: Process, given: str | None = None) -> Done:
    """The process's end, for which it has a minute."""
    out, err = process.communicate(given, timeout=GIVE_UP_S)
    check_for_secrets(out or "", "a command's output")
    check_for_secrets(err or "", "a command's errors")
    return Done(process.returncode, out or "", err or "")


def wait_for_line(process: Process, wanted: str) -> None:
    """Read the process's stdout until a line holds the text."""
    assert process.stdout is not None
    while wanted not in (line := process.stdout.readline()):
        assert line, f"it ended without {wanted!r}"


@contextmanager
def scripted_endpoint() -> Iterator[Endpoint]:
    process = subprocess.Popen(
        [sys.executable, "-m", "longboat.testing.endpoint"], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout is not None
    url = process.stdout.readline().removeprefix("listening on ").strip().removesuffix("/v1")
    try:
        yield Endpoint(url)
    finally:
        process.terminate()
        process.wait(GIVE_UP_S)
        process.stdout.close()


@contextmanager
def home_with(endpoint: Endpoint) -> Iterator[Home]:
    """A fresh home; whatever it started is ended with it."""
    path = Path(tempfile.mkdtemp(prefix="lb-", dir="/tmp"))  # pytest's own paths are too long for a socket
    home = Home(path, endpoint, environ_of(path))
    _configure(path, endpoint)
    try:
        yield home
    finally:
        if home.socket.exists():  # else its server, if there was one, has left already
            home.longboat("stop", "--force", cwd=path)
        _end(home.processes)
        check_files(path / "data" / "server.log")
        shutil.rmtree(path, ignore_errors=True)  # a server that was killed may still be removing its files


def environ_of(path: Path) -> dict[str, str]:
    """The environment of a user whose home is there."""
    return home_environ(path) | ENVIRON


def _configure(path: Path, endpoint: Endpoint) -> None:
    config = {
        "providers": {"mine": provider(f"{endpoint.url}/v1")},
        "models": {"large": "mine/m", "small": "mine/m"},
        "titles": False,
        "retry": {"base_s": 0.01},
        "server": {"drain_s": 1},
    }
    file = path / "config" / "longboat" / "longboat.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(config))


def _end(processes: Iterable[Process]) -> None:
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait(GIVE_UP_S)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
