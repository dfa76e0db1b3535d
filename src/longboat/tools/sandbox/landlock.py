"""Rules for Landlock, the kernel's sandbox: what a command and everything it starts may read, write and reach.

Rulesets are only built here; the process to be restricted applies one to itself (`supervisor.py`), so that the server
is not restricted. Rules can only allow, and apply to everything below a directory. A path is therefore closed by
allowing everything beside it. Must not know jobs or policies.
"""

import ctypes
import os
import stat
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CAN_REFER, CAN_TRUNCATE, CAN_TCP, CAN_IOCTL, CAN_SCOPE = 2, 3, 4, 5, 6
"""The versions of the kernel's interface that can deny these: Linux 5.19, 6.2, 6.7, 6.10, 6.12."""
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))
SHARED = "/dev/shm"  # not a temp file of ours: where semaphores and shared memory live
CLOSED = ("/dev", "/run", "/tmp")
"""Closed, except for what is opened by name, because these hold sockets, terminals, disks and the files of others."""

_libc = ctypes.CDLL(None, use_errno=True)
_CREATE_RULESET, _ADD_RULE = 444, 445
_GET_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _MAKE_CHAR, _MAKE_BLOCK = 1, 2, 4, 8, 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE
_OF_FILES = _READ | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
_TCP = 0b11
"""Bind and connect."""
_SCOPES = 0b11
"""Abstract unix sockets and signals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LandlockRules:
    version: int
    writable: tuple[Path, ...]
    readable: tuple[Path, ...] = ()
    """Readable although it is below a closed directory; anything closed below it stays closed."""
    closed: tuple[Path, ...] = ()
    """Nothing below these can be read, except what is writable or readable."""
    shared_memory: bool = True
    """Whether it may write to /dev/shm."""
    sieve: bytes = b""
    """The system call filter (`seccomp.py`) to install with it; empty if there is none."""
    file_size: int = 0
    """The largest file that it may write, in bytes; 0 means no limit."""


class _Attributes(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


@cache
def version() -> int:
    """Return the version of the kernel's Landlock; 0 if there is none, or it is turned off or forbidden."""
    if sys.platform != "linux":
        return 0
    try:
        return _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_GET_VERSION))
    except OSError:
        return 0


class Ruleset:
    """A ruleset in the kernel: a file descriptor to pass to the process to be restricted. Closed when this object is no
    longer referenced."""

    def __init__(self, rules: LandlockRules) -> None:
        """Blocking. Raises OSError."""
        self.fd = _created(rules)
        self.sieve = rules.sieve
        self.file_size = rules.file_size
        weakref.finalize(self, os.close, self.fd)


def _created(rules: LandlockRules) -> int:
    handled = _handled(rules.version)
    asked = _Attributes(
        files=handled,
        network=_TCP if rules.version >= CAN_TCP else 0,
        scoped=_SCOPES if rules.version >= CAN_SCOPE else 0,
    )
    # A kernel accepts fields it does not know if they are zero.
    fd = _syscall(_CREATE_RULESET, ctypes.byref(asked), ctypes.c_size_t(ctypes.sizeof(asked)), ctypes.c_uint32(0))
    try:
        _fill(fd, rules, handled)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _fill(fd: int, rules: LandlockRules, handled: int) -> None:
    _allow(fd, "/", _READ_DIR)
    closed = {os.path.realpath(path) for path in (*map(Path, CLOSED), *rules.closed)}
    for place in ("/", *map(os.path.realpath, rules.readable)):
        for path in _open_ones(place, closed):
            _try_allow(fd, path, _READ)
    for path in DEVICES:
        _try_allow(fd, path, _OF_FILES & handled)
    writing = handled & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV)
    if rules.shared_memory:
        _try_allow(fd, SHARED, writing)
    for directory in rules.writable:
        _allow(fd, os.path.realpath(directory), writing)


def _handled(version: int) -> int:
    """Return every file right that this version knows."""
    known = 13 + (version >= CAN_REFER) + (version >= CAN_TRUNCATE) + (version >= CAN_IOCTL)
    return (1 << known) - 1


def _open_ones(directory: str, closed: set[str]) -> Iterator[str]:
    """Name everything that is not closed, with as few paths as possible. The target of a link is named at its own
    place."""
    leading = {path for path in closed if path.startswith(f"{directory.rstrip('/')}/")}
    if not leading:
        yield directory
        return
    try:
        entries = [entry.path for entry in os.scandir(directory) if not entry.is_symlink()]
    except OSError:  # can be entered but not listed, as is usual for /home
        depth = len(directory.rstrip("/").split("/")) + 1
        entries = ["/".join(path.split("/")[:depth]) for path in leading]
    for path in entries:
        if path not in closed:
            yield from _open_ones(path, leading)


def _try_allow(fd: int, path: str, rights: int) -> None:
    try:
        _allow(fd, path, rights)
    except OSError:
        return  # gone, or we may not enter it: it stays closed


def _allow(ruleset_fd: int, path: str, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _OF_FILES
        rule = _Beneath(allowed=rights, parent=fd)
        _syscall(_ADD_RULE, ctypes.c_int(ruleset_fd), _PATH_BENEATH, ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(fd)


def _syscall(number: int, *arguments: object) -> int:
    """Make a system call. The numbers are the same on every machine that Linux runs on today."""
    done: int = _libc.syscall(number, *arguments)
    if done < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return done
