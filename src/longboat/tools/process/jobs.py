"""The commands of one workspace: those in the foreground, and those in the background, which are its jobs.

Owns every process that bash starts. A job survives the turn and the session that started it, and dies with the
workspace. Must not know permissions or the tools.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from longboat.tasks import Tasks
from longboat.tools.context import ToolError
from longboat.tools.process import process_tree
from longboat.tools.process.deadline import clock
from longboat.tools.process.job import Job, JobState, Launch
from longboat.tools.process.output_buffer import OutputBuffer
from longboat.tools.process.output_files import MEGABYTE, OutputFile, OutputFiles
from longboat.tools.process.programs import Programs
from longboat.tools.process.supervisor_client import NOT_CONFIRMED, DeadlinePassed, Process, Supervisor

LIMIT = 20
"""Jobs that run at a time, and ended ones that can still be read."""
SCRATCH_LIMIT = 512 * MEGABYTE
"""For output files, if no other limit is set."""
_CLOSE_S = 3.0
_REAPED_S = 2.0
"""How long to wait for the end of killed processes."""
AGENT = "agent"
"""Who ended a job, if no person did."""

Show = Callable[[str], None]
OnChange = Callable[[str, JobState], None]


class Jobs:
    """`scratch` is the workspace's own directory for output files, emptied when it closes; `files` are those of all
    workspaces of the server. `on_change` is called when a job starts or ends."""

    def __init__(
        self,
        scratch: Path,
        *,
        files: OutputFiles | None = None,
        limit: int = LIMIT,
        on_change: OnChange | None = None,
    ) -> None:
        self.scratch = scratch
        self._limit = limit
        self._on_change = on_change
        self.token = process_tree.mark_of(scratch)
        self._all: dict[str, Job] = {}
        self._background: dict[str, Job] = {}
        self._files = files or OutputFiles(scratch.parent, limit=SCRATCH_LIMIT, workspace_limit=SCRATCH_LIMIT)
        self._tasks = Tasks()
        self._supervisor = Supervisor(self.token)
        self.programs = Programs(self._supervisor, self.token)
        """What else runs below the guards of this workspace, and ends with it."""
        self._closing = False

    async def sweep(self) -> None:
        """End what an earlier server left running in this workspace. Call it before the first command."""
        await process_tree.end(None, f"{self.token}/")

    def allow_for(self, seconds: float, *, since: float | None = None) -> None:
        """End every command and program, running or started later, once `seconds` have passed since `since`, unless
        this is called again: the newest call counts, and 0 ends them now. Without a call, there is no such deadline.

        The guards do it, even if this process is stopped or hangs by then. `since` is an instant of `deadline.clock`,
        by default now. Who owns the workspace by a lease passes the instant before it asked for the lease's renewal:
        a process that was stopped between the answer and this call would otherwise grant itself time that is over.

        Where there are no guards (not on Linux), commands that run are not ended by this, only new ones are refused.
        On Linux, a command that cannot have a guard is refused while there is a deadline.
        """
        self._supervisor.allow_until((clock() if since is None else since) + seconds)

    async def start(self, launch: Launch, *, show: Show | None = None) -> Job:
        """Start a command; `show` gets its output as it arrives. The caller must wait for its end, end it, or leave it
        here with `adopt`."""
        if self._closing:
            raise ToolError("The workspace is closing, so no command can be started.")
        starting = self._tasks.spawn(self._launch(launch, show), name="launch", awaited=True)
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # A process that is being started cannot be called back: wait for it, then end it. Someone who is canceled
            # once more meanwhile does not wait, but it continues.
            await asyncio.shield(self._tasks.spawn(self._end_started(starting), name="end what was launched"))
            raise

    async def _end_started(self, starting: "asyncio.Task[Job]") -> None:
        with contextlib.suppress(ToolError):
            await self.end(await starting)

    def adopt(self, job: Job) -> None:
        """Make it a job; a ToolError if there are too many."""
        if not self.has_room:
            raise ToolError(f"{self._limit} jobs are running, which is the limit. End one with job_kill first.")
        ended = [known for known in self._background.values() if known.state is not JobState.RUNNING]
        for old in ended[: max(0, len(ended) - self._limit + 1)]:
            del self._background[old.job_id]
        self._background[job.job_id] = job
        self._tell(job)

    @property
    def has_room(self) -> bool:
        return sum(job.state is JobState.RUNNING for job in self._background.values()) < self._limit

    def list(self) -> tuple[Job, ...]:
        """The jobs, oldest first."""
        return tuple(self._background.values())

    def get(self, job_id: str) -> Job:
        if (job := self._background.get(job_id)) is None:
            known = ", ".join(self._background) or "none"
            raise ToolError(f"There is no job {job_id!r}. Jobs in this workspace: {known}.")
        return job

    async def end(self, job: Job, *, by: str | None = None) -> None:
        """End it and everything it started. Continues even if the caller is canceled."""
        if job.state is JobState.RUNNING:
            await asyncio.shield(self._tasks.spawn(job.end(by=by), name=f"end {job.job_id}", awaited=True))

    async def kill(self, job: Job, *, by: str | None) -> bool:
        """End it and wait. False if it could not be ended because it hangs in the kernel."""
        await self.end(job, by=by)
        return await job.wait_ended(_REAPED_S)

    async def aclose(self) -> None:
        """End everything, daemons and programs too, and remove the output files."""
        self._closing = True
        self.programs.refuse()
        running = [job for job in self._all.values() if job.state is JobState.RUNNING]
        await asyncio.gather(*(self.end(job) for job in running))
        await self.sweep()
        await self._finish_tasks()
        await self._supervisor.aclose()
        await self.programs.aclose()
        await self._finish_tasks()  # of guards that did not end in time
        await asyncio.to_thread(_remove, self.scratch)
        self._files.forget(self.scratch)

    async def _launch(self, launch: Launch, show: Show | None) -> Job:
        job_id = f"job-{secrets.token_hex(3)}"
        try:
            buffer = OutputBuffer(lambda: self._new_file(job_id))
            job = Job(job_id, launch, mark=f"{self.token}/{job_id}", buffer=buffer, on_lost=self._lost)
            job.show = show
            process = await job.start(launch, self._supervisor)
        except DeadlinePassed:
            raise ToolError(f"The command was ended because {NOT_CONFIRMED}.") from None
        except (OSError, ValueError) as error:
            raise ToolError(f"The command could not be started: {error}.") from None
        self._all[job_id] = job
        self._tasks.spawn(self._see_through(job, process, launch.timeout_s), name=job_id)
        if self._closing:
            await job.end()
        return job

    async def _see_through(self, job: Job, process: Process, timeout_s: float | None) -> None:
        watching = self._tasks.spawn(job.watch(process, on_end=self._ended), name=f"watch {job.job_id}")
        await asyncio.wait({watching}, timeout=timeout_s)
        if not watching.done():
            await job.end(JobState.TIMED_OUT)
        if job.temp is not None:
            await asyncio.wait({watching})
            await self._empty(job.temp)

    async def _empty(self, temp: Path) -> None:
        """Unless another command uses it: then that one's end does."""
        if not any(job.temp == temp for job in self._all.values()):
            await asyncio.to_thread(_remove_below, temp)

    async def _finish_tasks(self) -> None:
        # A command that is just being started ends itself (see _launch). What hangs in the kernel is left to it.
        while (pending := self._tasks.pending) and (await asyncio.wait(pending, timeout=_CLOSE_S))[0]:
            pass
        self._tasks.cancel()

    def _lost(self, job: Job) -> None:
        self._tasks.spawn(job.end_lost(), name=f"end {job.job_id}")

    def _ended(self, job: Job) -> None:
        del self._all[job.job_id]
        if job.job_id in self._background:
            self._tell(job)

    def _tell(self, job: Job) -> None:
        if self._on_change is not None:
            self._on_change(job.job_id, job.state)

    def _new_file(self, job_id: str) -> OutputFile:
        return self._files.open(self.scratch, f"{job_id}.txt")


def _remove_below(directory: Path) -> None:
    for entry in os.scandir(directory) if directory.is_dir() else ():
        _remove(Path(entry.path))


def _remove(path: Path) -> None:
    """Whatever a command left there: directories it has closed, and trees too deep for Python, take other programs."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        with contextlib.suppress(OSError, RecursionError):
            shutil.rmtree(path)
    if os.path.lexists(path):
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            with contextlib.suppress(OSError):
                subprocess.run([*command, "--", str(path)], capture_output=True, check=False)
