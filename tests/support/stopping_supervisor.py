"""`supervisor.py` whose n-th guard stops before its n-th line, asks what to do, and then goes on or is killed.

`python -I -S stopping_supervisor.py SUPERVISOR ADDRESS TIMER`: it asks at the unix socket ADDRESS. The answer `k` kills
it, every other lets it go on. The command's own process is left alone.
"""

import importlib.util
import itertools
import os
import signal
import socket
import sys
from types import FrameType
from typing import Any

PATH, ADDRESS, TIMER = sys.argv[1:]
spec = importlib.util.spec_from_file_location("supervisor", PATH)
assert spec is not None
assert spec.loader is not None
supervisor: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(supervisor)
fork_guard, guard = supervisor._fork_guard, supervisor._guard
number = itertools.count()
limit = [0]


def next_fork_guard(*arguments: Any) -> Any:
    limit[0] = next(number)
    return fork_guard(*arguments)


def stopping_guard(*arguments: Any) -> None:
    own, left = os.getpid(), limit[0]

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename != PATH or os.getpid() != own or frame.f_code.co_name == "<lambda>":
            return None  # the last one handles a signal: it would count in a guard that only waits
        if event == "line":
            left -= 1
            if left == -1:
                ask()
        return trace

    sys.settrace(trace)
    guard(*arguments)


def ask() -> None:
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(ADDRESS)
        if wire.recv(1) == b"k":
            os.kill(os.getpid(), signal.SIGKILL)


supervisor._fork_guard, supervisor._guard = next_fork_guard, stopping_guard
supervisor.main(int(TIMER))
