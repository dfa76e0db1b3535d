"""bash: run a shell command in the workspace (A1)."""

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.core.permissions import Need, named_paths
from longboat.tools.job import Job, JobState, Launch, ending
from longboat.tools.jobs import Jobs
from longboat.tools.kit import Kit, ToolError, parse
from longboat.tools.live import Live
from longboat.tools.sandbox import Boxed, SandboxPolicy, wrap
from longboat.tools.schema import spec_of
from longboat.tools.seam import ToolCall, ToolResult

WAIT_S = 60.0
FIRST_LOOK_S = 0.5
"""A command started in the background that fails so soon is told of at once."""

QUIET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "CLICOLOR": "0",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PYTHONUNBUFFERED": "1",
}
"""Nothing here waits for a person or draws on a terminal; and what Python prints is seen when it is printed."""

_Seconds = Annotated[float, Meta(gt=0, le=86_400)]


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    command: Annotated[str, Meta(description="The command, for bash.")]
    cwd: Annotated[str | None, Meta(description="Where to run it: a directory below the workspace.")] = None
    timeout_s: Annotated[_Seconds | None, Meta(description="End it after so many seconds, wherever it runs.")] = None
    wait_s: Annotated[_Seconds | None, Meta(description="Seconds until it moves to the background. Default 60.")] = None
    run_in_background: Annotated[bool, Meta(description="Start it as a job and do not wait for it.")] = False


class BashTool:
    def __init__(self, jobs: Jobs, *, sandbox: SandboxPolicy | None = None, wait_s: float = WAIT_S) -> None:
        self.spec = spec_of("bash", Input)
        self._jobs = jobs
        self._sandbox = sandbox
        self._wait_s = wait_s

    async def run(self, call: ToolCall, kit: Kit) -> ToolResult:
        asked = parse("bash", call.arguments, Input)
        if not asked.command.strip():
            raise ToolError("The command is empty.")
        if asked.run_in_background and not self._jobs.has_room:
            raise ToolError("Too many jobs are running: end one with job_kill first.")
        directory = _below(kit.directory, asked.cwd)
        boxed = await self._box(asked.command, kit.environ)
        outside = await asyncio.to_thread(_leading_out, asked.command, directory, kit.directory)
        await kit.permit(_need(asked.command, directory, kit.directory, boxed, outside))
        launch = Launch(
            command=asked.command,
            argv=boxed.argv,
            directory=directory,
            environ={**kit.environ, **QUIET},
            timeout_s=asked.timeout_s,
        )
        return await self._see_through(launch, asked, call.session_id, kit, boxed)

    async def _box(self, command: str, environ: Mapping[str, str]) -> Boxed:
        bash = shutil.which("bash", path=environ.get("PATH"))
        # No file of anybody's is read first: what is permitted is the command as it stands.
        argv = (bash, "--norc", "--noprofile", "-c", command) if bash else ("/bin/sh", "-c", command)
        return Boxed(argv=argv) if self._sandbox is None else await wrap(argv, self._sandbox)

    async def _see_through(self, launch: Launch, asked: Input, session_id: str, kit: Kit, boxed: Boxed) -> ToolResult:
        live = Live(kit.output)
        job = await self._jobs.start(launch, show=live.write)
        kept = False
        try:
            kept, said = await self._follow(job, asked)
        finally:
            job.show = None
            live.close()
            if not kept:
                await self._jobs.end(job)
        walls = " It ran in a sandbox: no network, and it can write only to the workspace and /tmp."
        said += walls if boxed.boxed and job.exit_code else ""
        output = job.read(session_id).rstrip("\n")
        failed = bool(job.exit_code) or job.state is JobState.TIMED_OUT
        return ToolResult(content=f"{output}\n[{said}]" if output else f"[no output; {said}]", is_error=failed)

    async def _follow(self, job: Job, asked: Input) -> tuple[bool, str]:
        """Whether it goes on as a job, and what to say of it."""
        wait_s = FIRST_LOOK_S if asked.run_in_background else asked.wait_s or self._wait_s
        if not await job.wait_exited(wait_s):
            if self._jobs.has_room:
                self._jobs.adopt(job)
                return True, f"running in the background as {job.job_id}: read on with job_output, end it with job_kill"
            # Better to go on waiting than to lose the work: whoever is tired of it cancels the run.
            await job.wait_exited()
        if job.is_ending:
            await job.wait_ended()
            return False, ending(job)
        if job.state is not JobState.RUNNING:
            return False, ending(job)
        if not self._jobs.has_room:
            return False, f"{ending(job)}; it left processes running, which were ended: too many jobs are running"
        self._jobs.adopt(job)
        return True, f"{ending(job)}; it left processes running, which are {job.job_id} now: end them with job_kill"


def _leading_out(command: str, directory: Path, workspace: Path) -> tuple[str, ...]:
    """Where names in the command lead out of the workspace through links: the rules see names alone."""
    real = (os.path.realpath(name) for name in named_paths(command, directory=str(directory)))
    return tuple(path for path in real if not Path(path).is_relative_to(workspace))


def _need(command: str, directory: Path, workspace: Path, boxed: Boxed, outside: tuple[str, ...]) -> Need:
    first, *more = command.strip().splitlines()
    title = f"Run {first[:200]}{' …' if more or len(first) > 200 else ''}"
    notes = [f"in {directory}"] if directory != workspace else []
    notes += ["in a sandbox"] if boxed.boxed else []
    notes += [boxed.note] if boxed.note else []
    detail = f"{command}\n\n({'; '.join(notes)})" if notes else command
    return Need(tool="bash", action="run", argument=command, paths=outside, title=title, detail=detail)


def _below(workspace: Path, cwd: str | None) -> Path:
    if cwd is None:
        return workspace
    directory = (workspace / cwd).resolve()
    if not directory.is_relative_to(workspace):
        raise ToolError(f"cwd {cwd!r} lies outside the workspace {workspace}: use a directory below it.")
    if not directory.is_dir():
        raise ToolError(f"cwd {cwd!r} is not a directory of the workspace: ls shows what is there.")
    return directory
