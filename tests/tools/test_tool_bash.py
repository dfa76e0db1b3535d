"""bash (A1): output, exit, bounds, time limits, cancel."""

import asyncio
import fcntl
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvloop
from other_processes import wait_until

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.process import process_tree
from longboat.tools.process.bash import BashTool
from longboat.tools.process.job import JobState
from longboat.tools.process.jobs import Jobs
from longboat.tools.process.output_buffer import HEAD, TAIL
from longboat.tools.process.pipe import Pipe

WAIT_FOR_GO = "while [ ! -e go ]; do sleep 0.01; done"


@pytest.fixture
async def jobs(tmp_path: Path) -> AsyncIterator[Jobs]:
    jobs = Jobs(tmp_path / "scratch")
    yield jobs
    await jobs.aclose()


@pytest.fixture
def bash(jobs: Jobs) -> BashTool:
    return BashTool(jobs)


@pytest.fixture
def context(tmp_path: Path) -> OpenToolContext:
    (tmp_path / "work").mkdir()
    return OpenToolContext(tmp_path / "work")


def pids(directory: Path, *names: str) -> list[int]:
    return [int((directory / name).read_text()) for name in names]


def written(directory: Path, *names: str) -> bool:
    return all((directory / name).exists() and (directory / name).read_text().endswith("\n") for name in names)


async def test_output_and_exit_code_come_back_in_one_stream(bash: BashTool, context: OpenToolContext) -> None:
    result = await context.use(bash, command="echo one; echo two >&2; echo three; exit 3")
    assert result.content.startswith("one\ntwo\nthree\n[exit code 3 after ")
    assert (result.is_error, result.command_failed) == (True, True)
    assert "".join(context.outputs) == "one\ntwo\nthree\n"


async def test_a_command_without_output_says_so(bash: BashTool, context: OpenToolContext) -> None:
    result = await context.use(bash, command="true")
    assert result.content.startswith("[no output; exit code 0 after ")
    assert (result.is_error, result.command_failed) == (False, False)


async def test_a_person_sees_the_whole_command_before_it_runs(bash: BashTool, context: OpenToolContext) -> None:
    (context.directory / "sub").mkdir()
    await context.use(bash, command="pwd\ntrue", cwd="sub")
    (need,) = context.needs
    assert (need.tool, need.action, need.argument, need.paths) == ("bash", "run", "pwd\ntrue", ())
    assert need.title == "Run pwd …"
    assert need.detail == f"pwd\ntrue\n\n(in {context.directory}/sub)"


async def test_a_refused_command_does_not_run(bash: BashTool, tmp_path: Path) -> None:
    context = OpenToolContext(tmp_path, refuse=lambda _: True)
    with pytest.raises(ToolError, match="Not allowed"):
        await context.use(bash, command="touch ran")
    assert not (tmp_path / "ran").exists()


async def test_the_environment_is_the_kits_with_nothing_that_waits_for_a_person(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_SECRET", "hush")
    context = OpenToolContext(tmp_path, environ={"PATH": os.environ["PATH"], "MINE": "yes", "PAGER": "less"})
    result = await context.use(BashTool(jobs), command="env")
    seen = dict(line.split("=", 1) for line in result.content.splitlines() if "=" in line)
    assert (seen["MINE"], seen["PAGER"], seen["TERM"], seen["GIT_TERMINAL_PROMPT"]) == ("yes", "cat", "dumb", "0")
    assert "OUR_SECRET" not in seen


async def test_a_command_that_reads_its_input_finds_none(bash: BashTool, context: OpenToolContext) -> None:
    result = await context.use(bash, command="cat; read -r answer || echo no answer")
    assert result.content.startswith("no answer\n")


async def test_output_is_shown_while_the_command_runs(bash: BashTool, context: OpenToolContext) -> None:
    running = asyncio.create_task(context.use(bash, command=f"echo begun; {WAIT_FOR_GO}; echo done"))
    await wait_until(lambda: "begun" in "".join(context.outputs))
    assert not running.done()
    (context.directory / "go").touch()
    await running
    assert "".join(context.outputs) == "begun\ndone\n"


async def test_of_long_output_head_and_tail_are_given_and_the_file_holds_all(
    bash: BashTool, context: OpenToolContext
) -> None:
    result = await context.use(bash, command="seq 1 200000")
    whole = "".join(f"{number}\n" for number in range(1, 200_001))
    assert result.content.startswith(whole[:HEAD])
    assert whole[-TAIL:].rstrip() in result.content
    assert len(result.content) < HEAD + TAIL + 300
    left_out = len(whole) - HEAD - TAIL
    assert f"[… {left_out:,} characters left out; the full output is in " in result.content
    path = Path(result.content.partition("the full output is in ")[2].partition(" …]")[0])
    assert await asyncio.to_thread(path.read_text) == whole
    shown = "".join(context.outputs)
    assert "characters not shown" in shown
    assert len(shown) < len(whole)


async def test_a_program_that_writes_without_end_is_bounded(bash: BashTool, context: OpenToolContext) -> None:
    result = await context.use(bash, command="yes", timeout_s=1)
    assert result.is_error
    assert "[killed by its time limit after " in result.content
    assert len("".join(context.outputs)) < 100_000


async def test_a_program_that_writes_without_end_leaves_the_loop_to_others(
    bash: BashTool, context: OpenToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have their turn after each piece that is read, which is at most what the pipe holds."""
    gulp, sizes = Pipe._gulp, list[int]()

    def count(pipe: Pipe) -> int:
        sizes.append(gulp(pipe))
        return sizes[-1]

    monkeypatch.setattr(Pipe, "_gulp", count)
    await context.use(bash, command="yes", run_in_background=True)
    reads = [0]
    while sum(reads) < 100:
        before = len(sizes)
        await asyncio.sleep(0)
        reads.append(len(sizes) - before)
    assert max(reads) == 1
    assert max(sizes) <= 2**20


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="other systems choose the size themselves")
async def test_the_kernel_keeps_much_output_while_the_loop_does_other_work(
    bash: BashTool, context: OpenToolContext
) -> None:
    """Output is read at 50 MB/s (benchmarks/rows/output.py): that takes a larger pipe than a program gets by itself."""
    told = await context.use(
        bash, command=f"{sys.executable} -c 'import fcntl; print(fcntl.fcntl(1, fcntl.F_GETPIPE_SZ))'"
    )
    assert int(told.content.split()[0]) >= 2**20


async def test_colors_and_broken_bytes_become_plain_text(bash: BashTool, context: OpenToolContext) -> None:
    result = await context.use(bash, command=r"printf '\033[31mred\033[0m \303\244 \377 \033]0;title\007end\r\n'")
    assert result.content.startswith("red ä � end\n[")


async def test_cwd_is_a_directory_below_the_workspace(bash: BashTool, context: OpenToolContext) -> None:
    (context.directory / "sub").mkdir()
    (context.directory / "out").symlink_to(context.directory.parent)
    result = await context.use(bash, command="pwd", cwd="sub")
    assert result.content.startswith(f"{context.directory}/sub\n")
    for outside in ("..", "/", "out"):
        with pytest.raises(ToolError, match="outside the workspace"):
            await context.use(bash, command="pwd", cwd=outside)
    with pytest.raises(ToolError, match="not a directory"):
        await context.use(bash, command="pwd", cwd="none")


@pytest.mark.parametrize("command", ["", " \n", "echo \0", "echo \ud800", "echo " + "x" * 3_000_000])
async def test_what_cannot_be_run_is_a_clear_error(bash: BashTool, context: OpenToolContext, command: str) -> None:
    with pytest.raises(ToolError, match=r"is empty|could not be started"):
        await context.use(bash, command=command)


async def test_a_time_limit_ends_the_command_and_what_it_printed_is_kept(
    bash: BashTool, context: OpenToolContext
) -> None:
    command = "trap '' TERM; echo begun; exec sleep 60"  # no shell is left to tell of what was killed
    result = await context.use(bash, command=command, timeout_s=4)
    assert result.content.startswith("begun\n[killed by its time limit after ")
    assert result.is_error


STUBBORN = """
trap '' TERM
(trap '' TERM; echo $BASHPID > child; while :; do sleep 0.1; done) &
( (trap '' TERM; echo $BASHPID > orphan; while :; do sleep 0.1; done) & )
( setsid bash -c "trap '' TERM; echo \\$\\$ > session; while :; do sleep 0.1; done" & )
( setsid bash -c "(setsid bash -c 'echo \\$\\$ > daemon; exec sleep 1000' >/dev/null 2>&1 &)" )
(kill -STOP $BASHPID) & echo $! > stopped
echo $$ > shell
wait
while :; do sleep 0.1; done
"""
FAMILY = ("child", "orphan", "session", "daemon", "stopped", "shell")


async def test_a_canceled_command_is_gone_with_all_that_it_started(bash: BashTool, context: OpenToolContext) -> None:
    """A1: even if they ignore TERM, were forked twice, are stopped, or made a session of their own.

    The benchmark `cancel` has the time that it takes.
    """
    running = asyncio.create_task(context.use(bash, command=STUBBORN))
    await wait_until(lambda: written(context.directory, *FAMILY))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [pid for pid in pids(context.directory, *FAMILY) if process_tree.is_alive(pid)] == []


async def test_a_command_that_obeys_term_may_clean_up(
    bash: BashTool, context: OpenToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_tree, "KILL_AFTER_S", 20)
    command = f"trap 'touch cleaned; exit' TERM; echo $$ > shell; {WAIT_FOR_GO}"
    running = asyncio.create_task(context.use(bash, command=command))
    await wait_until(lambda: written(context.directory, "shell"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (context.directory / "cleaned").exists()


async def test_a_cancel_at_any_instant_leaves_nothing_running(
    jobs: Jobs, bash: BashTool, context: OpenToolContext
) -> None:
    """L6 for tools: before the process is started, while it is, and after."""
    for steps in range(25):
        running = asyncio.create_task(context.use(bash, command="sleep 1000"))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert process_tree.find(None, f"{jobs.token}/") == set()


async def test_a_second_cancel_does_not_save_the_command(jobs: Jobs, bash: BashTool, context: OpenToolContext) -> None:
    running = asyncio.create_task(
        context.use(bash, command="trap '' TERM; echo $$ > shell; while :; do sleep 0.1; done")
    )
    await wait_until(lambda: written(context.directory, "shell"))
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await wait_until(lambda: process_tree.find(None, f"{jobs.token}/") == set())


async def test_two_cancels_at_any_instant_leave_nothing_running(
    jobs: Jobs, bash: BashTool, context: OpenToolContext
) -> None:
    """L6 for tools: the second one comes while the first waits for the process to be there, so that it can be ended."""
    for steps in range(0, 40, 3):
        running = asyncio.create_task(context.use(bash, command="sleep 1000"))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await wait_until(lambda: not jobs._tasks.pending)
        assert process_tree.find(None, f"{jobs.token}/") == set()


async def test_a_long_command_moves_to_the_background_and_goes_on(
    jobs: Jobs, bash: BashTool, context: OpenToolContext
) -> None:
    result = await context.use(bash, command=f"echo begun; {WAIT_FOR_GO}; echo done", wait_s=1.5)
    (job,) = jobs.list()
    assert result.content.startswith(f"begun\n[running in the background as {job.job_id}: ")
    assert not result.is_error
    (context.directory / "go").touch()
    assert await job.wait_ended(20)
    assert (job.state, job.exit_code, job.buffer.read()) == (JobState.FINISHED, 0, "begun\ndone\n")
    assert "".join(context.outputs) == "begun\n", "the call is over: its output is no longer shown"


async def test_a_command_started_in_the_background_is_not_waited_for(
    jobs: Jobs, bash: BashTool, context: OpenToolContext
) -> None:
    result = await context.use(bash, command="echo up; sleep 1000", run_in_background=True)
    (job,) = jobs.list()
    assert f"running in the background as {job.job_id}: read on with job_output" in result.content
    await wait_until(lambda: job.buffer.read() == "up\n")


async def test_a_background_command_that_fails_at_once_is_told_of_at_once(
    jobs: Jobs, bash: BashTool, context: OpenToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longboat.tools.process.bash.FIRST_LOOK_S", 20)
    result = await context.use(bash, command="no-such-server", run_in_background=True)
    assert "not found" in result.content
    assert "[exit code 127 after " in result.content
    assert result.is_error
    assert jobs.list() == ()


async def test_processes_that_a_command_leaves_behind_become_a_job(
    jobs: Jobs, bash: BashTool, context: OpenToolContext
) -> None:
    result = await context.use(bash, command="sleep 1000 >/dev/null 2>&1 & echo $! > left; echo started")
    (job,) = jobs.list()
    assert "started\n[exit code 0 after " in result.content
    assert f"processes it left running are now {job.job_id}" in result.content
    await jobs.end(job)
    assert not process_tree.is_alive(*pids(context.directory, "left"))


async def test_what_ends_shortly_after_its_shell_is_no_job(
    jobs: Jobs, bash: BashTool, context: OpenToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longboat.tools.process.job.GRACE_S", 20)
    result = await context.use(bash, command="(echo late) & exit 0")
    assert "late" in result.content
    assert jobs.list() == ()


async def test_with_no_room_for_another_job_a_long_command_is_waited_for(
    tmp_path: Path, context: OpenToolContext
) -> None:
    jobs = Jobs(tmp_path / "few", limit=1)
    bash = BashTool(jobs)
    await context.use(bash, command="sleep 1000", run_in_background=True)
    with pytest.raises(ToolError, match="job_kill"):
        await context.use(bash, command="true", run_in_background=True)
    running = asyncio.create_task(context.use(bash, command=f"touch begun; {WAIT_FOR_GO}; echo done", wait_s=0.01))
    await wait_until((context.directory / "begun").exists)
    (context.directory / "go").touch()
    assert (await running).content.startswith("done\n[exit code 0 ")
    left = await context.use(bash, command="sleep 1000 & echo $! > left")
    assert "were killed because too many jobs" in left.content
    assert not process_tree.is_alive(*pids(context.directory, "left"))
    await jobs.aclose()


def test_it_does_the_same_on_the_loop_of_the_server(tmp_path: Path) -> None:
    async def scene() -> None:
        context, jobs = OpenToolContext(tmp_path), Jobs(tmp_path / "scratch")
        bash = BashTool(jobs)
        assert (await context.use(bash, command="echo hello; exit 2")).content.startswith("hello\n[exit code 2 ")
        assert (await context.use(bash, command="seq 1 50000")).content.count("49999\n50000") == 1
        running = asyncio.create_task(context.use(bash, command=STUBBORN))
        await wait_until(lambda: written(tmp_path, *FAMILY))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert [pid for pid in pids(tmp_path, *FAMILY) if process_tree.is_alive(pid)] == []
        await jobs.aclose()

    uvloop.run(scene())


async def test_a_link_that_leads_out_of_the_workspace_is_told_to_whoever_permits(
    context: OpenToolContext, bash: BashTool
) -> None:
    """A2: a name inside the workspace may stand for a file outside of it."""
    (context.directory / "inside").write_text("mine")
    (context.directory / "link").symlink_to("/etc/hostname")
    await context.use(bash, command="cat inside link")
    assert context.needs[0].paths == ("/etc/hostname",)


@pytest.mark.parametrize(
    "command",
    ["cat li*", "cat dir/[l]*", "head -1 d*/li?k", "cat ../link", "cd dir; cat link", "ls etc/../hostname"],
)
async def test_a_pattern_or_a_way_up_that_leads_out_through_a_link_is_told_too(
    context: OpenToolContext, bash: BashTool, command: str
) -> None:
    """A2: what a pattern stands for is looked up; behind a link `..` leads elsewhere."""
    (context.directory / "dir").mkdir()
    (context.directory / "link").symlink_to("/etc/hostname")
    (context.directory / "dir" / "link").symlink_to("/etc/hostname")
    (context.directory / "etc").symlink_to("/etc/apt")
    cwd = "dir" if ".." in command and "etc" not in command else None
    await context.use(bash, command=command, cwd=cwd)
    assert "/etc/hostname" in context.needs[0].paths


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("echo x > hooks/a", ".git/hooks/a"),
        ("true hooks; cp a hooks/b", ".git/hooks/b"),
        ("touch *.json", "longboat.json"),
        ("cat hook*/x", ".git/hooks/x"),
    ],
)
async def test_a_link_or_a_pattern_that_stands_for_what_decides_what_may_run_is_told(
    context: OpenToolContext, bash: BashTool, command: str, path: str
) -> None:
    """A2: the rules see names alone."""
    (context.directory / ".git" / "hooks").mkdir(parents=True)
    (context.directory / ".git" / "hooks" / "x").touch()
    (context.directory / "hooks").symlink_to(".git/hooks")
    (context.directory / "longboat.json").touch()
    await context.use(bash, command=command)
    assert f"{context.directory}/{path}" in context.needs[0].paths


async def test_a_pattern_that_is_only_looked_at_is_no_matter(context: OpenToolContext, bash: BashTool) -> None:
    (context.directory / "longboat.json").touch()
    await context.use(bash, command="cat long*")
    assert context.needs[0].paths == ()


async def test_a_command_is_permitted_for_the_directory_that_it_runs_in(
    context: OpenToolContext, bash: BashTool
) -> None:
    """A2: `cat key` means another file in another directory."""
    (context.directory / "sub").mkdir()
    await context.use(bash, command="pwd", cwd="sub")
    await context.use(bash, command="pwd")
    assert [need.directory for need in context.needs] == [f"{context.directory}/sub", ""]


def begin_repository(directory: Path) -> None:
    for words in (["init", "-q"], ["config", "core.fsmonitor", "touch ran #"]):
        subprocess.run(["git", *words], cwd=directory, check=True)


async def test_what_a_repository_names_is_told_and_not_run(context: OpenToolContext, bash: BashTool) -> None:
    """A2: `git status` runs what `core.fsmonitor` names."""
    begin_repository(context.directory)
    result = await context.use(bash, command="git status")
    assert "core.fsmonitor" in context.needs[0].doubt
    assert not (context.directory / "ran").exists()
    assert not result.is_error


async def test_what_the_user_sets_for_git_stays(jobs: Jobs, tmp_path: Path) -> None:
    mine = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Me"}
    context = OpenToolContext(tmp_path, environ={"PATH": os.environ["PATH"], **mine})
    result = await context.use(BashTool(jobs), command="git config user.name; git config core.pager")
    assert result.content.startswith("Me\ncat\n")
