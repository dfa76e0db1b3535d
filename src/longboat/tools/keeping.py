"""The server's end of a keeper (`keeper.py`): commands started below a guard, of which none of their processes escapes.

Owns the keeper and the lines to the guards. Linux alone has what it takes; elsewhere, and where a keeper cannot be
started, `Keeper.start` says so, and commands are started without one. Must not know jobs.
"""

import asyncio
import contextlib
import errno
import json
import os
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from longboat.tools import keeper
from longboat.tools.landlock import Ruleset

_ENDED_S = 2.0
"""How long a guard has to end everybody."""
_PROGRAM = (sys.executable, "-I", "-S", "-X", "utf8", keeper.__file__)
_IS_POSSIBLE = sys.platform == "linux" and os.path.exists(f"/proc/self/task/{os.getpid()}/children")


class NoKeeper(Exception):
    """Commands have to be started without one."""


class Kept:
    """A command below its guard."""

    def __init__(self, line: socket.socket) -> None:
        self.pid = self.guard = 0
        """The guard's process id: everything that the command ever started is below it."""
        self._line = line
        self._loop = asyncio.get_running_loop()
        self._heard = b""
        loop = self._loop
        self._started: asyncio.Future[None] = loop.create_future()
        self._exited: asyncio.Future[int] = loop.create_future()
        self._gone = asyncio.Event()
        line.setblocking(False)
        loop.add_reader(line, self._hear)

    async def wait_started(self) -> None:
        """Raises OSError if the command cannot be run, NoKeeper if nobody could try."""
        await self._started

    async def wait(self) -> int:
        """The exit code of the command itself; a signal is negative."""
        return await asyncio.shield(self._exited)

    async def end(self) -> None:
        """End every process that it started, wherever it went."""
        if not self._gone.is_set():
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_WR)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ENDED_S):
                    await self._gone.wait()

    @property
    def is_gone(self) -> bool:
        """Nobody is left of it."""
        return self._gone.is_set()

    def _hear(self) -> None:
        try:
            data = self._line.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *words, self._heard = (self._heard + data).split(b"\n")
        for word in words:
            self._take(word.decode())
        if not data:
            self._close()

    def _take(self, word: str) -> None:
        if self._started.done():
            if not self._exited.done():
                self._exited.set_result(int(word))
        elif word.startswith("!"):
            number = int(word[1:])
            self._started.set_exception(OSError(number, os.strerror(number)))
        else:
            self.pid, self.guard = map(int, word.split())
            self._started.set_result(None)

    def _close(self) -> None:
        self._loop.remove_reader(self._line)
        self._line.close()
        if not self._started.done():
            self._started.set_exception(NoKeeper())
        if not self._exited.done():
            self._exited.set_result(-9)  # the guard was killed, and could not tell
        self._gone.set()


class Keeper:
    """Started when it is first needed."""

    def __init__(self) -> None:
        self._line: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        self._kept: set[Kept] = set()

    async def start(
        self,
        argv: Sequence[str],
        *,
        directory: Path,
        environ: Mapping[str, str],
        output: int,
        fence: Ruleset | None = None,
    ) -> Kept:
        """Start a command with nothing to read, which writes to `output`, inside of `fence`. Raises OSError, and
        ValueError for what can be no command."""
        if any("\0" in word for word in (*argv, str(directory), *environ, *environ.values())):
            raise ValueError("embedded null byte")
        program = shutil.which(argv[0], path=environ.get("PATH", os.defpath)) if "/" not in argv[0] else argv[0]
        if program is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
        line = await self._open()
        plan = json.dumps(
            [[program, *argv[1:]], str(directory), dict(environ), fence.sieve.hex() if fence else ""]
        ).encode()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                _send(line, plan, output, theirs.fileno(), *([fence.fd] if fence else []))
            except OSError:
                ours.close()
                self._lose(line)
                raise NoKeeper from None
        self._kept = {kept for kept in self._kept if not kept.is_gone}
        kept = Kept(ours)
        self._kept.add(kept)
        await kept.wait_started()
        return kept

    async def aclose(self) -> None:
        """End whoever is left, daemons too. No command can be started any more."""
        async with self._opening:
            self._closed = True
            if self._line is not None:
                self._lose(self._line)
        await asyncio.gather(*(kept.end() for kept in self._kept))
        if self._process is not None:
            await self._process.wait()

    async def _open(self) -> socket.socket:
        async with self._opening:
            if self._line is not None and self._process is not None and self._process.returncode is not None:
                self._lose(self._line)
            if self._line is None:
                self._line = await self._launch()
            return self._line

    async def _launch(self) -> socket.socket:
        if self._closed or not _IS_POSSIBLE:
            raise NoKeeper
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *_PROGRAM,
                    stdin=theirs.fileno(),
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    env={},
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                raise NoKeeper from None
        ours.setblocking(False)  # one that takes nothing any more must not hold up the server
        return ours

    def _lose(self, line: socket.socket) -> None:
        """Closed, it ends: nobody can send it anything."""
        line.close()
        if self._line is line:
            self._line = None


def fenced(argv: Sequence[str], fence: int | None, sieve: bytes) -> tuple[str, ...]:
    """A command that goes into its fence, if there is one, and behind its sieve by itself: slower, but it needs no
    keeper."""
    return (*_PROGRAM, "" if fence is None else str(fence), sieve.hex(), *argv)


def _send(line: socket.socket, plan: bytes, *fds: int) -> None:
    """Through a file in memory: an environment may be larger than a message."""
    fd = os.memfd_create("longboat")
    try:
        written = 0
        while written < len(plan):
            written += os.write(fd, plan[written:])
        socket.send_fds(line, [bytes([1 + len(fds)])], [fd, *fds])
    finally:
        os.close(fd)
