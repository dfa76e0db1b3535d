"""A seccomp filter that reports system calls to another process, which decides on each of them.

Owns the numbers of the calls, the filter program and the kernel's notification structures. Must not know which calls
are findings. Needs no root: the filtered process gives up new privileges first.
"""

import ctypes
import errno
import fcntl
import os
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8
_ALLOW, _KILL, _NOTIFY = 0x7FFF0000, 0x80000000, 0x7FC00000
_LOAD, _EQUAL, _BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_RECEIVE, _SEND, _IS_VALID, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082102, 0x40082104
_CONTINUE, _SYNC_WAKE_UP = 1, 1
_NOTICE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


@dataclass(frozen=True, slots=True)
class _Machine:
    architecture: int
    seccomp: int
    calls: dict[str, int]
    """The calls that are always reported."""
    opens: dict[str, tuple[int, int]]
    """Calls that are reported if they open for writing: the number, and which argument has the flags."""


_EVERYWHERE = {"io_uring_setup": 425, "openat2": 437, "fchmodat2": 452}
_MACHINES = {
    "x86_64": _Machine(
        architecture=0xC000003E,
        seccomp=317,
        calls=_EVERYWHERE
        | {"execve": 59, "execveat": 322, "socket": 41, "truncate": 76, "rename": 82, "mkdir": 83, "rmdir": 84}
        | {"creat": 85, "link": 86, "unlink": 87, "symlink": 88, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93}
        | {"lchown": 94, "utime": 132, "mknod": 133, "mount": 165, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190}
        | {"utimes": 235, "mkdirat": 258, "mknodat": 259, "fchownat": 260, "futimesat": 261, "unlinkat": 263}
        | {"renameat": 264, "linkat": 265, "symlinkat": 266, "fchmodat": 268, "utimensat": 280, "renameat2": 316},
        opens={"open": (2, 1), "openat": (257, 2)},
    ),
    "aarch64": _Machine(
        architecture=0xC00000B7,
        seccomp=277,
        calls=_EVERYWHERE
        | {"execve": 221, "execveat": 281, "socket": 198, "truncate": 45, "mkdirat": 34, "mknodat": 33, "unlinkat": 35}
        | {"symlinkat": 36, "linkat": 37, "renameat": 38, "mount": 40, "fchmod": 52, "fchmodat": 53, "fchownat": 54}
        | {"fchown": 55, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "utimensat": 88, "renameat2": 276},
        opens={"openat": (56, 2)},
    ),
}


@dataclass(frozen=True, slots=True)
class Notice:
    """A process waits in this call until it is answered."""

    notice_id: int
    pid: int
    call: str
    arguments: tuple[int, ...]


def machine() -> str:
    """The name of this machine's architecture if the filter is known for it; empty otherwise."""
    name = os.uname().machine
    return name if sys.platform == "linux" and sys.maxsize > 2**32 and name in _MACHINES else ""


def install_filter() -> int:
    """Filter this process and all its children from now on; the descriptor returned receives the notices."""
    known = _MACHINES[machine()]
    code = _program(known)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise _error()
    listener = int(_libc.syscall(known.seccomp, _SET_MODE_FILTER, _NEW_LISTENER, ctypes.c_char_p(program)))
    if listener < 0:
        raise _error()
    return listener


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))


def _program(known: _Machine) -> bytes:
    """Architecture, then the calls with flags, then the others; the three ends follow."""
    tests = [(_EQUAL, number) for number in known.calls.values()]
    length = 3 + 3 * len(known.opens) + len(tests)
    allow, kill, notify = range(length, length + 3)
    steps: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 0, kill - 2, known.architecture),
        (_LOAD, 0, 0, 0),
    ]
    for number, argument in known.opens.values():
        at = len(steps)
        steps += [
            (_EQUAL, 0, 2, number),
            (_LOAD, 0, 0, 16 + 8 * argument),
            (_BITS, notify - at - 3, allow - at - 3, _WRITING),
        ]
    steps += [(code, notify - at - 1, 0, number) for at, (code, number) in enumerate(tests, len(steps))]
    # Where no test holds, the program runs on into “allow”.
    steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _KILL), (_RETURN, 0, 0, _NOTIFY)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


class Listener:
    """The receiving end of a filter."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        known = _MACHINES[machine()]
        self._names = {number: name for name, number in known.calls.items()}
        self._names |= {number: name for name, (number, _) in known.opens.items()}
        with suppress(OSError):  # Only faster; Linux 6.6 has it.
            fcntl.ioctl(fd, _SET_FLAGS, _SYNC_WAKE_UP)

    def receive(self) -> Notice | None:
        """The next notice; None if its process is gone."""
        buffer = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self.fd, _RECEIVE, buffer)
        except FileNotFoundError:
            return None
        notice_id, pid, _, number, _, _, *arguments = _NOTICE.unpack(buffer)
        return Notice(notice_id, pid, self._names[number], tuple(arguments))

    def is_waiting(self, notice: Notice) -> bool:
        """Whether the process still waits for an answer: only then was its memory its own until now."""
        try:
            fcntl.ioctl(self.fd, _IS_VALID, struct.pack("=Q", notice.notice_id))
        except FileNotFoundError:
            return False
        return True

    def go_on(self, notice: Notice) -> None:
        self._answer(_ANSWER.pack(notice.notice_id, 0, 0, _CONTINUE))

    def refuse(self, notice: Notice, error: int = errno.EROFS) -> None:
        self._answer(_ANSWER.pack(notice.notice_id, 0, -error, 0))

    def _answer(self, answer: bytes) -> None:
        with suppress(FileNotFoundError):  # The process was killed in the meantime.
            fcntl.ioctl(self.fd, _SEND, answer)
