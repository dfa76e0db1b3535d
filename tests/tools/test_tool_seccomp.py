"""What the second sandbox has besides Landlock (A8): a filter that leaves a command no sockets."""

import contextlib
import os
import shutil
import signal
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from walls import WALLS, needs, needs_landlock, policy

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.process.bash import BashTool
from longboat.tools.process.jobs import Jobs
from longboat.tools.sandbox import landlock, seccomp
from longboat.tools.sandbox.sandbox import SandboxMode, describe_sandbox, sandbox_warning

pytest_plugins = ("walled",)
pytestmark = pytest.mark.usefixtures("no_bwrap")

needs_tcp_rules = needs(landlock.CAN_TCP, "6.7")
CONNECT = "import socket; socket.create_connection(('127.0.0.1', {}), 5); print('reached')"


SOCKETS = """
import socket, sys
unix, abstract, udp, datagrams = {unix!r}, {abstract!r}, {udp!r}, {datagrams!r}
ways = {{
    "unix": lambda: socket.socket(socket.AF_UNIX).connect(unix),
    "abstract": lambda: socket.socket(socket.AF_UNIX).connect(abstract),
    "udp": lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", udp),
    "pair": lambda: socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b"x", datagrams),
    "raw pair": lambda: socket.socketpair(type=socket.SOCK_RAW)[0].connect(datagrams),
    "packets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "vsock": lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM),
}}
for name, way in ways.items():
    try:
        way()
        print(name, "reached")
    except PermissionError:
        print(name, "refused")
"""
WAYS = ("unix", "abstract", "udp", "pair", "raw pair", "packets", "netlink", "vsock")


@needs_landlock
@pytest.mark.parametrize("kept", [True, False])
async def test_no_sockets_of_any_kind_for_a_command_and_for_what_it_starts(
    context: OpenToolContext, jobs: Jobs, outside: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Whoever listens at a unix socket can be asked to act outside of the box: docker, and our own server. Half of a
    pair that is made for datagrams could be turned on others."""
    if not kept:
        monkeypatch.setattr("longboat.tools.process.supervisor_client._IS_POSSIBLE", False)
    abstract = f"\0longboat-test-{os.getpid()}-{kept}"
    with (
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as other,
        socket.socket(type=socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
    ):
        unix.bind(f"{outside}/sock")
        other.bind(abstract)
        datagrams.bind(f"{outside}/datagrams")
        udp.bind(("127.0.0.1", 0))
        unix.listen()
        other.listen()
        script = SOCKETS.format(
            unix=f"{outside}/sock", abstract=abstract, udp=udp.getsockname(), datagrams=f"{outside}/datagrams"
        )
        (context.directory / "reach.py").write_text(script)
        for command in ("python3 reach.py", "sh -c '(setsid env -i /usr/bin/python3 reach.py) & wait $!'"):
            result = await context.use(BashTool(jobs, sandbox=policy(context)), command=command)
            assert result.content.splitlines()[:-1] == [f"{name} refused" for name in WAYS]
        free = await context.use(BashTool(jobs), command="python3 reach.py")
        for name in ("unix", "abstract", "udp", "pair", "raw pair"):
            assert f"{name} reached" in free.content, "which shows that the test can tell"


@needs_landlock
async def test_a_ring_and_calls_by_other_numbers_make_no_sockets_either(context: OpenToolContext, jobs: Jobs) -> None:
    number = {"x86_64": 41, "aarch64": 198}[os.uname().machine]
    (context.directory / "calls.py").write_text(
        "import ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"for number in ({number}, 425, 0x40000000 + {number}):\n"
        "    print(libc.syscall(number, 1, 1, 0), ctypes.get_errno())\n"
    )
    result = await context.use(BashTool(jobs, sandbox=policy(context)), command="python3 calls.py")
    assert result.content.startswith("-1 13\n" * 3), result.content


@needs_landlock
@pytest.mark.skipif(os.uname().machine != "x86_64" or not shutil.which("gcc"), reason="needs x86_64 and gcc")
async def test_calls_of_another_architecture_end_the_command(context: OpenToolContext, jobs: Jobs) -> None:
    """By their numbers alone they would be taken for others: 359 is socket there."""
    code = 'int main() { int r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(359), "b"(1), "c"(1), "d"(0)); return 7; }'
    (context.directory / "old.c").write_text(code)
    compiled = await context.use(BashTool(jobs, sandbox=policy(context)), command="gcc -o old old.c")
    assert not compiled.is_error, compiled.content
    if "exit code 7 " not in (await context.use(BashTool(jobs), command="./old")).content:
        pytest.skip("this kernel has no calls of i386")
    result = await context.use(BashTool(jobs, sandbox=policy(context)), command="./old; echo $?")
    assert f"{128 + signal.SIGSYS}\n" in result.content


@needs_landlock
async def test_nobodys_open_socket_can_be_taken_over(context: OpenToolContext, jobs: Jobs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (context.directory / "take.py").write_text(
            "import ctypes, os\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            f"pidfd = os.pidfd_open({os.getpid()})\n"
            f"print(libc.syscall(438, pidfd, {listener.fileno()}, 0), ctypes.get_errno())\n"
        )
        result = await context.use(BashTool(jobs, sandbox=policy(context)), command="python3 take.py")
    assert result.content.startswith("-1 1\n"), result.content


@needs_landlock
@pytest.mark.parametrize("kept", [True, False])
async def test_a_filter_that_the_kernel_does_not_take_lets_no_command_start(
    context: OpenToolContext, jobs: Jobs, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    if not kept:
        monkeypatch.setattr("longboat.tools.process.supervisor_client._IS_POSSIBLE", False)
    monkeypatch.setattr(seccomp, "without_sockets", lambda: b"\xff" * 8)
    with contextlib.nullcontext() if not kept else pytest.raises(ToolError, match="Invalid argument"):
        result = await context.use(BashTool(jobs, sandbox=policy(context)), command="touch ran")
        assert "Invalid argument\n[exit code 127 " in result.content
    assert os.listdir(context.directory) == []


@pytest.mark.parametrize(
    ("machine", "numbers"), [("x86_64", (0xC000003E, 41, 53)), ("aarch64", (0xC00000B7, 198, 199))]
)
def test_the_filter_of_each_machine_says_what_becomes_of_a_call(machine: str, numbers: tuple[int, int, int]) -> None:
    """Also of those that this test does not run on."""
    architecture, socket_call, pair_call = numbers
    found = seccomp._MACHINES[machine]
    program = seccomp._program([*seccomp._begin(found), *seccomp._no_sockets(found)])
    refused, allowed, killed = 0x0005000D, 0x7FFF0000, 0x80000000
    for call, arguments, verdict in (
        (socket_call, (1, 1), refused),
        (socket_call, (2, 2), refused),
        (socket_call + 0x40000000, (1, 1), refused),
        (425, (8, 0), refused),
        (426, (8, 0), refused),
        (0, (0, 0), allowed),
        (pair_call, (1, 1 | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK), allowed),
        (pair_call, (1, 5), allowed),
        (pair_call, (1, 2 | socket.SOCK_CLOEXEC), refused),
        (pair_call, (1, 3), refused),
        (pair_call, (30, 1), refused),
        (pair_call, (0xFFFFFFFF00000001, 0xFFFFFFFF00000002), refused),
    ):
        assert _verdict(program, struct.pack("=IIQQQ", call, architecture, 0, *arguments)) == verdict, (call, arguments)
    assert _verdict(program, struct.pack("=IIQQQ", 0, 0x40000003, 0, 0, 0)) == killed


@pytest.mark.parametrize("signals", [True, False])
@pytest.mark.parametrize(
    ("machine", "calls"),
    [
        # chmod by path, chown, times, attributes, truncate, ptrace, shared memory, mount; then clone, limits, priority,
        # ioctl, kill, fcntl
        ("x86_64", (268, 260, 280, 188, 76, 101, 29, 165, 56, 302, 141, 16, 62, 72)),
        ("aarch64", (53, 54, 88, 5, 45, 117, 194, 40, 220, 261, 140, 29, 129, 25)),
    ],
)
def test_the_read_only_filter_of_each_machine_says_what_becomes_of_a_call(
    machine: str, calls: tuple[int, ...], signals: bool
) -> None:
    found = seccomp._MACHINES[machine]
    program = seccomp._program(
        [*seccomp._begin(found), *seccomp._no_changes(found, signals), *seccomp._no_sockets(found)]
    )
    refused, allowed, unknown, no_terminal = 0x0005000D, 0x7FFF0000, 0x00050026, 0x00050019
    *changes, clone, limits, priority, ioctl, kill, fcntl = calls
    may_signal = allowed if signals else refused
    for call, arguments, verdict in (
        *((number, (0, 0), refused) for number in (*changes, 424, 438, 452, 463, 469, 425, found.socket)),
        (435, (0, 0), unknown),
        (470, (0, 0), unknown),
        (clone, (signal.SIGCHLD | 0x100 | 0x4000, 0), allowed),
        *((clone, (signal.SIGCHLD | 1 << bit, 0), refused) for bit in (17, 25, 26, 27, 28, 29, 30)),
        (limits, (0, 7), allowed),
        (limits, (1234, 7), refused),
        (priority, (0, 0), allowed),
        (priority, (0, 1234), refused),
        (priority, (2, 0), refused),
        (437, (0, 0), unknown),
        (found.fcntl, (0, 1024), refused),
        (ioctl, (1, 0x5401), allowed),
        (ioctl, (1, 0x40086602), no_terminal),
        (kill, (1234, 9), may_signal),
        (fcntl, (0, 1), allowed),
        (fcntl, (0, 8), may_signal),
        (3 if machine == "x86_64" else 57, (0, 0), allowed),
    ):
        asked = struct.pack("=IIQQQ", call, found.architecture, 0, *arguments)
        assert _verdict(program, asked) == verdict, (call, arguments)
    for call, offset in found.opens.items():
        for flags, verdict in ((0, allowed), (0o1101, allowed), (os.O_TRUNC, refused), (os.O_TRUNC | 3, refused)):
            asked = bytearray(struct.pack("=IIQQQQ", call, found.architecture, 0, 0, 0, 0))
            struct.pack_into("=I", asked, offset, flags)
            assert _verdict(program, bytes(asked)) == verdict, (call, flags)


def _verdict(program: bytes, call: bytes) -> int:
    """As the kernel comes to it."""
    steps = list(struct.iter_unpack("=HBBI", program))
    at = held = 0
    while True:
        code, if_so, if_not, value = steps[at]
        at += 1
        match code:
            case 0x20:
                (held,) = struct.unpack_from("=I", call, value)
            case 0x54:
                held &= value
            case 0x15:
                at += if_so if held == value else if_not
            case 0x35:
                at += if_so if held >= value else if_not
            case 0x45:
                at += if_so if held & value else if_not
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(hex(code))


# Systems that have less


@pytest.fixture
def files_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel says that its Landlock is older than it is, and is asked for no more than that one had."""
    monkeypatch.setattr(landlock, "version", lambda: landlock.CAN_TRUNCATE)


@pytest.fixture
def no_filter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose calls we have no numbers of."""
    uname = os.uname()
    other = os.uname_result((uname.sysname, uname.nodename, uname.release, uname.version, "riscv64"))
    seccomp.without_sockets.cache_clear()
    monkeypatch.setattr(os, "uname", lambda: other)
    yield
    monkeypatch.undo()
    seccomp.without_sockets.cache_clear()


@needs_landlock
@pytest.mark.usefixtures("files_alone")
async def test_a_kernel_whose_landlock_knows_files_alone_is_enough_with_the_filter(
    context: OpenToolContext, jobs: Jobs, outside: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (context.directory / "connect.py").write_text(CONNECT.format(listener.getsockname()[1]))
        result = await context.use(
            BashTool(jobs, sandbox=policy(context)), command=f"python3 connect.py; echo > {outside}/file"
        )
    assert "PermissionError" in result.content
    assert "file: Permission denied" in result.content
    assert f"(in a {WALLS}, and it can send signals to other processes)" in context.needs[-1].detail


@needs_landlock
@pytest.mark.usefixtures("files_alone", "no_filter")
async def test_without_the_filter_the_network_is_open_and_that_is_enough_for_auto_alone(
    context: OpenToolContext, jobs: Jobs, outside: Path
) -> None:
    told = r"; Landlock cannot block all sockets, and this system \(riscv64\) has no filter for them"
    with pytest.raises(ToolError, match=told):
        await context.use(BashTool(jobs, sandbox=policy(context)), command="touch ran")
    auto = policy(context, SandboxMode.AUTO)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (context.directory / "connect.py").write_text(CONNECT.format(listener.getsockname()[1]))
        result = await context.use(BashTool(jobs, sandbox=auto), command=f"python3 connect.py; echo > {outside}/file")
    assert "reached" in result.content
    assert "Permission denied" in result.content
    walls = "Landlock sandbox: the network is open, and it can send signals to other processes"
    assert f"(in a {walls})" in context.needs[-1].detail
    assert f"{walls} (bubblewrap (`bwrap`) is not installed)" in await sandbox_warning(auto)


@needs_tcp_rules
@pytest.mark.usefixtures("no_filter")
async def test_without_the_filter_landlock_refuses_tcp_and_says_what_is_open(
    context: OpenToolContext, jobs: Jobs, outside: Path
) -> None:
    auto = policy(context, SandboxMode.AUTO)
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(f"{outside}/sock")
        unix.listen()
        (context.directory / "connect.py").write_text(CONNECT.format(listener.getsockname()[1]))
        (context.directory / "unix.py").write_text(
            f"import socket; socket.socket(1).connect('{outside}/sock'); print('open')"
        )
        result = await context.use(BashTool(jobs, sandbox=auto), command="python3 connect.py; python3 unix.py")
    assert "PermissionError" in result.content
    assert "open\n" in result.content
    assert "(in a Landlock sandbox: no TCP, but UDP and unix sockets are open" in context.needs[-1].detail
    assert "there is none: " not in await describe_sandbox(auto)
    assert (await describe_sandbox(policy(context))).startswith("required; commands are refused: bubblewrap")
