"""Runs a short program to its end, with limits on time and output; everything it started is ended with it.

Must not know what the programs are for.
"""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

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


async def run(
    argv: tuple[str, ...], *, directory: Path, environ: Mapping[str, str], stdin: bytes = b"", timeout_s: float
) -> Done:
    """Raises OSError if it cannot be started. A cancel ends the whole process group at once."""
    # A file, not a pipe: a program that never reads its input cannot hold us up.
    with tempfile.TemporaryFile() as source, _Tap() as out, _Tap() as err:
        source.write(stdin)
        source.seek(0)
        launch = asyncio.create_subprocess_exec(
            *argv,
            cwd=directory,
            env=dict(environ),
            stdin=source,
            stdout=out.write_end,
            stderr=err.write_end,
            start_new_session=True,
        )
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
                    await _end(starting.result())
        out.drain()
        err.drain()
        return Done(code=code, stdout=bytes(out.data), stderr=bytes(err.data), is_cut=out.is_full or err.is_full)


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_REAP_S):
            await process.wait()


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
        """The write end is the program's alone from here on."""
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
