"""The wall (A2): a command that runs because it is harmless can do no harm, even if it is not harmless at all.

`OpenToolContext(harmless=True)` is a check of commands that is wrong about all of them.
"""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import venv
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from other_processes import wait_until
from rules import parse_rules
from walls import needs_landlock

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.process import process_tree, supervisor_client
from longboat.tools.process.bash import QUIET, BashTool
from longboat.tools.process.jobs import Jobs
from longboat.tools.sandbox import denied_files, landlock, wall
from longboat.tools.sandbox.denied_files import find_denied
from longboat.tools.sandbox.sandbox import SandboxMode, SandboxPolicy, bubblewrap_lacks
from parts import how

pytest_plugins = ("walled",)

BWRAP_LACKS = bubblewrap_lacks("bwrap")


needs_bubblewrap = pytest.mark.skipif(bool(BWRAP_LACKS), reason=f"{how('bwrap')} ({BWRAP_LACKS})")


def git(directory: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *words], cwd=directory, check=True, capture_output=True)


@dataclass(frozen=True, slots=True)
class Place:
    context: OpenToolContext
    bash: BashTool
    jobs: Jobs

    async def run(self, command: str, **more: object) -> str:
        return (await self.context.use(self.bash, command=command, **more)).content


@pytest.fixture(
    params=[
        pytest.param("Landlock", marks=needs_landlock),
        pytest.param("first Landlock", marks=needs_landlock),
        pytest.param(
            "bubblewrap", marks=pytest.mark.skipif(bool(BWRAP_LACKS), reason=f"{how('bwrap')} ({BWRAP_LACKS})")
        ),
    ]
)
def held_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each wall that a system may have: the kernel's as it is, as it first was, and bubblewrap's."""
    versions = {"first Landlock": 1, "bubblewrap": 0}
    if request.param in versions:
        monkeypatch.setattr(landlock, "version", lambda: versions[request.param])
    wall.find_wall.cache_clear()
    yield request.param
    monkeypatch.undo()
    wall.find_wall.cache_clear()


@pytest.fixture
async def place(held_by: str, tmp_path: Path) -> AsyncIterator[Place]:
    work = tmp_path / "work"
    work.mkdir()
    (work / "file").write_text("ours\n")
    jobs = Jobs(tmp_path / "scratch")
    hidden = tmp_path / "own"
    hidden.mkdir()
    (hidden / "token").write_text("secret\n")
    policy = SandboxPolicy(mode=SandboxMode.OFF, workspace=work, temp=tmp_path / "temp", hidden=(hidden,))
    yield Place(OpenToolContext(work, harmless=True), BashTool(jobs, sandbox=policy), jobs)
    await jobs.aclose()


def picture(directory: Path) -> dict[str, tuple[object, ...]]:
    """All that can be changed below a directory."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (directory, *directory.rglob("*")):
        stat = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        attributes = tuple(os.listxattr(path, follow_symlinks=False))
        found[str(path)] = (content, stat.st_mode, stat.st_uid, stat.st_nlink, stat.st_mtime_ns, attributes)
    return found


@pytest.mark.parametrize(
    "command",
    [
        "echo x > new",
        "echo x >> file",
        ": > file",
        "rm file",
        "mv file other",
        "cp file copy",
        "mkdir d",
        "ln file hard",
        "ln -s file soft",
        "mkfifo pipe",
        "chmod 777 file",
        "chmod 777 .",
        "chown 1:1 file",
        "touch file",
        "touch -d yesterday file",
        "touch -h -d yesterday file",
        "truncate -s 0 file",
        "python3 -c 'import os; os.truncate(\"file\", 0)'",
        "python3 -c 'import os; os.utime(\"file\", (0, 0))'",
        'python3 -c \'import os; os.setxattr("file", "user.a", b"x")\'',
        'python3 -c \'import fcntl; fcntl.ioctl(open("file"), 0x40086602, (0x40).to_bytes(8, "little"))\'',
        "python3 -c 'import os; os.open(\"file\", os.O_RDONLY | os.O_TRUNC)'",
        "python3 -c 'import os; os.open(\"file\", 3 | os.O_TRUNC)'",
        "ulimit -c unlimited; python3 -c 'import os; os.abort()'",
        "git init -q .",
        "cd .. && echo x > beside",
        "echo x > /var/tmp/longboat-wall-test",
        "echo x > ~/longboat-wall-test",
        "exec 3< file && echo mine > /proc/self/fd/3",
        "mount --bind / .",
        "unshare -r sh -c 'mount -t tmpfs none .; echo x > new'",
        "(setsid sh -c 'echo x > new' &)",
    ],
)
async def test_nothing_can_be_changed(place: Place, tmp_path: Path, command: str) -> None:
    before = picture(place.context.directory)
    await place.run(command)
    assert picture(place.context.directory) == before
    assert not (tmp_path / "beside").exists()
    places = (Path("/var/tmp"), Path.home())
    assert [place for place in places if (place / "longboat-wall-test").exists()] == []


@needs_bubblewrap
@pytest.mark.parametrize("held_by", ["bubblewrap"], indirect=True)
async def test_the_wall_holds_where_longboat_is_installed_below_tmp(
    held_by: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        venv.create(directory, symlinks=True)
        python = f"{directory}/bin/python"
        monkeypatch.setattr(sys, "prefix", directory)
        monkeypatch.setattr(supervisor_client, "_PROGRAM", (python, *supervisor_client._PROGRAM[1:]))
        assert (await place.run("cat file")).startswith("ours\n")


async def test_a_harmless_command_does_what_it_should_and_says_that_it_ran_read_only(
    held_by: str, place: Place
) -> None:
    git(place.context.directory, "init", ".")
    assert (await place.run("cat file; git status --short; ls | wc -l")).startswith("ours\n?? file\n1\n[exit code 0 ")
    assert (await place.run("ls")).endswith(" s, read-only]")
    assert (await place.run("cat <(echo a) <<< b; head -c 3 /dev/zero | wc -c; echo no > /dev/null")).startswith(
        "a\n3\n"
    )
    if held_by != "first Landlock":  # which cannot tell one process from another, so that no signal can be sent
        told = await place.run("timeout 0.1 sleep 60; echo $?; sleep 60 & kill $!; wait $!; echo $?")
        assert told.startswith("124\n143\n")
    failed = await place.run("cat missing")
    assert "It ran read-only, without network access" in failed
    assert "`outside: true`" in failed


async def test_temp_is_its_own_and_emptied_behind_it(place: Place) -> None:
    assert (await place.run("echo x > $TMPDIR/a && cat $TMPDIR/a && echo ${TMPDIR##*/}")).startswith("x\nwalled\n")
    assert (await place.run("seq 200000 | sort -S 100K -rn 2> /dev/null | head -1; ls $TMPDIR | wc -l")).startswith(
        "200000\n0\n"
    )


NESTED = "import os; os.chdir(os.environ['TMPDIR']); [(os.mkdir('d'), os.chdir('d')) for _ in range(3000)]"


@pytest.mark.parametrize(
    "left",
    [
        f'python3 -c "{NESTED}"',
        "umask 0777; mkdir $TMPDIR/d $TMPDIR/d/d; umask 0477; mkdir $TMPDIR/e; echo x > $TMPDIR/e/x",
    ],
)
async def test_temp_is_emptied_whatever_is_left_there(place: Place, left: str) -> None:
    await place.run(left)
    jobs = place.jobs
    await jobs.aclose()
    assert not jobs.scratch.exists()


async def test_a_file_in_temp_can_only_be_so_large(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wall, "MAX_FILE", 1_000_000)
    told = await place.run("head -c 5000000 /dev/zero > $TMPDIR/a; stat -c %s $TMPDIR/a")
    assert "1000000\n" in told


async def test_no_file_named_git_opens_what_is_closed(place: Place, tmp_path: Path) -> None:
    """It can name any directory, and may come with an archive."""
    (tmp_path / "beside").write_text("secret\n")
    for target in (tmp_path / "own", Path("/tmp"), Path("/"), tmp_path / "missing"):
        (place.context.directory / ".git").write_text(f"gitdir: {target}\n")
        told = await place.run(f"cat {tmp_path}/own/token {tmp_path}/beside; cat file")
        assert "secret" not in told, target
        assert "ours" in told


async def test_the_kernel_cannot_be_told_what_to_run(place: Place) -> None:
    """The same value is written: nothing changes even if it can be."""
    told = await place.run("cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern && echo written")
    assert "written" not in told


async def test_no_network_and_no_sockets(place: Place, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(place.context.directory / "sock"))
        unix.listen()
        port = tcp.getsockname()[1]
        for connect in (
            f"socket.create_connection(('127.0.0.1', {port}), 5)",
            "socket.socket(socket.AF_UNIX).connect('sock')",
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
            "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
            "socket.create_server(('127.0.0.1', 0))",
        ):
            told = await place.run(f'python3 -c "import socket; {connect}"')
            assert "PermissionError" in told, told
        assert "Permission denied" in await place.run(f"echo x > /dev/tcp/127.0.0.1/{port}")


async def test_other_processes_are_out_of_reach(place: Place) -> None:
    """Neither signaled nor slowed down nor looked into: not the server, not the guard, not another command."""
    other = await asyncio.create_subprocess_exec("sleep", "1000", env={"OTHERS_KEY": "secret"})
    try:
        for pid in (other.pid, os.getpid(), "$PPID"):
            await place.run(f"kill -9 {pid}; renice 19 {pid}; prlimit --pid {pid} --nofile=1; taskset -p 1 {pid}")
            await place.run("renice -n 19 -u $(id -u); renice -n 19 -g $(ps -o pgid= -p $PPID)")
            assert "secret" not in await place.run(f"cat /proc/{pid}/environ")
        assert other.returncode is None
        assert os.getpriority(os.PRIO_PROCESS, other.pid) == os.getpriority(os.PRIO_PROCESS, 0)
        assert os.sched_getaffinity(other.pid) == os.sched_getaffinity(0)
    finally:
        other.kill()
        await other.wait()
    assert (await place.run("echo still")).startswith("still\n")


async def test_longboats_own_files_and_what_rules_deny_cannot_be_read(
    held_by: str, tmp_path: Path, place: Place
) -> None:
    work = place.context.directory
    (work / "secrets" / "deep").mkdir(parents=True)
    (work / "secrets" / "deep" / "key").write_text("hidden\n")
    (work / "src").mkdir()
    for name in (".env", "src/a.pem", "src/b.py", "odd [x]"):
        (work / name).write_text("hidden\n" if name != "src/b.py" else "shown\n")
    (work / "link").symlink_to(".env")
    context = OpenToolContext(
        work, harmless=True, deny=["view(.env)", "view(secrets/**)", "view(**/*.pem)", "view(odd [x])"]
    )
    held = Place(context, place.bash, place.jobs)
    for path in (".env", "link", "secrets/deep/key", "src/a.pem", "'odd [x]'", "../own/token"):
        told = await held.run(f"cat {path}")
        assert "hidden" not in told, path
        assert "secret\n" not in told
        assert "exit code 1" in told
    assert (await held.run("cat src/b.py file")).startswith("shown\nours\n")
    (work / "later.pem").write_text("hidden\n")
    assert "hidden" not in await held.run("cat later.pem"), "what came later is denied as well"
    (work / "later.py").write_text("shown\n")
    assert (await held.run("cat later.py")).startswith("shown\n"), "and what came beside it can be read"


async def test_a_denied_view_of_everything_leaves_names_and_git(place: Place) -> None:
    git(place.context.directory, "init", ".")
    held = Place(OpenToolContext(place.context.directory, harmless=True, deny=["view"]), place.bash, place.jobs)
    assert "ours" not in await held.run("cat file")
    assert (await held.run("ls; git status --short")).startswith("file\n?? file\n")


async def test_its_environment_is_a_short_list(place: Place) -> None:
    work = place.context.directory
    (work / "bin").mkdir()
    (work / "bin" / "ls").write_text("#!/bin/sh\necho theirs\n")
    (work / "bin" / "ls").chmod(0o755)
    (work / "rc").write_text("echo started\n")
    (work / "ripgreprc").write_text("--pre=/bin/false\n")
    environ = {
        "PATH": f"{work}/bin:bin:.:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(Path.home()),
        "OPENAI_API_KEY": "secret",
        "BASH_ENV": str(work / "rc"),
        "LD_PRELOAD": str(work / "x.so"),
        "RIPGREP_CONFIG_PATH": str(work / "ripgreprc"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "alias.status",
        "GIT_CONFIG_VALUE_0": "!touch pwned",
        "LANG": "C.UTF-8",
        "LC_TIME": "C",
    }
    held = Place(OpenToolContext(work, environ=environ, harmless=True), place.bash, place.jobs)
    told = await held.run("ls; env")
    assert told.startswith("bin\nfile\n")
    assert "started" not in told
    given = {line.partition("=")[0] for line in told.splitlines() if "=" in line}
    allowed = {
        "PATH",
        "HOME",
        "LANG",
        "LC_TIME",
        "TMPDIR",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "LONGBOAT_JOB",
        "GIT_NO_LAZY_FETCH",
    }
    assert {name for name in given if not name.startswith("GIT_CONFIG_")} <= allowed | set(QUIET)
    assert "PATH=/usr/local/bin:/usr/bin:/bin\n" in told
    assert "secret" not in told
    assert "alias" not in told


async def test_a_canceled_command_behind_the_wall_is_gone_with_all_that_it_started(place: Place) -> None:
    running = asyncio.create_task(place.run("(setsid env -i sleep 1000 &); echo $TMPDIR > $TMPDIR/begun; sleep 1000"))
    begun = place.jobs.scratch / "walled" / "begun"
    await wait_until(begun.exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert process_tree.find(None, f"{place.jobs.token}/") == set()


async def test_a_workspace_that_is_replaced_by_another_directory_can_be_read(place: Place) -> None:
    work = place.context.directory
    assert (await place.run("cat file")).startswith("ours\n")
    work.rename(work.with_name("old"))
    work.mkdir()
    (work / "file").write_text("new\n")
    assert (await place.run("cat file")).startswith("new\n")


async def test_a_worktree_of_git_can_be_looked_at(place: Place, tmp_path: Path) -> None:
    """Its repository is elsewhere."""
    main = tmp_path / "main"
    git(tmp_path, "init", str(main))
    git(main, "commit", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", str(tmp_path / "tree"))
    jobs = Jobs(tmp_path / "scratch2")
    try:
        held = Place(OpenToolContext(tmp_path / "tree", harmless=True), BashTool(jobs), jobs)
        assert (await held.run("git log --format=%s")).startswith("first\n")
    finally:
        await jobs.aclose()


# Without any wall


@pytest.fixture
def no_wall(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(landlock, "version", lambda: 0)
    monkeypatch.setattr(wall, "bubblewrap_lacks", lambda _: "bubblewrap is not installed")
    wall.find_wall.cache_clear()
    yield
    monkeypatch.undo()
    wall.find_wall.cache_clear()


@pytest.mark.usefixtures("no_wall")
async def test_where_there_is_no_wall_the_rules_are_told_so(context: OpenToolContext, jobs: Jobs) -> None:
    await context.use(BashTool(jobs), command="git status")
    assert not context.needs[0].has_wall
    assert await wall.describe_wall() == (
        "only a few, because there is no wall: the system has no Landlock, and bubblewrap is not installed"
    )


# What rules deny, as paths


def test_denied_files_are_found_by_their_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/b/c.pem", "a/d.txt", "e.pem", "secrets/x/y", "f1", "f2", "g/f1", "*"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "alias").symlink_to("a/d.txt")

    def found(*rules: str) -> list[str]:
        unreadable = find_denied(parse_rules(rules), tmp_path.resolve()).unreadable
        return sorted(str(path.relative_to(tmp_path.resolve())) for path in unreadable)

    assert found("view(**/*.pem)") == ["a/b/c.pem", "e.pem"]
    assert found("view(secrets/**)", "view(a/*)") == ["a/b", "a/d.txt", "secrets"]
    assert found("view(f?)") == ["f1", "f2"]
    assert found("view(\\*)") == ["*"]
    assert found("view(missing)", "edit(f1)", "bash(cat *)") == []
    assert found("view(alias)") == ["a/d.txt"], "what a link leads to"
    assert found(f"view({tmp_path.resolve()}/g/**)") == ["g"]
    monkeypatch.setattr(denied_files, "MAX_ENTRIES", 8)
    assert "f2" in found("view(**/nothing)", "view(f2)"), "no rule takes another one's share"
    assert [path.name for path in find_denied(parse_rules(["edit(f1)"]), tmp_path.resolve()).unwritable] == ["f1"]


# The sandbox that may write


@needs_bubblewrap
async def test_in_bubblewraps_sandbox_an_allowed_command_cannot_open_what_rules_deny(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "kept").mkdir(parents=True)
    (work / "keys").mkdir()
    for name in (".env", "kept/file", "keys/a", "free"):
        (work / name).write_text("hidden\n")
    jobs = Jobs(tmp_path / "scratch")
    policy = SandboxPolicy(mode=SandboxMode.REQUIRED, workspace=work, temp=tmp_path / "temp")
    context = OpenToolContext(work, deny=["view(.env)", "view(keys/**)", "edit(kept/**)"])
    try:
        held = Place(context, BashTool(jobs, sandbox=policy), jobs)
        for command in ("cat .env", "cat keys/a", "cp .env copy && cat copy"):
            assert "hidden" not in await held.run(command)
        told = await held.run("cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern && echo written")
        assert "written" not in told, "not even by root, who owns it"
        assert "Read-only file system" in await held.run("echo x > kept/file")
        assert "Read-only file system" in await held.run("echo x > kept/new")
        assert (await held.run("cat kept/file && echo x > free && cat free")).startswith("hidden\nx\n")
    finally:
        await jobs.aclose()
    assert (work / ".env").read_text() == (work / "kept" / "file").read_text() == "hidden\n"
