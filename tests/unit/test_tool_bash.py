"""bash (A1): output, exit, bounds, time limits, cancel."""

import asyncio
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uvloop

from longboat.testing.kit import OpenKit
from longboat.tools import family
from longboat.tools.bash import BashTool
from longboat.tools.job import JobState
from longboat.tools.jobs import Jobs
from longboat.tools.kit import ToolError
from longboat.tools.tape import HEAD, TAIL

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
def kit(tmp_path: Path) -> OpenKit:
    (tmp_path / "work").mkdir()
    return OpenKit(tmp_path / "work")


async def until(condition: Callable[[], object], *, bound_s: float = 20) -> None:
    """Nobody tells us of what other processes do: look until it is so."""
    async with asyncio.timeout(bound_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def pids(directory: Path, *names: str) -> list[int]:
    return [int((directory / name).read_text()) for name in names]


def written(directory: Path, *names: str) -> bool:
    return all((directory / name).exists() and (directory / name).read_text().endswith("\n") for name in names)


async def test_output_and_exit_code_come_back_in_one_stream(bash: BashTool, kit: OpenKit) -> None:
    result = await kit.use(bash, command="echo one; echo two >&2; echo three; exit 3")
    assert result.content.startswith("one\ntwo\nthree\n[exit code 3 after ")
    assert result.is_error
    assert "".join(kit.outputs) == "one\ntwo\nthree\n"


async def test_a_command_without_output_says_so(bash: BashTool, kit: OpenKit) -> None:
    result = await kit.use(bash, command="true")
    assert result.content.startswith("[no output; exit code 0 after ")
    assert not result.is_error


async def test_a_person_sees_the_whole_command_before_it_runs(bash: BashTool, kit: OpenKit) -> None:
    (kit.directory / "sub").mkdir()
    await kit.use(bash, command="pwd\ntrue", cwd="sub")
    (need,) = kit.needs
    assert (need.tool, need.action, need.argument, need.paths) == ("bash", "run", "pwd\ntrue", ())
    assert need.title == "Run pwd …"
    assert need.detail == f"pwd\ntrue\n\n(in {kit.directory}/sub)"


async def test_a_refused_command_does_not_run(bash: BashTool, tmp_path: Path) -> None:
    kit = OpenKit(tmp_path, refuse=lambda _: True)
    with pytest.raises(ToolError, match="Not allowed"):
        await kit.use(bash, command="touch ran")
    assert not (tmp_path / "ran").exists()


async def test_the_environment_is_the_kits_with_nothing_that_waits_for_a_person(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_SECRET", "hush")
    kit = OpenKit(tmp_path, environ={"PATH": os.environ["PATH"], "MINE": "yes", "PAGER": "less"})
    result = await kit.use(BashTool(jobs), command="env")
    seen = dict(line.split("=", 1) for line in result.content.splitlines() if "=" in line)
    assert (seen["MINE"], seen["PAGER"], seen["TERM"], seen["GIT_TERMINAL_PROMPT"]) == ("yes", "cat", "dumb", "0")
    assert "OUR_SECRET" not in seen


async def test_a_command_that_reads_its_input_finds_none(bash: BashTool, kit: OpenKit) -> None:
    result = await kit.use(bash, command="cat; read -r answer || echo no answer")
    assert result.content.startswith("no answer\n")


async def test_output_is_shown_while_the_command_runs(bash: BashTool, kit: OpenKit) -> None:
    running = asyncio.create_task(kit.use(bash, command=f"echo begun; {WAIT_FOR_GO}; echo done"))
    await until(lambda: "begun" in "".join(kit.outputs))
    assert not running.done()
    (kit.directory / "go").touch()
    await running
    assert "".join(kit.outputs) == "begun\ndone\n"


async def test_of_long_output_head_and_tail_are_given_and_the_file_holds_all(bash: BashTool, kit: OpenKit) -> None:
    result = await kit.use(bash, command="seq 1 200000")
    whole = "".join(f"{number}\n" for number in range(1, 200_001))
    assert result.content.startswith(whole[:HEAD])
    assert whole[-TAIL:].rstrip() in result.content
    assert len(result.content) < HEAD + TAIL + 300
    left_out = len(whole) - HEAD - TAIL
    assert f"[… {left_out:,} characters left out; the full output is in " in result.content
    path = Path(result.content.partition("the full output is in ")[2].partition(" …]")[0])
    assert await asyncio.to_thread(path.read_text) == whole
    shown = "".join(kit.outputs)
    assert "characters not shown" in shown
    assert len(shown) < len(whole)


async def test_a_program_that_writes_without_end_is_bounded_and_leaves_the_loop_to_others(
    bash: BashTool, kit: OpenKit
) -> None:
    running = asyncio.create_task(kit.use(bash, command="yes", timeout_s=1))
    turns = 0
    while not running.done():
        await asyncio.sleep(0.001)
        turns += 1
    result = await running
    assert result.is_error
    assert "[ended by its time limit after " in result.content
    assert turns > 20
    assert len("".join(kit.outputs)) < 100_000


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="other systems choose the size themselves")
async def test_the_kernel_keeps_much_output_while_the_loop_does_other_work(bash: BashTool, kit: OpenKit) -> None:
    """Output is read at 50 MB/s (benchmarks/rows/output.py): that takes a larger pipe than a program gets by itself."""
    told = await kit.use(bash, command=f"{sys.executable} -c 'import fcntl; print(fcntl.fcntl(1, fcntl.F_GETPIPE_SZ))'")
    assert int(told.content.split()[0]) >= 2**20


async def test_colors_and_broken_bytes_become_plain_text(bash: BashTool, kit: OpenKit) -> None:
    result = await kit.use(bash, command=r"printf '\033[31mred\033[0m \303\244 \377 \033]0;title\007end\r\n'")
    assert result.content.startswith("red ä � end\n[")


async def test_cwd_is_a_directory_below_the_workspace(bash: BashTool, kit: OpenKit) -> None:
    (kit.directory / "sub").mkdir()
    (kit.directory / "out").symlink_to(kit.directory.parent)
    result = await kit.use(bash, command="pwd", cwd="sub")
    assert result.content.startswith(f"{kit.directory}/sub\n")
    for outside in ("..", "/", "out"):
        with pytest.raises(ToolError, match="outside the workspace"):
            await kit.use(bash, command="pwd", cwd=outside)
    with pytest.raises(ToolError, match="not a directory"):
        await kit.use(bash, command="pwd", cwd="none")


@pytest.mark.parametrize("command", ["", " \n", "echo \0", "echo \ud800", "echo " + "x" * 3_000_000])
async def test_what_cannot_be_run_is_a_clear_error(bash: BashTool, kit: OpenKit, command: str) -> None:
    with pytest.raises(ToolError, match=r"is empty|could not be started"):
        await kit.use(bash, command=command)


async def test_a_time_limit_ends_the_command_and_what_it_printed_is_kept(bash: BashTool, kit: OpenKit) -> None:
    command = "trap '' TERM; echo begun; exec sleep 60"  # no shell is left to tell of what was killed
    result = await kit.use(bash, command=command, timeout_s=4)
    assert result.content.startswith("begun\n[ended by its time limit after ")
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


async def test_a_canceled_command_is_gone_within_a_second_with_all_that_it_started(
    bash: BashTool, kit: OpenKit
) -> None:
    """A1: even if they ignore TERM, were forked twice, are stopped, or made a session of their own."""
    running = asyncio.create_task(kit.use(bash, command=STUBBORN))
    await until(lambda: written(kit.directory, *FAMILY))
    began = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - began < 1.0
    assert [pid for pid in pids(kit.directory, *FAMILY) if family.is_alive(pid)] == []


async def test_a_command_that_obeys_term_may_clean_up(
    bash: BashTool, kit: OpenKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family, "PATIENCE_S", 20)
    command = f"trap 'touch cleaned; exit' TERM; echo $$ > shell; {WAIT_FOR_GO}"
    running = asyncio.create_task(kit.use(bash, command=command))
    await until(lambda: written(kit.directory, "shell"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (kit.directory / "cleaned").exists()


async def test_a_cancel_at_any_instant_leaves_nothing_running(jobs: Jobs, bash: BashTool, kit: OpenKit) -> None:
    """L6 for tools: before the process is started, while it is, and after."""
    for steps in range(25):
        running = asyncio.create_task(kit.use(bash, command="sleep 1000"))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert family.find(None, f"{jobs.token}/") == set()


async def test_a_second_cancel_does_not_save_the_command(jobs: Jobs, bash: BashTool, kit: OpenKit) -> None:
    running = asyncio.create_task(kit.use(bash, command="trap '' TERM; echo $$ > shell; while :; do sleep 0.1; done"))
    await until(lambda: written(kit.directory, "shell"))
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: family.find(None, f"{jobs.token}/") == set())


async def test_two_cancels_at_any_instant_leave_nothing_running(jobs: Jobs, bash: BashTool, kit: OpenKit) -> None:
    """L6 for tools: the second one comes while the first waits for the process to be there, so that it can be ended."""
    for steps in range(0, 40, 3):
        running = asyncio.create_task(kit.use(bash, command="sleep 1000"))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await until(lambda: not jobs._tasks.pending)
        assert family.find(None, f"{jobs.token}/") == set()


async def test_a_long_command_moves_to_the_background_and_goes_on(jobs: Jobs, bash: BashTool, kit: OpenKit) -> None:
    result = await kit.use(bash, command=f"echo begun; {WAIT_FOR_GO}; echo done", wait_s=1.5)
    (job,) = jobs.list()
    assert result.content.startswith(f"begun\n[running in the background as {job.job_id}: ")
    assert not result.is_error
    (kit.directory / "go").touch()
    assert await job.wait_ended(20)
    assert (job.state, job.exit_code, job.tape.read()) == (JobState.FINISHED, 0, "begun\ndone\n")
    assert "".join(kit.outputs) == "begun\n", "the call is over: its output is no longer shown"


async def test_a_command_started_in_the_background_is_not_waited_for(jobs: Jobs, bash: BashTool, kit: OpenKit) -> None:
    result = await kit.use(bash, command="echo up; sleep 1000", run_in_background=True)
    (job,) = jobs.list()
    assert f"running in the background as {job.job_id}: read on with job_output" in result.content
    await until(lambda: job.tape.read() == "up\n")


async def test_a_background_command_that_fails_at_once_is_told_of_at_once(
    jobs: Jobs, bash: BashTool, kit: OpenKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longboat.tools.bash.FIRST_LOOK_S", 20)
    result = await kit.use(bash, command="no-such-server", run_in_background=True)
    assert "not found" in result.content
    assert "[exit code 127 after " in result.content
    assert result.is_error
    assert jobs.list() == ()


async def test_processes_that_a_command_leaves_behind_become_a_job(jobs: Jobs, bash: BashTool, kit: OpenKit) -> None:
    result = await kit.use(bash, command="sleep 1000 >/dev/null 2>&1 & echo $! > left; echo started")
    (job,) = jobs.list()
    assert "started\n[exit code 0 after " in result.content
    assert f"it left processes running, which are {job.job_id} now" in result.content
    await jobs.end(job)
    assert not family.is_alive(*pids(kit.directory, "left"))


async def test_what_ends_shortly_after_its_shell_is_no_job(
    jobs: Jobs, bash: BashTool, kit: OpenKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longboat.tools.job.GRACE_S", 20)
    result = await kit.use(bash, command="(echo late) & exit 0")
    assert "late" in result.content
    assert jobs.list() == ()


async def test_with_no_room_for_another_job_a_long_command_is_waited_for(tmp_path: Path, kit: OpenKit) -> None:
    jobs = Jobs(tmp_path / "few", limit=1)
    bash = BashTool(jobs)
    await kit.use(bash, command="sleep 1000", run_in_background=True)
    with pytest.raises(ToolError, match="job_kill"):
        await kit.use(bash, command="true", run_in_background=True)
    running = asyncio.create_task(kit.use(bash, command=f"touch begun; {WAIT_FOR_GO}; echo done", wait_s=0.01))
    await until((kit.directory / "begun").exists)
    (kit.directory / "go").touch()
    assert (await running).content.startswith("done\n[exit code 0 ")
    left = await kit.use(bash, command="sleep 1000 & echo $! > left")
    assert "which were ended" in left.content
    assert not family.is_alive(*pids(kit.directory, "left"))
    await jobs.aclose()


def test_it_does_the_same_on_the_loop_of_the_server(tmp_path: Path) -> None:
    async def scene() -> None:
        kit, jobs = OpenKit(tmp_path), Jobs(tmp_path / "scratch")
        bash = BashTool(jobs)
        assert (await kit.use(bash, command="echo hello; exit 2")).content.startswith("hello\n[exit code 2 ")
        assert (await kit.use(bash, command="seq 1 50000")).content.count("49999\n50000") == 1
        running = asyncio.create_task(kit.use(bash, command=STUBBORN))
        await until(lambda: written(tmp_path, *FAMILY))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert [pid for pid in pids(tmp_path, *FAMILY) if family.is_alive(pid)] == []
        await jobs.aclose()

    uvloop.run(scene())


async def test_a_link_that_leads_out_of_the_workspace_is_told_to_whoever_permits(kit: OpenKit, bash: BashTool) -> None:
    """A2: a name inside the workspace may stand for a file outside of it."""
    (kit.directory / "inside").write_text("mine")
    (kit.directory / "link").symlink_to("/etc/hostname")
    await kit.use(bash, command="cat inside link")
    assert kit.needs[0].paths == ("/etc/hostname",)


@pytest.mark.parametrize(
    "command",
    ["cat li*", "cat dir/[l]*", "head -1 d*/li?k", "cat ../link", "cd dir; cat link", "ls etc/../hostname"],
)
async def test_a_pattern_or_a_way_up_that_leads_out_through_a_link_is_told_too(
    kit: OpenKit, bash: BashTool, command: str
) -> None:
    """A2: what a pattern stands for is looked up; behind a link `..` leads elsewhere."""
    (kit.directory / "dir").mkdir()
    (kit.directory / "link").symlink_to("/etc/hostname")
    (kit.directory / "dir" / "link").symlink_to("/etc/hostname")
    (kit.directory / "etc").symlink_to("/etc/apt")
    cwd = "dir" if ".." in command and "etc" not in command else None
    await kit.use(bash, command=command, cwd=cwd)
    assert "/etc/hostname" in kit.needs[0].paths


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
    kit: OpenKit, bash: BashTool, command: str, path: str
) -> None:
    """A2: the rules see names alone."""
    (kit.directory / ".git" / "hooks").mkdir(parents=True)
    (kit.directory / ".git" / "hooks" / "x").touch()
    (kit.directory / "hooks").symlink_to(".git/hooks")
    (kit.directory / "longboat.json").touch()
    await kit.use(bash, command=command)
    assert f"{kit.directory}/{path}" in kit.needs[0].paths


async def test_a_pattern_that_is_only_looked_at_is_no_matter(kit: OpenKit, bash: BashTool) -> None:
    (kit.directory / "longboat.json").touch()
    await kit.use(bash, command="cat long*")
    assert kit.needs[0].paths == ()


async def test_a_command_is_permitted_for_the_directory_that_it_runs_in(kit: OpenKit, bash: BashTool) -> None:
    """A2: `cat key` means another file in another directory."""
    (kit.directory / "sub").mkdir()
    await kit.use(bash, command="pwd", cwd="sub")
    await kit.use(bash, command="pwd")
    assert [need.directory for need in kit.needs] == [f"{kit.directory}/sub", ""]


def begin_repository(directory: Path) -> None:
    for words in (["init", "-q"], ["config", "core.fsmonitor", "touch ran #"]):
        subprocess.run(["git", *words], cwd=directory, check=True)


async def test_what_a_repository_names_is_told_and_not_run(kit: OpenKit, bash: BashTool) -> None:
    """A2: `git status` runs what `core.fsmonitor` names."""
    begin_repository(kit.directory)
    result = await kit.use(bash, command="git status")
    assert "core.fsmonitor" in kit.needs[0].doubt
    assert not (kit.directory / "ran").exists()
    assert not result.is_error


async def test_what_the_user_sets_for_git_stays(jobs: Jobs, tmp_path: Path) -> None:
    mine = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Me"}
    kit = OpenKit(tmp_path, environ={"PATH": os.environ["PATH"], **mine})
    result = await kit.use(BashTool(jobs), command="git config user.name; git config core.pager")
    assert result.content.startswith("Me\ncat\n")
