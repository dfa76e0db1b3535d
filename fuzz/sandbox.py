"""Run a program so that it changes nothing, and note what it tried: programs, writes, sockets.

Owns the watched process tree. A small launcher process carries the filter of `syscalls.py`, and Landlock beneath it
where the kernel has it, and starts one program after the other; whatever these and their children try is reported here
and recorded. Programs may be started; writing anywhere but to /dev/null and the like is refused. So nothing has to be
tidied up between two programs. Must not know what is a finding.
"""

import ctypes
import errno
import marshal
import os
import re
import select
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import Self

from fuzz.syscalls import Listener, Notice, install_filter, machine
from longboat.tools.sandbox import landlock

MAX_EVENTS = 300
"""After so many a program is ended: it is in a loop."""

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_CHILD_SUBREAPER, _LANDLOCK_RESTRICT_SELF = 36, 446
_DEVICE = re.compile(r"/dev/(?:null|tty|stdin|stdout|stderr|fd/[0-9]+)|/proc/self/fd/[0-9]+")
_OPENING = frozenset({"open", "openat"})
_ON_DESCRIPTORS = frozenset({"fchmod", "fchown", "fsetxattr", "io_uring_setup"})
_BESIDE_A_DIRECTORY = frozenset(
    {"openat", "openat2", "mkdirat", "mknodat", "fchownat", "futimesat", "unlinkat", "renameat", "renameat2", "linkat"}
    | {"fchmodat", "fchmodat2", "utimensat"}
)
"""Their path is the second argument."""
_MAX_MESSAGE = 2**20
_MAX_STRING = 2**17
_POINTERS = 512


@dataclass(frozen=True, slots=True)
class Executed:
    """A program was started, or tried to be."""

    path: str
    argv: tuple[str, ...]
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Changed:
    """A call that would have changed something outside the process: a file, or the world through a socket."""

    call: str
    target: str


@dataclass(slots=True)
class Observed:
    executed: list[Executed] = field(default_factory=list)
    changed: list[Changed] = field(default_factory=list)
    cut_off: bool = False
    """It took too long, or did too much."""


class Sandbox:
    """Use it as a context manager. One program at a time. Files may be made below `temp` alone."""

    def __init__(self, temp: Path, *, readable: Path, time_limit_s: float = 1.0) -> None:
        self._temp = temp
        self._readable = readable
        self._time_limit_s = time_limit_s

    def __enter__(self) -> Self:
        self._line, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._launcher = os.fork()
        if not self._launcher:
            self._line.close()
            _run_launcher(far, self._temp, self._readable)
        far.close()
        message, fds, _, _ = socket.recv_fds(self._line, 200, 1)
        if not fds:
            raise OSError(errno.ENOTSUP, f"system calls cannot be watched here: {message.decode()}")
        self._listener = Listener(fds[0])
        self._poll = select.poll()
        for fd in (self._listener.fd, self._line.fileno()):
            self._poll.register(fd, select.POLLIN)
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()
        os.close(self._listener.fd)
        os.waitpid(self._launcher, 0)

    def run(self, path: str, argv: Sequence[str], environ: Mapping[str, str], directory: Path) -> Observed:
        """Start it, and wait until it and all its children have ended."""
        seen = Observed()
        self._line.send(marshal.dumps((path, list(argv), dict(environ), str(directory), self._time_limit_s)))
        while True:
            ready = {fd for fd, events in self._poll.poll() if events & select.POLLIN or fd == self._line.fileno()}
            if self._listener.fd in ready:
                if (notice := self._listener.receive()) is not None:
                    self._decide(notice, seen)
            elif ready:
                message = self._line.recv(_MAX_MESSAGE)
                if not message:
                    raise RuntimeError(f"the launcher ended while it ran {argv!r}")
                seen.cut_off |= message != b"ended"
                return seen

    def _decide(self, notice: Notice, seen: Observed) -> None:
        if len(seen.executed) + len(seen.changed) >= MAX_EVENTS:
            if not seen.cut_off:
                os.kill(self._launcher, signal.SIGALRM)
            seen.cut_off = True
            self._listener.refuse(notice)
            return
        try:
            decide = _DECISIONS.get(notice.call)
            if decide:
                decide(self._listener, notice, seen)
            else:
                self._decide_on_change(notice, seen)
        except (OSError, struct.error):  # The process is gone, or its arguments point nowhere.
            self._listener.refuse(notice, errno.EFAULT)

    def _decide_on_change(self, notice: Notice, seen: Observed) -> None:
        target = _target(notice)
        if target.startswith(f"{self._temp}/") or (notice.call in _OPENING and _DEVICE.fullmatch(target)):
            self._listener.go_on(notice)
            return
        if self._listener.is_waiting(notice):
            seen.changed.append(Changed(notice.call, target))
            self._listener.refuse(notice)


# What is made of the calls.


def _allow_exec(listener: Listener, notice: Notice, seen: Observed) -> None:
    memory = _Memory(notice.pid)
    try:
        first = 1 if notice.call == "execveat" else 0
        path, argv, environ = notice.arguments[first : first + 3]
        pairs = (text.partition("=") for text in memory.strings(environ))
        environment = {name: value for name, equals, value in pairs if equals}
        found = Executed(memory.string(path), tuple(memory.strings(argv)), environment)
    finally:
        memory.close()
    if listener.is_waiting(notice):  # else it was killed, and what was read is not what it asked for
        seen.executed.append(found)
        listener.go_on(notice)


def _refuse_socket(listener: Listener, notice: Notice, seen: Observed) -> None:
    family = notice.arguments[0]
    if family != socket.AF_UNIX:  # The C library looks for a name service's socket whenever it looks up a user.
        seen.changed.append(Changed("socket", f"family {family}"))
    listener.refuse(notice, errno.EACCES)


_DECISIONS: dict[str, Callable[[Listener, Notice, Observed], None]] = {
    "execve": _allow_exec,
    "execveat": _allow_exec,
    "socket": _refuse_socket,
}


def _target(notice: Notice) -> str:
    """The path that a call names; empty if it names a descriptor."""
    if notice.call in _ON_DESCRIPTORS:
        return ""
    memory = _Memory(notice.pid)
    try:
        return memory.string(notice.arguments[1 if notice.call in _BESIDE_A_DIRECTORY else 0])
    finally:
        memory.close()


class _Memory:
    """The memory of a process that waits for an answer."""

    def __init__(self, pid: int) -> None:
        self._fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY)

    def close(self) -> None:
        os.close(self._fd)

    def string(self, address: int) -> str:
        found = b""
        while address and b"\0" not in found and len(found) < _MAX_STRING:
            # Up to the end of a page: the next one may not be there.
            piece = os.pread(self._fd, min(4096 - (address + len(found)) % 4096, 256), address + len(found))
            if not piece:
                break  # the process was killed meanwhile
            found += piece
        return os.fsdecode(found.partition(b"\0")[0])

    def strings(self, address: int) -> list[str]:
        found: list[str] = []
        while address and len(found) < _POINTERS:
            block = os.pread(self._fd, min(4096 - address % 4096, 256), address)
            if not block:
                break
            for (pointer,) in struct.iter_unpack("=Q", block):
                if not pointer:
                    return found
                found.append(self.string(pointer))
            address += len(block)
        return found


# The launcher.


def _run_launcher(line: socket.socket, temp: Path, readable: Path) -> None:
    """Never returns."""
    try:
        null = os.open("/dev/null", os.O_RDWR)
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            listener = install_filter()
        except OSError as error:
            line.send(str(error).encode())
            return
        socket.send_fds(line, [b"ready"], [listener])
        os.close(listener)
        _restrict(temp, readable)
        signal.signal(signal.SIGALRM, _raise_timeout)
        while message := line.recv(_MAX_MESSAGE):
            line.send(_launch(null, message))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _restrict(temp: Path, readable: Path) -> None:
    """Landlock as a second wall, should the filter not know a call that writes."""
    version = landlock.version()
    if version >= landlock.CAN_TRUNCATE:
        rules = landlock.LandlockRules(version=version, writable=(temp,), readable=(readable,), shared_memory=False)
        _libc.syscall(_LANDLOCK_RESTRICT_SELF, landlock.Ruleset(rules).fd, 0)


def _raise_timeout(*_: object) -> None:
    raise TimeoutError


def _launch(null: int, message: bytes) -> bytes:
    path, argv, environ, directory, limit_s = marshal.loads(message)
    os.chdir(directory)
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
    try:
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        os.posix_spawn(path, argv, environ, file_actions=actions, setsid=True)
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        signal.setitimer(signal.ITIMER_REAL, 0)
        return b"ended"
    except (FileNotFoundError, PermissionError):
        signal.setitimer(signal.ITIMER_REAL, 0)
        return b"not started"
    except TimeoutError:
        _kill_children()
        return b"cut off"


def _kill_children() -> None:
    """All of them: what a killed process leaves behind becomes a child of the launcher."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children")
    with suppress(ChildProcessError):
        while True:
            for pid in map(int, listed.read_text().split()):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def unavailable() -> str:
    """Why programs cannot be watched on this system; empty where they can."""
    if not machine():
        return f"needs Linux on x86_64 or aarch64, not {sys.platform} on {os.uname().machine}"
    try:
        with Sandbox(Path(gettempdir()), readable=Path("/usr")):
            return ""
    except OSError as error:
        return str(error)
