"""A filter for system calls, for what Landlock cannot refuse: whoever takes it upon itself makes no socket any more.

The filter is only written here, as a program for the kernel (classic BPF), and `keeper.py` installs it. Of sockets that
come in pairs it leaves those that stay with their other end, as asyncio and Node.js need them. One made for datagrams
could be turned on any other socket. Must not know jobs or policies.
"""

import ctypes
import errno
import os
import socket
import struct
import sys
from dataclasses import dataclass
from functools import cache

from longboat.tools.keeper import PR_SET_SECCOMP, SECCOMP_MODE_FILTER

_libc = ctypes.CDLL(None, use_errno=True)
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EACCES
_LOAD, _MASK, _IS, _FROM, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
"""Where they are in what the kernel shows of a call. Of an argument, the lower half: the kernel too reads no more."""
_IO_URING_SETUP = 425
"""The same everywhere. A ring makes sockets without a call."""
_X32 = 0x40000000
"""From here on are x86_64's calls by other numbers; no other machine has any there."""
_KIND = 0xF
"""The rest of a socket's type is flags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    architecture: int
    """How the kernel names whose calls they are."""
    socket: int
    socketpair: int


_MACHINES = {
    "x86_64": _Machine(architecture=0xC000003E, socket=41, socketpair=53),
    "aarch64": _Machine(architecture=0xC00000B7, socket=198, socketpair=199),
}


@cache
def without_sockets() -> bytes:
    """The filter for this system; empty where there is none."""
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_void_p) != 8 or not _has_filters():
        return b""
    machine = _MACHINES.get(os.uname().machine)
    return _written(machine) if machine is not None else b""


def _has_filters() -> bool:
    """The kernel looks for the program only if it would take one. That there is none changes nothing for us."""
    _libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, None, 0, 0)
    return ctypes.get_errno() == errno.EFAULT


def _written(machine: _Machine) -> bytes:
    steps = (
        (_LOAD, _ARCHITECTURE, "", ""),
        # All numbers mean something else there. An error would not do: of some programs, no call to exit succeeds.
        (_IS, machine.architecture, "", "kill"),
        (_LOAD, _NUMBER, "", ""),
        (_FROM, _X32, "refuse", ""),
        (_IS, machine.socket, "refuse", ""),
        (_IS, _IO_URING_SETUP, "refuse", ""),
        (_IS, machine.socketpair, "", "allow"),
        (_LOAD, _FIRST, "", ""),
        (_IS, socket.AF_UNIX, "", "refuse"),
        (_LOAD, _SECOND, "", ""),
        (_MASK, _KIND, "", ""),
        (_IS, socket.SOCK_STREAM, "allow", ""),
        (_IS, socket.SOCK_SEQPACKET, "allow", "refuse"),
    )
    ends = {"allow": _ALLOW, "refuse": _REFUSE, "kill": _KILL}
    places = {name: at for at, name in enumerate(ends, len(steps))}
    program = b""
    for following, (code, value, if_so, if_not) in enumerate(steps, 1):
        ways = (places.get(way, following) - following for way in (if_so, if_not))
        program += struct.pack("=HBBI", code, *ways, value)
    return program + b"".join(struct.pack("=HBBI", _RETURN, 0, 0, value) for value in ends.values())
