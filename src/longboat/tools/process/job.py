"""One command and everything it started: its output, its exit, its end.

The command has exited when its shell has; it has ended when no process of its group is left and none keeps its output
open. Must not know tools or who waits.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from longboat.tools.process import process_tree
from longboat.tools.process.output_buffer import OutputBuffer
from longboat.tools.process.pipe import Pipe
from longboat.tools.process.supervisor_client import (
    NOT_CONFIRMED,
    Process,
    SupervisedProcess,
    Supervisor,
    start_process,
)
from longboat.tools.process.terminal_text import Plain
from longboat.tools.sandbox import landlock

_LOOK_EVERY_S = 0.5
GRACE_S = 0.2
"""How long after the shell's exit its last children may still be about to end."""

_SIGNALS = {number.value: number.name for number in signal.Signals}


class JobState(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    """It ended on its own."""
    KILLED = "killed"
    """Someone ended it, its workspace closed, or the server did not confirm in time that it owns the workspace."""
    TIMED_OUT = "timed_out"
    """Its own time limit ended it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A command to start. `command` is the text shown to people."""

    command: str
    argv: tuple[str, ...]
    directory: Path
    environ: Mapping[str, str]
    ruleset: landlock.Ruleset | None = None
    """The restrictions on the command and everything it starts."""
    timeout_s: float | None = None
    temp: Path | None = None
    """A directory for it alone and its like. Emptied when none of them runs."""


class Job:
    """`on_lost` is called if the command's guard is killed, even after the job has ended; `end_lost` then ends the
    processes it leaves behind."""

    def __init__(
        self, job_id: str, launch: Launch, *, mark: str, buffer: OutputBuffer, on_lost: Callable[["Job"], None]
    ) -> None:
        self.job_id = job_id
        self.command = launch.command
        self.temp = launch.temp
        self.state = JobState.RUNNING
        self.exit_code: int | None = None
        self.buffer = buffer
        self.show: Callable[[str], None] | None = None
        """Where output goes while someone is watching."""
        self.killed_by: str | None = None
        self.ended_by_deadline = False
        """Its guard ended it because no one had extended the supervisor's deadline."""
        self._mark = mark
        self._on_lost = on_lost
        self._fate = JobState.FINISHED
        self._plain = Plain()
        self._pipe = Pipe(self._take)
        self._exited = asyncio.Event()
        self._ended = asyncio.Event()
        self._given_up = asyncio.Event()
        """Processes that could not be ended."""
        self._news = asyncio.Event()
        """Set, and replaced by another, whenever there is more to see."""
        self._started = time.monotonic()
        self._seconds = 0.0
        self._read: dict[str, int] = {}
        self._group = 0
        self._kept: SupervisedProcess | None = None
        self._survivor: int | None = None

    @property
    def seconds(self) -> float:
        """How long it ran, or has been running."""
        return self._seconds or time.monotonic() - self._started

    @property
    def is_ending(self) -> bool:
        """Whether it is being ended, or has been."""
        return self._fate is not JobState.FINISHED

    async def start(self, launch: Launch, supervisor: Supervisor) -> Process:
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            process = await start_process(
                supervisor,
                launch.argv,
                directory=launch.directory,
                environ={**launch.environ, process_tree.MARK: self._mark},
                streams=(nothing, self._pipe.write_end, self._pipe.write_end),
                on_lost=lambda: self._on_lost(self),
                ruleset=launch.ruleset,
            )
        except BaseException:
            self._pipe.close()
            raise
        finally:
            os.close(nothing)
        self._kept = process if isinstance(process, SupervisedProcess) else None
        self._group = process.pid
        self._pipe.listen()
        return process

    async def watch(self, process: Process, *, on_end: Callable[["Job"], None]) -> None:
        """Follow it to its end; `on_end` hears of that before anyone who waits for it."""
        code = await process.wait()
        self._pipe.drain()
        deadline = time.monotonic() + GRACE_S
        # No one tells us of the end of processes that are not our children: look now and then.
        while self._is_left() and time.monotonic() < deadline:
            await _within(self._given_up, GRACE_S / 10)
        self.exit_code, self._seconds = code, self.seconds
        self._note_deadline()
        self._exited.set()
        while self._is_left():
            await _within(self._given_up, _LOOK_EVERY_S)
        self._pipe.close()
        self._write(self._plain.flush())
        self.buffer.close()
        self._note_deadline()
        self.state = self._fate
        try:
            on_end(self)
        finally:
            self._ended.set()
            self._tell_news()

    async def end(self, fate: JobState = JobState.KILLED, *, by: str | None = None) -> None:
        """TERM, then KILL, for everything that belongs to it. The first caller is recorded as the one who ended it."""
        self._note_deadline()
        if self.state is JobState.RUNNING and not self.ended_by_deadline:
            self.killed_by = self.killed_by if self.is_ending else by
            self._fate = fate
        kept = self._kept if self._kept is not None and not self._kept.is_gone else None
        await process_tree.end(self._group, self._mark, guard=kept.guard if kept is not None else None)
        if kept is not None:
            await kept.end()  # also who came into being just now
        self._pipe.drain()
        self._pipe.close()
        self._given_up.set()

    def _note_deadline(self) -> None:
        """Unless it has ended: then the deadline has only ended a daemon that it left."""
        is_late = self._kept is not None and self._kept.ended_by_deadline
        if is_late and self.state is JobState.RUNNING and not self.is_ending:
            self._fate, self.ended_by_deadline = JobState.KILLED, True

    async def end_lost(self) -> None:
        """End everything that the command started, now that its guard cannot."""
        # The number of a group that has ended may be a stranger's by now.
        await process_tree.end(self._group or None if self.state is JobState.RUNNING else None, self._mark)
        self._given_up.set()

    async def wait_exited(self, timeout_s: float | None = None) -> bool:
        return await _within(self._exited, timeout_s)

    async def wait_ended(self, timeout_s: float | None = None) -> bool:
        return await _within(self._ended, timeout_s)

    async def wait_news(self, since: int, timeout_s: float) -> None:
        """Until there is output beyond `since`, or no more will come."""
        deadline = time.monotonic() + timeout_s
        while self.buffer.total <= since and not self._ended.is_set() and (left := deadline - time.monotonic()) > 0:
            await _within(self._news, left)

    def _tell_news(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def read(self, reader: str) -> str:
        """What `reader` has not read yet."""
        text = self.buffer.read(self._read.get(reader, 0))
        self._read[reader] = self.buffer.total
        return text

    def _is_left(self) -> bool:
        if self._given_up.is_set():
            return False
        self._survivor = process_tree.member(self._group, known=self._survivor)
        return self._pipe.is_open or self._survivor is not None

    def _take(self, data: bytes) -> None:
        self._write(self._plain.decode(data))

    def _write(self, text: str) -> None:
        self.buffer.write(text)
        if text:
            self._tell_news()
        if self.show is not None and text:
            self.show(text)


def ending(job: Job) -> str:
    """How a command whose shell has exited went, in words."""
    code = job.exit_code or 0
    if job.ended_by_deadline:
        return f"ended after {job.seconds:.1f} s because {NOT_CONFIRMED}"
    if job.state is JobState.TIMED_OUT:
        return f"killed by its time limit after {job.seconds:.1f} s"
    if code < 0:
        return f"ended by {_SIGNALS.get(-code, f'signal {-code}')} after {job.seconds:.1f} s"
    return f"exit code {code} after {job.seconds:.1f} s"


async def _within(event: asyncio.Event, timeout_s: float | None) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
    return event.is_set()
