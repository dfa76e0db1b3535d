"""The sandbox for commands (A8): they may write only to the workspace and a temp directory, and have no network.

bubblewrap makes the stronger sandbox: the whole file system is read-only, the workspace and a private temp directory
are writable, and network, process and message namespaces are separate. `/tmp` and `/run` are private too, because the
sockets there (of containers, terminals, agents and our own server) would lead out of the sandbox. Where bubblewrap does
not work, as in most containers, Landlock is used: it denies what bubblewrap hides, and a system call filter denies all
sockets. Must not know jobs or permissions.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path

from longboat.permissions.guarded_files import READ_ONLY_IN_SANDBOX
from longboat.tools.context import ToolError
from longboat.tools.process.supervisor import KEPT_BY_ROOT
from longboat.tools.sandbox import landlock, seccomp
from longboat.tools.sandbox.denied_files import NONE_DENIED, DeniedFiles


class SandboxMode(StrEnum):
    OFF = "off"
    """No sandbox."""
    AUTO = "auto"
    """A sandbox where the system has one."""
    REQUIRED = "required"
    """A sandbox, or the command is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPolicy:
    mode: SandboxMode = SandboxMode.OFF
    workspace: Path
    temp: Path
    """The directory that the command sees as /tmp; created if it is missing."""
    hidden: tuple[Path, ...] = ()
    """Directories that are empty inside the sandbox: those with our own sockets and keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSandbox:
    """A description of the system's sandbox, for people."""

    name: str
    network: str
    """What the sandbox blocks of the network."""
    temp: str
    """Where a command finds its temp directory."""
    lack: str = ""
    """Why the stronger sandbox is not available; empty if it is."""

    def __str__(self) -> str:
        return f"{self.name} sandbox: {self.network}"


BUBBLEWRAP = FoundSandbox(name="bubblewrap", network="no network", temp="/tmp")


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxedCommand:
    """A command and its sandbox; if there is none despite the policy, the reason."""

    argv: tuple[str, ...]
    sandbox: FoundSandbox | None = None
    ruleset: landlock.Ruleset | None = None
    """What the command enters when it starts."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Variables to set for the command."""
    note: str = ""

    def hint(self, failed: bool) -> str:
        """The note about the sandbox for a command that failed."""
        if self.sandbox is None or not failed:
            return ""
        return f". It ran in a {self.sandbox}; it can write only to the workspace and {self.sandbox.temp}"


async def wrap_command(
    argv: tuple[str, ...], policy: SandboxPolicy, denied: DeniedFiles = NONE_DENIED
) -> SandboxedCommand:
    """Wrap the command as the policy requires. Raises ToolError if the system lacks the required sandbox. Inside
    bubblewrap, files that rules deny are closed; Landlock cannot close a part of a writable directory."""
    if policy.mode is SandboxMode.OFF:
        return SandboxedCommand(argv=argv)
    sandbox = await find_sandbox(policy)
    if isinstance(sandbox, str):
        if policy.mode is SandboxMode.REQUIRED:
            raise ToolError(
                f"Commands must run in a sandbox here, but there is none: {sandbox}. "
                "Tell the user to install bubblewrap, or to set the sandbox to `auto` or `off`."
            )
        return SandboxedCommand(argv=argv, note=f"not sandboxed: {sandbox}")
    policy.temp.mkdir(parents=True, exist_ok=True, mode=0o700)
    if sandbox is BUBBLEWRAP:
        return SandboxedCommand(
            argv=(shutil.which("bwrap") or "bwrap", *_walls(policy, denied), "--", *argv), sandbox=sandbox
        )
    rules = landlock.LandlockRules(
        version=landlock.version(),
        writable=(policy.workspace, policy.temp),
        closed=(*policy.hidden,),
        sieve=seccomp.without_sockets(),
    )
    ruleset = await asyncio.to_thread(landlock.Ruleset, rules)
    temp = str(policy.temp)
    return SandboxedCommand(
        argv=argv, sandbox=sandbox, ruleset=ruleset, environ={"TMPDIR": temp, "TMP": temp, "TEMP": temp}
    )


async def find_sandbox(policy: SandboxPolicy) -> FoundSandbox | str:
    """Find the sandbox for commands under this policy, or the reason why there is none."""
    return await asyncio.to_thread(examine_sandbox, policy)


def examine_sandbox(policy: SandboxPolicy) -> FoundSandbox | str:
    """Do the same, blocking; the first call takes a moment."""
    lack = bubblewrap_lacks(shutil.which("bwrap"))
    if not lack:
        return BUBBLEWRAP
    problem = _unfit(policy, landlock.version())
    return f"{lack}; {problem}" if problem else _landlock_sandbox(landlock.version(), lack)


async def sandbox_warning(policy: SandboxPolicy) -> str:
    """The warning for runs that do not ask: there is no sandbox, or only the weaker one."""
    if policy.mode is SandboxMode.OFF:
        return ""
    sandbox = await find_sandbox(policy)
    if isinstance(sandbox, str):
        return f"Commands run without a sandbox: {sandbox}." if policy.mode is SandboxMode.AUTO else ""
    return f"Commands run in the {sandbox} ({sandbox.lack})." if sandbox.lack else ""


async def describe_sandbox(policy: SandboxPolicy) -> str:
    """Describe the mode and its effect on this system."""
    if policy.mode is SandboxMode.OFF:
        return policy.mode.value
    sandbox = await find_sandbox(policy)
    without = "commands are refused" if policy.mode is SandboxMode.REQUIRED else "commands run without one"
    return f"{policy.mode.value}; {f'{without}: {sandbox}' if isinstance(sandbox, str) else f'in a {sandbox}'}"


def _landlock_sandbox(version: int, lack: str) -> FoundSandbox:
    if seccomp.without_sockets():
        network = "no network and no sockets"
    elif version < landlock.CAN_TCP:
        network = "the network is open"
    else:
        network = "no TCP, but UDP and unix sockets are open"
    if version < landlock.CAN_SCOPE:
        network += ", and it can send signals to other processes"
    return FoundSandbox(name="Landlock", network=network, temp="$TMPDIR", lack=lack)


def _unfit(policy: SandboxPolicy, version: int) -> str:
    """Say why Landlock cannot be the sandbox here; empty if it can."""
    if version == 0:
        return "the system has no Landlock either"
    if version < landlock.CAN_TRUNCATE:
        return f"the system's Landlock (version {version}) is too old to prevent truncating files: it needs Linux 6.2"
    if policy.mode is SandboxMode.REQUIRED and not seccomp.without_sockets():
        machine = os.uname().machine
        return f"Landlock cannot block all sockets, and this system ({machine}) has no filter for them"
    for path in policy.hidden:
        real = Path(os.path.realpath(path))
        if any(real.is_relative_to(os.path.realpath(place)) for place in (policy.workspace, policy.temp)):
            return f"Landlock cannot protect {path}, which is in the workspace"
    return ""


_NAMESPACES = ("--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent")
# Other users have no capabilities to begin with.
_POWERS = ("--cap-drop", "ALL", *(word for name in KEPT_BY_ROOT for word in ("--cap-add", f"CAP_{name}")))
# Who owns these files may write them without any capability, and so set what the kernel runs outside of the sandbox.
_KERNEL = tuple(
    word for name in ("sys", "irq", "bus", "fs", "sysrq-trigger") for word in ("--ro-bind-try", *2 * (f"/proc/{name}",))
)
_BASE = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run")


def _walls(policy: SandboxPolicy, denied: DeniedFiles) -> list[str]:
    workspace, temp = str(policy.workspace), str(policy.temp)
    # The order matters: a later mount covers an earlier one, and the workspace may be in /tmp.
    walls = [*bubblewrap_start(), "--bind", temp, "/tmp", "--bind", workspace, workspace]
    for name in READ_ONLY_IN_SANDBOX:
        # Read-only: files that people run outside the sandbox, or that say what the agent may do.
        real = (policy.workspace / name).resolve()
        if real.exists() and real.is_relative_to(policy.workspace):
            walls += ["--ro-bind", str(real), str(real)]
    for path in map(str, denied.unwritable):
        walls += ["--ro-bind-try", path, path]
    return [*walls, *bubblewrap_masks((*policy.hidden, *denied.unreadable))]


def bubblewrap_masks(paths: Iterable[Path]) -> list[str]:
    """The options that close these paths: a directory is empty inside, and a file cannot be opened."""
    masks: list[str] = []
    emptied: set[Path] = set()
    for path in sorted(paths):
        if not emptied.isdisjoint(path.parents):
            continue  # already hidden, and nothing can be mounted inside any more
        if path.is_dir():
            emptied.add(path)
            masks += ["--tmpfs", str(path), "--remount-ro", str(path)]
        elif path.exists():
            masks += ["--ro-bind", os.devnull, str(path)]  # mounted so that devices cannot be opened
    return masks


def bubblewrap_start() -> tuple[str, ...]:
    """The first options of bubblewrap: a read-only file system, no network, and no processes of others."""
    return (*_NAMESPACES, *_POWERS, *_BASE, *_KERNEL) if os.geteuid() == 0 else (*_NAMESPACES, *_BASE)


@cache
def bubblewrap_lacks(bwrap: str | None) -> str:
    """Say why bubblewrap does not work on this system; empty if it does. Containers often forbid namespaces."""
    if bwrap is None:
        return "bubblewrap (`bwrap`) is not installed"
    try:
        trial = [bwrap, *bubblewrap_start(), "--", "true"]
        done = subprocess.run(trial, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start ({error})"
    if done.returncode:
        return f"bubblewrap does not work on this system ({done.stderr.strip()[:200] or done.returncode})"
    return ""
