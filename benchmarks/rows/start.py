"""From the start of `longboat serve`, on an empty data directory, to its first healthy answer."""

import time
from pathlib import Path

from benchmarks.harness import Row, compare, connect, environ_of, milliseconds, process, scratch
from benchmarks.wires import request

ROUNDS = 10


def measure() -> list[Row]:
    _bare(), _longboat()
    rounds = [(_bare(), _longboat()) for _ in range(ROUNDS)]
    return [compare("`serve` to first healthy answer", rounds, milliseconds, at_most=4)]


def _bare() -> float:
    with scratch() as path:
        options = ("--uds", str(path / "s"), "--lifespan", "off", "--log-level", "critical")
        return _until_answer(("-m", "uvicorn", "benchmarks.floors.hello:app", *options), path / "s", None)


def _longboat() -> float:
    with scratch() as home:
        environ = environ_of(home, "http://127.0.0.1:9/v1")
        return _until_answer(("-m", "longboat", "serve"), home / "run" / "longboat.sock", environ)


def _until_answer(command: tuple[str, ...], socket: Path, environ: dict[str, str] | None) -> float:
    start = time.perf_counter()
    with process(*command, environ=environ), connect(socket) as wire:
        wire.send(request("GET", "/v1/health"))
        status, _ = wire.answer()
        if status != 200:
            raise RuntimeError(f"not healthy: {status}")
        return time.perf_counter() - start
