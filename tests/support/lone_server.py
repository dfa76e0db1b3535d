"""A server that does nothing but run one command, and whoever waits until nobody of it is left.

`python lone_server.py attack DIRECTORY COMMAND` runs the command to its end; `killed DIRECTORY COMMAND` runs it again
and again in servers that `kill -9` ends at one line of starting it after the other. Exits with 0 once every process
that was ever started is gone: as the subreaper of them all this program sees the last of them. With 1 if that takes too
long, and then it kills them.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.process import job, supervisor_client
from longboat.tools.process.bash import BashTool
from longboat.tools.process.jobs import Jobs

GIVE_UP_S = 20
STRIDE = 2
"""Lines between two kills: each costs a supervisor's start."""
PR_SET_CHILD_SUBREAPER = 36
REACHED, NOT_REACHED = 0, 3
STARTING = (supervisor_client.__file__, job.__file__)


def main(mode: str, directory: str, command: str) -> int:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGALRM, lambda *_: give_up())
    line, code = 0, REACHED
    while code == REACHED:
        signal.alarm(GIVE_UP_S)
        code = in_child(Path(directory), command, kill_at=line if mode == "killed" else None)
        line += STRIDE
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
        if mode == "attack":
            return 0
    print(f"killed at {line // STRIDE - 1} instants")
    return 0 if line > STRIDE else 1


def in_child(directory: Path, command: str, *, kill_at: int | None) -> int:
    pid = os.fork()
    if pid == 0:
        asyncio.run(serve(directory, command, kill_at))
        os._exit(NOT_REACHED)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return REACHED if code == -signal.SIGKILL else code


async def serve(directory: Path, command: str, kill_at: int | None) -> None:
    jobs, context = Jobs(directory / "scratch"), OpenToolContext(directory)
    if kill_at is None:
        await context.use(BashTool(jobs), command=command)
        while pending := jobs._tasks.pending:
            await asyncio.wait(pending)
        os._exit(REACHED)
    sys.settrace(dying_at(kill_at))
    await context.use(BashTool(jobs), command=command, run_in_background=True)


def dying_at(left: int) -> Any:
    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in STARTING:
            return None
        if event == "line":
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


def give_up() -> None:
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    print("still there:", file=sys.stderr)
    while pids := children.read_text().split():
        for pid in pids:
            print(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(), file=sys.stderr)
            os.kill(int(pid), signal.SIGKILL)
            os.waitpid(int(pid), 0)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
