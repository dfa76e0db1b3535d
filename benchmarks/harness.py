"""What the rows share: processes that end with their row, a Longboat to measure, rounds, and how a row reads."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from benchmarks.wires import GIVE_UP_S, Wire

Process = subprocess.Popen[str]
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    work: str
    floor: str
    longboat: str
    score: str
    spread: str
    bound: str
    passed: bool

    def markdown(self) -> str:
        verdict = "yes" if self.passed else "**no**"
        cells = (self.work, self.floor, self.longboat, self.score, self.spread, self.bound, verdict)
        return f"| {' | '.join(cells)} |"


def compare(
    work: str,
    rounds: Sequence[tuple[float, float]],
    show: Callable[[float], str],
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Row:
    """A row from rounds of (floor, Longboat), each measured side by side: the ratio's median decides."""
    ratios = sorted(ours / floor for floor, ours in rounds)
    ratio = statistics.median(ratios)
    return Row(
        work=work,
        floor=show(statistics.median(floor for floor, _ in rounds)),
        longboat=show(statistics.median(ours for _, ours in rounds)),
        score=f"{ratio:.2f}×",
        spread=f"{ratios[0]:.2f}–{ratios[-1]:.2f}",
        bound=f"≤ {at_most:g}×" if at_most is not None else f"≥ {at_least:g}×",
        passed=ratio <= at_most if at_most is not None else at_least is not None and ratio >= at_least,
    )


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"


def per_second(rate: float) -> str:
    return f"{rate / 1000:,.1f} k/s"


def timed(work: Callable[[], object]) -> float:
    """Seconds that it took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory with a path short enough for sockets."""
    path = Path(tempfile.mkdtemp(prefix="lbb-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def process(*arguments: str, environ: dict[str, str] | None = None) -> Iterator[Process]:
    """`python …`, ended when the block ends. Its stdin and stdout are pipes; what it logs is shown if the row fails."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=environ, stderr=log, **pipes)
        try:
            with child:
                try:
                    yield child
                finally:
                    _end(child)
        except Exception:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace"))
            raise


def _end(child: Process) -> None:
    child.terminate()
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        child.kill()


def line_of(child: Process) -> str:
    """The next line that a process prints."""
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise RuntimeError(f"{child.args!r} ended: {child.wait()}")
    return line.strip()


def connect(path: Path) -> Wire:
    """A connection to a server that may still be starting."""
    deadline = time.monotonic() + GIVE_UP_S
    while True:
        try:
            return Wire(path)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.001)


@contextmanager
def floor(module: str, *arguments: str) -> Iterator[Path]:
    """The floor `benchmarks.floors.MODULE`, listening on the socket that this gives."""
    with scratch() as path, process("-m", f"benchmarks.floors.{module}", str(path / "s"), *arguments):
        connect(path / "s").__exit__(None, None, None)
        yield path / "s"


@contextmanager
def scripted_endpoint() -> Iterator[str]:
    """The scripted model endpoint; gives its address."""
    with process("-m", "longboat.testing.endpoint") as child:
        yield line_of(child).removeprefix("listening on ").removesuffix("/v1")


def environ_of(home: Path, base_url: str, **server: Any) -> dict[str, str]:
    """A user whose only model is at `base_url`, titles off. `server`: settings of the server."""
    provider = {"type": "openai-compatible", "base_url": base_url, "api_key": "x", "models": [{"id": "m"}]}
    config = {
        "providers": {"mine": provider},
        "models": {"large": "mine/m", "small": "mine/m"},
        "titles": False,
        "server": {"drain_s": 0, **server},
    }
    file = home / "config" / "longboat" / "longboat.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(config))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LONGBOAT_", "XDG_"))}
    return kept | {
        "HOME": str(home),
        "LONGBOAT_RUNTIME_DIR": str(home / "run"),
        "LONGBOAT_DATA_DIR": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A running server with one workspace, and a connection for setting up."""

    socket: Path
    pid: int
    wire: Wire
    workspace: str
    """The route of the workspace."""
    environ: dict[str, str]
    """For other processes of the same user."""
    project: Path

    def opened(self, project: Path) -> Self:
        """The same server with a workspace at this new directory."""
        project.mkdir()
        workspace = self.wire.ask("POST", "/v1/workspaces", {"path": str(project)})
        return replace(self, workspace=f"/v1/workspaces/{workspace['id']}", project=project)

    def new_session(self) -> str:
        session: dict[str, Any] = self.wire.ask("POST", f"{self.workspace}/sessions", {})
        return str(session["id"])

    def events(self, client_id: str) -> str:
        return f"{self.workspace}/events?client_id={client_id}"

    @contextmanager
    def subscriber(self, client_id: str = "subscriber") -> Iterator[Wire]:
        """A client on the event stream, past its snapshot."""
        with Wire(self.socket) as wire:
            wire.send(f"GET {self.events(client_id)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            wire.wait_for(b"event: snapshot")
            yield wire


@contextmanager
def longboat(base_url: str, *, store: str | None = None) -> Iterator[RunningServer]:
    """`longboat serve`, healthy, with nothing done yet. `store`: the address of a database instead of a file."""
    with scratch() as home:
        environ = environ_of(home, base_url) | ({"LONGBOAT_STORE": store} if store else {})
        with serve(home, environ) as (child, wire):
            yield running(home, child, wire, environ)


@contextmanager
def serve(home: Path, environ: dict[str, str], *arguments: str) -> Iterator[tuple[Process, Wire]]:
    """The server of a user, and a connection to it."""
    with process("-m", "longboat", "serve", *arguments, environ=environ) as child:
        line_of(child)
        with connect(home / "run" / "longboat.sock") as wire:
            yield child, wire


def running(home: Path, child: Process, wire: Wire, environ: dict[str, str]) -> RunningServer:
    """The server with a workspace at a new directory of its user."""
    bare = RunningServer(
        socket=home / "run" / "longboat.sock", pid=child.pid, wire=wire, workspace="", environ=environ, project=home
    )
    return bare.opened(home / "work")


def transposed(pairs: Iterable[tuple[float, float]], size: int) -> list[tuple[float, float]]:
    """Samples taken in turn, as rounds of `size`: the median of each side in each round."""
    samples = list(pairs)
    chunks = [samples[start : start + size] for start in range(0, len(samples), size)]
    return [
        (statistics.median(floor for floor, _ in chunk), statistics.median(ours for _, ours in chunk))
        for chunk in chunks
    ]
