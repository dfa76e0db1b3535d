"""Background jobs (A1): listed, read, ended, bounded; they survive the turn, not the workspace."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from longboat.testing.kit import OpenKit
from longboat.tools import family, tape
from longboat.tools.bash import BashTool
from longboat.tools.job import JobState
from longboat.tools.job_kill import JobKillTool
from longboat.tools.job_list import JobListTool
from longboat.tools.job_output import JobOutputTool
from longboat.tools.jobs import Jobs
from longboat.tools.kit import ToolError
from longboat.tools.seam import ToolCall
from longboat.tools.tape import HEAD, TAIL, Tape

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
def kit(tmp_path: Path) -> OpenKit:
    (tmp_path / "work").mkdir()
    return OpenKit(tmp_path / "work")


async def until(condition: Callable[[], object], *, bound_s: float = 20) -> None:
    async with asyncio.timeout(bound_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def begin(jobs: Jobs, kit: OpenKit, command: str) -> str:
    """Start a job and return its id."""
    await kit.use(BashTool(jobs), command=command, run_in_background=True)
    return jobs.list()[-1].job_id


def steps(*words: str) -> str:
    """Prints each word when the file of its name is there."""
    return "; ".join(f"while [ ! -e {word} ]; do sleep 0.01; done; echo {word}" for word in words)


async def test_a_job_is_read_on_from_where_each_session_stopped(jobs: Jobs, kit: OpenKit) -> None:
    job_id = await begin(jobs, kit, f"echo zero; {steps('one', 'two')}")
    reading, job = JobOutputTool(jobs), jobs.get(job_id)
    await until(lambda: job.tape.total)
    await kit.use(reading, job_id=job_id)
    assert (await kit.use(reading, job_id=job_id)).content == f"[no new output; {job_id} is running]"
    (kit.directory / "one").touch()
    await until(lambda: "one" in job.tape.read())
    assert (await kit.use(reading, job_id=job_id)).content == f"one\n[{job_id} is running]"
    (kit.directory / "two").touch()
    ended = await kit.use(reading, job_id=job_id, wait_s=20)
    assert ended.content.startswith(f"two\n[{job_id} is finished: exit code 0 after ")
    other = ToolCall(
        call_id="c",
        name="job_output",
        arguments={"job_id": job_id},
        session_id="ses_2",
        run_id="r",
    )
    assert (await reading.run(other, kit)).content.startswith("zero\none\ntwo\n[")


async def test_waiting_for_a_job_ends_when_it_ends_or_when_the_time_is_over(jobs: Jobs, kit: OpenKit) -> None:
    job_id = await begin(jobs, kit, steps("go"))
    reading = JobOutputTool(jobs)
    assert "is running" in (await kit.use(reading, job_id=job_id, wait_s=0.05)).content
    waiting = asyncio.create_task(kit.use(reading, job_id=job_id, wait_s=600))
    (kit.directory / "go").touch()
    async with asyncio.timeout(20):
        assert "go\n[" in (await waiting).content


async def test_killing_a_job_ends_all_of_it(jobs: Jobs, kit: OpenKit, changes: Changes) -> None:
    job_id = await begin(jobs, kit, "sleep 1000 & echo $! > child; echo bye; wait")
    await until(lambda: jobs.get(job_id).tape.total)
    result = await kit.use(JobKillTool(jobs), job_id=job_id)
    assert f"[{job_id} is killed: " in result.content
    assert not result.is_error
    assert not family.is_alive(int((kit.directory / "child").read_text()))
    again = await kit.use(JobKillTool(jobs), job_id=job_id)
    assert "there is nothing to end" in again.content
    assert changes == [(job_id, JobState.RUNNING), (job_id, JobState.KILLED)]


async def test_a_job_survives_the_call_that_started_it_and_its_cancel(jobs: Jobs, kit: OpenKit) -> None:
    job_id = await begin(jobs, kit, steps("go"))
    waiting = asyncio.create_task(kit.use(JobOutputTool(jobs), job_id=job_id, wait_s=600))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    (kit.directory / "go").touch()
    assert await jobs.get(job_id).wait_ended(20)
    assert jobs.get(job_id).exit_code == 0


async def test_a_job_keeps_its_time_limit(jobs: Jobs, kit: OpenKit, changes: Changes) -> None:
    await kit.use(BashTool(jobs), command="sleep 1000", run_in_background=True, timeout_s=2)
    (job,) = jobs.list()
    assert await job.wait_ended(20)
    await until(lambda: len(changes) == 2)
    assert changes == [(job.job_id, JobState.RUNNING), (job.job_id, JobState.TIMED_OUT)]


async def test_jobs_are_listed_with_state_and_command(jobs: Jobs, kit: OpenKit) -> None:
    listing = JobListTool(jobs)
    assert (await kit.use(listing)).content == "There are no background jobs in this workspace."
    first = await begin(jobs, kit, "sleep 1000\n# with a comment")
    second = await begin(jobs, kit, steps("go"))
    (kit.directory / "go").touch()
    assert await jobs.get(second).wait_ended(20)
    one, two = (await kit.use(listing)).content.splitlines()
    assert one.startswith(f"{first} is running (")
    assert one.endswith("s): sleep 1000 # with a comment")
    assert two.startswith(f"{second} is finished: exit code 0 after ")


async def test_a_job_whose_shell_is_done_says_that_the_rest_goes_on(jobs: Jobs, kit: OpenKit) -> None:
    await kit.use(BashTool(jobs), command="sleep 1000 & exit 4")
    (job,) = jobs.list()
    assert "its shell is done (exit code 4 " in (await kit.use(JobOutputTool(jobs), job_id=job.job_id)).content


async def test_the_number_of_jobs_is_bounded(jobs: Jobs, kit: OpenKit) -> None:
    running = [await begin(jobs, kit, "sleep 1000") for _ in range(3)]
    with pytest.raises(ToolError, match="end one with job_kill"):
        await begin(jobs, kit, "sleep 1000")
    for job_id in running:
        await kit.use(JobKillTool(jobs), job_id=job_id)
    for _ in range(5):
        await kit.use(JobKillTool(jobs), job_id=await begin(jobs, kit, "sleep 1000"))
    assert len(jobs.list()) == 3, "the oldest ended ones are forgotten"
    with pytest.raises(ToolError, match=f"no job '{running[0]}'.*jobs of this workspace are: job-"):
        jobs.get(running[0])


async def test_closing_the_workspace_ends_jobs_calls_and_daemons_and_removes_the_files(
    tmp_path: Path, kit: OpenKit
) -> None:
    jobs = Jobs(tmp_path / "closing")
    bash = BashTool(jobs)
    await begin(jobs, kit, "trap '' TERM; echo $$ > job; while :; do sleep 0.1; done")
    await kit.use(bash, command="(setsid bash -c 'echo $$ > daemon; exec sleep 1000' >/dev/null 2>&1 &)")
    await kit.use(bash, command="seq 1 100000")
    call = asyncio.create_task(kit.use(bash, command="echo $$ > call; sleep 1000"))
    names = ("job", "daemon", "call")
    await until(lambda: all((kit.directory / name).exists() for name in names))
    assert list(jobs.scratch.iterdir())
    await jobs.aclose()
    assert (await call).is_error
    assert [name for name in names if family.is_alive(int((kit.directory / name).read_text()))] == []
    assert not jobs.scratch.exists()
    with pytest.raises(ToolError, match="workspace is closing"):
        await kit.use(bash, command="true")


async def test_closing_at_any_instant_of_a_start_leaves_nothing_running(tmp_path: Path, kit: OpenKit) -> None:
    for steps_taken in range(15):
        jobs = Jobs(tmp_path / "closing")
        call = asyncio.create_task(kit.use(BashTool(jobs), command="sleep 1000"))
        for _ in range(steps_taken):
            await asyncio.sleep(0)
        await jobs.aclose()
        await asyncio.wait({call})
        assert call.exception() is not None or call.result().is_error
        assert family.find(None, f"{jobs.token}/") == set()


async def test_what_a_crashed_server_left_running_is_swept_by_the_next(tmp_path: Path, kit: OpenKit) -> None:
    crashed, neighbor = Jobs(tmp_path / "mine"), Jobs(tmp_path / "other")
    left, others = [await begin(each, kit, "trap '' TERM; sleep 1000") for each in (crashed, neighbor)]
    await Jobs(tmp_path / "mine").sweep()
    assert await crashed.get(left).wait_ended(20)
    assert neighbor.get(others).state is JobState.RUNNING
    await neighbor.aclose()
    await crashed.aclose()


async def test_the_number_of_output_files_is_bounded(jobs: Jobs, kit: OpenKit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longboat.tools.jobs.FILES_KEPT", 3)
    await begin(jobs, kit, "seq 1 100000; sleep 1000")
    (running,) = jobs.scratch.iterdir()
    for _ in range(5):
        await kit.use(BashTool(jobs), command="seq 1 100000")
    names = set(jobs.scratch.iterdir())
    assert len(names) <= 4
    assert running in names, "the file of a running job stays"


def test_a_tape_read_from_anywhere_gives_what_follows_or_says_what_is_missing(tmp_path: Path) -> None:
    whole = "".join(f"{number}\n" for number in range(40_000))
    tape = Tape(lambda: tmp_path / "all")
    for start in range(0, len(whole), 7_001):
        tape.write(whole[start : start + 7_001])
    assert tape.total == len(whole)
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
        text = tape.read(since)
        head = whole[since:HEAD]
        left_out = max(0, len(whole) - TAIL - max(since, HEAD))
        note = f"\n[… {left_out:,} characters left out; the full output is in {tmp_path}/all …]\n" if left_out else ""
        assert text == head + note + whole[max(since, HEAD, len(whole) - TAIL) :]
    assert (tmp_path / "all").read_text() == whole
    tape.close()


def test_a_tape_that_cannot_write_its_file_says_so_and_goes_on(tmp_path: Path) -> None:
    tape = Tape(lambda: tmp_path / "not-there" / "file")
    tape.write("x" * 50_000)
    tape.write("y" * 50_000)
    assert "70,000 characters left out; they could not be kept in a file: No such file" in tape.read()


def test_the_file_of_a_tape_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape, "FILE_LIMIT", 100_000)
    record = Tape(lambda: tmp_path / "file")
    for _ in range(10):
        record.write("x" * 50_000)
    size = (tmp_path / "file").stat().st_size
    assert size == 200_000
    assert f"{tmp_path}/file holds only the first {size:,} bytes" in record.read()
