"""The full output of commands on disk: bounded for a workspace and for the server, and nothing fails because of it."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.process.bash import BashTool
from longboat.tools.process.job_output import JobOutputTool
from longboat.tools.process.jobs import Jobs
from longboat.tools.process.output_files import NOTE, OutputFiles

LIMIT, WORKSPACE_LIMIT = 1_000_000, 600_000
LONG = "yes 'a line of {0} bytes' | head -c 200000"


def on_disk(directory: Path) -> int:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return sum(max(path.stat().st_blocks * 512, path.stat().st_size) for path in files)


@asynccontextmanager
async def open_jobs(directory: Path, files: OutputFiles, *names: str) -> AsyncIterator[list[Jobs]]:
    """The jobs of several workspaces of one server."""
    workspaces = [Jobs(directory / name, files=files) for name in names]
    try:
        yield workspaces
    finally:
        await asyncio.gather(*(jobs.aclose() for jobs in workspaces))


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


@pytest.fixture
def files(scratch: Path) -> OutputFiles:
    return OutputFiles(scratch, limit=LIMIT, workspace_limit=WORKSPACE_LIMIT)


@pytest.fixture
def context(tmp_path: Path) -> OpenToolContext:
    return OpenToolContext(tmp_path)


async def test_the_output_of_a_workspace_is_bounded_on_disk(
    scratch: Path, files: OutputFiles, context: OpenToolContext
) -> None:
    async with open_jobs(scratch, files, "one") as (jobs,):
        for number in range(6):
            told = await context.use(BashTool(jobs), command=LONG.format(number))
            assert "the full output is in" in told.content
            assert on_disk(scratch) <= WORKSPACE_LIMIT
    assert not (scratch / "one").exists(), "closing removes them all"


async def test_a_removed_output_leaves_a_note_where_it_was(
    scratch: Path, files: OutputFiles, context: OpenToolContext
) -> None:
    async with open_jobs(scratch, files, "one") as (jobs,):
        paths: list[Path] = []
        for number in range(4):
            await context.use(BashTool(jobs), command=LONG.format(number))
            (new,) = set((scratch / "one").iterdir()) - set(paths)
            paths.append(new)
        assert paths[0].read_text() == NOTE
        assert "run the command again" in NOTE
        assert [path.stat().st_size for path in paths[2:]] == [200_000, 200_000]


async def test_a_job_whose_file_was_removed_says_so(
    scratch: Path, files: OutputFiles, context: OpenToolContext
) -> None:
    async with open_jobs(scratch, files, "one") as (jobs,):
        await context.use(BashTool(jobs), command=f"{LONG.format(0)}; sleep 0.7", run_in_background=True)
        (job,) = jobs.list()
        await job.wait_ended()
        for number in range(1, 4):
            await context.use(BashTool(jobs), command=LONG.format(number))
        told = await context.use(JobOutputTool(jobs), job_id=job.job_id)
        other = job.buffer.read()
        assert told.content.startswith("[no new output")
        assert "deleted to make room; if you need it, run the command again and redirect its output" in other


async def test_a_command_that_still_runs_keeps_its_file_which_gets_no_longer(
    scratch: Path, files: OutputFiles, context: OpenToolContext
) -> None:
    async with open_jobs(scratch, files, "one") as (jobs,):
        told = await context.use(BashTool(jobs), command="yes ä | head -c 3000000; echo the end")
        (path,) = (scratch / "one").iterdir()
        size = path.stat().st_size
        assert not told.is_error
        assert f"{path} contains only the first {size:,} bytes" in told.content
        assert "the end" in told.content
        assert on_disk(scratch) <= WORKSPACE_LIMIT
        assert size > WORKSPACE_LIMIT // 2
        path.read_text()  # no character was cut


async def test_the_limit_of_the_server_holds_for_its_workspaces_together(
    scratch: Path, files: OutputFiles, context: OpenToolContext
) -> None:
    async with open_jobs(scratch, files, "one", "two", "three") as workspaces:
        for number in range(3):
            for jobs in workspaces:
                told = await context.use(BashTool(jobs), command=LONG.format(number))
                assert "the full output is in" in told.content
                assert on_disk(scratch) <= LIMIT
        assert on_disk(scratch) > LIMIT // 2, "no more than needed makes way"
    assert on_disk(scratch) == 0


async def test_many_commands_at_once_stay_below_the_limit(
    scratch: Path, files: OutputFiles, context: OpenToolContext
) -> None:
    async with open_jobs(scratch, files, "one", "two") as workspaces:
        calls = [context.use(BashTool(jobs), command=LONG.format(jobs.token)) for jobs in workspaces for _ in range(5)]
        told = await asyncio.gather(*calls)
        assert [each.is_error for each in told] == [False] * 10
        assert on_disk(scratch) <= LIMIT


async def test_what_a_crashed_server_left_counts_and_goes_first(
    scratch: Path, files: OutputFiles, context: OpenToolContext
) -> None:
    left = scratch / "gone" / "job-123456.txt"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"x" * 500_000)
    os.utime(left, (0, 0))
    async with open_jobs(scratch, files, "one") as (jobs,):
        await context.use(BashTool(jobs), command=LONG.format(1))
        assert left.stat().st_size == 500_000
        for number in range(3):
            await context.use(BashTool(jobs), command=LONG.format(number))
        assert on_disk(scratch) <= LIMIT
    async with open_jobs(scratch, files, "one", "two") as workspaces:
        for jobs in workspaces:
            for number in range(2):
                await context.use(BashTool(jobs), command=LONG.format(number))
        assert on_disk(scratch) <= LIMIT
        assert left.read_text() == NOTE


async def test_a_file_that_somebody_removed_holds_nobody_up(
    scratch: Path, files: OutputFiles, context: OpenToolContext
) -> None:
    async with open_jobs(scratch, files, "one") as (jobs,):
        for number in range(6):
            await context.use(BashTool(jobs), command=LONG.format(number))
            for path in (scratch / "one").iterdir():
                path.unlink()
