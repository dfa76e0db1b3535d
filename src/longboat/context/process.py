"""Runs a short program to its end, with limits on time and output; everything it started is ended with it.

Must not know what the programs are for, nor who guards them: `StartProgram` is how they are started.
"""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol

from longboat.tasks import Tasks

MAX_OUTPUT = 256 * 1024
_REAP_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    code: int | None
    """None: its time ran out."""
    stdout: bytes
    stderr: bytes
    is_cut: bool
    """It wrote more than it may; then its pipe was closed on it."""


class NotConfirmed(Exception):
    """The program was ended, or not started, because the server may not own the directory any more (G3)."""


class Process(Protocol):
    """A program that runs."""

    @property
    def ended_by_deadline(self) -> bool:
        """Whether it was ended because the server did not confirm in time that it owns the directory."""
        ...

    async def wait(self) -> int:
        """Wait for the program; returns its exit code, and a signal is negative."""
        ...

    async def end_at_once(self) -> None:
        """Kill what is left of it and of everything that it started."""
        ...


class StartProgram(Protocol):
    """Starts a program with these as its standard input, output and errors. Raises OSError, ValueError,
    NotConfirmed."""

    async def __call__(
        self,
        argv: Sequence[str],
        *,
        directory: Path,
        environ: Mapping[str, str],
        streams: tuple[int, int, int],
    ) -> Process: ...


async def start_unguarded(
    argv: Sequence[str], *, directory: Path, environ: Mapping[str, str], streams: tuple[int, int, int]
) -> Process:
    """Start a program without a guard: what leaves the process group or outlives this server is not ended."""
    source, output, errors = streams
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=directory,
        env=dict(environ),
        stdin=source,
        stdout=output,
        stderr=errors,
        start_new_session=True,
    )
    return _Unguarded(process)


async def run(
    argv: tuple[str, ...],
    *,
    directory: Path,
    environ: Mapping[str, str],
    stdin: bytes = b"",
    timeout_s: float,
    start: StartProgram = start_unguarded,
) -> Done:
    """Raises OSError if it cannot be started, and NotConfirmed. A cancel ends everything that it started at once."""
    # A file, not a pipe: a program that never reads its input cannot hold us up.
    with tempfile.TemporaryFile() as source, _Tap() as out, _Tap() as err:
        source.write(stdin)
        source.seek(0)
        streams = source.fileno(), out.write_end, err.write_end
        launch = _start(start, argv, directory, environ, streams)
        code: int | None = None
        async with Tasks() as tasks:
            starting = tasks.spawn(launch, name=f"start {argv[0]}", awaited=True)
            try:
                await asyncio.shield(starting)
                out.listen()
                err.listen()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(timeout_s):
                        code = await starting.result().wait()
            finally:
                # Canceled while it starts: asyncio would end it alone, and what it has started by then would stay.
                await asyncio.wait([starting])
                if not starting.exception():
                    await starting.result().end_at_once()
        if starting.result().ended_by_deadline:
            raise NotConfirmed
        out.drain()
        err.drain()
        return Done(code=code, stdout=bytes(out.data), stderr=bytes(err.data), is_cut=out.is_full or err.is_full)


async def _start(
    start: StartProgram, argv: Sequence[str], directory: Path, environ: Mapping[str, str], streams: tuple[int, int, int]
) -> Process:
    return await start(argv, directory=directory, environ=environ, streams=streams)


class _Unguarded:
    ended_by_deadline = False

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def wait(self) -> int:
        return await self._process.wait()

    async def end_at_once(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REAP_S):
                await self._process.wait()


class _Tap:
    """One pipe and what came through it. Not asyncio's, whose `wait()` waits until every holder has closed it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd, self.write_end = os.pipe()
        os.set_blocking(self._fd, False)
        self._is_open = True
        self.data = bytearray()
        self.is_full = False

    def __enter__(self) -> "_Tap":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_write_end()
        self._close()

    def listen(self) -> None:
        """Read what the program writes. Closes the write end here: only the program has it from now on."""
        self._close_write_end()
        self._loop.add_reader(self._fd, self._gulp)

    def drain(self) -> None:
        while self._is_open and self._gulp():
            pass

    def _gulp(self) -> bool:
        """Whether there was something to read."""
        try:
            data = os.read(self._fd, 64 * 1024)
        except BlockingIOError:
            return False
        self.data += data
        self.is_full = len(self.data) > MAX_OUTPUT
        if self.is_full:
            del self.data[MAX_OUTPUT:]
        if self.is_full or not data:
            self._close()
        return bool(data)

    def _close_write_end(self) -> None:
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
