"""Programs below guards: their pipes, their end, and whoever ends them (D5, G3)."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uvloop
from open_programs import open_programs
from other_processes import is_alive, wait_until, wait_until_gone

from longboat.tools.process import process_tree, supervisor_client
from longboat.tools.process.jobs import Jobs
from longboat.tools.process.programs import PipedProgram, Programs
from longboat.tools.process.supervisor_client import DeadlinePassed, Supervisor

BOUND_S = 60
HOUR_S = 3600
ENVIRON = {"PATH": os.environ["PATH"]}
ECHO = """
import os
while data := os.read(0, 65536):
    while data:
        data = data[os.write(1, data):]
"""
FAMILY = "(setsid env -i sh -c 'echo $$ >> pids; exec sleep 1000' &) ; sleep 1000 & echo $! $$ >> pids; wait"
"""A program with a child, and with a daemon that has left the group, the session and the environment."""
needs_guards = pytest.mark.skipif(not process_tree._HAS_PROC, reason="only Linux has guards")


class Heard(asyncio.Protocol):
    def __init__(self) -> None:
        self.data = bytearray()
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


@pytest.fixture
async def jobs(tmp_path: Path) -> AsyncIterator[Jobs]:
    jobs = Jobs(tmp_path / "scratch")
    yield jobs
    await jobs.aclose()


async def begin(programs: Programs, directory: Path, *argv: str, heard: Heard | None = None) -> PipedProgram:
    piped = PipedProgram(heard or Heard(), lambda _: None)
    await piped.start(programs, argv, directory=directory, environ=ENVIRON)
    return piped


async def family(
    programs: Programs, directory: Path, command: str = FAMILY, *, count: int = 3
) -> tuple[PipedProgram, list[int]]:
    """A program and all its processes."""
    pids = directory / "pids"
    piped = await begin(programs, directory, "sh", "-c", command)
    await wait_until(lambda: pids.exists() and len(pids.read_text().split()) == count)
    return piped, [int(pid) for pid in pids.read_text().split()]


@pytest.mark.parametrize("guarded", [True, False], ids=["below a guard", "alone"])
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_bytes_go_through_as_they_are(
    tmp_path: Path, run: Callable[..., None], guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every byte, more than pipes hold, both ways at once; the input's end is its end."""
    monkeypatch.setattr(supervisor_client, "_IS_POSSIBLE", guarded)
    sent = bytes(range(256)) * 40_000

    async def talk() -> None:
        async with open_programs(tmp_path) as programs:
            heard = Heard()
            piped = await begin(programs, tmp_path, sys.executable, "-S", "-E", "-c", ECHO, heard=heard)
            assert piped.write(sent)
            piped.close_input()
            await asyncio.wait_for(heard.ended.wait(), BOUND_S)
            await asyncio.wait_for(piped.wait_exited(), BOUND_S)
            assert heard.data == sent
            assert piped.program is not None
            assert piped.program.code == 0
            await piped.end()

    run(talk())


async def test_what_it_complains_about_is_told_apart(jobs: Jobs, tmp_path: Path) -> None:
    heard, errors = Heard(), bytearray()
    piped = PipedProgram(heard, errors.extend)
    await piped.start(
        jobs.programs, ("sh", "-c", "echo out; echo err >&2; exit 3"), directory=tmp_path, environ=ENVIRON
    )
    await piped.wait_exited()
    await piped.end()
    assert (bytes(heard.data), bytes(errors), piped.program and piped.program.code) == (b"out\n", b"err\n", 3)


@needs_guards
async def test_one_that_is_ended_takes_all_with_it(jobs: Jobs, tmp_path: Path) -> None:
    piped, pids = await family(jobs.programs, tmp_path)
    await piped.end()
    assert [pid for pid in pids if is_alive(pid)] == []


async def test_without_a_guard_it_takes_its_group_with_it(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_client, "_IS_POSSIBLE", False)
    piped, pids = await family(jobs.programs, tmp_path, "sleep 1000 & echo $! $$ >> pids; wait", count=2)
    await piped.end()
    assert [pid for pid in pids if is_alive(pid)] == []


@needs_guards
async def test_the_workspace_ends_those_that_are_left_and_starts_no_more(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path / "scratch")
    piped, pids = await family(jobs.programs, tmp_path)
    await jobs.aclose()
    assert [pid for pid in pids if is_alive(pid)] == []
    with pytest.raises(OSError, match="the workspace is closing"):
        await begin(jobs.programs, tmp_path, "true")
    await piped.end()


@needs_guards
async def test_the_deadline_ends_them_and_none_starts_after_it(jobs: Jobs, tmp_path: Path) -> None:
    piped, pids = await family(jobs.programs, tmp_path)
    jobs.allow_for(HOUR_S)
    assert all(is_alive(pid) for pid in pids)
    jobs.allow_for(0)
    await wait_until_gone(pids)
    await asyncio.wait_for(piped.wait_exited(), BOUND_S)
    assert piped.program is not None
    assert piped.program.ended_by_deadline
    late = PipedProgram(Heard(), lambda _: None)
    with pytest.raises(DeadlinePassed, match="could not confirm that it still owns the workspace"):
        await late.start(jobs.programs, ("touch", "ran"), directory=tmp_path, environ=ENVIRON)
    await late.end()
    await piped.end()
    assert not (tmp_path / "ran").exists()


@needs_guards
async def test_a_killed_guard_takes_its_program_along(jobs: Jobs, tmp_path: Path) -> None:
    piped, pids = await family(jobs.programs, tmp_path)
    assert piped.program is not None
    assert piped.program._kept is not None
    os.kill(piped.program._kept.guard, signal.SIGKILL)
    await wait_until_gone(pids)
    await asyncio.wait_for(piped.wait_exited(), BOUND_S)
    await piped.end()


@needs_guards
async def test_the_next_server_ends_one_whose_guard_and_supervisor_were_killed(tmp_path: Path) -> None:
    crashed = Jobs(tmp_path / "scratch")
    piped, pids = await family(crashed.programs, tmp_path)
    kept, supervisor = piped.program and piped.program._kept, crashed._supervisor._process
    assert kept is not None
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGSTOP)
    os.kill(kept.guard, signal.SIGKILL)
    os.kill(supervisor.pid, signal.SIGKILL)
    await Jobs(tmp_path / "scratch").sweep()
    assert [pid for pid in pids if is_alive(pid)] == []
    await piped.end()
    await crashed.aclose()


async def test_one_whose_starter_is_canceled_again_and_again_is_ended_and_got_no_ones_descriptors(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is canceled does not wait for the supervisor, closes its pipes, and opens something else."""
    opening, opened, open_line = asyncio.Event(), asyncio.Event(), Supervisor._open

    async def slowly(supervisor: Supervisor) -> socket.socket:
        opening.set()
        await opened.wait()
        return await open_line(supervisor)

    monkeypatch.setattr(Supervisor, "_open", slowly)
    starting = asyncio.create_task(_begin_and_end(jobs.programs, tmp_path, "sh", "-c", "echo wrong; sleep 1000"))
    await opening.wait()
    while not starting.done():
        starting.cancel()
        await asyncio.sleep(0)
    others = [(tmp_path / f"other-{number}").open("w") for number in range(20)]
    opened.set()
    while jobs.programs._tasks.pending:
        await asyncio.wait(jobs.programs._tasks.pending)
    assert [other.name for other in others if os.fstat(other.fileno()).st_size] == []
    for other in others:
        other.close()
    assert process_tree.find(None, f"{jobs.token}/") == set()


async def _begin_and_end(programs: Programs, directory: Path, *argv: str) -> None:
    piped = PipedProgram(Heard(), lambda _: None)
    try:
        await piped.start(programs, argv, directory=directory, environ=ENVIRON)
    finally:
        await piped.end()


async def test_no_descriptor_is_left(jobs: Jobs, tmp_path: Path) -> None:
    async def life(*argv: str) -> None:
        piped = PipedProgram(Heard(), lambda _: None)
        try:
            await piped.start(jobs.programs, argv, directory=tmp_path, environ=ENVIRON)
            await piped.wait_exited()
        finally:
            await piped.end()

    await life("true")
    await asyncio.sleep(0)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await life("true")
        with pytest.raises(FileNotFoundError):
            await life("/no/such/program")
    await wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before)
