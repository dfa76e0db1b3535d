"""The kernel's own walls around commands, where bubblewrap is missing (A8): Landlock and a filter."""

from pathlib import Path

import pytest

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.sandbox import landlock, seccomp
from longboat.tools.sandbox.sandbox import SandboxMode, SandboxPolicy

VERSION = landlock.version()
WALLS = "Landlock sandbox: no network and no sockets"


def needs(version: int, linux: str) -> pytest.MarkDecorator:
    """The version of Landlock, and the kernel that has it."""
    return pytest.mark.skipif(
        version > VERSION, reason=f"needs Linux {linux} with Landlock; this kernel's has version {VERSION}"
    )


needs_landlock = pytest.mark.skipif(
    VERSION < landlock.CAN_TRUNCATE or not seccomp.without_sockets(),
    reason=f"needs Linux 6.2 with Landlock and a filter for system calls; this kernel's Landlock has version {VERSION}",
)


def policy(context: OpenToolContext, mode: SandboxMode = SandboxMode.REQUIRED, *hidden: Path) -> SandboxPolicy:
    return SandboxPolicy(mode=mode, workspace=context.directory, temp=context.directory.parent / "temp", hidden=hidden)
