"""The sandbox (A8): `off`, `auto`, `required`, with the real bubblewrap where it works."""

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from other_processes import wait_until

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.process import process_tree
from longboat.tools.process.bash import BashTool
from longboat.tools.process.jobs import Jobs
from longboat.tools.sandbox.sandbox import (
    BUBBLEWRAP,
    SandboxedCommand,
    SandboxMode,
    SandboxPolicy,
    describe_sandbox,
    find_sandbox,
    sandbox_warning,
    wrap_command,
)
from parts import how


def _box_works() -> bool:
    trial = ["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-net", "--unshare-pid", "true"]
    try:
        return subprocess.run(trial, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


needs_box = pytest.mark.skipif(not _box_works(), reason=f"{how('bwrap')} (or it is not allowed here)")


@pytest.fixture
def context(tmp_path: Path) -> OpenToolContext:
    (tmp_path / "work").mkdir()
    return OpenToolContext(tmp_path / "work")


@pytest.fixture
async def jobs(tmp_path: Path) -> AsyncIterator[Jobs]:
    jobs = Jobs(tmp_path / "scratch")
    yield jobs
    await jobs.aclose()


def policy(context: OpenToolContext, mode: SandboxMode, *hidden: Path) -> SandboxPolicy:
    return SandboxPolicy(mode=mode, workspace=context.directory, temp=context.directory.parent / "temp", hidden=hidden)


async def test_off_leaves_the_command_as_it_is(context: OpenToolContext) -> None:
    assert await wrap_command(("true",), policy(context, SandboxMode.OFF)) == SandboxedCommand(argv=("true",))


@pytest.fixture(params=["missing", "broken"])
def problem(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A system without a box, and what is said of it."""
    monkeypatch.setattr("longboat.tools.sandbox.landlock.version", lambda: 0)
    if request.param == "missing":
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))
        return "is not installed"
    # What a container without user namespaces has.
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return "No permissions to create new namespace"


async def test_where_there_is_no_box_auto_runs_without_and_says_so_and_required_refuses(
    problem: str, context: OpenToolContext, jobs: Jobs
) -> None:
    result = await context.use(BashTool(jobs, sandbox=policy(context, SandboxMode.AUTO)), command="echo ran")
    assert result.content.startswith("ran\n")
    assert "(not sandboxed: " in context.needs[0].detail
    assert problem in context.needs[0].detail
    assert "; the system has no Landlock either)" in context.needs[0].detail
    with pytest.raises(ToolError, match=problem):
        await context.use(BashTool(jobs, sandbox=policy(context, SandboxMode.REQUIRED)), command="touch ran")
    assert not (context.directory / "ran").exists()


@needs_box
async def test_a_boxed_command_writes_to_the_workspace_and_temp_alone(context: OpenToolContext, jobs: Jobs) -> None:
    bash = BashTool(jobs, sandbox=policy(context, SandboxMode.REQUIRED))
    with TemporaryDirectory(dir="/var/tmp") as outside:
        command = f"echo in > inside && echo tmp > /tmp/kept && cat /etc/passwd && echo out > {outside}/file"
        result = await context.use(bash, command=command)
        assert os.listdir(outside) == []
    assert "Read-only file system\n[exit code 1 " in result.content
    assert "It ran in a bubblewrap sandbox: no network; it can write only to the workspace and /tmp]" in result.content
    assert "(in a bubblewrap sandbox: no network)" in context.needs[0].detail
    assert (context.directory / "inside").read_text() == "in\n"
    again = await context.use(bash, command="cat /tmp/kept")
    assert again.content.startswith("tmp\n"), "temp is kept from command to command"


@needs_box
async def test_a_boxed_command_changes_no_guarded_file_and_can_still_commit(
    context: OpenToolContext, jobs: Jobs
) -> None:
    await context.use(BashTool(jobs), command="git init -q")
    for name in ("longboat.json", ".mcp.json", ".agents/commands/x.md", ".git/hooks/x", ".git/config", "linked/y.md"):
        (context.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (context.directory / name).touch()
    (context.directory / ".claude").symlink_to("linked")
    bash = BashTool(jobs, sandbox=policy(context, SandboxMode.REQUIRED))
    changes = (
        "longboat.json",
        ".mcp.json",
        ".agents/new",
        ".git/hooks/x",
        ".git/config",
        ".claude/y.md",
        "linked/y.md",
    )
    for name in changes:
        result = await context.use(bash, command=f"echo x >> {name}")
        assert "Read-only file system" in result.content, name
    commit = "git add -A && git -c user.name=a -c user.email=a@b commit -qm x && git log --oneline"
    assert not (await context.use(bash, command=commit)).is_error


@needs_box
async def test_a_boxed_command_of_root_does_not_mount_its_way_out(context: OpenToolContext, jobs: Jobs) -> None:
    bash = BashTool(jobs, sandbox=policy(context, SandboxMode.REQUIRED))
    with TemporaryDirectory(dir="/var/tmp") as outside:
        result = await context.use(bash, command=f"mount -o remount,rw,bind /; touch {outside}/made")
        assert os.listdir(outside) == []
    assert "Read-only file system" in result.content
    owned = await context.use(bash, command="touch a && chown 0:0 a && chmod 000 a && cat a")
    assert owned.is_error is (os.geteuid() != 0), "root still owns and reads what it likes"


@needs_box
async def test_bubblewrap_is_chosen_where_it_works(context: OpenToolContext) -> None:
    box = policy(context, SandboxMode.AUTO)
    assert await find_sandbox(box) is BUBBLEWRAP
    assert (await describe_sandbox(box), await sandbox_warning(box)) == (
        "auto; in a bubblewrap sandbox: no network",
        "",
    )


@needs_box
async def test_a_boxed_command_reaches_no_network_and_no_socket_of_ours(
    context: OpenToolContext, jobs: Jobs, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    reach = "import socket, sys; s = socket.socket({}); s.connect({!r}); print('reached')"
    with (
        socket.create_server(("127.0.0.1", 0)) as inet,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        unix.bind(str(tmp_path / "run" / "sock"))
        unix.listen()
        connects = [
            reach.format("socket.AF_INET", inet.getsockname()),
            reach.format("socket.AF_UNIX", str(tmp_path / "run" / "sock")),
        ]
        for mode, count in ((SandboxMode.OFF, 2), (SandboxMode.REQUIRED, 0)):
            bash = BashTool(jobs, sandbox=policy(context, mode, tmp_path / "run"))
            results = [await context.use(bash, command=f'python3 -c "{connect}"') for connect in connects]
            assert sum("reached" in result.content for result in results) == count


@needs_box
async def test_a_canceled_boxed_command_is_gone_with_all_that_it_started(context: OpenToolContext, jobs: Jobs) -> None:
    bash = BashTool(jobs, sandbox=policy(context, SandboxMode.REQUIRED))
    command = "trap '' TERM; (setsid sleep 1000 &); touch begun; while :; do sleep 0.1; done"
    running = asyncio.create_task(context.use(bash, command=command))
    await wait_until((context.directory / "begun").exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert process_tree.find(None, f"{jobs.token}/") == set()
