"""A program of its own, which starts the commands of one workspace and keeps hold of all that they start (Linux).

`python -I -S keeper.py` takes commands from the socket on its standard input. Each gets a guard, a fork of this
program, which is the subreaper of what is below it: whoever leaves the process group, the session and the environment
of the command behind is still the guard's. It tells of the command's exit, ends when nobody is left, and ends everybody
when the other end of its line is closed, which `kill -9` of the server does too.

Imports the standard library alone, and little of it: it is to start at once.
"""

import ctypes
import json
import os
import select
import signal
import socket

PR_SET_CHILD_SUBREAPER = 36
AGAIN_MS = 10
TAKEN, OVER = b"t", b"o"
_prctl = ctypes.CDLL(None, use_errno=True).prctl


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
        data, fds, _, _ = socket.recv_fds(line, 16, 3)
        for fd in fds:
            os.set_inheritable(fd, False)
        os.write(take, TAKEN if data else OVER)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)  # the keeper's line is not ours any more
        if data:
            _keep(*fds)
    finally:
        os._exit(0)


def _keep(plan_fd: int, output_fd: int, line_fd: int) -> None:
    """Tell `process id, own id` or `!errno`, and then the command's exit code."""
    woken, wake = os.pipe()
    for fd in (woken, wake):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        child = _start(plan_fd, output_fd)
    except OSError as error:
        os.write(line_fd, b"!%d\n" % (error.errno or 0))
        return
    os.close(output_fd)
    os.write(line_fd, b"%d %d\n" % (child, os.getpid()))
    _stay(child, line_fd, woken)


def _start(plan_fd: int, output_fd: int) -> int:
    """The command itself, as subprocess would start it: the leader of its own session."""
    with open(plan_fd, "rb") as file:
        file.seek(0)
        argv, directory, environ = json.load(file)
    os.chdir(directory)
    child = os.posix_spawn(
        argv[0],
        argv,
        environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, output_fd, 1), (os.POSIX_SPAWN_DUP2, output_fd, 2)],
        setsid=True,
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD],
    )
    os.chdir("/")
    return child


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


if __name__ == "__main__":
    main()
