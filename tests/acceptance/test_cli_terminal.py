"""The terminal app and the server in the background behind it (R3, B5)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_home import Home, home_with, scripted_endpoint
from tmux import pane

from parts import how, missing

pytestmark = [pytest.mark.acceptance, pytest.mark.skipif(missing("tmux"), reason=how("tmux"))]


@pytest.fixture
def home() -> Iterator[Home]:
    with scripted_endpoint() as endpoint, home_with(endpoint) as found:
        yield found


@pytest.fixture
def cwd(home: Home) -> Path:
    return home.workspace("w")


def test_r3_the_app_starts_a_server_again_that_was_killed(home: Home, cwd: Path) -> None:
    """Whoever has one terminal, with the app in it, has no other to start it from."""
    with pane(home, cwd=cwd) as shown:
        shown.until("Ask for something")
        shown.say("before")
        shown.until("echo: before")
        before = home.discovery().pid
        home.kill_server()
        shown.say("hello")
        shown.until("echo: hello")
        assert home.discovery().pid != before


def test_b5_the_app_says_that_the_server_was_stopped_and_goes_on_when_there_is_one(home: Home, cwd: Path) -> None:
    with pane(home, cwd=cwd) as shown:
        shown.until("Ask for something")
        shown.say("before")
        shown.until("echo: before", "Idle")
        assert home.longboat("stop", cwd=cwd).code == 0
        shown.until("The server was stopped: any `longboat` command starts one.")
        assert "Starting a Longboat server" in home.longboat("runs", cwd=cwd).err, "nobody had started it before"
        shown.say("hello")
        shown.until("echo: hello")
