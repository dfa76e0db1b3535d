"""The server's side of `supervisor.py`: starts commands below a guard, which ends everything they started.

Owns the supervisor and the sockets to the guards. Works only on Linux; elsewhere, and if a supervisor cannot be
started, `Supervisor.start` says so, and `start_process` starts the command without one. Must not know jobs.
"""

import asyncio
import contextlib
import errno
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from longboat.tools.process import supervisor
from longboat.tools.process.deadline import Deadline
from longboat.tools.sandbox.landlock import Ruleset

_ENDED_S = 2.0
"""How long a guard may take to end all its processes, and the supervisor after that."""
_ANSWER_S = 30.0
"""How long a guard may take to report on its command. A stopped guard never does."""
_ATTEMPTS = 6
"""How many guards to try for one command: one may just have been killed, and on a busy machine its death takes a
moment."""
_PROGRAM = (sys.executable, "-I", "-S", "-X", "utf8", supervisor.__file__)
_IS_POSSIBLE = sys.platform == "linux" and os.path.exists(f"/proc/self/task/{os.getpid()}/children")


NOT_CONFIRMED = "this server could not confirm that it still owns the workspace"
"""Why a deadline passes."""


class NoSupervisor(Exception):
    """There is no supervisor: commands have to be started without one."""


class CannotGuard(OSError):
    """The command was not started, because no process could be started to guard it and it must have a guard."""

    def __init__(self) -> None:
        super().__init__("no process could be started to guard it")


class DeadlinePassed(OSError):
    """The command was not started, or ended at once, because the supervisor's deadline is past."""

    def __init__(self) -> None:
        super().__init__(NOT_CONFIRMED)


class Process(Protocol):
    """The command's own process, without those it started."""

    @property
    def pid(self) -> int: ...

    async def wait(self) -> int: ...


class SupervisedProcess:
    """A command below its guard. `on_lost` is called if the guard is killed and can no longer end its processes."""

    def __init__(self, line: socket.socket, on_lost: Callable[[], None]) -> None:
        self.pid = self.guard = 0
        """The guard's process id: everything that the command ever started is below it."""
        self._line = line
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._heard = b""
        loop = self._loop
        self._started: asyncio.Future[None] = loop.create_future()
        self._exited: asyncio.Future[int] = loop.create_future()
        self._gone = asyncio.Event()
        self.is_given_up = False
        """The guard did not answer in time."""
        self.ended_by_deadline = False
        self._is_done = False
        """The guard has said that no one is left."""
        self._overdue = loop.call_later(_ANSWER_S, self._give_up)
        line.setblocking(False)
        loop.add_reader(line, self._hear)

    async def wait_started(self) -> None:
        """Raises OSError if the command cannot run, NoSupervisor if no guard has tried, DeadlinePassed."""
        await self._started

    async def wait(self) -> int:
        """The exit code of the command itself; a signal is negative."""
        return await asyncio.shield(self._exited)

    def kill(self) -> None:
        """Have its guard kill it and every process that it started, and wait for none of them."""
        if not self._gone.is_set():
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_WR)

    async def wait_gone(self, timeout_s: float) -> bool:
        """Wait until no process of it is left; whether that is so."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._gone.wait()
        return self.is_gone

    async def end(self) -> None:
        """Kill every process that it started, wherever it went."""
        self.kill()
        if not await self.wait_gone(_ENDED_S):  # stopped, or held up by what even KILL does not end
            self._give_up()

    @property
    def is_gone(self) -> bool:
        """Whether no process of it is left, unless `is_lost`."""
        return self._gone.is_set()

    @property
    def is_lost(self) -> bool:
        """Whether its guard was killed, and may have left some."""
        return self._gone.is_set() and not self._is_done

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
        if word == ".":
            self._is_done = True
        elif word == supervisor.LATE.decode():
            self._overdue.cancel()
            self.ended_by_deadline = True
            self._settle(DeadlinePassed())
        elif word.startswith("!"):
            self._overdue.cancel()
            number = int(word[1:])
            self._settle(OSError(number, os.strerror(number)))
        elif not self.pid:
            self.pid, self.guard = map(int, word.split())
            with contextlib.suppress(OSError):  # a guard that is gone is heard of next
                self._line.send(supervisor.GO)
        elif word == "+":
            self._overdue.cancel()
            self._settle()
        else:
            self._exited.set_result(int(word))

    def _settle(self, error: Exception | None = None) -> None:
        """Tell who waits for the start, if anyone still does."""
        if self._started.done():
            return
        if error is None:
            self._started.set_result(None)
        else:
            self._started.set_exception(error)

    def _give_up(self) -> None:
        """Do without the guard. It is ours to kill as long as its line is open."""
        self.is_given_up = True
        if self.guard:
            with contextlib.suppress(OSError):
                os.kill(self.guard, signal.SIGKILL)
        self._close()

    def _close(self) -> None:
        self._overdue.cancel()
        self._loop.remove_reader(self._line)
        self._line.close()
        # Without the word to go it has not run, and may be started by another. With it, no one knows.
        self._settle(None if self.pid else NoSupervisor())
        if not self._exited.done():
            self._exited.set_result(-signal.SIGKILL)  # the guard was killed, and could not tell
        self._gone.set()
        if self.pid and not self._is_done:
            self._on_lost()


class Supervisor:
    """Started when first needed. `mark` belongs to its server: the next server uses it to find a supervisor that is
    left."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._line: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._replaced: list[asyncio.subprocess.Process] = []
        """Earlier ones, which stay until the last of their guards has ended."""
        self._opening = asyncio.Lock()
        self._closed = False
        self._deadline = Deadline()
        self._kept: set[SupervisedProcess] = set()

    def allow_until(self, instant: float) -> None:
        """Set or move the deadline (`deadline.clock`): when it is past, the guards end all commands, those that run and
        those that are started later, without the server. Without a call there is none.

        Where there are no guards (not on Linux), only `start` heeds it: the caller has to end what runs. Where a
        supervisor cannot be started although there could be one, `must_guard` says that a command must not do without.
        """
        self._deadline.set(instant)

    @property
    def must_guard(self) -> bool:
        """Whether a command that no guard takes must not run."""
        return _IS_POSSIBLE and self._deadline.is_set

    async def start(
        self,
        argv: Sequence[str],
        *,
        directory: Path,
        environ: Mapping[str, str],
        streams: supervisor.Streams,
        on_lost: Callable[[], None],
        ruleset: Ruleset | None = None,
    ) -> SupervisedProcess:
        """Start a command restricted by `ruleset`. Its end of `streams` is still open here afterwards. Raises OSError,
        DeadlinePassed among it, and ValueError for what can be no command. `on_lost` is called if its guard is
        killed."""
        if self._deadline.is_past:
            raise DeadlinePassed
        plan = _plan(argv, directory, environ, ruleset)

        def lost() -> None:
            self._continue()  # it has the orphans of that guard now
            on_lost()

        for _ in range(_ATTEMPTS):
            line = await self._open()
            try:
                kept = SupervisedProcess(_hand_over(line, plan, streams, ruleset.fd if ruleset else None), lost)
            except NoSupervisor:
                self._lose(line)
                continue
            self._kept = {each for each in self._kept if not each.is_gone} | {kept}
            try:
                await kept.wait_started()
                return kept
            except NoSupervisor:
                if kept.is_given_up:
                    self._lose(line)
        raise NoSupervisor

    async def prepare(self) -> None:
        """Have a supervisor, so that the first command does not wait for its start."""
        with contextlib.suppress(NoSupervisor):
            await self._open()

    async def aclose(self) -> None:
        """End all remaining processes, including daemons. No command can be started after this."""
        async with self._opening:
            self._closed = True
            if self._line is not None:
                self._lose(self._line)
        await asyncio.gather(*(kept.end() for kept in self._kept))
        await asyncio.gather(*(_ended(process) for process in self._processes()))
        self._deadline.close()

    async def _open(self) -> socket.socket:
        async with self._opening:
            if self._line is not None and self._process is not None and self._process.returncode is not None:
                self._lose(self._line)
            if self._line is None:
                self._line = await self._launch()
            else:
                self._continue()  # else it would wait for a guard that no one forks
            return self._line

    async def _launch(self) -> socket.socket:
        if self._closed or not _IS_POSSIBLE:
            raise NoSupervisor
        try:
            timer = self._deadline.open_timer()
        except OSError:
            raise NoSupervisor from None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                process = await asyncio.create_subprocess_exec(
                    *_PROGRAM,
                    str(timer),
                    pass_fds=(timer,),
                    stdin=theirs.fileno(),
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    env={supervisor.MARK: self._mark},
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                raise NoSupervisor from None
        self._replaced, self._process = self._processes(), process
        ours.setblocking(False)  # one that takes nothing any more must not hold up the server
        return ours

    def _lose(self, line: socket.socket) -> None:
        """Close the connection; the supervisor then ends, because no one can send it anything."""
        line.close()
        if self._line is line:
            self._line = None
        self._continue()

    def _continue(self) -> None:
        """A command may have stopped it."""
        for process in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)  # `send_signal` would take its exit code from who waits for it

    def _processes(self) -> list[asyncio.subprocess.Process]:
        """Those that have not ended."""
        every = [*self._replaced, *([self._process] if self._process is not None else [])]
        return [process for process in every if process.returncode is None]


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait for its end, which follows that of all guards. Does not wait for a stopped supervisor."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_ENDED_S):
            await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()


async def start_process(
    client: Supervisor,
    argv: Sequence[str],
    *,
    directory: Path,
    environ: Mapping[str, str],
    streams: supervisor.Streams,
    on_lost: Callable[[], None],
    ruleset: Ruleset | None = None,
) -> Process:
    """Start a command below a guard; without one where none can be had, unless it must have one. See `start`."""
    try:
        return await client.start(
            argv, directory=directory, environ=environ, streams=streams, on_lost=on_lost, ruleset=ruleset
        )
    except NoSupervisor:
        if client.must_guard:
            raise CannotGuard from None
    source, output, errors = streams
    return await asyncio.create_subprocess_exec(
        *(argv if ruleset is None else restricted_command(argv, ruleset.fd, ruleset.sieve, ruleset.file_size)),
        cwd=directory,
        env=dict(environ),
        stdin=source,
        stdout=output,
        stderr=errors,
        start_new_session=True,
        pass_fds=() if ruleset is None else (ruleset.fd,),
    )


def restricted_command(argv: Sequence[str], ruleset: int | None, sieve: bytes, file_size: int) -> tuple[str, ...]:
    """A command that enters its ruleset, if any, and its sieve on its own: slower, but without a supervisor."""
    return (*_PROGRAM, "" if ruleset is None else str(ruleset), sieve.hex(), str(file_size), *argv)


def program_paths() -> tuple[str, ...]:
    """What `restricted_command` has to be able to read: Python, and our program."""
    return sys.prefix, sys.base_prefix, supervisor.__file__


def _plan(argv: Sequence[str], directory: Path, environ: Mapping[str, str], ruleset: Ruleset | None) -> bytes:
    """The description of a command for the supervisor. Raises as `Supervisor.start` does if it cannot be one."""
    if any(b"\0" in os.fsencode(word) for word in (*argv, str(directory), *environ, *environ.values())):
        raise ValueError("embedded null byte")
    program = shutil.which(argv[0], path=environ.get("PATH", os.defpath)) if "/" not in argv[0] else argv[0]
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
    sieve, file_size = (ruleset.sieve.hex(), ruleset.file_size) if ruleset else ("", 0)
    return json.dumps([[program, *argv[1:]], str(directory), dict(environ), sieve, file_size]).encode()


def _hand_over(line: socket.socket, plan: bytes, streams: supervisor.Streams, ruleset: int | None) -> socket.socket:
    """Our end of the line to the guard that takes it."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            _send(line, plan, theirs.fileno(), *streams, *([ruleset] if ruleset is not None else []))
        except OSError:
            ours.close()
            raise NoSupervisor from None
    return ours


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
