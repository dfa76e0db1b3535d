"""The terminal app and the server in the background behind it (R3, B5)."""

from pathlib import Path

import pytest
from cli_home import Home
from tmux import pane

from parts import how, missing

pytestmark = [pytest.mark.acceptance, pytest.mark.skipif(missing("tmux"), reason=how("tmux"))]


@pytest.fixture
def home(own_home: Home) -> Home:
    return own_home


@pytest.fixture
def cwd(home: Home) -> Path:
    return home.workspace("w")


def test_r3_the_app_starts_a_server_again_that_was_killed(home: Home, cwd: Path) -> None:
    """Whoever has one terminal, with the app in it, has no other to start it from."""
    with pane(home, cwd=cwd) as shown:
        shown.until("Type a prompt")
        shown.say("before")
        shown.until("echo: before")
        before = home.discovery().pid
        home.kill_server()
        shown.say("hello")
        shown.until("echo: hello")
        assert home.discovery().pid != before


def test_b5_the_app_says_that_the_server_was_stopped_and_goes_on_when_there_is_one(home: Home, cwd: Path) -> None:
    with pane(home, cwd=cwd) as shown:
        shown.until("Type a prompt")
        shown.say("before")
        shown.until("echo: before", "Idle")
        assert home.longboat("stop", cwd=cwd).code == 0
        shown.until("The server was stopped: any `longboat` command starts one.")
        listed = home.longboat("runs", cwd=cwd)
        assert "Starting a Longboat server" in listed.err, "nobody had started it before"
        assert listed.code == 0, listed.err
        shown.say("hello")
        shown.until("echo: hello")


@pytest.fixture
def url(home: Home) -> str:
    home.serve("--port", "0")
    return home.discovery().url or ""


def test_attach_offers_the_directory_one_is_in_and_takes_a_number_a_path_or_an_id(
    home: Home, cwd: Path, url: str
) -> None:
    other = home.workspace("a-first")
    home.longboat("run", "from the first", cwd=other)
    home.longboat("run", "from here", cwd=cwd)
    with pane(home, "attach", url, "-c", cwd=cwd) as shown:
        listed = shown.until("Directory [")
        here = next(line.split()[0] for line in listed.splitlines() if line.endswith(str(cwd)))
        assert f"Directory [{here}]:" in listed
        shown.say("nonsense")
        shown.until("'nonsense' is not in the list: enter a number from 1 to 2")
        shown.press("Enter")
        shown.until("echo: from here")
    with pane(home, "attach", url, "-c", cwd=cwd) as shown:
        shown.until("Directory [")
        shown.say(str(other))
        shown.until("echo: from the first")


def test_going_on_in_the_app_is_going_on_where_a_prompt_was_sent_last(home: Home, cwd: Path) -> None:
    """-c of the app, of `run` and of `undo` is the same session."""
    home.longboat("run", "older", cwd=cwd)
    older = home.longboat("session", "list", cwd=cwd).lines[-1].split()[0]
    home.longboat("run", "newer", cwd=cwd)
    home.longboat("run", "-s", older, "again", cwd=cwd)
    with pane(home, "-c", cwd=cwd) as shown:
        shown.until("echo: older", "echo: again")


def test_attach_takes_the_beginning_of_a_sessions_id(home: Home, cwd: Path, url: str) -> None:
    home.longboat("run", "hello", cwd=cwd)
    session = home.longboat("session", "list", cwd=cwd).lines[-1].split()[0]
    with pane(home, "attach", url, "--cwd", str(cwd), "-s", session[:18], cwd=cwd) as shown:
        shown.until("echo: hello")
