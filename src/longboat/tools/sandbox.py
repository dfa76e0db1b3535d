"""A command in a box (A8): it may write to the workspace and to temp alone, and reaches no network.

The box is bubblewrap's: the whole file system read-only, the workspace and a temp directory of its own writable, its
own network, process and message namespaces. `/tmp` and `/run` inside are not those outside, since the sockets there (of
containers, terminals, agents and of our own server) would lead out of the box. Must not know jobs or permissions.
"""

import asyncio
import shutil
import subprocess
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from longboat.tools.kit import ToolError


class SandboxMode(StrEnum):
    OFF = "off"
    """No box."""
    AUTO = "auto"
    """A box where the system has one."""
    REQUIRED = "required"
    """A box, or the command is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPolicy:
    mode: SandboxMode = SandboxMode.OFF
    workspace: Path
    temp: Path
    """What the command sees as /tmp; made if it is not there."""
    hidden: tuple[Path, ...] = ()
    """Directories that are empty inside: those of our own sockets and keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxed:
    """What to run, whether that is in a box, and if not in spite of the policy, why."""

    argv: tuple[str, ...]
    boxed: bool = False
    note: str = ""


async def wrap(argv: tuple[str, ...], policy: SandboxPolicy) -> Boxed:
    """The command as the policy wants it run; a ToolError if it wants what the system does not have."""
    if policy.mode is SandboxMode.OFF:
        return Boxed(argv=argv)
    bwrap = shutil.which("bwrap")
    problem = await asyncio.to_thread(_trial, bwrap)
    if bwrap is not None and not problem:
        policy.temp.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Boxed(argv=(bwrap, *_walls(policy), "--", *argv), boxed=True)
    if policy.mode is SandboxMode.REQUIRED:
        raise ToolError(
            f"Commands must run in a sandbox here, and there is none: {problem}. "
            "Tell the user: install bubblewrap, or set the sandbox to `auto` or `off`."
        )
    return Boxed(argv=argv, note=f"not sandboxed: {problem}")


async def obstacle(mode: SandboxMode) -> str:
    """Why commands run without the box that was wished for; empty if they do not, or are refused."""
    return await asyncio.to_thread(_trial, shutil.which("bwrap")) if mode is SandboxMode.AUTO else ""


GUARDED = (".git/config", ".git/hooks", "longboat.json")
_NAMESPACES = ("--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent")
_BASE = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run")


def _walls(policy: SandboxPolicy) -> list[str]:
    workspace, temp = str(policy.workspace), str(policy.temp)
    # The order counts: a later mount covers an earlier one, and the workspace may lie in /tmp.
    walls = [*_NAMESPACES, *_BASE, "--bind", temp, "/tmp", "--bind", workspace, workspace]
    for name in GUARDED:
        # What is run by people outside of the box, or says what the agent may do, is not written from inside.
        if (policy.workspace / name).exists():
            walls += ["--ro-bind", f"{workspace}/{name}", f"{workspace}/{name}"]
    for path in policy.hidden:
        if path.is_dir():
            walls += ["--tmpfs", str(path)]
    return walls


@cache
def _trial(bwrap: str | None) -> str:
    """What is wrong with the box on this system; empty if it works. Containers often forbid namespaces."""
    if bwrap is None:
        return "bubblewrap (`bwrap`) is not installed"
    try:
        done = subprocess.run(
            [bwrap, *_NAMESPACES, *_BASE, "--", "true"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start ({error})"
    if done.returncode:
        return f"bubblewrap does not work on this system ({done.stderr.strip()[:200] or done.returncode})"
    return ""
