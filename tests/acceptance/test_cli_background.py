"""The server behind `longboat run`: started once, found again, replaced when it must be."""

import json
import os
import signal
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from cli_home import Endpoint, Home, finished, wait_for_line

from longboat.testing import Gate, Hang, Pause, Say
from longboat.wire.models import PROTOCOL

pytestmark = pytest.mark.acceptance


@pytest.fixture
def home(own_home: Home) -> Home:
    return own_home


@pytest.fixture
def cwd(home: Home) -> Path:
    return home.workspace("w")


def test_a_server_is_started_found_again_and_stopped(home: Home, cwd: Path) -> None:
    assert "No server is running" in home.longboat("status", cwd=cwd).out
    first = home.longboat("run", "one", cwd=cwd)
    assert (first.code, first.out) == (0, "echo: one\n")
    assert "Starting a Longboat server" in first.err
    pid = home.discovery().pid
    second = home.longboat("run", "two", cwd=cwd)
    assert (second.code, second.err, home.discovery().pid) == (0, "", pid)
    assert home.longboat("status", cwd=cwd).code == 0
    assert home.longboat("stop", cwd=cwd).out == "The server has stopped.\n"
    assert home.longboat("stop", cwd=cwd).out == "No server is running.\n"
    assert not home.socket.exists()


def test_several_that_start_at_once_end_with_one_server(home: Home, cwd: Path) -> None:
    starting = [home.start("run", f"hi {number}", cwd=cwd) for number in range(5)]
    done = [finished(process) for process in starting]
    assert [(each.code, each.out) for each in done] == [(0, f"echo: hi {number}\n") for number in range(5)]
    assert home.log.count("listening on") == 1


def test_after_a_crash_the_stale_socket_and_the_dead_pid_do_not_matter(home: Home, cwd: Path) -> None:
    home.longboat("run", "one", cwd=cwd)
    dead = home.discovery().pid
    home.kill_server()
    assert home.socket.exists()
    done = home.longboat("run", "-c", "two", cwd=cwd)
    assert (done.code, done.out) == (0, "echo: two\n")
    assert home.discovery().pid != dead


def test_a_server_that_cannot_start_is_told_with_its_reason(home: Home, cwd: Path) -> None:
    config = home.path / "config" / "longboat" / "longboat.json"
    config.write_text('{\n  "modles": {}\n}')
    done = home.longboat("run", "hi", cwd=cwd)
    assert done.code == 1
    assert f"{config}:2: modles: unknown key: did you mean 'models'?" in done.err


def test_a_second_serve_is_refused_and_told_how_to_attach(home: Home, cwd: Path) -> None:
    home.serve()
    second = home.longboat("serve", cwd=cwd)
    assert second.code == 1
    assert "already listening" in second.err
    assert "longboat run" in second.err
    assert "Traceback" not in second.err


def test_a_second_server_with_its_own_socket_and_data_is_attached_to_by_name(home: Home, cwd: Path) -> None:
    home.serve()
    home.serve("--socket", str(home.path / "run" / "two.sock"), "--data-dir", str(home.path / "data2"))
    socket = {"LONGBOAT_SOCKET": str(home.path / "run" / "two.sock")}
    assert home.longboat("run", "hi", cwd=cwd, **socket).code == 0
    assert len(home.longboat("runs", "--format", "json", cwd=cwd, **socket).lines) == 1
    assert home.longboat("runs", cwd=cwd).out == "No runs.\n"
    assert home.longboat("stop", cwd=cwd, **socket).code == 0
    assert home.longboat("status", cwd=cwd).code == 0


def test_a_server_on_tcp_alone_is_discovered_with_its_token(home: Home, cwd: Path) -> None:
    home.serve("--socket", "none", "--port", "0")
    done = home.longboat("run", "hi", cwd=cwd)
    assert (done.code, done.out, done.err) == (0, "echo: hi\n", "")


def test_r3_a_waiting_run_finds_a_restarted_server_at_its_new_address_with_its_new_token(home: Home, cwd: Path) -> None:
    home.endpoint.script("moved", [Say("x"), Hang()])
    home.serve("--socket", "none", "--port", "0")
    before = home.discovery()
    process = home.start("run", "--format", "json", "[[moved]]", cwd=cwd)
    wait_for_line(process, '"message_delta"')
    home.kill_server()
    (home.path / "data" / "token").unlink()  # else it would be the same
    home.serve("--socket", "none", "--port", "0")
    assert home.discovery().token != before.token
    assert finished(process).events[-1]["payload"]["payload"]["outcome"] == "interrupted"


def test_a_wrong_token_is_told_with_the_next_step(home: Home, cwd: Path) -> None:
    home.serve("--port", "0")
    url = home.discovery().url or ""
    assert home.longboat("run", "hi", cwd=cwd, LONGBOAT_URL=url).code == 0
    done = home.longboat("run", "hi", cwd=cwd, LONGBOAT_URL=url, LONGBOAT_TOKEN="wrong")
    assert done.code == 1
    assert "LONGBOAT_TOKEN" in done.err
    assert "Traceback" not in done.err


def test_no_server_is_started_in_place_of_one_that_the_user_named(home: Home, cwd: Path) -> None:
    done = home.longboat("run", "hi", cwd=cwd, LONGBOAT_SOCKET=str(home.path / "nowhere"))
    assert done.code == 1
    assert done.err.startswith("longboat: No answer from the Longboat server at unix socket")
    assert not home.socket.exists()


def test_a_background_server_outlives_the_terminal_that_started_it(home: Home, cwd: Path) -> None:
    process = home.start("run", "hi", cwd=cwd, start_new_session=True)
    assert finished(process).code == 0
    server = home.discovery().pid
    assert os.getsid(server) == server
    if os.geteuid() == 0:  # the server keeps others out, even those that run as the same user
        assert os.readlink(f"/proc/{server}/cwd") == str(home.path / "data")


class _OldServer(BaseHTTPRequestHandler):
    """A server of another protocol, that stops when asked unless it is busy."""

    busy = False

    def address_string(self) -> str:
        return "old"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._reply(200, {"version": "0.0.9", "protocol": PROTOCOL - 1})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        if self.busy:
            self._reply(409, {"code": "server_busy", "message": "A run is unfinished."})
            return
        Path(str(self.server.server_address)).unlink()  # before the answer: who asks again finds nobody
        self._reply(202, {"status": "leaving"})
        threading.Thread(target=self.server.shutdown).start()

    def _reply(self, status: int, body: dict[str, object]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class _BusyOldServer(_OldServer):
    busy = True


@pytest.fixture
def old_server(home: Home, request: pytest.FixtureRequest) -> Iterator[None]:
    home.socket.parent.mkdir(mode=0o700)
    with socketserver.ThreadingUnixStreamServer(str(home.socket), request.param) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("old_server", [_OldServer], indirect=True)
def test_an_idle_server_of_another_protocol_is_replaced(home: Home, cwd: Path, old_server: None) -> None:
    done = home.longboat("run", "hi", cwd=cwd)
    assert (done.code, done.out) == (0, "echo: hi\n")
    assert "Replacing the running server, version 0.0.9" in done.err


@pytest.mark.parametrize("old_server", [_BusyOldServer], indirect=True)
def test_a_busy_server_of_another_protocol_is_left_alone(home: Home, cwd: Path, old_server: None) -> None:
    done = home.longboat("run", "hi", cwd=cwd)
    assert done.code == 1
    assert "another version (0.0.9" in done.err
    assert "longboat stop --force" in done.err


def test_logs_shows_what_the_background_server_said(home: Home, cwd: Path) -> None:
    assert "No log yet" in home.longboat("logs", cwd=cwd).err
    home.longboat("run", "hi", cwd=cwd)
    assert "listening on" in home.longboat("logs", cwd=cwd).out
    following = home.start("logs", "-f", cwd=cwd)
    assert following.stdout is not None
    assert "listening on" in following.stdout.readline()
    home.longboat("stop", cwd=cwd)
    assert "leaving" in following.stdout.readline()
    following.send_signal(signal.SIGINT)
    assert following.wait(10) == 130


def test_stop_refuses_to_interrupt_a_run_unless_forced(home: Home, cwd: Path) -> None:
    home.endpoint.script("long", [Pause(Gate("long"))])
    home.longboat("run", "--detach", "[[long]]", cwd=cwd)
    home.endpoint.wait_for_gate("long")
    refused = home.longboat("stop", cwd=cwd)
    assert refused.code == 1
    assert "longboat stop --force" in refused.err
    assert "if_idle" not in refused.err
    assert home.longboat("stop", "--force", cwd=cwd).code == 0


def test_a_key_that_is_set_later_reaches_a_server_that_takes_the_idle_ones_place(home: Home, cwd: Path) -> None:
    home.longboat("run", "one", cwd=cwd)
    first = home.discovery().pid
    done = home.longboat("run", "two", cwd=cwd, GROQ_API_KEY="not-a-key")
    assert (done.code, done.out) == (0, "echo: two\n")
    assert "started without GROQ_API_KEY" in done.err
    assert home.discovery().pid != first
    again = home.longboat("run", "three", cwd=cwd, GROQ_API_KEY="not-a-key")
    assert (again.code, again.err) == (0, "")
    assert home.longboat("run", "four", cwd=cwd).err == "", "a key that the server has and we have not is no matter"


def test_a_busy_server_without_the_key_stays_and_the_person_is_told(home: Home, cwd: Path, endpoint: Endpoint) -> None:
    endpoint.script("slow", [Say("working"), Pause(Gate("keyless")), Say(" done")])
    working = home.start("run", "[[slow]]", cwd=cwd)
    endpoint.wait_for_gate("keyless")
    pid = home.discovery().pid
    done = home.longboat("run", "two", cwd=cwd, GROQ_API_KEY="not-a-key")
    assert (done.code, done.out) == (0, "echo: two\n")
    assert "`longboat stop`, then try again" in done.err
    assert home.discovery().pid == pid
    endpoint.open_gate("keyless")
    assert finished(working).out == "working done\n"


def test_r3_a_server_in_the_background_that_was_killed_is_started_again_by_who_waits_for_it(
    home: Home, cwd: Path
) -> None:
    """R3: whoever has one terminal need not open a second one. What was queued runs, the rest is told."""
    home.endpoint.script("gone", [Say("x"), Hang()])
    process = home.start("run", "--format", "json", "[[gone]]", cwd=cwd)
    wait_for_line(process, '"message_delta"')
    before = home.discovery().pid
    home.kill_server()
    assert finished(process).events[-1]["payload"]["payload"]["outcome"] == "interrupted"
    assert home.discovery().pid != before


def test_b5_one_that_was_stopped_is_not_started_again(home: Home, cwd: Path) -> None:
    home.endpoint.script("stopped", [Say("x"), Hang()])
    process = home.start("run", "--format", "json", "[[stopped]]", cwd=cwd)
    wait_for_line(process, '"message_delta"')
    assert home.longboat("stop", "--force", cwd=cwd).code == 0
    assert finished(process).events[-1]["payload"]["payload"]["outcome"] == "interrupted"
    assert not home.socket.exists()


def test_r3_who_waits_for_a_server_that_was_stopped_is_told_so_and_goes_on_with_the_next(home: Home, cwd: Path) -> None:
    """B5: what was queued stays; whoever waits for it must not look for a connection that nobody lost."""
    home.endpoint.script("ahead", [Say("x"), Pause(Gate("ahead"))])
    home.longboat("run", "--detach", "[[ahead]]", cwd=cwd)
    home.endpoint.wait_for_gate("ahead")
    waiting = home.start("run", "-c", "--format", "json", "behind", cwd=cwd)
    wait_for_line(waiting, '"queued"')
    assert home.longboat("stop", "--force", cwd=cwd).code == 0
    assert waiting.stderr is not None
    said = iter(waiting.stderr.readline, "")
    assert any(line.startswith("The server was stopped: ") for line in said)
    assert "Starting a Longboat server" in home.longboat("runs", cwd=cwd).err, "nobody had started it before"
    assert finished(waiting).events[-1]["payload"]["payload"]["text"] == "echo: behind"
