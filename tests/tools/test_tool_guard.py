"""What a command started ends with its server, guard and supervisor, whichever of them is killed, and when (D5, D9)."""

import asyncio
import contextlib
import json
import os
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import psutil
import pytest
from other_processes import wait_until

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.process import process_tree, supervisor, supervisor_client
from longboat.tools.process.bash import BashTool
from longboat.tools.process.deadline import Deadline, clock
from longboat.tools.process.jobs import Jobs

pytestmark = pytest.mark.skipif(not process_tree._HAS_PROC, reason="only Linux has guards")

BOUND_S = 20
HERE = Path(__file__).parents[1] / "support"
NOBODY = 65534
CLOSE, KILL, LATE = b"c", b"k", b"l"
HOUR_S = 3600
WAITING_LINES = 10
"""More than a guard executes before it has a command: then it stops while another one has it."""
LONG = "(setsid env -i sleep 600 &) ; sleep 600"
"""A command and a daemon of its own, which has left the group, the session and the environment."""
ANCESTORS = 'guard=$PPID; parent=$(cut -d" " -f4 /proc/$guard/stat); server=$(cut -d" " -f4 /proc/$parent/stat); '
ATTACKS = {
    "the guard": 'setsid env -i sh -c "kill -9 $guard; sleep 600" > /dev/null 2>&1 & sleep 600',
    "the guard, with what holds the output": 'setsid env -i sh -c "kill -9 $guard; sleep 600" & sleep 600',
    "supervisor, then guard": 'setsid env -i sh -c "kill -9 $parent; kill -9 $guard; sleep 600" & sleep 600',
    "guard, then supervisor": 'setsid env -i sh -c "kill -9 $guard; kill -9 $parent; sleep 600" & sleep 600',
    "both, stopped before": 'kill -STOP $parent $guard; setsid env -i sh -c "kill -9 $guard $parent; sleep 600" & wait',
    "the guard, with the supervisor stopped": "kill -STOP $parent; kill -9 $guard; sleep 600",
    "nobody, with the supervisor stopped": "kill -STOP $parent",
    "the server, with both stopped": "kill -STOP $parent $guard; kill -9 $server; sleep 600",
    "supervisor, then server, with the guard stopped": "kill -STOP $guard; kill -9 $parent $server; sleep 600",
    "both, from a daemon": '(setsid env -i sh -c "(kill -9 $guard $parent; sleep 600) &" >/dev/null 2>&1 &); sleep 600',
}


def alone(*arguments: str, directory: Path, user: int | None) -> "subprocess.CompletedProcess[str]":
    """Run `lone_server.py` as root or as somebody else."""
    argv = [sys.executable, str(HERE / "lone_server.py"), *arguments]
    if user is not None:
        os.chown(directory, user, user)
    return subprocess.run(argv, check=False, user=user, cwd="/", capture_output=True, text=True, timeout=600)


@pytest.fixture(params=[None, NOBODY], ids=["myself", "nobody"])
def user(request: pytest.FixtureRequest) -> int | None:
    user: int | None = request.param
    if user is not None and os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    python = os.path.realpath(sys.executable)
    if user is not None and subprocess.run(["test", "-x", python], check=False, user=user).returncode:
        pytest.skip("others cannot run this Python")
    return user


@pytest.fixture
def directory() -> Iterator[Path]:
    """One that others can reach, too."""
    with tempfile.TemporaryDirectory(prefix="lb-guard-") as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_command_that_kills_its_guard_or_supervisor_takes_all_with_it(
    name: str, directory: Path, user: int | None
) -> None:
    """D9: with the server alive, nothing of it is left, whoever killed what."""
    done = alone("attack", str(directory), ANCESTORS + ATTACKS[name], directory=directory, user=user)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_server_killed_at_any_instant_of_a_start_leaves_nothing(directory: Path, user: int | None) -> None:
    """D5: also what has left the group, the session and the environment."""
    done = alone("killed", str(directory), LONG, directory=directory, user=user)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout.split()[2]) > 20, "many instants were tried"


class Scene:
    """A supervisor whose guards stop at each of their lines in turn, and a server's end for it."""

    def __init__(self, tmp_path: Path) -> None:
        self.asked = socket.socket(socket.AF_UNIX)
        self.asked.bind(str(tmp_path / "ask"))
        self.asked.listen()
        self.line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.deadline = Deadline()
        timer = self.deadline.open_timer()
        with theirs:
            argv = [
                sys.executable,
                "-I",
                "-S",
                str(HERE / "stopping_supervisor.py"),
                supervisor.__file__,
                str(tmp_path / "ask"),
                str(timer),
            ]
            self.process = subprocess.Popen(
                argv, stdin=theirs.fileno(), env={}, start_new_session=True, pass_fds=(timer,)
            )

    def close(self) -> None:
        self.line.close()
        self.asked.close()
        self.deadline.close()
        self.process.wait(BOUND_S)

    def try_instant(self, tmp_path: Path, word: bytes) -> bool:
        """Start a command; close its line (`c`), have its guard killed (`k`) or let the deadline pass (`l`) at the next
        instant. Returns when nobody holds its output open any more: whether the guard got so far."""
        self.deadline.set(clock() + HOUR_S)
        output, write_end = os.pipe()
        ours, theirs = socket.socketpair()
        environ = {"PATH": os.environ["PATH"], supervisor.MARK: "0-0/job-0"}
        plan = json.dumps([["/bin/sh", "-c", LONG], str(tmp_path), environ, "", 0]).encode()
        with theirs:
            supervisor_client._send(self.line, plan, theirs.fileno(), write_end, write_end, write_end)
        os.close(write_end)
        with ours, os.fdopen(output, "rb", buffering=0) as ended:
            return self._attend(ours, ended, word)

    def _attend(self, ours: socket.socket, output: BinaryIO, word: bytes) -> bool:
        reached, held, heard = False, True, b""
        with selectors.DefaultSelector() as events:
            for each in (ours, output, self.asked):
                events.register(each, selectors.EVENT_READ)
            while held or (word == LATE and ours.fileno() >= 0):  # then the guard has lines left to stop at
                ready = {key.fileobj for key, _ in events.select(BOUND_S)}
                assert ready, "somebody is left, or nobody says anything"
                if self.asked in ready:
                    reached = True
                    self._answer(ours, events, word)
                elif ours in ready:
                    data = _received(ours)
                    heard += data
                    if data and heard.count(b"\n") == 1:
                        with contextlib.suppress(BrokenPipeError):  # killed right behind its first word
                            ours.sendall(supervisor.GO)
                    if not data:
                        _close(ours, events)
                    elif b"+" in heard:  # it runs: the end that it takes is the usual one from here on
                        self._end(ours, events, word)
                elif not output.read(4096):
                    held = False
                    events.unregister(output)
        return reached

    def _answer(self, ours: socket.socket, events: selectors.BaseSelector, word: bytes) -> None:
        wire, _ = self.asked.accept()
        with wire:
            if word != KILL:
                self._end(ours, events, word)
            wire.sendall(word)

    def _end(self, ours: socket.socket, events: selectors.BaseSelector, word: bytes) -> None:
        if word == LATE:
            self.deadline.set(0)
        else:
            _close(ours, events)


def _received(line: socket.socket) -> bytes:
    try:
        return line.recv(4096)
    except ConnectionResetError:  # killed before it had read all
        return b""


def _close(line: socket.socket, events: selectors.BaseSelector) -> None:
    if line.fileno() >= 0:
        events.unregister(line)
        line.close()


@pytest.mark.parametrize("word", [CLOSE, KILL, LATE])
def test_a_line_closed_a_guard_killed_or_a_deadline_at_any_instant_leaves_nothing(tmp_path: Path, word: bytes) -> None:
    """D5, D9, G3: before each line that a guard executes, from its birth to its end."""
    with contextlib.closing(Scene(tmp_path)) as scene:
        reached = [scene.try_instant(tmp_path, word) for _ in range(WAITING_LINES)]
        while reached[-1]:
            reached.append(scene.try_instant(tmp_path, word))
    assert len(reached) > 40


async def test_a_command_does_not_run_before_the_server_has_heard_of_it(tmp_path: Path) -> None:
    """D5: else a server that starts it again, or does not know of it, would run it twice or leave it alone."""
    line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = await asyncio.create_subprocess_exec(*supervisor_client._PROGRAM, stdin=theirs.fileno(), env={})
    ours, theirs = socket.socketpair()
    output, write_end = os.pipe()
    with theirs:
        plan = json.dumps([["/bin/sh", "-c", "touch ran"], str(tmp_path), {}, "", 0]).encode()
        supervisor_client._send(line, plan, theirs.fileno(), write_end, write_end, write_end)
    os.close(write_end)
    ours.settimeout(BOUND_S)
    assert ours.recv(100).endswith(b"\n"), "its process is there"
    ours.close()
    line.close()
    await asyncio.wait_for(process.wait(), BOUND_S)
    assert os.read(output, 1) == b""
    os.close(output)
    assert not (tmp_path / "ran").exists()


async def test_signals_that_can_be_caught_do_not_end_a_guard_or_supervisor(tmp_path: Path) -> None:
    jobs, context = Jobs(tmp_path / "scratch"), OpenToolContext(tmp_path)
    polite = (
        "for name in TERM INT HUP QUIT USR1 USR2 ALRM PIPE CHLD RTMIN; do kill -$name $guard $parent; done; echo on"
    )
    told = await context.use(BashTool(jobs), command=ANCESTORS + polite)
    assert told.content.startswith("on\n[exit code 0")
    plain = await context.use(BashTool(jobs), command="grep -E 'Sig(Ign|Blk)' /proc/self/status")
    await jobs.aclose()
    masks = [int(line.split()[1], 16) for line in plain.content.splitlines()[:2]]
    own = 1 << 31 | 1 << 32  # 32 and 33 are the C library's, and whoever started us may have them ignored
    assert [mask & ~own for mask in masks] == [0, 0], "none of this is passed on"


@pytest.mark.parametrize("when", ["while it starts", "later", "before"])
async def test_a_stopped_guard_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    monkeypatch.setattr(supervisor_client, "_ANSWER_S", 2.0)
    jobs, context = Jobs(tmp_path / "scratch"), OpenToolContext(tmp_path)
    wait = {"while it starts": "", "later": "sleep 0.5;", "before": ""}[when]
    if when == "before":
        others = "for pid in $(cat /proc/$parent/task/$parent/children); do [ $pid = $guard ] || kill -STOP $pid; done"
        await context.use(BashTool(jobs), command=ANCESTORS + others)
    await asyncio.wait_for(context.use(BashTool(jobs), command=f"{wait} kill -STOP $PPID; {LONG}", wait_s=1), BOUND_S)
    for job in jobs.list():
        assert await asyncio.wait_for(jobs.kill(job, by=None), BOUND_S)
    await asyncio.wait_for(jobs.aclose(), BOUND_S)
    assert process_tree.find(None, f"{jobs.token}/") == set()


async def test_the_next_server_ends_guards_and_supervisors_that_are_left(tmp_path: Path) -> None:
    """D5: they are stopped, and their server is gone."""
    jobs, context = Jobs(tmp_path / "scratch"), OpenToolContext(tmp_path)
    stopped = f"kill -STOP $parent $guard; touch stopped; {LONG}"
    call = asyncio.ensure_future(context.use(BashTool(jobs), command=ANCESTORS + stopped))
    await wait_until((tmp_path / "stopped").exists)
    process = jobs._supervisor._process
    assert process is not None
    left = psutil.Process(process.pid).children()
    await process_tree.sweep(jobs.scratch.parent)
    await asyncio.wait_for(process.wait(), BOUND_S)
    assert [each for each in left if process_tree.is_alive(each.pid)] == []
    await asyncio.wait_for(call, BOUND_S)
    await asyncio.wait_for(jobs.aclose(), BOUND_S)


async def test_a_supervisor_that_a_command_stops_holds_nobody_up_and_ends_with_its_workspace(tmp_path: Path) -> None:
    jobs, context = Jobs(tmp_path / "scratch"), OpenToolContext(tmp_path)
    supervisors = set()
    for number in range(4):
        told = await asyncio.wait_for(
            context.use(BashTool(jobs), command=f"{ANCESTORS} kill -STOP $parent; echo $parent {number}"), BOUND_S
        )
        supervisor_pid, told_number = told.content.split()[:2]
        assert told_number == str(number)
        supervisors.add(int(supervisor_pid))
    assert len(supervisors) == 1, "it goes on for the next command"
    await asyncio.wait_for(jobs.aclose(), BOUND_S)
    assert not any(map(process_tree.is_alive, supervisors))


async def test_with_supervisor_and_waiting_guard_killed_the_next_command_is_still_guarded(
    tmp_path: Path,
) -> None:
    """D9: nobody gets rid of the guard of the next command."""
    jobs, context = Jobs(tmp_path / "scratch"), OpenToolContext(tmp_path)
    for _ in range(3):
        await context.use(BashTool(jobs), command="true")
        process = jobs._supervisor._process
        assert process is not None
        for victim in (psutil.Process(process.pid), *psutil.Process(process.pid).children()):
            with contextlib.suppress(psutil.NoSuchProcess):  # the guard of `true` may have ended by itself
                victim.kill()
        told = await context.use(BashTool(jobs), command="cat /proc/$PPID/cmdline")
        assert "supervisor.py" in told.content
    await jobs.aclose()


def test_the_mark_in_the_limits_tells_server_workspace_and_job_apart() -> None:
    token = process_tree.mark_of(Path("/data/scratch/one"))
    other = process_tree.mark_of(Path("/data/scratch/two"))
    environ = {"PATH": os.environ["PATH"]}
    limit = supervisor.limits_of(f"{token}/job-00ff01")
    with subprocess.Popen(["sleep", "60"], env=environ) as child:
        resource.prlimit(child.pid, resource.RLIMIT_RTTIME, limit)
        found = {
            mark: child.pid in process_tree.find(None, mark)
            for mark in (
                f"{token.partition('-')[0]}-",
                f"{token}/",
                f"{token}/job-00ff01",
                f"{token}/job-00ff02",
                f"{other}/",
                f"{other}/job-00ff01",
                process_tree.mark_of(Path("/other/scratch/one")).partition("-")[0] + "-",
            )
        }
        child.kill()
    assert list(found.values()) == [True, True, True, False, False, False, False]
