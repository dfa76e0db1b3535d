"""Every script in examples/ runs against a real server."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_home import Home, Process, finished, wait_for_line

from longboat.testing import Hang, Say

pytestmark = pytest.mark.acceptance

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def home(new_home: Home) -> Home:
    new_home.serve()
    return new_home


def example(home: Home, cwd: Path, name: str, *arguments: str) -> Process:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        cwd=cwd,
        env=home.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    home.processes.append(process)
    return process


def test_hello_streams_an_answer(home: Home, cwd: Path) -> None:
    done = finished(example(home, cwd, "hello.py", "good", "day"))
    assert (done.code, done.out, done.err) == (0, "echo: good day\n[end_turn] \n", "")


def test_two_clients_see_the_same_events_in_the_same_order(home: Home, cwd: Path) -> None:
    done = finished(example(home, cwd, "two_clients.py"))
    assert done.code == 0, done.err
    anna, ben, same = done.lines
    assert (anna, ben) == ("Anna's answer: echo: I am Anna.", "Ben's answer: echo: And I am Ben.")
    assert same.endswith("events in the same order: True")


def test_steer_and_cancel_ends_the_first_and_leaves_the_second_alone(home: Home, cwd: Path) -> None:
    home.endpoint.script(None, [Say("Once"), Hang()])
    done = finished(example(home, cwd, "steer_and_cancel.py"))
    assert done.code == 0, done.err
    assert done.lines == [
        "It begins: 'Once'",
        "The second prompt is accepted, 1 before it.",
        "story: canceled",
        "poem: end_turn",
    ]


def test_the_watcher_misses_nothing_while_the_server_is_killed_and_started_again(home: Home, cwd: Path) -> None:
    watcher = example(home, cwd, "watcher.py", "3")
    wait_for_line(watcher, "watching")
    home.longboat("run", "one", cwd=cwd)
    home.kill_server()
    home.serve()
    home.longboat("run", "two", cwd=cwd)
    home.longboat("run", "three", cwd=cwd)
    done = finished(watcher)
    assert (done.code, done.lines) == (0, [f"end_turn: echo: {word}" for word in ("one", "two", "three")])


def test_the_watcher_ends_with_ctrl_c(home: Home, cwd: Path) -> None:
    watcher = example(home, cwd, "watcher.py")
    wait_for_line(watcher, "watching")
    watcher.send_signal(signal.SIGINT)
    done = finished(watcher)
    assert (done.code, done.err) == (0, "")


def test_the_sync_client_holds_a_conversation(home: Home, cwd: Path) -> None:
    done = finished(example(home, cwd, "sync_client.py"))
    assert (done.code, done.err) == (0, "")
    assert done.lines == [
        "echo: Name a colour.",
        "echo: And another one.",
        "     user: Name a colour.",
        "assistant: echo: Name a colour.",
        "     user: And another one.",
        "assistant: echo: And another one.",
    ]


def test_every_example_is_run_here() -> None:
    text = Path(__file__).read_text()
    assert all(f'"{script.name}"' in text for script in EXAMPLES.glob("*.py"))
