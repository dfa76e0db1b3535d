"""Which processes belong to a command, and how all of them are ended.

A command is the leader of its own session. It owns its process group, its session, their descendants, every process
that carries its mark in the environment or in its resource limits (which `env -i` does not remove), and everything
below its guard (`supervisor.py`), if it has one; this finds daemons that left the group and the session. Without /proc
only the group is known, as the negative number that signals use for it.
"""

import asyncio
import hashlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from longboat.tools.process import supervisor
from longboat.tools.process.supervisor import PLACE_BITS, limits_of

MARK = supervisor.MARK
KILL_AFTER_S = 0.7
"""Between TERM and KILL: A1 grants a second for both."""
_HAS_PROC = os.path.exists("/proc/self/stat")
_LOOK_EVERY_S = 0.02
_GIVE_UP_S = 5.0
_DEAD = "ZX"
_PIECE = 256 * 1024
_LIMIT = b"Max realtime timeout"


@dataclass(frozen=True, slots=True)
class _Entry:
    state: str
    parent: int
    group: int
    session: int


def mark_of(scratch: Path) -> str:
    """What marks the commands of a workspace, by its scratch directory. The same for every server on that directory,
    so that the next one finds what a crash left behind: of one workspace, or of all of them."""
    return f"{_digest(scratch.parent)}-{_digest(scratch)}"


async def sweep(output_directory: Path) -> None:
    """End what an earlier server left running, by the directory of all its scratch directories."""
    await end(None, f"{_digest(output_directory)}-")


def _digest(path: Path) -> str:
    return hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:16]


def find(group: int | None, mark: str, *, guard: int | None = None) -> set[int]:
    """The living processes of a group, of all marks that begin with `mark`, and below the guard."""
    if not _HAS_PROC:
        return {-group} if group is not None and is_alive(-group) else set()
    # Threads of the kernel have no group; a command and its children always have one.
    table = {pid: entry for pid, entry in _table().items() if entry.group}
    found = {pid for pid, entry in table.items() if group in (entry.group, entry.session) or _marked(pid, mark)}
    children: dict[int, list[int]] = {}
    for pid, entry in table.items():
        children.setdefault(entry.parent, []).append(pid)
    if guard is not None:
        found.update(children.get(guard, ()))
    unvisited = list(found)
    while unvisited:
        new = [pid for pid in children.get(unvisited.pop(), ()) if pid not in found]
        found.update(new)
        unvisited += new
    return {pid for pid in found if table[pid].state not in _DEAD} - {os.getpid()}


def member(group: int, *, known: int | None = None) -> int | None:
    """A living process of the group; `known`, if that still is one. Cheap if none is left, which is the usual case."""
    if not _exists(-group):
        return None
    if not _HAS_PROC:
        return -group
    if known is not None and _is_member(_read(known), group):
        return known
    return next((pid for pid, entry in _table().items() if _is_member(entry, group)), None)


def is_alive(pid: int) -> bool:
    if not _HAS_PROC:
        return _exists(pid)
    entry = _read(pid)
    return entry is not None and entry.state not in _DEAD


def _is_member(entry: _Entry | None, group: int) -> bool:
    return entry is not None and entry.group == group and entry.state not in _DEAD


async def end(group: int | None, mark: str, *, guard: int | None = None) -> None:
    """Send TERM, then KILL, until no process is left. Gives up on processes that survive KILL."""
    left = find(group, mark, guard=guard)
    _signal(left, signal.SIGTERM)
    _signal(left, signal.SIGCONT)  # a stopped process gets its TERM when it continues
    deadline = time.monotonic() + KILL_AFTER_S
    # Most of them are not our children: no one tells us of their end.
    while time.monotonic() < deadline and any(is_alive(pid) for pid in left):  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_EVERY_S)
    deadline = time.monotonic() + _GIVE_UP_S
    # Looked up each time: a process can start others until it is gone.
    while (left := find(group, mark, guard=guard)) and time.monotonic() < deadline:
        _signal(left, signal.SIGKILL)
        await asyncio.sleep(_LOOK_EVERY_S)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _table() -> dict[int, _Entry]:
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return {pid: entry for pid in pids if (entry := _read(pid)) is not None}


def _read(pid: int) -> _Entry | None:
    # The name in parentheses may hold spaces and parentheses of its own.
    fields = _content(pid, "stat").rpartition(b")")[2].split(maxsplit=4)
    return _Entry(fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3])) if len(fields) > 3 else None


def _content(pid: int, name: str) -> bytes:
    """Of a file below /proc; nothing if the process is another user's, or gone. All processes are looked at while
    someone waits: a file object would take three times as long."""
    try:
        fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
    except OSError:
        return b""
    content = b""
    try:
        while piece := os.read(fd, _PIECE):
            content += piece
    except OSError:
        return b""
    finally:
        os.close(fd)
    return content


def _marked(pid: int, mark: str) -> bool:
    return f"\0{MARK}={mark}".encode() in b"\0" + _content(pid, "environ") or _marked_in_limits(pid, mark)


def _marked_in_limits(pid: int, mark: str) -> bool:
    fields = _content(pid, "limits").rpartition(_LIMIT)[2].split(maxsplit=2)
    if len(fields) < 2 or not fields[1].isdigit():
        return False  # gone, or unlimited, as for everyone else
    soft, hard = fields[0], int(fields[1])
    marked_soft, marked_hard = limits_of(mark)
    if mark.endswith("-"):
        return hard >> PLACE_BITS == marked_hard >> PLACE_BITS
    return hard == marked_hard and (mark.endswith("/") or soft == b"%d" % marked_soft)
