"""bash: run a shell command in the workspace (A1)."""

import asyncio
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from longboat.permissions.verdict import Need
from longboat.tools.context import ToolContext, ToolError, parse
from longboat.tools.files.paths import resolve
from longboat.tools.process.job import Job, JobState, Launch, ending
from longboat.tools.process.jobs import Jobs
from longboat.tools.process.live_output import Live
from longboat.tools.process.shell_paths import look_up
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.sandbox.denied_files import NONE_DENIED, DeniedFiles, find_denied
from longboat.tools.sandbox.sandbox import SandboxedCommand, SandboxPolicy, wrap_command
from longboat.tools.sandbox.wall import ReadOnlyWall, Wall, find_wall, walled_environ
from longboat.tools.schema import spec_of
from longboat.tools.services import ToolServices
from longboat.wire.tools import Draw, Effect, ToolTraits

WAIT_S = 60.0
FIRST_LOOK_S = 0.5
"""A background command that fails within this time is reported immediately."""

QUIET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "CLICOLOR": "0",
    "GIT_EDITOR": "true",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PYTHONUNBUFFERED": "1",
}
"""Nothing here waits for a person or draws on a terminal; and what Python prints is seen when it is printed."""

_GIT_SETTINGS = {"core.fsmonitor": "false", "core.pager": "cat", "safe.bareRepository": "explicit"}

_REPLACED = (
    "Files or directories that this command names were replaced while it waited for approval, so it was not run. "
    "Call it again."
)

_Seconds = Annotated[float, Meta(gt=0, le=86_400)]


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    command: Annotated[str, Meta(description="The bash command.")]
    cwd: Annotated[str | None, Meta(description="The directory to run it in, inside the workspace.")] = None
    timeout_s: Annotated[_Seconds | None, Meta(description="Seconds until it is killed, even in background.")] = None
    wait_s: Annotated[_Seconds | None, Meta(description="Seconds until it moves to the background. Default 60.")] = None
    run_in_background: Annotated[bool, Meta(description="Start it as a job without waiting.")] = False
    outside: Annotated[
        bool, Meta(description="Run without read-only protection. Only after a result said that it ran read-only.")
    ] = False


class BashTool:
    spec = spec_of(
        "bash",
        Input,
        ToolTraits(effect=Effect.RUNS, command="command", heading=("command",), draw=Draw.COMMAND),
        brief="Run a shell command.",
        cues=r"run|execute|command|shell",
    )

    def __init__(self, jobs: Jobs, *, sandbox: SandboxPolicy | None = None, wait_s: float = WAIT_S) -> None:
        self._jobs = jobs
        self._sandbox = sandbox
        self._wait_s = wait_s
        self._wall: ReadOnlyWall | None = None

    @classmethod
    def build(cls, services: ToolServices) -> Self:
        return cls(services.jobs, sandbox=services.sandbox)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        asked = parse("bash", call.arguments, Input)
        if not asked.command.strip():
            raise ToolError("The command is empty.")
        if asked.run_in_background and not self._jobs.has_room:
            raise ToolError("Too many jobs are running. End one with job_kill first.")
        directory = (
            context.directory
            if asked.cwd is None
            else await asyncio.to_thread(_resolve_cwd, context.directory, asked.cwd)
        )
        wall = await self._find_wall(context.directory)
        sandboxed = await self._sandboxed(asked.command, context.environ, NONE_DENIED)
        plain = _need(asked, directory, context.directory, sandboxed, has_wall=wall is not None)
        need = await asyncio.to_thread(look_up, plain, directory, context.directory)
        allowed = await context.permit(need)
        denied = await _denied(context)
        if allowed.harmless:
            launch = await self._walled(asked, directory, context, denied, wall)
            return await self._see_through(launch, asked, call.session_id, context, _read_only)
        await asyncio.to_thread(_check_unchanged, plain, need, directory, asked.cwd, context.directory)
        if denied != NONE_DENIED:
            sandboxed = await self._sandboxed(asked.command, context.environ, denied)
        launch = Launch(
            command=asked.command,
            argv=sandboxed.argv,
            directory=directory,
            environ={**context.environ, **QUIET, **_git_settings(context.environ), **sandboxed.environ},
            ruleset=sandboxed.ruleset,
            timeout_s=asked.timeout_s,
        )
        return await self._see_through(launch, asked, call.session_id, context, sandboxed.hint)

    async def _sandboxed(self, command: str, environ: Mapping[str, str], denied: DeniedFiles) -> SandboxedCommand:
        argv = _shell(command, environ)
        return SandboxedCommand(argv=argv) if self._sandbox is None else await wrap_command(argv, self._sandbox, denied)

    async def _find_wall(self, workspace: Path) -> ReadOnlyWall | None:
        if self._wall is None and isinstance(found := await asyncio.to_thread(find_wall), Wall):
            hidden = self._sandbox.hidden if self._sandbox is not None else ()
            self._wall = ReadOnlyWall(found, workspace=workspace, temp=self._jobs.scratch / "walled", hidden=hidden)
        return self._wall

    async def _walled(
        self, asked: Input, directory: Path, context: ToolContext, denied: DeniedFiles, wall: ReadOnlyWall | None
    ) -> Launch:
        """A command that is allowed because it is harmless. Without a wall, only a few that are known word by word."""
        temp = self._jobs.scratch / "walled"
        environ = walled_environ(context.environ, workspace=context.directory, temp=temp)
        argv = _shell(asked.command, environ)
        sandboxed = await wall.around(argv, denied) if wall is not None else SandboxedCommand(argv=argv)
        return Launch(
            command=asked.command,
            argv=sandboxed.argv,
            directory=directory,
            environ={**environ, **QUIET, **_git_settings({}), "GIT_NO_LAZY_FETCH": "1"},  # there is no network
            ruleset=sandboxed.ruleset,
            timeout_s=asked.timeout_s,
            temp=temp,
        )

    async def _see_through(
        self, launch: Launch, asked: Input, session_id: str, context: ToolContext, hint: Callable[[bool], str]
    ) -> ToolResult:
        """`hint` says where it ran, to a command that failed or did not."""
        live = Live(context.output)
        job = await self._jobs.start(launch, show=live.write)
        kept = False
        try:
            kept, said = await self._follow(job, asked)
        finally:
            job.show = None
            live.close()
            if not kept:
                await self._jobs.end(job)
        said += hint(bool(job.exit_code) and not job.ended_by_deadline)
        output = job.read(session_id).rstrip("\n")
        failed = bool(job.exit_code) or job.state is JobState.TIMED_OUT
        content = f"{output}\n[{said}]" if output else f"[no output; {said}]"
        if job.ended_by_deadline:
            return ToolResult(content=content, is_error=True)
        return ToolResult(content=content, is_error=failed, command_failed=failed)

    async def _follow(self, job: Job, asked: Input) -> tuple[bool, str]:
        """Whether it continues as a job, and the note about it."""
        wait_s = FIRST_LOOK_S if asked.run_in_background else asked.wait_s or self._wait_s
        if not await job.wait_exited(wait_s):
            if self._jobs.has_room:
                self._jobs.adopt(job)
                return True, f"running in the background as {job.job_id}: read on with job_output, end it with job_kill"
            # Better to keep waiting than to lose the work: people can cancel the run.
            await job.wait_exited()
        if job.is_ending:
            await job.wait_ended()
            return False, ending(job)
        if job.state is not JobState.RUNNING:
            return False, ending(job)
        if not self._jobs.has_room:
            return False, f"{ending(job)}; processes it left running were killed because too many jobs are running"
        self._jobs.adopt(job)
        return True, f"{ending(job)}; processes it left running are now {job.job_id}: end them with job_kill"


def _check_unchanged(plain: Need, permitted: Need, directory: Path, cwd: str | None, workspace: Path) -> None:
    """Approval may have taken long, and links may have changed meanwhile."""
    again = look_up(plain, directory, workspace)
    led_elsewhere = not set(again.paths) <= set(permitted.paths) or (again.doubt and not permitted.doubt)
    if led_elsewhere or _resolve_cwd(workspace, cwd) != directory:
        raise ToolError(_REPLACED)


def _need(asked: Input, directory: Path, workspace: Path, sandboxed: SandboxedCommand, *, has_wall: bool) -> Need:
    command = asked.command
    first, *more = command.strip().splitlines()
    title = f"Run {first[:200]}{' …' if more or len(first) > 200 else ''}"
    notes = [f"in {directory}"] if directory != workspace else []
    notes += [f"in a {sandboxed.sandbox}"] if sandboxed.sandbox is not None else []
    notes += [sandboxed.note] if sandboxed.note else []
    detail = f"{command}\n\n({'; '.join(notes)})" if notes else command
    return Need(
        tool="bash",
        action="run",
        argument=command,
        directory=str(directory) if directory != workspace else "",
        outside=asked.outside,
        has_wall=has_wall,
        title=title,
        detail=detail,
    )


def _shell(command: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """No file of anyone's is read first: what is permitted is the command as it stands."""
    bash = shutil.which("bash", path=environ.get("PATH"))
    return (bash, "--norc", "--noprofile", "-c", command) if bash else ("/bin/sh", "-c", command)


def _read_only(failed: bool) -> str:
    if not failed:
        return ", read-only"
    return (
        ". It ran read-only, without network access. If it failed for that reason, call again with `outside: true` "
        "(this may need approval)"
    )


async def _denied(context: ToolContext) -> DeniedFiles:
    rules = context.deny_rules()
    return await asyncio.to_thread(find_denied, rules, context.directory) if rules else NONE_DENIED


def _git_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Behind what the user sets in this way: nothing that the configuration of a repository names is run unasked."""
    given = environ.get("GIT_CONFIG_COUNT", "") or "0"
    if not given.isdecimal():
        return {}  # Git will complain, and the user knows why.
    settings: dict[str, str] = {}
    for at, (key, value) in enumerate(_GIT_SETTINGS.items(), int(given)):
        settings |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return {**settings, "GIT_CONFIG_COUNT": str(int(given) + len(_GIT_SETTINGS))}


def _resolve_cwd(workspace: Path, cwd: str | None) -> Path:
    if cwd is None:
        return workspace
    target = resolve(workspace, cwd)
    directory = target.path
    if not target.inside:
        raise ToolError(f"cwd {cwd!r} is outside the workspace {workspace}. Use a directory inside it.")
    if not directory.is_dir():
        raise ToolError(f"cwd {cwd!r} is not a directory in the workspace. Use ls to find one.")
    return directory
