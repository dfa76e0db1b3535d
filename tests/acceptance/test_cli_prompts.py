"""What becomes of a prompt at the command line: sent twice, refused, piped, watched through an outage."""

import base64
import json
import os
import pty
import shlex
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli_home import LONGBOAT, Home, finished, wait_for_line

from longboat.testing import Gate, Hang, Pause, Say

pytestmark = pytest.mark.acceptance


def listed(home: Home, cwd: Path, *command: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in home.longboat(*command, "--format", "json", cwd=cwd).lines]


# The same again


def test_the_same_run_id_and_prompt_again_is_the_same_run_in_the_same_session(home: Home, cwd: Path) -> None:
    for extra in ([], [], ["-c"]):
        done = home.longboat("run", "--run-id", "once", *extra, "hi", cwd=cwd)
        assert (done.code, done.out) == (0, "echo: hi\n"), done.err
    assert home.longboat("run", "--detach", "--run-id", "once", "hi", cwd=cwd).out == "once\n"
    assert [run["run_id"] for run in listed(home, cwd, "runs")] == ["once"]
    assert len(listed(home, cwd, "session", "list")) == 1


def test_b2_a_killed_clients_run_is_found_again_by_its_run_id_alone(home: Home, cwd: Path) -> None:
    home.endpoint.script("lone", [Say("still "), Pause(Gate("lone")), Say("here")])
    process = home.start("run", "--run-id", "lone", "[[lone]]", cwd=cwd)
    home.endpoint.wait_for_gate("lone")
    process.kill()
    process.wait()
    home.longboat("run", "of another session, used since", cwd=cwd)
    again = home.start("run", "--run-id", "lone", "[[lone]]", cwd=cwd)
    home.endpoint.open_gate("lone")
    done = finished(again)
    assert (done.code, done.out) == (0, "still here\n")


def test_two_at_once_with_the_same_run_id_and_prompt_are_the_same_run(home: Home, cwd: Path) -> None:
    """Whichever is later finds the run, or the session that it made for it taken back."""
    home.endpoint.script("twins", [Say("one "), Pause(Gate("twins")), Say("answer")])
    processes = [home.start("run", "--run-id", "twins", "[[twins]]", cwd=cwd) for _ in range(3)]
    home.endpoint.wait_for_gate("twins")
    home.endpoint.open_gate("twins")
    assert [(done.code, done.out, done.err) for done in map(finished, processes)] == [(0, "one answer\n", "")] * 3
    assert len(listed(home, cwd, "runs")) == len(listed(home, cwd, "session", "list")) == 1


# Sent along


def test_attached_files_go_to_the_model_as_text_or_as_what_they_are(home: Home, cwd: Path) -> None:
    (cwd / "notes.md").write_text("# Milk\n")
    (cwd / "paper").write_bytes(b"%PDF-\xff")
    (cwd / "old.png").write_bytes("Käse\n".encode("latin-1"))
    files = ["-a", "notes.md", "--attach", "paper", "-a", "old.png"]
    done = home.longboat("run", "--run-id", "along", *files, "What is this?", cwd=cwd)
    assert done.code == 0, done.err
    (session,) = listed(home, cwd, "session", "list")
    asked = listed(home, cwd, "session", "show", session["id"])[0]
    files = [part for part in asked["parts"] if part["type"] == "file"]
    assert [(file["name"], file["media_type"], file.get("text"), file.get("data")) for file in files] == [
        ("notes.md", "text/markdown", "# Milk\n", None),
        ("paper", "application/pdf", None, base64.b64encode(b"%PDF-\xff").decode()),
        ("old.png", "text/plain", "Käse\n", None),
    ]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x7fELF\x02\x01\x01\x00", "it is not text (ELF program or library)"),
        (b"PK\x03\x04", "it is not text (ZIP archive"),
        (b"x" * 20_000 + b"\0", "it is not text (binary file)"),
        (b"\xff\xfb\x90\x01", "it is not text (binary file)"),
        (b"\x89PNG\r\n\x1a\n", "it is damaged"),
        (b"\x89PNG\r\n\x1a\n" + bytes(6_000_000), "images over 5 MB are not shown"),
    ],
)
def test_a_file_that_no_model_could_be_shown_is_refused_before_anything_is_sent(
    home: Home, cwd: Path, content: bytes, why: str
) -> None:
    """F1: with what can be attached instead."""
    (cwd / "blob").write_bytes(content)
    done = home.longboat("run", "-a", "blob", "hi", cwd=cwd)
    assert (done.code, done.out) == (2, "")
    assert f"Cannot attach blob: {why}" in done.err
    assert "Supported: text, images (PNG, JPEG, GIF, WebP; 5 MB each) and PDFs, 10 MB in total." in done.err
    assert listed(home, cwd, "session", "list") == []


def test_files_that_are_too_large_or_not_there_are_usage_errors(home: Home, cwd: Path) -> None:
    with open(cwd / "huge", "wb") as huge:
        huge.truncate(11_000_000)
    assert home.longboat("run", "-a", "nothing", "hi", cwd=cwd).code == 2
    done = home.longboat("run", "-a", "huge", "hi", cwd=cwd)
    assert done.code == 2
    assert "exceed 10 MB" in done.err


# Refused


def test_a_known_run_id_with_another_prompt_is_refused_and_leaves_no_session_behind(home: Home, cwd: Path) -> None:
    home.longboat("run", "--run-id", "taken", "one", cwd=cwd)
    done = home.longboat("run", "--run-id", "taken", "another", cwd=cwd)
    assert done.code == 1
    assert "Choose another run_id" in done.err
    assert len(listed(home, cwd, "session", "list")) == 1


@pytest.mark.parametrize("wrong", [["-m", "no-provider"], ["-m", "/m"], ["--run-id", "not an id"]])
def test_what_is_written_wrongly_is_a_usage_error(home: Home, cwd: Path, wrong: list[str]) -> None:
    done = home.longboat("run", *wrong, "hi", cwd=cwd)
    assert done.code == 2
    assert f"'{wrong[1]}'" in done.err
    assert listed(home, cwd, "session", "list") == []


@pytest.mark.parametrize("detach", [[], ["--detach"]])
@pytest.mark.parametrize("last", [[], ["-c"]])
def test_a_refused_prompt_leaves_no_session_behind(home: Home, cwd: Path, last: list[str], detach: list[str]) -> None:
    (cwd / "schema").write_text('{"type": "nonsense"}')
    done = home.longboat("run", "--schema", "schema", *last, *detach, "hi", cwd=cwd)
    assert done.code == 1
    assert "longboat: " in done.err
    assert listed(home, cwd, "session", "list") == []


def test_a_refused_prompt_leaves_the_session_alone_that_was_there_before(home: Home, cwd: Path) -> None:
    home.longboat("run", "one", cwd=cwd)
    (session,) = listed(home, cwd, "session", "list")
    (cwd / "schema").write_text('{"type": "nonsense"}')
    assert home.longboat("run", "-s", session["id"], "--schema", "schema", "hi", cwd=cwd).code == 1
    assert [each["id"] for each in listed(home, cwd, "session", "list")] == [session["id"]]


# Piped


def test_what_is_piped_in_follows_the_prompt(home: Home, cwd: Path) -> None:
    done = home.longboat("run", "Review", "this.", cwd=cwd, given="- old\n+ new\n")
    assert (done.code, done.out) == (0, "echo: Review this.\n\n- old\n+ new\n")


def test_what_is_in_a_file_follows_a_prompt_that_ends_with_a_dash(home: Home, cwd: Path) -> None:
    (cwd / "notes").write_text("milk")
    with open(cwd / "notes") as notes:
        done = finished(home.start("run", "What is this?", "-", cwd=cwd, stdin=notes))
    assert (done.code, done.out) == (0, "echo: What is this?\n\nmilk\n")
    with open(cwd / "notes") as notes:
        assert finished(home.start("run", "-", cwd=cwd, stdin=notes)).out == "echo: milk\n"


def test_a_file_is_not_read_without_a_dash_and_that_is_said(home: Home, cwd: Path) -> None:
    (cwd / "notes").write_text("milk")
    with open(cwd / "notes") as notes:
        done = finished(home.start("run", "What is this?", cwd=cwd, stdin=notes))
    assert (done.code, done.out) == (0, "echo: What is this?\n")
    assert 'end the prompt with "-" to read it' in done.err


def test_a_loop_over_a_file_keeps_its_list(home: Home, cwd: Path) -> None:
    (cwd / "list").write_text("a.py\nb.py\nc.py\n")
    loop = f'while read f; do {shlex.join(LONGBOAT)} run "Review $f"; done < list'
    command = ["sh", "-c", loop]
    done = subprocess.run(command, cwd=cwd, env=home.environ, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("echo: Review a.py\necho: Review b.py\necho: Review c.py\n", "")


def test_an_empty_pipe_adds_nothing(home: Home, cwd: Path) -> None:
    assert home.longboat("run", "hi", cwd=cwd, given="").out == "echo: hi\n"


def test_a_terminal_is_not_read_when_there_is_a_prompt(home: Home, cwd: Path) -> None:
    outer, inner = pty.openpty()
    assert finished(home.start("run", "hi", cwd=cwd, stdin=inner)).out == "echo: hi\n"
    os.close(inner)
    os.close(outer)


def test_a_socket_that_stays_open_is_not_read_when_there_is_a_prompt(home: Home, cwd: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert finished(home.start("run", "hi", cwd=cwd, stdin=theirs)).out == "echo: hi\n"


def test_a_closed_stdin_is_no_matter(home: Home, cwd: Path) -> None:
    process = home.start("run", "hi", cwd=cwd, stdin=None, preexec_fn=lambda: os.close(0))
    assert finished(process).out == "echo: hi\n"


def test_f1_a_pipe_that_stays_open_and_silent_does_not_hold_a_prompt_up(home: Home, cwd: Path) -> None:
    """Whoever starts us from a program often leaves it so."""
    silent, ours = os.pipe()
    with open(silent, "rb"), open(ours, "wb"):
        done = finished(home.start("run", "hi", cwd=cwd, stdin=silent))
    assert (done.code, done.out) == (0, "echo: hi\n")
    waiting, gone_on = done.err.splitlines()
    assert "redirect from /dev/null" in waiting
    assert 'end the prompt with "-"' in gone_on


def test_f1_a_pipe_whose_writer_is_slow_to_begin_is_read_to_its_end(home: Home, cwd: Path) -> None:
    process = home.start("run", "hi", cwd=cwd, stdin=subprocess.PIPE)
    assert process.stderr is not None
    assert "Waiting for standard input" in process.stderr.readline()
    assert process.stdin is not None
    process.stdin.write("late")
    process.stdin.flush()
    assert "until it ends" in process.stderr.readline(), "one that has begun is waited for"
    assert finished(process, " and later\n").out == "echo: hi\n\nlate and later\n"


# Watched


def test_watch_shows_a_run_from_now_to_its_end_with_its_exit_code(home: Home, cwd: Path) -> None:
    home.endpoint.script("seen", [Say("one "), Pause(Gate("seen")), Say("two")])
    run_id = home.longboat("run", "--detach", "[[seen]]", cwd=cwd).out.strip()
    home.endpoint.wait_for_gate("seen")
    watching = home.start("watch", "--format", "json", run_id, cwd=cwd)
    wait_for_line(watching, '"one ')
    home.endpoint.open_gate("seen")
    done = finished(watching)
    assert (done.code, done.events[-1]["payload"]["payload"]["text"]) == (0, "one two")
    over = home.longboat("watch", run_id, cwd=cwd)
    assert (over.code, over.out) == (0, "one two\n")


def test_ctrl_c_in_watch_leaves_the_run_alone(home: Home, cwd: Path) -> None:
    home.endpoint.script("left", [Say("x"), Pause(Gate("left")), Say("y")])
    run_id = home.longboat("run", "--detach", "[[left]]", cwd=cwd).out.strip()
    home.endpoint.wait_for_gate("left")
    watching = home.start("watch", "--format", "json", run_id, cwd=cwd)
    wait_for_line(watching, "message")
    watching.send_signal(signal.SIGINT)
    done = finished(watching)
    assert done.code == 130
    assert f"longboat cancel {run_id}" in done.err
    home.endpoint.open_gate("left")
    assert home.longboat("watch", run_id, cwd=cwd).out == "xy\n"


def test_r3_an_outage_is_told_and_a_prompt_that_is_given_up_is_said_to_be_kept(own_home: Home) -> None:
    cwd = own_home.workspace("w")
    own_home.endpoint.script("doomed", [Say("x"), Hang()])
    own_home.serve()
    command = ("run", "--format", "json", "--give-up-after", "0.5", "--run-id", "doomed", "[[doomed]]")
    process = own_home.start(*command, cwd=cwd)
    wait_for_line(process, '"message_delta"')
    watching = own_home.start("watch", "--format", "json", "doomed", cwd=cwd)
    wait_for_line(watching, '"message"')
    own_home.kill_server()
    done = finished(process)
    lost, gave_up, kept = done.err.splitlines()
    assert (done.code, lost) == (1, "Connection lost. Reconnecting…")
    assert gave_up.startswith("longboat: Gave up after 0.5 s")
    assert "longboat watch doomed" in kept
    own_home.serve()
    waited = finished(watching)
    assert waited.code == 1
    assert waited.err.splitlines()[:2] == ["Connection lost. Reconnecting…", "Reconnected."]
    assert own_home.longboat("watch", "doomed", cwd=cwd).err == waited.err.partition("Reconnected.\n")[2]


def test_r4_ctrl_c_while_the_server_is_away_cancels_the_run_when_it_is_back(own_home: Home) -> None:
    cwd = own_home.workspace("w")
    file = own_home.path / "config" / "longboat" / "longboat.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"on_restart": "resume"}))
    own_home.endpoint.script("away", [Say("x"), Hang()], [Say("y"), Hang()])
    own_home.serve()
    process = own_home.start("run", "--format", "json", "--run-id", "away", "[[away]]", cwd=cwd)
    wait_for_line(process, '"message_delta"')
    own_home.kill_server()
    assert process.stderr is not None
    assert "Connection lost." in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert "Canceling" in process.stderr.readline()
    own_home.serve()
    assert finished(process).code == 130
    (run,) = listed(own_home, cwd, "runs")
    assert (run["state"], run["outcome"]) == ("finished", "canceled")


@pytest.mark.parametrize("detached", [[], ["--detach"]])
def test_a_prompt_that_nobody_could_answer_leaves_no_session_behind(home: Home, cwd: Path, detached: list[str]) -> None:
    unknown = home.longboat("run", *detached, "-m", "nowhere/m", "hi", cwd=cwd)
    assert (unknown.code, unknown.out) == (1, "")
    assert "There is no provider 'nowhere'" in unknown.err
    (cwd / "longboat.json").write_text("{broken")
    broken = home.longboat("run", *detached, "hi", cwd=cwd)
    assert (broken.code, broken.out) == (1, "")
    assert "longboat.json" in broken.err
    assert "Nothing was sent." in broken.err
    assert listed(home, cwd, "session", "list") == listed(home, cwd, "runs") == []
    (cwd / "longboat.json").unlink()
    (run_id,) = home.longboat("run", "--detach", "--run-id", "known", "hi", cwd=cwd).lines
    home.longboat("watch", run_id, cwd=cwd)
    again = home.longboat("run", "--run-id", "known", "hi", cwd=cwd)
    assert (again.code, again.out) == (0, "echo: hi\n"), "a run that is known needs nobody to answer"
