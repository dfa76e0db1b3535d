"""System call filters for what Landlock cannot deny. A process that installs one keeps it, as does everything it
starts.

`without_sockets()` denies every socket; it goes with a sandbox that may write. `read_only()` also denies the calls that
change something without opening a file for writing: modes, owners, times, attributes, other processes, shared memory.

This module only writes a filter, as a program for the kernel (classic BPF); `supervisor.py` installs it. It allows
socket pairs that stay connected to each other, because asyncio and Node.js need them, but not datagram pairs, which
could be redirected to any other socket. Must not know jobs or policies.
"""

import ctypes
import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from longboat.tools.process.supervisor import PR_SET_SECCOMP, SECCOMP_MODE_FILTER

_libc = ctypes.CDLL(None, use_errno=True)
_ERROR = 0x00050000
_ENDS = {
    "allow": 0x7FFF0000,
    "kill": 0x80000000,
    "refuse": _ERROR | errno.EACCES,
    "unknown": _ERROR | errno.ENOSYS,
    "no_terminal": _ERROR | errno.ENOTTY,
}
"""How a filter may end, by name: `unknown` lets the C library fall back on an older call."""
_LOAD, _MASK, _IS, _FROM, _ANY_OF, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _THIRD = 0, 4, 16, 24, 32
"""Offsets in the kernel's description of a call. For an argument, the lower half: the kernel reads no more either."""
_X32 = 0x40000000
"""From here on, x86_64 has the same calls under other numbers; no other machine uses these."""
_KIND = 0xF
"""The rest of a socket's type is flags."""
_NEW_NAMESPACES = 0x7E020080
"""Flags of clone: in its own user namespace, a process has every capability."""
_LAST_KNOWN = 469
"""The filter does not know newer calls and answers them with “no such system call”."""

_IOCTLS = {
    "TCGETS": 0x5401,
    "TIOCGPGRP": 0x540F,
    "TIOCGWINSZ": 0x5413,
    "FIONREAD": 0x541B,
    "FIONBIO": 0x5421,
    "FIONCLEX": 0x5450,
    "FIOCLEX": 0x5451,
    "FS_IOC_GETFLAGS": 0x80086601,
}
"""Those that change no file. Others can, even through a file opened only for reading: flags, verity, encryption."""

_SIGNALS_BY_FILE = (8, 10, 15)
"""Of fcntl, F_SETOWN, F_SETSIG and F_SETOWN_EX: which process a file signals when there is something to read, and
how."""

_SET_LEASE = 1024
"""Of fcntl: a process that opens the file has to wait for the holder of the lease."""
_TRUNCATES = 0x203
_TRUNCATES_UNWRITTEN = (0x200, 0x203)
"""Among the flags for opening a file, the truncation and the mode; and the combination that truncates without opening
for writing, which the first versions of Landlock do not see."""

_RING = (425, 426, 427)
"""io_uring, the same everywhere: a ring makes sockets, and much more, without a call."""
_CHANGES_EVERYWHERE = (
    *(424, 438),  # pidfd_send_signal, pidfd_getfd
    *range(428, 434),  # open_tree, move_mount, fsopen, fsconfig, fsmount, fspick
    *(440, 442, 443),  # process_madvise, mount_setattr, quotactl_fd
    *(452, 463, 466, 467, 469),  # fchmodat2, setxattrat, removexattrat, open_tree_attr, file_setattr
)

Step = tuple[int, int, str | int, str | int]
"""Code, value, and where to go if it matches and if not: an end by its name, or a number of steps to skip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    architecture: int
    """The kernel's name for the architecture of the calls."""
    socket: int
    socketpair: int
    clone: int
    ioctl: int
    changes: tuple[int, ...]
    """Calls that change something without opening a file for writing."""
    signals: tuple[int, ...]
    fcntl: int
    on_others: Mapping[int, tuple[int, ...]]
    """Calls that act on a process; if the arguments at these offsets are 0, on this one."""
    opens: Mapping[int, int]
    """Calls that open a file, and the offset of their flags."""


_X86_64 = _Machine(
    architecture=0xC000003E,
    socket=41,
    socketpair=53,
    clone=56,
    ioctl=16,
    changes=(
        *(90, 91, 268, 92, 93, 94, 260),  # chmod, fchmod, fchmodat, chown, fchown, lchown, fchownat
        *(132, 235, 261, 280),  # utime, utimes, futimesat, utimensat
        *(188, 189, 190, 197, 198, 199),  # setxattr, lsetxattr, fsetxattr, and the same for remove
        76,  # truncate
        *(101, 310, 311),  # ptrace, process_vm_readv, process_vm_writev
        *(29, 30, 31, 64, 65, 66, 220, 68, 69, 70, 71, 240, 241),  # shared memory, semaphores, message queues
        *(248, 249, 250),  # add_key, request_key, keyctl
        *(272, 308, 165, 166, 155, 161),  # unshare, setns, mount, umount2, pivot_root, chroot
        *(321, 298, 323, 304, 300, 179, 251),  # bpf, perf, userfaultfd, open_by_handle, fanotify, quotactl, ioprio_set
        *(279, 256),  # move_pages, migrate_pages
    ),
    signals=(62, 200, 234, 129, 297),  # kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo
    fcntl=72,
    # prlimit64, sched_setaffinity, sched_setscheduler, sched_setparam, sched_setattr, setpriority
    on_others={302: (_FIRST,), 203: (_FIRST,), 144: (_FIRST,), 142: (_FIRST,), 314: (_FIRST,), 141: (_FIRST, _SECOND)},
    opens={2: _SECOND, 257: _THIRD},
)
_AARCH64 = _Machine(
    architecture=0xC00000B7,
    socket=198,
    socketpair=199,
    clone=220,
    ioctl=29,
    changes=(
        *(52, 53, 54, 55, 88, 5, 6, 7, 14, 15, 16, 45),
        *(117, 270, 271),
        *(194, 196, 195, 190, 193, 191, 192, 186, 189, 188, 187, 180, 181),
        *(217, 218, 219),
        *(97, 268, 40, 39, 41, 51),
        *(280, 241, 282, 265, 262, 60, 30),
        *(239, 238),
    ),
    signals=(129, 130, 131, 138, 240),
    fcntl=25,
    on_others={261: (_FIRST,), 122: (_FIRST,), 119: (_FIRST,), 118: (_FIRST,), 274: (_FIRST,), 140: (_FIRST, _SECOND)},
    opens={56: _THIRD},
)
_MACHINES = {"x86_64": _X86_64, "aarch64": _AARCH64}
_CLONE3, _OPENAT2 = 435, 437


@cache
def without_sockets() -> bytes:
    """Return the filter for this system; empty if there is none."""
    machine = _machine()
    return b"" if machine is None else _program([*_begin(machine), *_no_sockets(machine)])


@cache
def read_only(*, signals: bool) -> bytes:
    """Like `without_sockets`, for a command that only reads. `signals` says whether it may send signals: if Landlock
    keeps them from other processes, or if it sees no others."""
    machine = _machine()
    if machine is None:
        return b""
    return _program([*_begin(machine), *_no_changes(machine, signals), *_no_sockets(machine)])


def _machine() -> _Machine | None:
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_void_p) != 8 or not _has_filters():
        return None
    return _MACHINES.get(os.uname().machine)


def _has_filters() -> bool:
    """Ask the kernel with an invalid program address: it looks for the program only if it supports filters, so this
    changes nothing."""
    _libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, None, 0, 0)
    return ctypes.get_errno() == errno.EFAULT


def _begin(machine: _Machine) -> Iterator[Step]:
    yield _LOAD, _ARCHITECTURE, 0, 0
    # All numbers mean something else there. An error is not enough: some programs could then never exit.
    yield _IS, machine.architecture, 0, "kill"
    yield _LOAD, _NUMBER, 0, 0
    yield _FROM, _X32, "refuse", 0


def _no_changes(machine: _Machine, signals: bool) -> Iterator[Step]:
    yield _FROM, _LAST_KNOWN + 1, "unknown", 0
    for number in (*machine.changes, *_CHANGES_EVERYWHERE, *(() if signals else machine.signals)):
        yield _IS, number, "refuse", 0
    for number in (_CLONE3, _OPENAT2):
        yield _IS, number, "unknown", 0  # their flags are in memory, which a filter cannot read
    yield from _if_called(machine.clone, [(_LOAD, _FIRST, 0, 0), (_ANY_OF, _NEW_NAMESPACES, "refuse", "allow")])
    for number, offsets in machine.on_others.items():
        others: list[Step] = [step for offset in offsets for step in ((_LOAD, offset, 0, 0), (_IS, 0, 0, "refuse"))]
        yield from _if_called(number, [*others, (_IS, 0, "allow", "refuse")])
    for number, offset in machine.opens.items():
        flags: list[Step] = [(_LOAD, offset, 0, 0), (_MASK, _TRUNCATES, 0, 0)]
        flags += [(_IS, value, "refuse", 0) for value in _TRUNCATES_UNWRITTEN]
        yield from _if_called(number, [*flags, (_IS, 0, "allow", "allow")])
    known: list[Step] = [(_IS, value, "allow", 0) for value in _IOCTLS.values()]
    yield from _if_called(machine.ioctl, [(_LOAD, _SECOND, 0, 0), *known, (_IS, 0, "no_terminal", "no_terminal")])
    by_file: list[Step] = [(_IS, value, "refuse", 0) for value in (_SET_LEASE, *(() if signals else _SIGNALS_BY_FILE))]
    yield from _if_called(machine.fcntl, [(_LOAD, _SECOND, 0, 0), *by_file, (_IS, 0, "allow", "allow")])


def _no_sockets(machine: _Machine) -> Iterator[Step]:
    """The last steps: everything else is allowed."""
    for number in (machine.socket, *_RING):
        yield _IS, number, "refuse", 0
    yield _IS, machine.socketpair, 0, "allow"
    yield _LOAD, _FIRST, 0, 0
    yield _IS, socket.AF_UNIX, 0, "refuse"
    yield _LOAD, _SECOND, 0, 0
    yield _MASK, _KIND, 0, 0
    yield _IS, socket.SOCK_STREAM, "allow", 0
    yield _IS, socket.SOCK_SEQPACKET, "allow", "refuse"


def _if_called(number: int, steps: Sequence[Step]) -> list[Step]:
    """The steps for one call; each of them leads to an end."""
    return [(_IS, number, 0, len(steps)), *steps]


def _program(steps: Sequence[Step]) -> bytes:
    places = {name: at for at, name in enumerate(_ENDS, len(steps))}
    program = b""
    for following, (code, value, if_so, if_not) in enumerate(steps, 1):
        ways = (places[way] - following if isinstance(way, str) else way for way in (if_so, if_not))
        program += struct.pack("=HBBI", code, *ways, value)
    return program + b"".join(struct.pack("=HBBI", _RETURN, 0, 0, value) for value in _ENDS.values())
