"""Background jobs (A1): listed, read, ended, bounded; they survive the turn, not the workspace."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from other_processes import wait_until

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.process import process_tree
from longboat.tools.process.bash import BashTool
from longboat.tools.process.job import JobState
from longboat.tools.process.job_kill import JobKillTool
from longboat.tools.process.job_list import JobListTool
from longboat.tools.process.job_output import JobOutputTool
from longboat.tools.process.jobs import Jobs
from longboat.tools.process.output_buffer import HEAD, TAIL, OutputBuffer
from longboat.tools.process.output_files import OutputFile, OutputFiles
from longboat.tools.protocol import ToolCall

Changes = list[tuple[str, JobState]]


@pytest.fixture
def changes() -> Changes:
    return []


@pytest.fixture
async def jobs(tmp_path: Path, changes: Changes) -> AsyncIterator[Jobs]:
    jobs = Jobs(tmp_path / "scratch", limit=3, on_change=lambda job_id, state: changes.append((job_id, state)))
    yield jobs
    await jobs.aclose()


@pytest.fixture
def context(tmp_path: Path) -> OpenToolContext:
    (tmp_path / "work").mkdir()
    return OpenToolContext(tmp_path / "work")


async def begin(jobs: Jobs, context: OpenToolContext, command: str) -> str:
    """Start a job and return its id."""
    await context.use(BashTool(jobs), command=command, run_in_background=True)
    return jobs.list()[-1].job_id


def steps(*words: str) -> str:
    """Prints each word when the file of its name is there."""
    return "; ".join(f"while [ ! -e {word} ]; do sleep 0.01; done; echo {word}" for word in words)


async def test_a_job_is_read_on_from_where_each_session_stopped(jobs: Jobs, context: OpenToolContext) -> None:
    job_id = await begin(jobs, context, f"echo zero; {steps('one', 'two')}")
    reading, job = JobOutputTool(jobs), jobs.get(job_id)
    await wait_until(lambda: job.buffer.total)
    await context.use(reading, job_id=job_id)
    assert (await context.use(reading, job_id=job_id)).content == f"[no new output; {job_id} is running]"
    (context.directory / "one").touch()
    await wait_until(lambda: "one" in job.buffer.read())
    assert (await context.use(reading, job_id=job_id)).content == f"one\n[{job_id} is running]"
    (context.directory / "two").touch()
    ended = await context.use(reading, job_id=job_id, wait_s=20)
    assert ended.content.startswith(f"two\n[{job_id} is finished: exit code 0 after ")
    other = ToolCall(
        call_id="c",
        name="job_output",
        arguments={"job_id": job_id},
        session_id="ses_2",
        run_id="r",
    )
    assert (await reading.run(other, context)).content.startswith("zero\none\ntwo\n[")


async def test_waiting_for_a_job_ends_when_it_ends_or_when_the_time_is_over(
    jobs: Jobs, context: OpenToolContext
) -> None:
    job_id = await begin(jobs, context, steps("go"))
    reading = JobOutputTool(jobs)
    assert "is running" in (await context.use(reading, job_id=job_id, wait_s=0.05)).content
    waiting = asyncio.create_task(context.use(reading, job_id=job_id, wait_s=600))
    (context.directory / "go").touch()
    async with asyncio.timeout(20):
        assert "go\n[" in (await waiting).content


async def test_killing_a_job_ends_all_of_it(jobs: Jobs, context: OpenToolContext, changes: Changes) -> None:
    job_id = await begin(jobs, context, "sleep 1000 & echo $! > child; echo bye; wait")
    await wait_until(lambda: jobs.get(job_id).buffer.total)
    result = await context.use(JobKillTool(jobs), job_id=job_id)
    assert f"[{job_id} is killed: " in result.content
    assert not result.is_error
    assert not process_tree.is_alive(int((context.directory / "child").read_text()))
    again = await context.use(JobKillTool(jobs), job_id=job_id)
    assert "nothing to end" in again.content
    assert changes == [(job_id, JobState.RUNNING), (job_id, JobState.KILLED)]


async def test_a_job_survives_the_call_that_started_it_and_its_cancel(jobs: Jobs, context: OpenToolContext) -> None:
    job_id = await begin(jobs, context, steps("go"))
    waiting = asyncio.create_task(context.use(JobOutputTool(jobs), job_id=job_id, wait_s=600))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    (context.directory / "go").touch()
    assert await jobs.get(job_id).wait_ended(20)
    assert jobs.get(job_id).exit_code == 0


async def test_a_job_keeps_its_time_limit(jobs: Jobs, context: OpenToolContext, changes: Changes) -> None:
    await context.use(BashTool(jobs), command="sleep 1000", run_in_background=True, timeout_s=2)
    (job,) = jobs.list()
    assert await job.wait_ended(20)
    await wait_until(lambda: len(changes) == 2)
    assert changes == [(job.job_id, JobState.RUNNING), (job.job_id, JobState.TIMED_OUT)]


async def test_jobs_are_listed_with_state_and_command(jobs: Jobs, context: OpenToolContext) -> None:
    listing = JobListTool(jobs)
    assert (await context.use(listing)).content == "There are no background jobs in this workspace."
    first = await begin(jobs, context, "sleep 1000\n# with a comment")
    second = await begin(jobs, context, steps("go"))
    (context.directory / "go").touch()
    assert await jobs.get(second).wait_ended(20)
    one, two = (await context.use(listing)).content.splitlines()
    assert one.startswith(f"{first} is running (")
    assert one.endswith("s): sleep 1000 # with a comment")
    assert two.startswith(f"{second} is finished: exit code 0 after ")


async def test_a_job_whose_shell_is_done_says_that_the_rest_goes_on(jobs: Jobs, context: OpenToolContext) -> None:
    await context.use(BashTool(jobs), command="sleep 1000 & exit 4")
    (job,) = jobs.list()
    assert "its shell has ended (exit code 4 " in (await context.use(JobOutputTool(jobs), job_id=job.job_id)).content


async def test_the_number_of_jobs_is_bounded(jobs: Jobs, context: OpenToolContext) -> None:
    running = [await begin(jobs, context, "sleep 1000") for _ in range(3)]
    with pytest.raises(ToolError, match="End one with job_kill"):
        await begin(jobs, context, "sleep 1000")
    for job_id in running:
        await context.use(JobKillTool(jobs), job_id=job_id)
    for _ in range(5):
        await context.use(JobKillTool(jobs), job_id=await begin(jobs, context, "sleep 1000"))
    assert len(jobs.list()) == 3, "the oldest ended ones are forgotten"
    with pytest.raises(ToolError, match=f"no job '{running[0]}'.*Jobs in this workspace: job-"):
        jobs.get(running[0])


async def test_closing_the_workspace_ends_jobs_calls_and_daemons_and_removes_the_files(
    tmp_path: Path, context: OpenToolContext
) -> None:
    jobs = Jobs(tmp_path / "closing")
    bash = BashTool(jobs)
    await begin(jobs, context, "trap '' TERM; echo $$ > job; while :; do sleep 0.1; done")
    await context.use(bash, command="(setsid bash -c 'echo $$ > daemon; exec sleep 1000' >/dev/null 2>&1 &)")
    await context.use(bash, command="seq 1 100000")
    call = asyncio.create_task(context.use(bash, command="echo $$ > call; sleep 1000"))
    names = ("job", "daemon", "call")
    await wait_until(lambda: all((file := context.directory / name).exists() and file.read_text() for name in names))
    assert list(jobs.scratch.iterdir())
    await jobs.aclose()
    assert (await call).is_error
    assert [name for name in names if process_tree.is_alive(int((context.directory / name).read_text()))] == []
    assert not jobs.scratch.exists()
    with pytest.raises(ToolError, match="workspace is closing"):
        await context.use(bash, command="true")


async def test_closing_at_any_instant_of_a_start_leaves_nothing_running(
    tmp_path: Path, context: OpenToolContext
) -> None:
    for steps_taken in range(15):
        jobs = Jobs(tmp_path / "closing")
        call = asyncio.create_task(context.use(BashTool(jobs), command="sleep 1000"))
        for _ in range(steps_taken):
            await asyncio.sleep(0)
        await jobs.aclose()
        await asyncio.wait({call})
        assert call.exception() is not None or call.result().is_error
        assert process_tree.find(None, f"{jobs.token}/") == set()


async def test_what_a_crashed_server_left_running_is_swept_by_the_next(
    tmp_path: Path, context: OpenToolContext
) -> None:
    crashed, neighbor = Jobs(tmp_path / "mine"), Jobs(tmp_path / "other")
    left, others = [await begin(each, context, "trap '' TERM; sleep 1000") for each in (crashed, neighbor)]
    await Jobs(tmp_path / "mine").sweep()
    assert await crashed.get(left).wait_ended(20)
    assert neighbor.get(others).state is JobState.RUNNING
    await neighbor.aclose()
    await crashed.aclose()


async def test_the_number_of_output_files_is_bounded(
    jobs: Jobs, context: OpenToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longboat.tools.process.output_files.FILES_KEPT", 3)
    await begin(jobs, context, "seq 1 100000; sleep 1000")
    (running,) = jobs.scratch.iterdir()
    for _ in range(5):
        await context.use(BashTool(jobs), command="seq 1 100000")
    names = set(jobs.scratch.iterdir())
    assert len(names) <= 4
    assert running in names, "the file of a running job stays"


def output_file(directory: Path, name: str) -> OutputFile:
    return OutputFiles(directory.parent, limit=2**30, workspace_limit=2**30).open(directory, name)


def test_a_tape_read_from_anywhere_gives_what_follows_or_says_what_is_missing(tmp_path: Path) -> None:
    whole = "".join(f"{number}\n" for number in range(40_000))
    buffer = OutputBuffer(lambda: output_file(tmp_path, "all"))
    for start in range(0, len(whole), 7_001):
        buffer.write(whole[start : start + 7_001])
    assert buffer.total == len(whole)
    for since in (
        0,
        10,
        HEAD - 1,
        HEAD,
        HEAD + 1,
        len(whole) - TAIL - 1,
        len(whole) - TAIL,
        len(whole) - 5,
        len(whole),
    ):
        text = buffer.read(since)
        head = whole[since:HEAD]
        left_out = max(0, len(whole) - TAIL - max(since, HEAD))
        note = f"\n[… {left_out:,} characters left out; the full output is in {tmp_path}/all …]\n" if left_out else ""
        assert text == head + note + whole[max(since, HEAD, len(whole) - TAIL) :]
    assert (tmp_path / "all").read_text() == whole
    buffer.close()


def test_a_tape_that_cannot_write_its_file_says_so_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    buffer = OutputBuffer(lambda: output_file(tmp_path / "file", "name"))
    buffer.write("x" * 50_000)
    buffer.write("y" * 50_000)
    assert "70,000 characters left out; they could not be saved to a file: File exists" in buffer.read()


def test_the_file_of_a_tape_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longboat.tools.process.output_buffer.FILE_LIMIT", 100_000)
    record = OutputBuffer(lambda: output_file(tmp_path, "file"))
    for _ in range(10):
        record.write("x" * 50_000)
    size = (tmp_path / "file").stat().st_size
    assert size == 200_000
    assert f"{tmp_path}/file contains only the first {size:,} bytes" in record.read()


def test_a_tape_gives_what_memory_has_piece_by_piece(tmp_path: Path) -> None:
    text = "".join(f"{number:07}\n" for number in range(20_000))
    for size in (0, 10, HEAD, HEAD + 1, HEAD + TAIL, HEAD + 5 * TAIL, len(text)):
        buffer = OutputBuffer(lambda: output_file(tmp_path, "file.txt"))
        for at in range(0, size, 1_000):
            buffer.write(text[at : min(at + 1_000, size)])
        buffer.close()
        for since in (0, 5, HEAD - 1, HEAD, HEAD + 7, size, size + 9):
            place, seen = since, []
            while place < size:
                start, piece = buffer.piece(place)
                assert start >= place, "never backwards"
                assert piece == text[start : start + len(piece)]
                assert piece, "no standstill"
                seen.append(len(piece))
                place = start + len(piece)
            assert max(seen, default=0) <= HEAD + 4 * TAIL
        start, newest = buffer.piece(None)
        assert (start, newest) == (max(0, size - TAIL), text[max(0, size - TAIL) : size])


async def test_whoever_waits_for_news_of_a_job_hears_of_output_and_of_its_end(
    jobs: Jobs, context: OpenToolContext
) -> None:
    job = jobs.get(await begin(jobs, context, f"echo zero; {steps('one')}"))
    await job.wait_news(0, 20)
    seen = job.buffer.total
    assert job.buffer.piece(0) == (0, "zero\n")
    waiting = asyncio.create_task(job.wait_news(seen, 20))
    (context.directory / "one").touch()
    await waiting
    assert job.buffer.piece(seen) == (seen, "one\n")
    await job.wait_news(job.buffer.total, 20)
    assert job.state is JobState.FINISHED
    with pytest.raises(StopIteration):  # it returns without waiting
        job.wait_news(job.buffer.total, 20).send(None)


async def test_a_job_names_the_first_who_ended_it(jobs: Jobs, context: OpenToolContext) -> None:
    job = jobs.get(await begin(jobs, context, "trap '' TERM; sleep 600"))
    first, second = asyncio.create_task(jobs.kill(job, by="ann")), asyncio.create_task(jobs.kill(job, by="bob"))
    assert await asyncio.gather(first, second) == [True, True]
    assert (job.state, job.killed_by) == (JobState.KILLED, "ann")
    assert await jobs.kill(job, by="carl"), "an ended one stays as it is"
    assert job.killed_by == "ann"


ESCAPED = "setsid env -i sh -c 'echo $$ > {0}; exec sleep 600' > /dev/null 2>&1 &"
"""It leaves the process group, the session and the environment behind."""


@pytest.mark.skipif(
    not process_tree._HAS_PROC, reason="only Linux knows whose a process is that left everything behind"
)
async def test_what_left_group_session_and_environment_ends_with_the_workspace(
    jobs: Jobs, context: OpenToolContext
) -> None:
    await context.use(BashTool(jobs), command=f"{ESCAPED.format('one')} ({ESCAPED.format('two')})")
    files = [context.directory / name for name in ("one", "two")]
    await wait_until(lambda: all(file.exists() and file.read_text().strip() for file in files))
    pids = [int(file.read_text()) for file in files]
    assert all(map(process_tree.is_alive, pids)), "a daemon outlives its command"
    await jobs.aclose()
    assert not any(map(process_tree.is_alive, pids))


@pytest.mark.skipif(
    not process_tree._HAS_PROC, reason="only Linux knows whose a process is that left everything behind"
)
async def test_it_ends_when_its_job_is_killed_too(jobs: Jobs, context: OpenToolContext) -> None:
    job = jobs.get(await begin(jobs, context, f"{ESCAPED.format('one')} sleep 600"))
    await wait_until(lambda: (context.directory / "one").exists() and (context.directory / "one").read_text().strip())
    assert await jobs.kill(job, by="ann")
    assert not process_tree.is_alive(int((context.directory / "one").read_text()))


async def test_commands_are_run_where_no_supervisor_can_be_had(
    jobs: Jobs, context: OpenToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longboat.tools.process.supervisor_client._IS_POSSIBLE", False)
    assert "hello" in (await context.use(BashTool(jobs), command="echo hello")).content


async def test_a_supervisor_that_was_killed_is_replaced_and_its_commands_go_on(
    jobs: Jobs, context: OpenToolContext
) -> None:
    job = jobs.get(await begin(jobs, context, f"echo zero; {steps('one')}"))
    process = jobs._supervisor._process
    if process is not None:
        process.kill()
        await process.wait()
    for number in range(3):
        assert str(number) in (await context.use(BashTool(jobs), command=f"echo {number}")).content
    (context.directory / "one").touch()
    assert await job.wait_ended(20)
    assert (job.state, job.exit_code, job.buffer.read()) == (JobState.FINISHED, 0, "zero\none\n")


@pytest.mark.skipif(not process_tree._HAS_PROC, reason="only there commands have guards")
async def test_a_guard_in_waiting_that_is_killed_has_a_successor(jobs: Jobs, context: OpenToolContext) -> None:
    """A1: a command's own `kill`, or the system short of memory, may hit it; the next command runs all the same."""
    bash = BashTool(jobs)
    await context.use(bash, command="true")
    assert jobs._supervisor._process is not None
    supervisor = psutil.Process(jobs._supervisor._process.pid)
    for _ in range(3):
        await wait_until(lambda: bool(supervisor.children()))
        for guard in supervisor.children():
            guard.kill()
        done = await asyncio.wait_for(context.use(bash, command="echo again"), 20)
        assert "again" in done.content


@pytest.mark.skipif(not process_tree._HAS_PROC, reason="only there a process tells what it has open")
async def test_a_command_has_nothing_open_but_what_a_command_has(jobs: Jobs, context: OpenToolContext) -> None:
    """Through a descriptor of ours it could end its own guard, or speak for it."""
    for _ in range(2):
        done = await context.use(BashTool(jobs), command="exec ls /proc/self/fd")
        assert done.content.split()[:4] == ["0", "1", "2", "3"], "the last is that of the listing"
        assert "4" not in done.content.splitlines()
