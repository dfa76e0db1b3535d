"""The programs of a workspace other than shell commands: its hooks, MCP servers and language servers.

Each has a guard of the workspace's supervisor, as commands have: it ends with the server, at the deadline, and with
everything that it started. Its streams are its own pipes; nothing stands between them and us. Must not know what the
programs are for.
"""

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from longboat.tasks import Tasks
from longboat.tools.process import process_tree
from longboat.tools.process.pipe import Pipe
from longboat.tools.process.supervisor import Streams
from longboat.tools.process.supervisor_client import Process, SupervisedProcess, Supervisor, start_process

MAX_UNREAD = 64 * 2**20
"""Bytes kept for a program that does not read its input."""
_GRACE_S = 0.2
"""How long after a program's exit its last children may still be about to end."""
_REAPED_S = 1.0
"""How long to wait for the end of a killed process."""


class Program:
    """One program that was started."""

    def __init__(self, process: Process, mark: str, watching: "asyncio.Task[int]") -> None:
        self.pid = process.pid
        self._kept = process if isinstance(process, SupervisedProcess) else None
        self._mark = mark
        self._watching = watching

    @property
    def code(self) -> int | None:
        """The exit code of the program itself; a signal is negative. None while it runs."""
        return self._watching.result() if self._watching.done() and not self._watching.cancelled() else None

    @property
    def ended_by_deadline(self) -> bool:
        """Whether its guard ended it because no one had extended the deadline."""
        return self._kept is not None and self._kept.ended_by_deadline

    async def wait(self) -> int:
        return await asyncio.shield(self._watching)

    def when_exited(self, tell: Callable[[], None]) -> None:
        self._watching.add_done_callback(lambda _: tell())

    def kill(self) -> None:
        """Kill it and what it started, without waiting for that."""
        if self._kept is not None:
            self._kept.kill()
        else:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end_at_once(self) -> None:
        """Kill it and everything that it started."""
        self.kill()
        if self._kept is not None:
            await self._kept.end()
        await asyncio.wait({self._watching}, timeout=_REAPED_S)

    async def end(self) -> None:
        """Send TERM, then KILL, to it and everything that it started."""
        if await self._left_in_order():
            return
        kept = self._kept if self._kept is not None and not self._kept.is_gone else None
        # The number of a group that has ended may be a stranger's by now.
        group = self.pid if self.code is None or process_tree.member(self.pid) is not None else None
        await process_tree.end(group, self._mark, guard=kept.guard if kept is not None else None)
        if kept is not None:
            await kept.end()
        await asyncio.wait({self._watching}, timeout=_REAPED_S)

    async def _left_in_order(self) -> bool:
        """Whether it has exited and left nothing: then there is no need to look through all processes."""
        if self.code is None:
            return False
        if self._kept is None:
            return self.code == 0 and process_tree.member(self.pid) is None
        return await self._kept.wait_gone(_GRACE_S) and not self._kept.is_lost


class Programs:
    def __init__(self, supervisor: Supervisor, token: str) -> None:
        self._supervisor = supervisor
        self._token = token
        self._tasks = Tasks()
        self._closing = False

    async def start(
        self, argv: Sequence[str], *, directory: Path, environ: Mapping[str, str], streams: Streams
    ) -> Program:
        """Start a program, whose end of `streams` stays open here. Raises OSError, `DeadlinePassed` among it, and
        ValueError for what can be no program. The caller has to end it."""
        if self._closing:
            raise OSError("the workspace is closing")
        own = _copy(streams)
        launch = self._launch(argv, directory, environ, own)
        starting = self._tasks.spawn(launch, name="start", awaited=True)
        # Ours, and only closed now: who is canceled closes theirs before a process that is being started has them.
        starting.add_done_callback(lambda _: _close(own))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # A process that is being started cannot be called back: wait for it, then end it. Someone who is canceled
            # once more meanwhile does not wait, but it continues.
            await asyncio.shield(self._tasks.spawn(_end_started(starting), name="end what was started"))
            raise

    def prepare(self) -> None:
        """Start the supervisor now: programs will be started soon, and the first one should not wait for it."""
        self._tasks.spawn(self._supervisor.prepare(), name="prepare the supervisor")

    def refuse(self) -> None:
        """Start nothing more."""
        self._closing = True

    async def aclose(self) -> None:
        """Close this, once the supervisor has ended the programs."""
        self._closing = True
        await self._tasks.aclose()

    async def _launch(
        self, argv: Sequence[str], directory: Path, environ: Mapping[str, str], streams: Streams
    ) -> Program:
        mark = f"{self._token}/job-{secrets.token_hex(3)}"  # as a command's: the next start of the server finds it
        process = await start_process(
            self._supervisor,
            argv,
            directory=directory,
            environ={**environ, process_tree.MARK: mark},
            streams=streams,
            on_lost=lambda: self._end_lost(mark),
        )
        program = Program(process, mark, self._tasks.spawn(process.wait(), name=f"watch {argv[0]}"))
        if self._closing:
            await program.end_at_once()
        return program

    def _end_lost(self, mark: str) -> None:
        """End what the program started: its guard was killed and cannot."""
        self._tasks.spawn(process_tree.end(None, mark), name="end what a guard left")


def _copy(fds: Streams) -> Streams:
    with contextlib.ExitStack() as made:
        copies = []
        for fd in fds:
            copies.append(os.dup(fd))
            made.callback(os.close, copies[-1])
        made.pop_all()
    source, output, errors = copies
    return source, output, errors


def _close(fds: Streams) -> None:
    for fd in fds:
        os.close(fd)


async def _end_started(starting: "asyncio.Task[Program]") -> None:
    with contextlib.suppress(OSError, ValueError):
        await (await starting).end_at_once()


class _Input(asyncio.Protocol):
    """Our end of a program's standard input."""

    is_closed = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True


class PipedProgram:
    """A program that we talk to: what it prints goes to `output`, what it complains about to `on_errors`."""

    def __init__(self, output: asyncio.BaseProtocol, on_errors: Callable[[bytes], None]) -> None:
        self._output = output
        self._on_errors = on_errors
        self._errors: Pipe | None = None
        self._input = _Input()
        self._reading: asyncio.ReadTransport | None = None
        self._writing: asyncio.WriteTransport | None = None
        self.program: Program | None = None

    async def start(
        self, programs: Programs, argv: Sequence[str], *, directory: Path, environ: Mapping[str, str]
    ) -> Program:
        """Raises as `Programs.start` does. However it ends, `end` has to be called."""
        loop = asyncio.get_running_loop()
        self._errors = Pipe(self._on_errors)
        source, input_end = _pipe()
        output_end, output = _pipe()
        with source, output:
            try:
                self._writing, _ = await loop.connect_write_pipe(lambda: self._input, input_end)
                self._reading, _ = await loop.connect_read_pipe(lambda: self._output, output_end)
            except BaseException:
                input_end.close()
                output_end.close()
                raise
            streams = source.fileno(), output.fileno(), self._errors.write_end
            self.program = await programs.start(argv, directory=directory, environ=environ, streams=streams)
        self._errors.listen()
        return self.program

    @property
    def has_exited(self) -> bool:
        return self.program is not None and self.program.code is not None

    async def wait_exited(self) -> None:
        """Wait until the program itself has exited; what it started may live on."""
        if self.program is not None:
            await self.program.wait()

    @property
    def input_is_stuck(self) -> bool:
        """Whether the program has not read its input for long."""
        return self._writing is not None and self._writing.get_write_buffer_size() > MAX_UNREAD

    def write(self, data: bytes) -> bool:
        """Write to its input. Return False if the input is closed."""
        if self._writing is None or self._writing.is_closing():
            return False
        self._writing.write(data)
        return True

    def close_input(self) -> None:
        """Close its input once everything is written."""
        if self._writing is not None:
            self._writing.close()

    def drain_errors(self) -> None:
        """Take what it has complained about by now."""
        if self._errors is not None:
            self._errors.drain()

    async def end(self) -> None:
        """End it and everything that it started, and close the pipes."""
        try:
            if self.program is not None:
                await self.program.end()
        finally:
            self.drain_errors()
            if self._errors is not None:
                self._errors.close()
            if self._writing is not None and not self._input.is_closed:
                self._writing.abort()  # what it has not read by now, it will not read
            if self._reading is not None:
                self._reading.close()


def _pipe() -> tuple[BinaryIO, BinaryIO]:
    read_end, write_end = os.pipe()
    return open(read_end, "rb", buffering=0), open(write_end, "wb", buffering=0)
