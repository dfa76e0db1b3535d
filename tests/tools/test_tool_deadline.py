"""Commands of a server that does not confirm in time that it owns the workspace end, even if it is stopped (G3)."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from other_processes import is_stopped, wait_until, wait_until_gone

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.process import process_tree, supervisor, supervisor_client
from longboat.tools.process.bash import BashTool
from longboat.tools.process.deadline import Deadline, clock
from longboat.tools.process.job import Job, JobState
from longboat.tools.process.job_output import JobOutputTool
from longboat.tools.process.jobs import Jobs

pytestmark = pytest.mark.skipif(not process_tree._HAS_PROC, reason="only Linux has guards")

BOUND_S = 60
HERE = Path(__file__).parents[1] / "support"
STUBBORN = "(trap '' TERM; setsid env -i sh -c 'trap \"\" TERM; sleep 1000' &); touch $name; sleep 1000"
"""A command, and a grandchild that ignores TERM and has left the group, the session and the environment."""
UNTIL_TOLD = "touch $name; while [ ! -e go ]; do sleep 0.01; done"
WHY = "because this server could not confirm that it still owns the workspace"
HOUR_S = 3600


@pytest.fixture
async def jobs(tmp_path: Path) -> AsyncIterator[Jobs]:
    jobs = Jobs(tmp_path / "scratch")
    yield jobs
    await jobs.aclose()


@pytest.fixture
def context(tmp_path: Path) -> OpenToolContext:
    return OpenToolContext(tmp_path)


def commands_of(jobs: Jobs) -> set[int]:
    """All processes of its commands: neither supervisors nor guards."""
    return process_tree.find(None, f"{jobs.token}/")


async def begin(jobs: Jobs, context: OpenToolContext, command: str, *, name: str) -> Job:
    """A job that has got as far as to create the file of that name."""
    await context.use(BashTool(jobs), command=f"name={name}; {command}", run_in_background=True)
    await wait_until((context.directory / name).exists)
    return jobs.list()[-1]


def timers(pid: int | str) -> list[str]:
    """The timers that a process has, as the kernel shows them."""
    found = Path(f"/proc/{pid}/fd").iterdir()
    return [
        Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text() for fd in found if os.readlink(fd) == "anon_inode:[timerfd]"
    ]


async def test_commands_of_a_stopped_server_end_at_the_deadline(tmp_path: Path) -> None:
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, str(HERE / "stopping_server.py"), str(tmp_path), STUBBORN, "1"),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert server.stdout is not None
        pids = [int(pid) for pid in (await server.stdout.readline()).split()]
        assert len(pids) >= 6
        await wait_until(lambda: is_stopped(server.pid))
        await wait_until_gone(pids)
        assert is_stopped(server.pid), "it was done without the server"
    except BaseException:
        server.kill()
        raise

    server.send_signal(signal.SIGCONT)
    output, _ = await asyncio.wait_for(server.communicate(), BOUND_S)
    refused, told, job = output.decode().splitlines()
    assert refused == f"The command was ended {WHY}."
    assert not (tmp_path / "ran").exists()
    assert re.fullmatch(rf"True False \[no output; ended after [\d.]+ s {WHY}\]", told)
    assert re.fullmatch(rf"\[no new output; job-\w+ is killed: ended after [\d.]+ s {WHY}\]", job)
    assert server.returncode == 0


async def test_the_deadline_ends_all_of_every_command_that_runs(jobs: Jobs, context: OpenToolContext) -> None:
    """Also commands from before there was one, and those of a supervisor that was killed."""
    first = await begin(jobs, context, STUBBORN, name="first")
    process = jobs._supervisor._process
    assert process is not None
    process.kill()
    await process.wait()
    second = await begin(jobs, context, STUBBORN, name="second")
    jobs.allow_for(HOUR_S)
    third = await begin(jobs, context, STUBBORN, name="third")
    pids = commands_of(jobs)
    assert len(pids) >= 9
    jobs.allow_for(0)
    await wait_until_gone(pids)
    for job in (first, second, third):
        assert await job.wait_ended(BOUND_S)
        assert (job.state, job.ended_by_deadline, job.killed_by) == (JobState.KILLED, True, None)


async def test_a_renewal_reaches_guards_from_before_and_after_it(jobs: Jobs, context: OpenToolContext) -> None:
    """Also the one in waiting, and one whose supervisor was killed."""
    orphaned = await begin(jobs, context, UNTIL_TOLD, name="orphaned")
    process = jobs._supervisor._process
    assert process is not None
    process.kill()
    await process.wait()
    early = await begin(jobs, context, UNTIL_TOLD, name="early")
    first = clock()
    jobs.allow_for(2, since=first)
    jobs.allow_for(HOUR_S)
    late = await begin(jobs, context, UNTIL_TOLD, name="late")
    await wait_until(lambda: clock() > first + 2)
    (context.directory / "go").touch()
    for job in (orphaned, early, late):
        assert await job.wait_ended(BOUND_S)
        assert (job.state, job.exit_code, job.ended_by_deadline) == (JobState.FINISHED, 0, False)


async def test_there_is_no_deadline_without_a_call_and_no_command_has_its_timer(
    jobs: Jobs, context: OpenToolContext
) -> None:
    job = await begin(jobs, context, "touch $name; sleep 1000", name="runs")
    assert job._kept is not None
    (unset,) = timers(job._kept.guard)
    assert "it_value: (0, 0)" in unset
    assert timers(job._kept.pid) == []
    jobs.allow_for(HOUR_S)
    (is_set,) = timers(job._kept.guard)
    assert "it_value: (0, 0)" not in is_set
    assert job.state is JobState.RUNNING


@pytest.mark.parametrize("knows", [True, False], ids=["the server knows", "only the guard knows"])
async def test_a_command_started_after_the_deadline_does_not_run(
    jobs: Jobs, context: OpenToolContext, monkeypatch: pytest.MonkeyPatch, knows: bool
) -> None:
    await context.use(BashTool(jobs), command="true")
    jobs.allow_for(0)
    if not knows:
        monkeypatch.setattr(Deadline, "is_past", False)
    for _ in range(3):
        with pytest.raises(ToolError, match=f"^The command was ended {WHY}\\.$"):
            await context.use(BashTool(jobs), command="touch ran")
    jobs.allow_for(HOUR_S)
    assert "on\n[exit code 0" in (await context.use(BashTool(jobs), command="echo on")).content
    assert not (context.directory / "ran").exists()


async def test_a_renewal_that_comes_too_late_allows_nothing(jobs: Jobs, context: OpenToolContext) -> None:
    """The server was stopped between the answer of the database and this call."""
    job = await begin(jobs, context, STUBBORN, name="runs")
    jobs.allow_for(10, since=clock() - 11)
    assert await job.wait_ended(BOUND_S)
    with pytest.raises(ToolError, match=WHY):
        await context.use(BashTool(jobs), command="touch ran")
    assert not (context.directory / "ran").exists()


async def test_the_deadline_counts_for_a_supervisor_that_is_started_later(
    jobs: Jobs, context: OpenToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.allow_for(0)
    monkeypatch.setattr(Deadline, "is_past", False)
    with pytest.raises(ToolError, match=WHY):
        await context.use(BashTool(jobs), command="touch ran")
    assert not (context.directory / "ran").exists()


@pytest.mark.parametrize("goes", [True, False], ids=["told to go", "not told"])
async def test_the_deadline_passes_while_a_command_waits_for_its_go_ahead(tmp_path: Path, goes: bool) -> None:
    """The guard is stopped until then, too: the supervisor continues it."""
    deadline = Deadline()
    deadline.set(clock() + HOUR_S)
    timer = deadline.open_timer()
    line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = await asyncio.create_subprocess_exec(
            *supervisor_client._PROGRAM, str(timer), stdin=theirs.fileno(), env={}, pass_fds=(timer,)
        )
    ours, theirs = socket.socketpair()
    output, write_end = os.pipe()
    with theirs:
        plan = json.dumps([["/bin/sh", "-c", "touch ran"], str(tmp_path), {}, "", 0]).encode()
        supervisor_client._send(line, plan, theirs.fileno(), write_end, write_end, write_end)
    os.close(write_end)
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    guard = int((await asyncio.wait_for(loop.sock_recv(ours, 100), BOUND_S)).split()[1])
    os.kill(guard, signal.SIGSTOP)
    await wait_until(lambda: is_stopped(guard))
    if goes:
        ours.send(supervisor.GO)
    deadline.set(0)
    heard = b""
    while data := await asyncio.wait_for(_received(ours), BOUND_S):
        heard += data
    assert heard == b"~\n.\n"
    assert os.read(output, 1) == b"", "its process is gone"
    assert not (tmp_path / "ran").exists()
    for closable in (line, ours, deadline):
        closable.close()
    os.close(output)
    await asyncio.wait_for(process.wait(), BOUND_S)


async def _received(line: socket.socket) -> bytes:
    try:
        return await asyncio.get_running_loop().sock_recv(line, 100)
    except ConnectionResetError:  # it did not read that it may go
        return b""


async def test_a_command_whose_guard_was_stopped_ends_too(jobs: Jobs, context: OpenToolContext) -> None:
    job = await begin(jobs, context, STUBBORN, name="runs")
    assert job._kept is not None
    guard = job._kept.guard
    os.kill(guard, signal.SIGSTOP)
    await wait_until(lambda: is_stopped(guard))
    pids = commands_of(jobs)
    jobs.allow_for(0)
    await wait_until_gone(pids)
    assert await job.wait_ended(BOUND_S)
    assert job.ended_by_deadline


async def test_a_command_that_had_ended_keeps_its_result(jobs: Jobs, context: OpenToolContext) -> None:
    """The deadline ends only the daemon that it left."""
    job = await begin(jobs, context, f"setsid env -i sleep 1000 > /dev/null 2>&1 & {UNTIL_TOLD}", name="job")
    (context.directory / "go").touch()
    assert await job.wait_ended(BOUND_S)
    pids = commands_of(jobs)
    assert len(pids) == 1
    jobs.allow_for(0)
    await wait_until_gone(pids)
    kept = job._kept
    await wait_until(lambda: kept and kept.is_gone)
    said = await context.use(JobOutputTool(jobs), job_id=job.job_id)
    assert f"{job.job_id} is finished: exit code 0" in said.content


async def test_what_a_job_left_running_ends_as_part_of_it(jobs: Jobs, context: OpenToolContext) -> None:
    told = await context.use(BashTool(jobs), command="sleep 1000 & echo done")
    (job,) = jobs.list()
    assert job.job_id in told.content
    jobs.allow_for(0)
    said = await context.use(JobOutputTool(jobs), job_id=job.job_id, wait_s=BOUND_S)
    assert f"{job.job_id} is killed: ended after" in said.content
    assert WHY in said.content
    assert job.exit_code == 0


async def test_a_command_must_have_a_guard_while_there_is_a_deadline(
    jobs: Jobs, context: OpenToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_client, "_PROGRAM", ("/no/such/program",))
    assert (await context.use(BashTool(jobs), command="echo on")).content.startswith("on\n")
    jobs.allow_for(HOUR_S)
    with pytest.raises(ToolError, match="could not be started: no process could be started to guard it"):
        await context.use(BashTool(jobs), command="touch ran")
    assert not (context.directory / "ran").exists()


async def test_where_there_are_no_guards_the_server_refuses_what_comes_too_late(
    jobs: Jobs, context: OpenToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_client, "_IS_POSSIBLE", False)
    jobs.allow_for(HOUR_S)
    assert (await context.use(BashTool(jobs), command="echo on")).content.startswith("on\n")
    jobs.allow_for(0)
    with pytest.raises(ToolError, match=WHY):
        await context.use(BashTool(jobs), command="touch ran")
    assert not (context.directory / "ran").exists()
