"""A program of its own, which starts the commands of one workspace and keeps hold of all that they start (Linux).

`python -I -S keeper.py` takes commands from the socket on its standard input. Each gets a guard, a fork of this
program, which is the subreaper of what is below it: whoever leaves the process group, the session and the environment
of the command behind is still the guard's. It tells of the command's exit, ends when nobody is left, and ends everybody
when the other end of its line is closed, which `kill -9` of the server does too.

A command may come with a fence (`landlock.py`) and a sieve for its system calls (`seccomp.py`): then it starts inside
of them, and the guard stays outside. `python -I -S keeper.py FENCE SIEVE COMMAND…` does this alone, where there is no
keeper.

Imports the standard library alone, and little of it: it is to start at once.
"""

import ctypes
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping

PR_SET_CHILD_SUBREAPER = 36
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
STEP_BYTES = 8
"""Of a program for the kernel's filter."""
LANDLOCK_RESTRICT_SELF = 446
KEPT_BY_ROOT = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "SETGID": 6, "SETUID": 7}
"""To own and to change files, and to become another user. With the other capabilities root gets out of every box: it
mounts, and reads the memory and the environment of who is outside."""
CAPABILITIES = 64
RESTORED = [signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD]
"""Signals that Python ignores, or we do, and that a command does not expect to be ignored."""
AGAIN_MS = 10
TAKEN, OVER = b"t", b"o"
_libc = ctypes.CDLL(None, use_errno=True)
_prctl = _libc.prctl


def main() -> None:
    """Keep a guard in waiting, so that no command has to wait for its fork, until nobody can send any more."""
    _forget_inherited()
    line = socket.socket(fileno=0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # guards need no one to wait for them
    word = TAKEN
    while word != OVER:  # nothing at all: that guard was killed, and the next one waits in its place
        taken, take = os.pipe()
        if os.fork() == 0:
            os.close(taken)
            _guard(line, take)  # does not return
        os.close(take)
        word = os.read(taken, 1)
        os.close(taken)


def _forget_inherited() -> None:
    """Whoever started us may have left more open than our line, and commands would have it too."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError:
                continue  # the listing itself


def _guard(line: socket.socket, take: int) -> None:
    """Wait for a command; start it and stay until nobody is left of it."""
    try:
        data, fds, _, _ = socket.recv_fds(line, 16, 4)
        for fd in fds:
            os.set_inheritable(fd, False)
        os.write(take, TAKEN if data else OVER)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)  # the keeper's line is not ours any more
        if data and len(fds) == data[0]:  # fewer come where too many files are open; no fence must be lost by that
            _keep(*fds)
    finally:
        os._exit(0)


def _keep(plan_fd: int, output_fd: int, line_fd: int, fence_fd: int | None = None) -> None:
    """Tell `process id, own id` or `!errno`, and then the command's exit code."""
    woken, wake = os.pipe()
    for fd in (woken, wake):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        child = _start(plan_fd, output_fd, fence_fd)
    except OSError as error:
        os.write(line_fd, b"!%d\n" % (error.errno or 0))
        return
    os.close(output_fd)
    os.write(line_fd, b"%d %d\n" % (child, os.getpid()))
    _stay(child, line_fd, woken)


def _start(plan_fd: int, output_fd: int, fence_fd: int | None) -> int:
    """The command itself, as subprocess would start it: the leader of its own session."""
    with open(plan_fd, "rb") as file:
        file.seek(0)
        argv, directory, environ, sieve = json.load(file)
    os.chdir(directory)
    if fence_fd is not None:
        child = _fork(argv, environ, output_fd, fence_fd, bytes.fromhex(sieve))
    else:
        child = os.posix_spawn(
            argv[0],
            argv,
            environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, output_fd, 1), (os.POSIX_SPAWN_DUP2, output_fd, 2)],
            setsid=True,
            setsigdef=RESTORED,
        )
    os.chdir("/")
    return child


def _fork(argv: list[str], environ: dict[str, str], output_fd: int, fence_fd: int, sieve: bytes) -> int:
    """As posix_spawn does it, which knows no fences."""
    failed, fail = os.pipe()  # closed by exec
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.dup2(output_fd, 1)
            os.dup2(output_fd, 2)
            _enter(fence_fd, sieve, argv, environ)
        except OSError as error:
            os.write(fail, b"%d" % (error.errno or 0))
        finally:
            os._exit(127)
    os.close(fail)
    os.close(fence_fd)
    with open(failed, "rb") as file:
        said = file.read()
    if said:
        raise OSError(int(said), os.strerror(int(said)))
    return child


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _enter(fence_fd: int | None, sieve: bytes, argv: list[str], environ: Mapping[str, str]) -> None:
    """Become the command, inside of the fence. All that it starts is inside too, and nobody gets out."""
    for number in RESTORED:
        signal.signal(number, signal.SIG_DFL)
    for capability in range(CAPABILITIES):
        if capability not in KEPT_BY_ROOT.values():
            _prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # refused to others, who have none
    program = _Program(len(sieve) // STEP_BYTES, sieve)
    if (
        _prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        or (fence_fd is not None and _libc.syscall(LANDLOCK_RESTRICT_SELF, fence_fd, 0))
        or (sieve and _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0))
    ):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    os.execvpe(argv[0], argv, environ)


def _stay(child: int, line_fd: int, woken: int) -> None:
    poll = select.poll()
    poll.register(line_fd, select.POLLIN)
    poll.register(woken, select.POLLIN)
    alone = False
    while _reap(child, line_fd):
        for fd, _ in poll.poll(AGAIN_MS if alone else None):
            if fd == woken:
                os.read(woken, 4096)
            else:  # nothing is ever said to us: it was closed
                alone = True
                poll.unregister(line_fd)
        if alone:
            _kill_all()


def _reap(child: int, line_fd: int) -> bool:
    """Whether anybody is left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        if pid == child:
            try:
                os.write(line_fd, b"%d\n" % os.waitstatus_to_exitcode(status))
            except OSError:
                continue  # nobody listens any more


def _kill_all() -> None:
    """Those directly below us. What they leave behind is below us next."""
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        for pid in file.read().split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except OSError:
                continue


def alone(fence: str, sieve: str, *argv: str) -> None:
    """Go into a fence and become the command there, without a guard."""
    if fence:
        os.set_inheritable(int(fence), False)
    try:
        _enter(int(fence) if fence else None, bytes.fromhex(sieve), list(argv), os.environ)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(127)


if __name__ == "__main__":
    alone(*sys.argv[1:]) if sys.argv[1:] else main()
