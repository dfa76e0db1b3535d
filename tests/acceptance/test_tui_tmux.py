"""The terminal app in a real terminal, against a real server process, with other clients beside it (F2, F6, R, E)."""

import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from cli_home import Home
from tmux import Pane, pane

from longboat.client import SyncClient
from longboat.testing import CallTool, Gate, Pause, Say
from parts import how, missing

pytestmark = [pytest.mark.acceptance, pytest.mark.skipif(missing("tmux"), reason=how("tmux"))]

SIZES = [(80, 24), (120, 40)]
READY = "Type a prompt"


@pytest.fixture
def cwd(home: Home, request: pytest.FixtureRequest) -> Path:
    home.longboat("stop", "--force", cwd=home.path)
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return home.workspace(name[-40:])


def client(home: Home, name: str) -> SyncClient:
    return SyncClient(socket=str(home.socket), client_id=name)


@pytest.mark.parametrize("size", SIZES)
def test_another_client_cancels_and_the_screen_shows_it(home: Home, cwd: Path, size: tuple[int, int]) -> None:
    gate = f"cancel-{size[0]}"
    home.endpoint.script(gate, [Say("# Heading\n\nhalf of it "), Pause(Gate(gate))])
    with pane(home, cwd=cwd, size=size) as shown:
        shown.until(READY)
        shown.say(f"[[{gate}]]")
        shown.until("half of it", "working", "esc stop")
        assert len(shown.lines) == size[1]
        done = home.longboat("cancel", "--all", cwd=cwd)
        assert done.code == 0, done.err
        shown.until("Canceled", "Idle", "half of it")  # what was said stays


@pytest.mark.parametrize("size", SIZES)
def test_another_client_answers_and_the_screen_says_who(home: Home, cwd: Path, size: tuple[int, int]) -> None:
    script = f"asked-{size[0]}"
    home.endpoint.script(script, [CallTool("bash", {"command": "touch made"})], [Say("All done.")])
    with pane(home, cwd=cwd, size=size) as shown:
        shown.until(READY)
        shown.say(f"[[{script}]]")
        shown.until("touch made", "Deny")
        with client(home, "bob:phone") as bob:
            workspace = bob.join(str(cwd)).id
            ask = bob.permissions(workspace).items[0]
            bob.answer_permission(workspace, ask.id, "once")
        shown.until("All done.", "Idle", "allowed (once) by bob")
        assert (cwd / "made").exists()


def test_a_server_that_is_killed_and_comes_back_loses_nothing_that_was_typed(home: Home, cwd: Path) -> None:
    """R and E: the app says that it reconnects, prompts wait, the half of a prompt stays. One that was started by hand
    is not the app's to start again."""
    home.serve()
    with pane(home, cwd=cwd) as shown:
        shown.until(READY)
        shown.say("before")
        shown.until("echo: before", "Idle")
        home.kill_server()
        shown.until("Reconnecting")
        shown.say("meanwhile")
        shown.until("waiting for the server")
        shown.type("half a promp")
        shown.until("half a promp")
        home.serve()
        shown.until("echo: meanwhile", "half a promp", gone="Reconnecting")
        # The terminal may be looked at while the app draws.
        shown.until_so(lambda screen: screen.count("echo: before") == 1, "said once")
        shown.type("t")
        shown.press("Enter")
        shown.until("echo: half a prompt", "Idle")


def test_who_leaves_in_the_middle_is_told_that_the_run_goes_on(home: Home, cwd: Path) -> None:
    home.endpoint.script("long", [Say("first "), Pause(Gate("long")), Say("and last")])
    with pane(home, cwd=cwd, size=(120, 40)) as shown:
        shown.until(READY)
        shown.say("[[long]]")
        shown.until("first")
        shown.press("C-c")
        shown.until("Press ctrl+c again to quit")
        shown.press("C-c")
        screen = shown.until("ended 0")
        assert "will continue on the server" in screen
        back = next(line for line in screen.splitlines() if "Continue with:" in line)
        session = back.rpartition("-s ")[2].strip()
    home.endpoint.open_gate("long")
    with pane(home, "-s", session, cwd=cwd, size=(120, 40), user="again") as shown:
        shown.until("first and last", "Idle")


ATTACKS = (
    "\x1b]0;owned\x07\x1b]2;owned\x1b\\\x1b]52;c;b3duZWQ=\x07\x1bkowned\x1b\\"
    "\x1b[2J\x1b[H\x1b[?1049l\x1b[20;20H\x9d0;owned\x9c"
)
HIDDEN = r"printf '\033]0;owned\007\033]52;c;b3duZWQ=\007\033[2J\033[H\033[?1049l\302\235' ; echo visible"


STATE = ("pane_title", "window_name", "alternate_on", "cursor_x", "cursor_y", "insert_flag", "origin_flag")


def state_of(shown: Pane) -> dict[str, str]:
    return {what: shown.told(what) for what in STATE}


def stands_at_the_bottom(shown: Pane) -> None:
    """The composer and the status line are the last rows of the terminal. Waited for: a tmux that does not hold frames
    together may be read in the middle of one."""
    height = int(shown.told("pane_height"))

    def so(screen: str) -> bool:
        rows = screen.split("\n")[:height]
        edges = (rows[-4][:1], rows[-2][:1]) == ("╭", "╰")
        return len(rows) == height and edges and READY in rows[-3] and rows[-1].startswith(" Idle")

    shown.until_so(so, "the composer and the status line are the last four rows")


def test_escapes_of_models_and_tools_do_nothing_to_the_terminal(home: Home, cwd: Path) -> None:
    home.endpoint.script(
        "evil",
        [Say(f"said {ATTACKS} end"), CallTool("bash", {"command": HIDDEN})],
        [Say(f"```\n{ATTACKS}\n```\n\nover")],
    )
    with pane(home, "--yolo", cwd=cwd, size=(120, 40)) as shown:
        shown.until(READY)
        shown.say("hello")
        shown.until("echo: hello", "Idle")
        before = state_of(shown)
        assert before["alternate_on"] == "1"
        shown.say("[[evil]]")
        screen = shown.until("over", "visible", "Idle", READY, "␛]0;owned␇")
        assert state_of(shown) == before
        assert shown.tmux("list-buffers") == ""
        assert screen.splitlines()[0].strip().startswith("hello"), "the header is where it was"
        stands_at_the_bottom(shown)
        shown.press("C-c", "C-c")
        shown.until("ended 0")
        assert shown.tmux("list-buffers") == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_in_order_and_says_what_goes_on(
    home: Home, cwd: Path, number: signal.Signals
) -> None:
    gate = f"signal-{number.value}"
    home.endpoint.script(gate, [Say("half of it "), Pause(Gate(gate))])
    with pane(home, cwd=cwd) as shown:
        shown.until(READY)
        shown.say(f"[[{gate}]]")
        shown.until("half of it")
        (app,) = [each for each in psutil.process_iter() if is_app(each, cwd)]
        app.send_signal(number)
        shown.until("will continue on the server")
        assert (shown.told("alternate_on"), shown.told("mouse_any_flag"), shown.told("cursor_flag")) == ("0", "0", "1")
    home.endpoint.open_gate(gate)


def is_app(process: psutil.Process, cwd: Path) -> bool:
    with suppress(psutil.Error):
        return process.cmdline()[-2:] == ["-m", "longboat"] and process.cwd() == str(cwd)
    return False


def test_a_paste_of_several_lines_is_sent_in_lines(home: Home, cwd: Path) -> None:
    with pane(home, cwd=cwd) as shown:
        shown.until(READY)
        shown.tmux("set-buffer", "-b", "lines", "first line\nsecond line")
        shown.tmux("paste-buffer", "-p", "-b", "lines")
        shown.until("second line")
        shown.press("Enter")
        screen = shown.until("echo: first line second line", "Idle", "▌ first line", "▌ second line")
        assert "␍" not in screen


def test_bytes_that_are_no_text_do_not_end_the_app(home: Home, cwd: Path) -> None:
    """A binary file that somebody pastes, or a terminal that speaks Latin-1."""
    data = home.path / "binary"
    data.write_bytes(b"caf\xe9 " + bytes(range(0x80, 0x100)))
    with pane(home, cwd=cwd) as shown:
        shown.until(READY)
        shown.tmux("load-buffer", "-b", "binary", str(data))
        shown.tmux("paste-buffer", "-p", "-b", "binary")
        shown.until("caf")
        shown.type(" alive")
        shown.until("alive")
