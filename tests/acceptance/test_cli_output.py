"""What commands print: to a reader that leaves, a full disk, a narrow terminal, and while something is waited for."""

import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from cli_home import LONGBOAT, Home, Process, finished, wait_for_line
from terminal import read_until

from longboat.testing import Gate, Pause, Refuse, Say

pytestmark = pytest.mark.acceptance

ROOT = Path(__file__).parents[2]


def shell(home: Home, script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A bash script in which `longboat` is the command."""
    start = f'longboat() {{ {shlex.join(LONGBOAT)} "$@"; }}\n'
    command = ["bash", "-c", start + script]
    return subprocess.run(command, cwd=cwd, env=home.environ, capture_output=True, text=True, timeout=60, check=False)


def on_terminal(home: Home, *arguments: str, cwd: Path, columns: int = 80) -> tuple[Process, int]:
    """A command whose stdout is a terminal, and the terminal's other end."""
    outer, inner = pty.openpty()
    environ = {"COLUMNS": str(columns), "NO_COLOR": "1"}
    process = home.start(*arguments, cwd=cwd, stdout=inner, stderr=inner, environ=environ)
    os.close(inner)
    return process, outer


def read_all(terminal: int) -> str:
    seen = b""
    try:
        while chunk := os.read(terminal, 4096):
            seen += chunk
    except OSError:  # how a terminal says that nobody writes any more
        pass
    os.close(terminal)
    return seen.decode()


# Readers that leave, disks that are full, directories that are gone


def test_a_reader_that_has_enough_is_left_quietly(home: Home, cwd: Path) -> None:
    home.longboat("run", "hi", cwd=cwd)
    for command in ("runs --format json", "session list", "--help", "run --help", "doctor", "models"):
        done = shell(home, f"longboat {command} | true; echo ${{PIPESTATUS[0]}}", cwd)
        assert done.stderr == "", command
        assert done.stdout in ("0\n", "1\n", "141\n")  # it may have been faster than its reader
    closed = shell(home, "exec 3> >(exec true); wait $!; longboat runs >&3; echo $?", cwd)
    assert (closed.stdout, closed.stderr) == ("141\n", "")


def test_a_full_disk_is_one_line_and_exit_1(home: Home, cwd: Path) -> None:
    for command in ("runs", "--help", "session list", "version"):
        done = shell(home, f"longboat {command} >/dev/full", cwd)
        assert (done.returncode, done.stderr) == (1, "longboat: Cannot write the output: No space left on device.\n")


def test_b2_an_answer_that_cannot_be_written_is_told_with_where_to_find_it(home: Home, cwd: Path) -> None:
    done = shell(home, "longboat run --run-id unwritten hi >/dev/full </dev/null", cwd)
    first, second = done.stderr.splitlines()
    assert (done.returncode, first) == (1, "longboat: Cannot write the answer: No space left on device.")
    assert "longboat watch unwritten" in second
    assert home.longboat("watch", "unwritten", cwd=cwd).out == "echo: hi\n"


def test_a_closed_stdout_is_no_matter(home: Home, cwd: Path) -> None:
    for command in ("run hi </dev/null", "runs", "--version", "status"):
        done = shell(home, f"longboat {command} >&-", cwd)
        assert (done.returncode, done.stderr) == (0, ""), command


@pytest.mark.parametrize("command", ["runs", "run hi", "doctor", "models", "session list"])
def test_a_directory_that_is_gone_is_told_in_one_line(home: Home, cwd: Path, command: str) -> None:
    done = shell(home, f"mkdir gone && cd gone && rmdir ../gone && longboat {command} </dev/null", cwd)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("longboat: The current directory no longer exists")


BYTES = r"$'caf\xe9'"
"""As it comes from a terminal or a file in Latin-1."""


@pytest.mark.parametrize(
    "command",
    [
        f"run {BYTES}",
        f"search {BYTES}",
        f"mcp login {BYTES}",
        f"run -a {BYTES} hi",
        f"run --cwd {BYTES} hi",
    ],
)
def test_text_that_is_not_utf_8_is_told_in_one_line(home: Home, cwd: Path, command: str) -> None:
    made = "touch" if "-a" in command else "mkdir"
    done = shell(home, f"{made} {BYTES}; longboat {command} </dev/null", cwd)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("longboat: This is not valid UTF-8: ")
    assert line.endswith(r"caf\xe9")


# Terminals


def cells(table: list[str]) -> dict[str, str]:
    """The first row of a table by its headings."""
    heads = list(re.finditer(r"\S+", table[0]))
    ends = [head.start() for head in heads[1:]] + [None]
    return {head[0]: table[1][head.start() : end].strip() for head, end in zip(heads, ends, strict=True)}


def test_a_table_fits_the_terminal_and_is_whole_in_a_pipe(home: Home, cwd: Path) -> None:
    prompt = "word " * 60 + "end"
    home.longboat("run", prompt, cwd=cwd)
    for command, heads in (
        (("runs",), ["RUN", "STATE", "ACCEPTED", "PROMPT"]),
        (("session", "list"), ["SESSION", "STATE", "USED", "TITLE"]),
    ):
        process, terminal = on_terminal(home, *command, cwd=cwd, columns=40)
        shown = read_all(terminal).splitlines()
        assert process.wait(30) == 0
        assert max(map(len, shown)) == 40
        assert all(line.endswith("…") for line in shown[1:])
        found, whole = cells(shown), cells(home.longboat(*command, cwd=cwd).lines)
        assert list(found) == heads
        assert all(whole[head].startswith(cell.removesuffix("…")) for head, cell in found.items())
    assert home.longboat("runs", cwd=cwd).lines[1].endswith(" word end")


def test_r4_what_ctrl_c_says_is_not_glued_to_the_answer(home: Home, cwd: Path) -> None:
    home.endpoint.script("cut", [Say("half an ans"), Pause(Gate("cut"))])
    process, terminal = on_terminal(home, "run", "[[cut]]", cwd=cwd)
    seen = read_until(terminal, b"half an ans")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    lines = (seen.decode() + read_all(terminal)).splitlines()
    assert "half an ans" in lines
    assert "Canceling… (press Ctrl-C again to exit now)" in lines


# Words


def test_how_a_run_ended_is_told_in_plain_words(home: Home, cwd: Path) -> None:
    home.endpoint.script("refused", [Refuse(401, message="bad key")])
    home.longboat("run", "--run-id", "good", "hi", cwd=cwd)
    home.longboat("run", "--run-id", "bad", "[[refused]]", cwd=cwd)
    states = {line.split()[0]: line.split()[1] for line in home.longboat("runs", cwd=cwd).lines[1:]}
    assert states == {"good": "done", "bad": "failed"}
    assert home.longboat("cancel", "good", cwd=cwd).out == "good had already ended: done\n"
    newest = json.loads(home.longboat("session", "list", "--limit", "1", "--format", "json", cwd=cwd).out)["id"]
    assert "[failed] The API key was rejected: " in home.longboat("session", "show", newest, cwd=cwd).out


# While the server stops


def hold(home: Home, gate: str) -> Path:
    """A workspace in which a run stands at a gate."""
    cwd = home.workspace(gate)
    home.endpoint.script(gate, [Say("x"), Pause(Gate(gate))])
    home.longboat("run", "--detach", f"[[{gate}]]", cwd=cwd)
    home.endpoint.wait_for_gate(gate)
    return cwd


def drain_for(home: Home, seconds: float) -> None:
    file = home.path / "config" / "longboat" / "longboat.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"server": {"drain_s": seconds}}))


def test_b5_stop_force_says_what_it_waits_for(own_home: Home) -> None:
    cwd = hold(own_home, "drained")
    done = own_home.longboat("stop", "--force", cwd=cwd)
    assert (done.code, done.out) == (0, "The server has stopped.\n")
    assert f"Waiting up to 1 s for runs in {cwd} to end, then interrupting them." in done.err


def test_b5_ctrl_c_in_stop_force_skips_the_drain(own_home: Home) -> None:
    drain_for(own_home, 600)
    cwd = hold(own_home, "hurried")
    stopping = own_home.start("stop", "--force", cwd=cwd)
    assert stopping.stderr is not None
    assert "up to 600 s" in stopping.stderr.readline()
    assert "Press Ctrl-C to interrupt them now" in stopping.stderr.readline()
    stopping.send_signal(signal.SIGINT)
    done = finished(stopping)
    assert (done.code, done.out) == (0, "The server has stopped.\n")


def test_b5_ctrl_c_in_serve_says_what_it_waits_for_and_a_second_one_hurries(own_home: Home) -> None:
    drain_for(own_home, 600)
    server = own_home.serve()
    hold(own_home, "waited")
    server.send_signal(signal.SIGINT)
    wait_for_line(server, "Stopping: waiting up to 600 s for 1 run to end. (Press Ctrl-C to interrupt now.)")
    server.send_signal(signal.SIGINT)
    assert finished(server).code == 0


def test_b5_serve_that_is_idle_stops_at_once_and_says_so(own_home: Home) -> None:
    server = own_home.serve()
    server.send_signal(signal.SIGINT)
    wait_for_line(server, "Stopping.")
    assert finished(server).code == 0


# make clean


@pytest.fixture
def checkout(own_home: Home) -> Path:
    """A directory with our Makefile and a .venv whose `longboat` is the real one."""
    path = own_home.workspace("checkout")
    shutil.copy(ROOT / "Makefile", path)
    command = path / ".venv" / "bin" / "longboat"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {shlex.join(LONGBOAT)} "$@"\n')
    command.chmod(0o755)
    return path


def clean(home: Home, checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "clean"], cwd=checkout, env=home.environ, capture_output=True, text=True, timeout=60, check=False
    )


def test_make_clean_leaves_everything_while_a_run_is_unfinished(own_home: Home, checkout: Path) -> None:
    hold(own_home, "kept")
    done = clean(own_home, checkout)
    assert done.returncode != 0
    assert "longboat stop --force" in done.stderr
    assert (checkout / ".venv").exists()
    assert own_home.longboat("status", cwd=checkout).code == 0


def test_make_clean_stops_an_idle_server_first_and_says_so(own_home: Home, checkout: Path) -> None:
    own_home.longboat("run", "hi", cwd=checkout)
    own_home.environ["LONGBOAT_URL"] = "http://127.0.0.1:9"  # a team's server is not ours to stop
    done = clean(own_home, checkout)
    del own_home.environ["LONGBOAT_URL"]
    assert done.returncode == 0, done.stderr
    assert "The server has stopped." in done.stdout
    assert not (checkout / ".venv").exists()
    assert own_home.longboat("status", cwd=checkout).code == 1


def test_make_clean_removes_a_venv_that_no_longer_runs(own_home: Home, checkout: Path) -> None:
    (checkout / ".venv" / "bin" / "longboat").write_text("#!/nowhere/python\n")
    assert clean(own_home, checkout).returncode == 0
    assert not (checkout / ".venv").exists()
