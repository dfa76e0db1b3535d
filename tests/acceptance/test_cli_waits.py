"""What `longboat run` says while it waits: for a silent model, or for a run ahead that needs an answer."""

import json
from pathlib import Path

import pytest
from cli_home import Home, finished
from terminal import Terminal

from longboat.testing import CallTool, Gate, Pause, Say

pytestmark = pytest.mark.acceptance
COLORED = {"NO_COLOR": "", "TERM": "xterm"}


def test_a_silent_model_is_told_at_a_terminal_until_it_speaks(home: Home, cwd: Path) -> None:
    home.endpoint.script("silent", [Pause(Gate("silent")), Say("At last.")])
    terminal = Terminal(home, "run", "[[silent]]", cwd=cwd, environ=COLORED)
    shown = terminal.until("Waiting for mine/m… ")
    assert shown.index("\r\x1b[K") < shown.index("Waiting")
    terminal.forget()
    home.endpoint.open_gate("silent")
    shown = terminal.until("At last.")
    assert "\r\x1b[K" in shown[: shown.index("At last.")], "the line is gone"
    assert terminal.finish() == 0


def pending(home: Home, cwd: Path, kind: str) -> str:
    (line,) = home.longboat(kind, "--format", "json", cwd=cwd).lines
    found: str = json.loads(line)["id"]
    return found


@pytest.mark.parametrize("is_asked_first", [True, False])
def test_a_queued_prompt_says_that_the_active_run_needs_approval(home: Home, cwd: Path, is_asked_first: bool) -> None:
    """Whether it was asked for before the prompt came or later."""
    name = f"ahead-{is_asked_first}"
    home.endpoint.script(name, [Pause(Gate(name)), CallTool("bash", {"command": "touch x"})], [Say("one")])
    ahead = home.start("run", "--wait-for-answers", f"[[{name}]]", cwd=cwd)
    assert ahead.stderr is not None
    home.endpoint.wait_for_gate(name)
    told = []
    if is_asked_first:
        home.endpoint.open_gate(name)
        assert "Waiting for an answer" in ahead.stderr.readline()
    behind = home.start("run", "-c", "two", cwd=cwd)
    assert behind.stderr is not None
    if not is_asked_first:
        told.append(behind.stderr.readline())
        home.endpoint.open_gate(name)
    told.append(behind.stderr.readline())
    needed = "queued: runs next. The active run needs approval: longboat permissions\n"
    assert told == ([needed] if is_asked_first else ["queued: runs next\n", needed])
    home.longboat("permissions", "answer", pending(home, cwd, "permissions"), "once", cwd=cwd)
    assert finished(ahead).out == "one\n"
    done = finished(behind)
    assert (done.code, done.out, done.err) == (0, "echo: two\n", "")


def test_a_queued_prompt_says_that_the_active_run_asks_a_question(home: Home, cwd: Path) -> None:
    home.endpoint.script("asks", [CallTool("question", {"text": "Which color?"})], [Say("one")])
    ahead = Terminal(home, "run", "[[asks]]", cwd=cwd)
    ahead.until("Which color?")
    # At a terminal, too: the question of another run is not put to the person who waits behind it.
    behind = Terminal(home, "run", "-c", "two", cwd=cwd)
    behind.until("queued: runs next. The active run asks a question: longboat questions\r\n")
    assert "Which color?" not in behind.seen
    ahead.until("\n> ")
    ahead.type("red")
    assert ahead.finish() == 0
    assert behind.finish() == 0
    assert "echo: two" in behind.seen


def test_programs_are_not_told_what_the_run_ahead_asks(home: Home, cwd: Path) -> None:
    home.endpoint.script("json-ahead", [CallTool("bash", {"command": "touch x"})], [Say("one")])
    ahead = home.start("run", "--wait-for-answers", "[[json-ahead]]", cwd=cwd)
    assert ahead.stderr is not None
    assert "Waiting for an answer" in ahead.stderr.readline()
    behind = home.start("run", "-c", "--format", "json", "two", cwd=cwd)
    assert behind.stdout is not None
    first = json.loads(behind.stdout.readline())
    assert first["payload"]["payload"]["state"] in ("accepted", "queued")
    home.longboat("permissions", "answer", pending(home, cwd, "permissions"), "once", cwd=cwd)
    assert finished(ahead).code == 0
    assert "permission" not in {event["type"].partition("_")[0] for event in finished(behind).events}


def test_the_first_prompt_in_the_queue_is_next(home: Home, cwd: Path) -> None:
    home.endpoint.script("busy", [Pause(Gate("busy-queue")), Say("x")])
    home.longboat("run", "--detach", "[[busy]]", cwd=cwd)
    home.endpoint.wait_for_gate("busy-queue")
    for prompt in ("two", "three"):
        home.longboat("run", "--detach", "-c", prompt, cwd=cwd)
    listed = {line.split()[-1]: line for line in home.longboat("runs", cwd=cwd).lines[1:]}
    assert "  queued, next  " in listed["two"]
    assert "  queued #2  " in listed["three"]
    home.endpoint.open_gate("busy-queue")
