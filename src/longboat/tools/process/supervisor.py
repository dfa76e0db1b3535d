"""A separate program that starts the commands of one workspace, its hooks, MCP servers and language servers, and ends
everything they started (Linux). All of them are commands here.

`python -I -S supervisor.py [TIMER]` reads commands from the socket on its standard input, each with the descriptors of
its streams. Each gets a guard, a fork of this program, which is the subreaper of everything below it: a process that
leaves the command's process group, session and environment still ends up as the guard's child. The guard reports the
command's exit and ends when no process is left. It kills all of them when the other end of its socket is closed, which
`kill -9` of the server does too; and when TIMER, a descriptor that the server sets (`deadline.py`), has run out,
because a stopped server closes nothing.

What holds if one of these processes is killed:

- A command does not run before the server knows of it and has confirmed: until then its process waits.
- A guard that fails kills everything below it before it exits. It ignores signals that can be caught.
- A guard that is killed (`kill -9`): the kernel kills its command, and the orphans become the supervisor's children;
  the supervisor kills every process below it that is not a guard, and stays until none is left.
- A supervisor or a guard that is stopped (`kill -STOP`) continues when its parent ends, and finds its socket closed.
  The supervisor continues a stopped guard when the timer has run out.
- Supervisor and guard killed: the server, or the next one, finds the processes by the mark in their resource limits.
  Supervisors and guards themselves have their server's mark in their environment.

A command may come with a Landlock ruleset (`landlock.py`) and a system call filter (`seccomp.py`, "sieve"):
then it starts inside them, and the guard stays outside. `python -I -S supervisor.py RULESET SIEVE FILE_SIZE COMMAND…`
does only this, for systems without a supervisor.

Imports only a small part of the standard library, so that it starts fast.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable, Mapping

MARK = "LONGBOAT_JOB"
"""The environment variable that marks a command's processes with its server, its workspace and its job."""
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
STEP_BYTES = 8
"""Of a program for the kernel's filter."""
LANDLOCK_RESTRICT_SELF = 446
KEPT_BY_ROOT = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "SETGID": 6, "SETUID": 7}
"""To own and to change files, and to become another user. With the other capabilities, root can leave every
sandbox: it can mount, and read the memory and the environment of processes outside."""
CAPABILITIES = 64
RESTORED = [signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD]
"""Signals that Python ignores, or we do, and that a command does not expect to be ignored."""
FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS}
AGAIN_S, AGAIN_MAX_S = 0.01, 1.0
"""Between two attempts to kill the remaining processes: some take a while, some belong to another user and stay. Not a
`Backoff`: this program imports only the standard library."""
TAKEN, OVER = b"t", b"o"
MOST_FDS = 6
"""That come with a command: its plan, the server's line, its three streams, its ruleset."""
Streams = tuple[int, int, int]
"""A command's standard input, output and errors."""
Plan = tuple[list[str], str, dict[str, str], str, int]
"""What to run, where, in which environment, its sieve, and how large a file it may write; 0 is any size."""
GO = b"g"
"""What the server says when it has heard of a command: only then does it run."""
LATE = b"~"
"""What a guard says when it ends its command, or does not let it run, because the timer has run out."""
PLACE_BITS = 31
SOFT_LIMITS, HARD_LIMITS = 1 << 61, 1 << 2 * PLACE_BITS
_libc = ctypes.CDLL(None, use_errno=True)
_prctl = _libc.prctl


def main(timer: int | None = None) -> None:
    """Keep a spare guard, so that no command has to wait for its fork, until the other end closes. Then stay until all
    guards have ended: what a killed guard leaves behind is ours."""
    _forget_inherited(timer)
    _heed_no_signals()
    _go_on_without_parent()
    _adopt_orphans()
    woken = _wake_on_child()
    line = socket.socket(fileno=0)
    guards: set[int] = set()
    taken: int | None = None
    is_over = is_closed = False
    while True:
        if taken is None and not is_over:
            taken = _fork_guard(line, guards, timer)
        orphans = _end_orphans(guards)
        if is_over and not guards and not orphans:
            return
        is_late = timer in _wait_ready([timer], 0)
        if is_late:
            _signal(guards, signal.SIGCONT)  # a stopped one would not see it
        again = orphans or (taken is None and not is_over) or (is_late and len(guards) > 1)  # one is in waiting
        ready = _wait_ready(
            [woken, taken, None if is_late else timer],
            AGAIN_MAX_S if again else None,
            closing=None if is_closed else 0,
        )
        if woken in ready:
            os.read(woken, 4096)
        if taken is not None and taken in ready:
            # Nothing at all: that guard was killed, and the next one waits in its place.
            is_over = os.read(taken, 1) == OVER
            os.close(taken)
            taken = None
        if 0 in ready:
            is_closed = True
            _signal(guards, signal.SIGCONT)  # a stopped one would not see that its line is closed too


def _forget_inherited(timer: int | None) -> None:
    """Close what our parent left open besides our socket and the timer: commands would inherit it."""
    if timer is not None:
        os.set_inheritable(timer, False)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != timer:
            try:
                os.close(int(name))
            except OSError:
                continue  # the listing itself


def _heed_no_signals() -> None:
    """A command may `kill` its parent, or all processes of its user. Handlers, unlike ignored signals, are not
    inherited by a command."""
    for number in signal.valid_signals() - FAULTS - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, lambda *_: None)
        except (OSError, ValueError):
            continue  # the C library keeps some to itself


def _go_on_without_parent() -> None:
    """If a command has stopped us, the end of our parent continues us: then we have something to end."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)


def _adopt_orphans() -> None:
    """Processes below us that lose their parent become our children."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _wake_on_child() -> int:
    """A descriptor that has something to read whenever a child has ended."""
    woken, wake = os.pipe()
    for fd in (woken, wake):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return woken


def _wait_ready(fds: list[int | None], timeout_s: float | None, *, closing: int | None = None) -> set[int]:
    """Return those with something to read, and `closing` if its other end is closed."""
    poll = select.poll()
    for fd in fds:
        if fd is not None:
            poll.register(fd, select.POLLIN)
    if closing is not None:
        poll.register(closing, 0)
    return {fd for fd, _ in poll.poll(None if timeout_s is None else timeout_s * 1000)}


def _fork_guard(line: socket.socket, guards: set[int], timer: int | None) -> int | None:
    """A guard in waiting. The descriptor tells when it has a command, and is closed if it ends. None if the system has
    no room for another process: try again later."""
    taken, take = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(taken)
        os.close(take)
        return None
    if pid == 0:
        os.close(taken)
        _guard(line, take, timer)
    os.close(take)
    guards.add(pid)
    return taken


def _end_orphans(guards: set[int]) -> bool:
    """Kill our children that are no guards: their guard was killed. Whether there were any."""
    for pid in _reap():
        guards.discard(pid)
    orphans = [pid for pid in _children() if pid not in guards]
    _signal(orphans, signal.SIGKILL)
    return bool(orphans)


def _guard(line: socket.socket, take: int, timer: int | None) -> None:
    """Does not return. Wait for a command and see it through."""
    try:
        _go_on_without_parent()
        _adopt_orphans()
        data, fds, _, _ = socket.recv_fds(line, 16, MOST_FDS)
        for fd in fds:
            os.set_inheritable(fd, False)
        with contextlib.suppress(BrokenPipeError):  # the supervisor was killed; we can do without it
            os.write(take, TAKEN if data else OVER)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)  # the supervisor's line is not ours any more
        if data and len(fds) == data[0]:  # fewer come where too many files are open; no ruleset must be lost by that
            plan_fd, line_fd, source, output, errors, *ruleset = fds
            with socket.socket(fileno=line_fd) as own_line:
                _keep(own_line, timer, plan_fd, (source, output, errors), *ruleset)
    finally:
        os._exit(0)


def _keep(
    line: socket.socket, timer: int | None, plan_fd: int, streams: Streams, ruleset_fd: int | None = None
) -> None:
    """Send `process id, own id`; wait for the go-ahead; send `+` when the command runs, or `!errno`, then its exit
    code; `~` if the timer runs out. However it ends, no process of it is left, and then we send `.`."""
    try:
        woken = _wake_on_child()
        with open(plan_fd, "rb") as file:
            file.seek(0)
            plan = json.load(file)
        try:
            child, opened, failed = _fork(plan, streams, ruleset_fd)
        except OSError as error:
            line.sendall(b"!%d\n" % (error.errno or 0))
            return
        line.sendall(b"%d %d\n" % (child, os.getpid()))
        if timer in _wait_ready([line.fileno(), timer], None):
            line.sendall(LATE + b"\n")
        elif line.recv(1) == GO:
            with contextlib.suppress(BrokenPipeError):  # it was killed at the gate: its exit will tell
                os.write(opened, GO)
            _stay(child, line, woken, failed, timer)
    finally:
        _end_all()
        with contextlib.suppress(OSError):
            line.sendall(b".\n")


def _fork(plan: Plan, streams: Streams, ruleset_fd: int | None) -> tuple[int, int, int]:
    """The command's process, which waits; the gate that it waits at; and where it tells that it cannot be run."""
    gate, opened = os.pipe()
    failed, fail = os.pipe()  # closed by exec
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(opened)
        _command(plan, guard=guard, gate=gate, fail=fail, streams=streams, ruleset_fd=ruleset_fd)
    for fd in (gate, fail, *streams, *([ruleset_fd] if ruleset_fd is not None else [])):
        os.close(fd)
    return child, opened, failed


def _command(plan: Plan, *, guard: int, gate: int, fail: int, streams: Streams, ruleset_fd: int | None) -> None:
    """Does not return. Become the command, as the leader of its own session, once the gate is opened."""
    try:
        argv, directory, environ, sieve, file_size = plan
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.setsid()
        _mark_limits(environ.get(MARK, ""))
        if os.getppid() == guard and os.read(gate, 1) == GO:
            os.chdir(directory)
            for standard, fd in enumerate(streams):
                os.dup2(fd, standard)
            if ruleset_fd is None:
                os.execve(argv[0], argv, environ)
            _enter(ruleset_fd, bytes.fromhex(sieve), file_size, argv, environ)
    except OSError as error:
        os.write(fail, b"%d" % (error.errno or 0))
    finally:
        os._exit(127)


def _stay(child: int, line: socket.socket, woken: int, failed: int, timer: int | None) -> None:
    """Wait until no process of the command is left, the line is closed, the timer has run out, or the command turns out
    not to run."""
    starting: int | None = failed
    while True:
        ready = _wait_ready([line.fileno(), woken, starting, timer], None)
        if timer in ready:
            line.sendall(LATE + b"\n")
            return
        if starting in ready:
            error = os.read(failed, 16)
            starting = None
            line.sendall(b"!%s\n" % error if error else b"+\n")
            if error:
                return
        if line.fileno() in ready:
            return
        if woken in ready and starting is None:  # in this order: no exit is reported before the start
            os.read(woken, 4096)
            if (status := _reap().get(child)) is not None:
                line.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
            if not _children():
                return


def _reap() -> dict[int, int]:
    """Take leave of the children that have ended; the status of each."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return [int(pid) for pid in file.read().split()]


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue


def _end_all() -> None:
    """Kill those directly below us until there are none: what they leave behind is below us next."""
    pause_s = AGAIN_S
    while children := _children():
        _signal(children, signal.SIGKILL)
        if not _reap():
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, AGAIN_MAX_S)


def limits_of(mark: str) -> tuple[int, int]:
    """The mark as a soft and a hard limit for real-time scheduling, both far beyond what anyone needs. Unlike an
    environment, every child has its parent's limits; and only root can raise them again.

    A mark is `SERVER-WORKSPACE/job-NUMBER` in hexadecimal digits; the beginning of one ends with `-` or `/`.
    """
    place, _, job = mark.partition("/job-")
    server, _, workspace = place.rstrip("/").partition("-")
    return SOFT_LIMITS + int(job or "0", 16), HARD_LIMITS + (_bits(server) << PLACE_BITS) + _bits(workspace)


def _bits(digits: str) -> int:
    return int(digits or "0", 16) % (1 << PLACE_BITS)


def _mark_limits(mark: str) -> None:
    try:
        resource.setrlimit(resource.RLIMIT_RTTIME, limits_of(mark))
    except (OSError, ValueError):
        return  # someone has set a lower one: a server that is itself below a guard


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _enter(ruleset_fd: int | None, sieve: bytes, file_size: int, argv: list[str], environ: Mapping[str, str]) -> None:
    """Become the command, restricted by the ruleset. Everything it starts is restricted, too, and cannot get out."""
    for number in RESTORED:
        signal.signal(number, signal.SIG_DFL)
    for capability in range(CAPABILITIES):
        if capability not in KEPT_BY_ROOT.values():
            _prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # refused to others, who have none
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the kernel writes a core where the command may not
    if file_size:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    program = _Program(len(sieve) // STEP_BYTES, sieve)
    if (
        _prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        or (ruleset_fd is not None and _libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset_fd, 0))
        or (sieve and _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0))
    ):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    os.execvpe(argv[0], argv, environ)


def run_without_guard(ruleset: str, sieve: str, file_size: str, *argv: str) -> None:
    """Enter a ruleset and become the command there, without a guard."""
    if ruleset:
        os.set_inheritable(int(ruleset), False)
    try:
        _enter(int(ruleset) if ruleset else None, bytes.fromhex(sieve), int(file_size), list(argv), os.environ)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(127)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        run_without_guard(*sys.argv[1:])
    else:
        main(*map(int, sys.argv[1:]))
