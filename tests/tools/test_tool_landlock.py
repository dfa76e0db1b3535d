"""The sandbox where bubblewrap is missing (A8): Landlock, the kernel's own, with the real one where it is there."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from descriptors import open_files
from other_processes import wait_until
from walls import VERSION, WALLS, needs, needs_landlock, policy

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.process import process_tree
from longboat.tools.process.bash import BashTool
from longboat.tools.process.job import Launch
from longboat.tools.process.jobs import Jobs
from longboat.tools.sandbox import landlock
from longboat.tools.sandbox.sandbox import SandboxMode, describe_sandbox, find_sandbox, sandbox_warning, wrap_command

pytest_plugins = ("walled",)
pytestmark = pytest.mark.usefixtures("no_bwrap")

needs_scopes = needs(landlock.CAN_SCOPE, "6.12")
CONNECT = "import socket; socket.create_connection(('127.0.0.1', {}), 5); print('reached')"


@pytest.fixture
def hidden() -> Iterator[Path]:
    """Where Longboat's own files are, beside those of others."""
    with TemporaryDirectory(dir="/var/tmp") as path:
        own = Path(path) / "share" / "longboat"
        own.mkdir(parents=True)
        (own / "token").write_text("secret\n")
        (Path(path) / "share" / "other").write_text("other\n")
        (Path(path) / "link").symlink_to(own)
        yield own


@needs_landlock
@pytest.mark.parametrize("kept", [True, False])
async def test_a_command_writes_to_the_workspace_and_temp_alone(
    context: OpenToolContext, jobs: Jobs, outside: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Below a guard, and where there is no supervisor."""
    if not kept:
        monkeypatch.setattr("longboat.tools.process.supervisor_client._IS_POSSIBLE", False)
    bash = BashTool(jobs, sandbox=policy(context))
    command = f"echo in > inside && echo tmp > $TMPDIR/kept && cat {outside}/file && echo out > {outside}/made"
    result = await context.use(bash, command=command)
    assert "theirs" in result.content
    assert "made: Permission denied\n[exit code 1 " in result.content
    assert f"It ran in a {WALLS}" in result.content
    assert "it can write only to the workspace and $TMPDIR]" in result.content
    assert f"(in a {WALLS}" in context.needs[0].detail
    assert os.listdir(outside) == ["file"]
    assert (context.directory / "inside").read_text() == "in\n"
    again = await context.use(bash, command="cat $(python3 -c 'import tempfile; print(tempfile.gettempdir())')/kept")
    assert again.content.startswith("tmp\n"), "temp is kept from command to command"
    assert "Permission denied" in (await context.use(bash, command="echo > /tmp/longboat-was-here")).content


@needs_landlock
@pytest.mark.parametrize(
    "command",
    [
        "echo mine > {}/file",
        "echo more >> {}/file",
        "truncate -s 0 {}/file",
        "rm {}/file",
        "mv {}/file .",
        "touch new && mv -f new {}/file",
        "mkdir {}/new",
        "ln -s /etc/passwd {}/new",
        "ln {}/file hard && echo mine > hard",
        "ln -s {}/file soft && echo mine > soft",
        "ln -s {} way && echo mine > way/file",
        "ln -s {} way && echo mine > way/../$(basename {})/new",
        "echo mine > /proc/self/root{}/file",
        "cd {} && echo mine > file",
        "exec 3< {}/file && echo mine > /proc/self/fd/3",
        "mount --bind . {}",
        "(setsid sh -c 'echo mine > {}/file; echo $? > status') & wait; exit $(cat status)",
    ],
)
async def test_there_is_no_way_to_write_outside(
    context: OpenToolContext, jobs: Jobs, outside: Path, command: str
) -> None:
    result = await context.use(BashTool(jobs, sandbox=policy(context)), command=command.replace("{}", str(outside)))
    assert result.is_error, result.content
    assert os.listdir(outside) == ["file"]
    assert (outside / "file").read_text() == "theirs\n"


@needs_landlock
async def test_no_tcp_for_a_command_and_for_what_it_starts(context: OpenToolContext, jobs: Jobs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        script = CONNECT.format(listener.getsockname()[1])
        (context.directory / "connect.py").write_text(script)
        (context.directory / "listen.py").write_text("import socket; socket.create_server(('127.0.0.1', 0))")
        for command in ("python3 connect.py", "sh -c '(setsid python3 connect.py) & wait $!'", "python3 listen.py"):
            result = await context.use(BashTool(jobs, sandbox=policy(context)), command=command)
            assert "PermissionError" in result.content
            assert result.is_error
        free = await context.use(BashTool(jobs, sandbox=policy(context, SandboxMode.OFF)), command="python3 connect.py")
        assert free.content.startswith("reached\n")


@needs_scopes
async def test_no_signals_to_others(context: OpenToolContext, jobs: Jobs) -> None:
    bash = BashTool(jobs, sandbox=policy(context))
    for pid in (str(os.getpid()), "$PPID"):
        told = await context.use(bash, command=f"kill -0 {pid}")
        assert "Operation not permitted" in told.content, "neither the server nor the guard"
    assert not (await context.use(bash, command="sleep 100 & kill $!")).is_error, "its own, it may"


@needs_landlock
@pytest.mark.parametrize(
    "command",
    [
        "cat {}/token",
        "cat {}/../../link/token",
        "ln -s {} way; cat way/token",
        "ln {}/token . ; cat token",
        "mv {}/token . ; cat token",
        "cp -r {} copy; cat copy/token",
        "cat /proc/self/root{}/token",
        "tr '\\0' '\\n' < /proc/SERVER/environ | grep -q . && echo secret",
    ],
)
async def test_what_is_longboats_own_cannot_be_read(
    context: OpenToolContext, jobs: Jobs, hidden: Path, command: str
) -> None:
    """Nor the environment of the server, which has keys; what lies beside it can."""
    bash = BashTool(jobs, sandbox=policy(context, SandboxMode.REQUIRED, hidden))
    command = command.replace("{}", str(hidden)).replace("SERVER", str(os.getpid()))
    result = await context.use(bash, command=command)
    assert "secret" not in result.content
    assert result.is_error
    assert (hidden / "token").read_text() == "secret\n"
    beside = await context.use(bash, command=f"cat {hidden.parent}/other; ls {hidden.parent}")
    assert beside.content.startswith("other\nlongboat\nother\n")


@needs_landlock
async def test_tmp_is_closed_but_for_the_workspace_and_temp(
    context: OpenToolContext, jobs: Jobs, tmp_path: Path
) -> None:
    (tmp_path / "beside").write_text("theirs\n")
    assert str(tmp_path).startswith("/tmp/"), "pytest makes it there"
    result = await context.use(BashTool(jobs, sandbox=policy(context)), command="cat ../beside")
    assert "Permission denied" in result.content


@needs_landlock
async def test_git_python_and_the_usual_devices_work_inside(context: OpenToolContext, jobs: Jobs) -> None:
    bash = BashTool(jobs, sandbox=policy(context))
    git = "git init -q . && echo 1 > a && git add a && git -c user.name=a -c user.email=a@b commit -qm one"
    assert not (result := await context.use(bash, command=git)).is_error, result.content
    moved = await context.use(
        bash, command="mkdir -p x/y && git mv a x/y/b && git status --short && git log --format=%s"
    )
    assert moved.content.startswith("R  a -> x/y/b\none\n")
    (context.directory / "many.py").write_text(
        "import asyncio, concurrent.futures as f, multiprocessing, socket, subprocess, tempfile\n"
        "if __name__ == '__main__':\n"
        "    tempfile.TemporaryFile().write(b'x')\n"
        "    with f.ProcessPoolExecutor(2) as pool: print(sum(pool.map(abs, range(-3, 1))))\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool: print(sum(pool.map(abs, range(-3, 1))))\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool: print(sum(pool.map(abs, range(-3, 1))))\n"
        "    async def main(): return await (await asyncio.create_subprocess_exec('true')).wait()\n"
        "    print(asyncio.run(main()), subprocess.run(['ls', '-l'], capture_output=True).returncode)\n"
        "    print([s.type.name for kind in (1, 5) for s in socket.socketpair(type=kind)][::2])\n"
    )
    many = await context.use(bash, command="python3 many.py")
    assert many.content.startswith("6\n6\n6\n0 0\n['SOCK_STREAM', 'SOCK_SEQPACKET']\n"), many.content
    devices = "echo no > /dev/null; head -c 4 /dev/urandom | wc -c; echo out > /dev/stdout; echo err > /dev/stderr"
    assert (await context.use(bash, command=devices)).content.startswith("4\nout\nerr\n")
    assert (await context.use(bash, command="yes | head -n 1; echo ${PIPESTATUS[0]}")).content.startswith(
        f"y\n{128 + signal.SIGPIPE}\n"
    )


@needs_landlock
async def test_the_server_and_its_other_commands_are_not_held(
    context: OpenToolContext, jobs: Jobs, outside: Path
) -> None:
    before = open_rulesets()  # earlier tests' rulesets may still wait to be collected
    await context.use(BashTool(jobs, sandbox=policy(context)), command="true")
    (outside / "server").write_text("free")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        socket.create_connection(listener.getsockname()).close()
    command = f"echo x > {outside}/command && python3 -c 'import socket; socket.socket()'"
    free = await context.use(BashTool(jobs, sandbox=policy(context, SandboxMode.OFF)), command=command)
    assert not free.is_error, "the same supervisor has started it"
    await context.use(BashTool(jobs, sandbox=policy(context)), command="true")
    assert open_rulesets() <= before, "no ruleset is left open"


def open_rulesets() -> int:
    return sum("landlock" in name for name in open_files())


@needs_landlock
async def test_a_command_gets_no_files_but_its_own(context: OpenToolContext, jobs: Jobs) -> None:
    """The ruleset too is closed before the command begins."""
    result = await context.use(BashTool(jobs, sandbox=policy(context)), command="ls /proc/self/fd | wc -l")
    assert result.content.startswith("4\n"), "0, 1, 2 and the listing"


@needs_landlock
@pytest.mark.parametrize("kept", [True, False])
async def test_a_fenced_command_that_is_not_there_is_told(
    context: OpenToolContext, jobs: Jobs, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    if not kept:
        monkeypatch.setattr("longboat.tools.process.supervisor_client._IS_POSSIBLE", False)
    ruleset = (await wrap_command(("x",), policy(context))).ruleset
    launch = Launch(command="x", argv=("/no/program",), directory=context.directory, environ={}, ruleset=ruleset)
    if kept:
        with pytest.raises(ToolError, match="No such file"):
            await jobs.start(launch)
    else:
        job = await jobs.start(launch)
        await job.wait_ended()
        assert job.exit_code == 127
        assert "No such file" in job.read("me")


@needs_landlock
async def test_a_canceled_fenced_command_is_gone_with_all_that_it_started(context: OpenToolContext, jobs: Jobs) -> None:
    command = "trap '' TERM; (setsid env -i sleep 1000 &); touch begun; while :; do sleep 0.1; done"
    running = asyncio.create_task(context.use(BashTool(jobs, sandbox=policy(context)), command=command))
    await wait_until((context.directory / "begun").exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert process_tree.find(None, f"{jobs.token}/") == set()


@needs_landlock
async def test_a_guard_that_did_not_get_the_fence_starts_nothing(context: OpenToolContext, jobs: Jobs) -> None:
    """A message may arrive without its last files, where too many are open."""
    await context.use(BashTool(jobs, sandbox=policy(context)), command="true")
    line = jobs._supervisor._line
    assert line is not None
    ours, theirs = socket.socketpair()
    plan = os.memfd_create("plan")
    try:
        os.write(plan, json.dumps([["/usr/bin/touch", "ran"], str(context.directory), {}, "", 0]).encode())
        socket.send_fds(line, [bytes([4])], [plan, plan, theirs.fileno()])
    finally:
        os.close(plan)
        theirs.close()
    with ours:
        ours.setblocking(False)
        assert await asyncio.get_running_loop().sock_recv(ours, 100) == b"", "neither a process nor an error"
    assert os.listdir(context.directory) == []


# Kernels that have less


@pytest.fixture
def older(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel says that it is older than it is, and is asked for no more than that one had."""
    monkeypatch.setattr(landlock, "version", lambda: request.param)


@pytest.mark.parametrize(("older", "told"), [(0, "no Landlock"), (2, "too old")], indirect=["older"])
@pytest.mark.usefixtures("older")
async def test_a_kernel_that_has_too_little_is_no_box(context: OpenToolContext, told: str) -> None:
    box = await find_sandbox(policy(context, SandboxMode.AUTO))
    assert isinstance(box, str)
    assert "`bwrap`) is not installed; " in box
    assert told in box
    assert (await sandbox_warning(policy(context, SandboxMode.AUTO))).startswith(
        "Commands run without a sandbox: bubblewrap"
    )
    assert (await describe_sandbox(policy(context, SandboxMode.REQUIRED))).startswith(
        "required; commands are refused: bubblewrap"
    )
    assert (await describe_sandbox(policy(context, SandboxMode.AUTO))).startswith(
        "auto; commands run without one: bubblewrap"
    )


async def test_a_workspace_that_holds_longboats_own_files_is_not_boxed_by_landlock(
    context: OpenToolContext, jobs: Jobs
) -> None:
    """As someone's whole home does: what is writable cannot be closed again below."""
    own = context.directory / ".local" / "share" / "longboat"
    own.mkdir(parents=True)
    with pytest.raises(ToolError, match="there is none: "):
        await context.use(BashTool(jobs, sandbox=policy(context, SandboxMode.REQUIRED, own)), command="true")
    if VERSION >= landlock.CAN_TRUNCATE:
        box = await find_sandbox(policy(context, SandboxMode.AUTO, own))
        assert box == f"bubblewrap (`bwrap`) is not installed; Landlock cannot protect {own}, which is in the workspace"


@needs_landlock
async def test_people_are_told_which_box_it_is(context: OpenToolContext) -> None:
    box = await describe_sandbox(policy(context, SandboxMode.AUTO))
    assert box.startswith(f"auto; in a {WALLS}")
    assert (
        await describe_sandbox(policy(context, SandboxMode.OFF)),
        await sandbox_warning(policy(context, SandboxMode.OFF)),
    ) == (
        "off",
        "",
    )
    assert (await sandbox_warning(policy(context))).startswith(f"Commands run in the {WALLS}")


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's")
def test_a_directory_that_cannot_be_listed_is_passed_through_by_name(tmp_path: Path) -> None:
    """/home often is so. What is beside a closed path there stays closed, what is below is open."""
    (tmp_path / "me" / "own").mkdir(parents=True)
    (tmp_path / "me" / "open").mkdir()
    gone = str(tmp_path / "gone")  # a stand-in that root cannot list either
    closed = {f"{gone}/me/own"}
    assert list(landlock._open_ones(gone, closed)) == []
    named = list(landlock._open_ones(str(tmp_path), {str(tmp_path / "me" / "own")}))
    assert named == [str(tmp_path / "me" / "open")]
